//! The fields that every hook of a session is told.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_contract::{
    event::EventEmitter,
    id::ThreadId,
    policy::{ApprovalPolicy, SandboxMode},
};
use windlass_record::find;
use windlass_runtime::{Policy, SessionHooks};

use super::AgentBuilder;

/// The session of an agent.
pub(super) struct SessionIdentity<'a> {
    pub(super) thread: &'a ThreadId,
    pub(super) model: &'a str,
}

impl AgentBuilder {
    /// Returns the hooks of a session, or of calls without one.
    pub(super) fn session_hooks(
        &self,
        session: Option<&SessionIdentity<'_>>,
        events: &Arc<dyn EventEmitter>,
    ) -> Option<SessionHooks> {
        let hooks = Arc::clone(self.hooks.as_ref()?);
        let home = self.storage.as_ref().map(|storage| &storage.home);
        let file = session.zip(home).and_then(|(session, home)| find(home, session.thread).ok());
        let fields = json!({
            "session_id": session.map(|session| session.thread),
            "transcript_path": file.map(|(_, path)| path),
            "cwd": self.policy.cwd,
            "permission_mode": permission_mode(&self.policy),
            "model": session.map(|session| session.model),
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Some(SessionHooks::new(hooks, fields, Arc::clone(events)))
    }
}

/// Returns the policy in the words of other agents.
fn permission_mode(policy: &Policy) -> &'static str {
    match (policy.plan_mode, policy.sandbox, policy.approval) {
        (true, _, _) => "plan",
        (_, SandboxMode::DangerFullAccess, ApprovalPolicy::Never) => "bypassPermissions",
        (_, _, ApprovalPolicy::Never) => "dontAsk",
        (_, SandboxMode::WorkspaceWrite, _) => "acceptEdits",
        _ => "default",
    }
}
