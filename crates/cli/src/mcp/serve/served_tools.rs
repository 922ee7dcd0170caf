//! The built-in tools as clients see them, each call under our policy and in our sandbox.

use std::{
    collections::BTreeMap,
    iter,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use windlass::{
    BoxFuture, Exposure, Network, Registered, SandboxMode, SpecKind,
    host::Machine,
    mcp::{
        ToolHints,
        definition::RemoteToolDefinition,
        result::RemoteResult,
        serve::{ServedCall, ServedClient, ServedTools, ServerIdentity},
    },
};

use super::{
    allowed_tools::AllowedTools,
    client_roots, result,
    served_agents::{REPLY_TOOL, START_TOOL, ServedAgents},
    served_session::{OutsideCaller, ServedSession},
};
use crate::{args::CommonOptions, problem::CliProblem, setup::ProgramSetup};

/// Maximum number of different sets of roots. Further clients get an error.
const MAX_SESSIONS: usize = 16;
/// Maximum number of lists of roots whose meaning is kept.
const MAX_KNOWN_ROOTS: usize = 64;

/// Tools that are offered although models are offered them only by a call.
const CALLABLE_TOOLS: [&str; 3] = ["edit_file", "write_file", "run_tests"];
/// Tools that only read.
const READING_TOOLS: [&str; 5] = ["grep_files", "list_dir", "read_file", "read_output", "view_image"];
/// Tools for the loop of an agent.
const AGENT_TOOLS: [&str; 3] = ["update_plan", "request_user_input", "tool_search"];

/// The directories that calls are narrowed to, if they are.
type ClientPlace = Option<Vec<PathBuf>>;

/// The tools, and a session for each set of roots.
pub(crate) struct SandboxedTools {
    setup: ProgramSetup,
    machine: Machine,
    allowed: AllowedTools,
    agents: ServedAgents,
    definitions: Vec<RemoteToolDefinition>,
    sessions: Mutex<BTreeMap<ClientPlace, Arc<ServedSession>>>,
    known_roots: Mutex<BTreeMap<Vec<PathBuf>, ClientPlace>>,
}

impl SandboxedTools {
    /// Creates the tools. A session is started with the first call.
    pub(crate) fn new(
        common: &CommonOptions,
        setup: ProgramSetup,
        allowed: AllowedTools,
    ) -> Result<Self, CliProblem> {
        let machine = setup.machine()?;
        let listed = setup.served_agent(machine.clone(), Arc::new(OutsideCaller::new()), None)?;
        let listed = ServedSession::toolbox(listed, &setup.cwd)?;
        let tools = listed.registry.tools().iter().filter_map(|tool| definition(&setup, tool));
        // Without a model there is no agent.
        let agents = ServedAgents::definitions().into_iter().filter(|_| setup.has_model());
        let all: Vec<_> = tools.chain(agents).collect();
        if let Some(pattern) = allowed.unused(&all.iter().map(|tool| tool.name.as_str())) {
            return Err(CliProblem::usage(format!("--allow-tools: no tool fits `{pattern}`")));
        }
        let definitions = all.into_iter().filter(|tool| allowed.allow(&tool.name)).collect();
        let (sessions, known_roots) = (Mutex::default(), Mutex::default());
        let agents = ServedAgents::new(common.clone());
        Ok(Self { setup, machine, allowed, agents, definitions, sessions, known_roots })
    }

    /// Ends commands that run across calls.
    pub(crate) async fn close(&self) {
        let sessions: Vec<_> =
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for session in sessions {
            session.toolbox.sandbox.close().await;
        }
    }

    /// Returns the session of a client, started if its roots are new.
    fn session(&self, client: &ServedClient) -> Result<Arc<ServedSession>, String> {
        let roots = self.roots(client.roots.as_deref());
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get(&roots) {
            return Ok(Arc::clone(session));
        }
        if sessions.len() >= MAX_SESSIONS {
            return Err(format!(
                "clients have named {MAX_SESSIONS} different sets of roots; restart the server"
            ));
        }
        let cwd = roots.as_deref().and_then(<[_]>::first).unwrap_or(&self.setup.cwd);
        let (machine, caller) = (self.machine.clone(), Arc::new(OutsideCaller::new()));
        let started = self
            .setup
            .served_agent(machine, caller, roots.as_deref())
            .and_then(|builder| ServedSession::start(builder, cwd, client.name.as_deref(), &Arc::default()));
        let session = Arc::new(started.map_err(|problem| problem.message)?);
        sessions.insert(roots, Arc::clone(&session));
        Ok(session)
    }

    /// Returns the roots that a client narrows its calls to. The same names are looked up once.
    fn roots(&self, named: Option<&[PathBuf]>) -> ClientPlace {
        let named = named?;
        let mut known = self.known_roots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(roots) = known.get(named) {
            return roots.clone();
        }
        let writable = &self.setup.config().sandbox_workspace_write.writable_roots;
        let writable = writable.iter().map(|root| self.setup.cwd.join(root));
        let ceiling: Vec<_> = iter::once(self.setup.cwd.clone()).chain(writable).collect();
        let roots = client_roots::narrowed(Some(named), &ceiling);
        if known.len() < MAX_KNOWN_ROOTS {
            known.insert(named.to_vec(), roots.clone());
        }
        roots
    }
}

impl ServedTools for SandboxedTools {
    fn identity(&self) -> ServerIdentity {
        let cwd = self.setup.cwd.display();
        let sandbox = self.setup.config().sandbox_mode.name();
        ServerIdentity {
            name: "windlass".to_owned(),
            title: Some("Windlass".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: Some(format!(
                "Tools for files and commands in `{cwd}`, in the sandbox mode `{sandbox}`. Relative paths begin there. \
                 What the sandbox does not allow is asked through the client, or refused."
            )),
        }
    }

    fn tools(&self) -> Vec<RemoteToolDefinition> {
        self.definitions.clone()
    }

    fn call(&self, call: ServedCall) -> BoxFuture<'_, RemoteResult> {
        Box::pin(async move {
            if !self.allowed.allow(&call.tool) {
                return RemoteResult::failed(format!("the tool `{}` is not on offer here", call.tool));
            }
            if let START_TOOL | REPLY_TOOL = call.tool.as_str() {
                let roots = self.roots(call.client.roots.as_deref());
                return Box::pin(self.agents.call(call, &self.setup, roots.as_deref())).await;
            }
            match self.session(&call.client) {
                Ok(session) => Box::pin(session.call(call, result::served)).await,
                Err(problem) => RemoteResult::failed(problem),
            }
        })
    }
}

/// Returns the definition of a tool that is on offer.
fn definition(setup: &ProgramSetup, tool: &Registered) -> Option<RemoteToolDefinition> {
    let name = tool.spec.name.as_str();
    let offered = tool.exposure != Exposure::Hidden || CALLABLE_TOOLS.contains(&name);
    if !offered || AGENT_TOOLS.contains(&name) {
        return None;
    }
    let SpecKind::Function { parameters } = &tool.spec.kind else { return None };
    Some(RemoteToolDefinition {
        name: name.to_owned(),
        title: None,
        description: Some(tool.spec.description.clone()),
        input_schema: parameters.explicit().as_object()?.clone(),
        output_schema: Some(result::schema()),
        hints: hints(setup, name),
    })
}

/// Returns the annotations of a tool: the most that a call can do.
fn hints(setup: &ProgramSetup, name: &str) -> ToolHints {
    let reads = READING_TOOLS.contains(&name);
    let edits = matches!(name, "apply_patch" | "edit_file" | "write_file");
    let config = setup.config();
    let networked = match config.sandbox_mode {
        SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => {
            setup.policy(config.approval_policy).walls.network != Network::None
        }
        SandboxMode::DangerFullAccess | SandboxMode::External => true,
    };
    ToolHints {
        read_only: Some(reads),
        destructive: Some(!reads),
        idempotent: reads.then_some(true),
        open_world: Some(!reads && !edits && networked),
    }
}
