//! The agent behind tools that are served to MCP clients.

use std::{num::NonZeroU64, path::PathBuf, sync::Arc};

use windlass::{
    Agent, AgentBuilder, EditTools, Family, FileTools, ModelClient, Policy, ShellKind, Toolset,
    host::Machine, mcp::ToolSource,
};

use super::{ProgramSetup, flags::choice_flags};
use crate::{
    args::{CommonOptions, GatewaySearch, ModelChoice},
    policy,
    problem::CliProblem,
};

impl ProgramSetup {
    /// Creates a setup for serving: that of an agent, whose model is needed only by the tools that
    /// run one.
    pub(crate) fn for_serving(common: &CommonOptions) -> Result<Self, CliProblem> {
        Self::for_agent(common, Vec::new())
    }

    /// Creates a setup for an agent that a client starts.
    pub(crate) fn for_served_agent(common: &CommonOptions, choice: &ModelChoice) -> Result<Self, CliProblem> {
        Self::for_agent(common, choice_flags(choice))
    }

    /// Returns an agent for calls of clients. With roots, it works in the first of them and writes
    /// only there.
    pub(crate) fn served_agent(
        &self,
        machine: Machine,
        caller: Arc<dyn ModelClient>,
        roots: Option<&[PathBuf]>,
    ) -> Result<AgentBuilder, CliProblem> {
        let config = self.config();
        let family = Family::of("");
        // All clients understand functions only.
        let shell = match self.shell(&family) {
            ShellKind::LocalShell | ShellKind::Shell => ShellKind::ShellCommand,
            shell => shell,
        };
        let toolset = Toolset {
            shell,
            files: FileTools::Offered,
            shows_images: true,
            edits: EditTools::Patch,
            web_search: None,
            ..self.toolset(&family)
        };
        let rules = policy::rules(self)?;
        let parallel_commands = config.parallel_commands;
        let mut policy = Policy { rules, parallel_commands, ..self.policy(config.approval_policy) };
        if let Some([first, others @ ..]) = roots {
            let inside =
                |path: &PathBuf| roots.is_some_and(|roots| roots.iter().any(|root| path.starts_with(root)));
            policy.cwd.clone_from(first);
            policy.walls.writable.retain(inside);
            policy.walls.writable.extend(others.iter().cloned());
        }
        // Answers of clients are not kept as rules: a client must not change later sessions.
        let builder = self.with_tools(toolset, (config.approval_policy, None))?.policy(policy);
        Ok(builder.model(caller).machine(machine).context(config.context_settings(&family)))
    }

    /// Returns an agent for calls of clients to tools of servers, and to nothing else.
    pub(crate) fn gateway_agent(
        &self,
        caller: Arc<dyn ModelClient>,
        source: Arc<dyn ToolSource>,
        search: GatewaySearch,
    ) -> Result<AgentBuilder, CliProblem> {
        let config = self.config();
        let policy = Policy { rules: policy::rules(self)?, ..self.policy(config.approval_policy) };
        let mut context = config.context_settings(&Family::of(""));
        match search {
            GatewaySearch::Auto => {}
            GatewaySearch::Always => context.tool_percent = 0,
            GatewaySearch::Never => {
                (context.window, context.tool_percent) = (Some(NonZeroU64::MAX), 100);
            }
        }
        Ok(Agent::builder()
            .policy(policy)
            .secrets(self.secrets())
            .storage(self.storage())
            .review(config.review_settings())
            .machine(self.machine()?)
            .context(context)
            .model(caller)
            .tool_source(source))
    }
}
