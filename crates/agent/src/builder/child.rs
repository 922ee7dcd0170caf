//! The parts that an agent shares with the agents that it starts.

use std::sync::Arc;

use windlass_contract::event::Silent;
use windlass_tools::CommandSessions;

use super::AgentBuilder;
use crate::SteeringInput;

impl AgentBuilder {
    /// Returns the builder of an agent with the same model, rights and servers, and a session of
    /// its own. The commands that it leaves running are its own, too.
    pub(crate) fn child_template(&self) -> Self {
        Self {
            model: self.model.clone(),
            tools: self.tools.clone(),
            listed_tools: self.listed_tools.clone(),
            tool_source: self.tool_source.clone(),
            builtin: self.builtin.clone(),
            policy: self.policy.clone(),
            approver: self.approver.clone(),
            elicitor: self.elicitor.clone(),
            hooks: self.hooks.clone(),
            mentions: self.mentions.clone(),
            rulebook: self.rulebook.clone(),
            events: Arc::new(Silent),
            machine: self.machine.clone(),
            secrets: self.secrets.clone(),
            context: self.context.clone(),
            storage: self.storage.clone(),
            limits: self.limits,
            models: self.models.clone(),
            budget: self.budget.clone(),
            review: self.review,
            resume: None,
            same_provider: false,
            output_schema: None,
            single_turn: false,
            steering: SteeringInput::default(),
            command_sessions: CommandSessions::default(),
            session_approvals: self.session_approvals.clone(),
            undo_recording: self.undo_recording.clone(),
            sub_agents: self.sub_agents.clone(),
            lineage: self.lineage.clone(),
            parent: None,
            only_tools: self.only_tools.clone(),
            rules: self.rules.clone(),
        }
    }
}
