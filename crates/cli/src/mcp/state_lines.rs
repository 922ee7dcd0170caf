//! The states of servers while a run lasts: events for a program, warnings for a person.

use std::{collections::BTreeMap, future::pending, sync::Arc};

use windlass::mcp::{
    pool::ServerPool,
    status::{ServerState, ServerStatus},
};

use crate::{jsonl::JsonlWriter, note, screen::visible};

/// The place where states go.
pub(crate) enum StateOutput {
    /// One JSON object per line on stdout, among the events of the turn.
    Json(Arc<JsonlWriter>),
    /// A warning on stderr if a server cannot be used.
    Person,
    /// Nowhere: the session shows them on request.
    Silent,
}

impl StateOutput {
    /// Reports every change of a state. Never returns.
    pub(super) async fn follow(self, pool: &ServerPool) {
        let mut changes = pool.changes();
        let mut known = BTreeMap::new();
        loop {
            for status in pool.status() {
                let is_new = known.get(&status.server) != Some(&status.state);
                let is_first = !known.contains_key(&status.server);
                known.insert(status.server.clone(), status.state.clone());
                if is_new && !(is_first && status.state == ServerState::Known) {
                    self.report(&status);
                }
            }
            if matches!(self, Self::Silent) || changes.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    fn report(&self, status: &ServerStatus) {
        let server = visible(&status.server);
        match (self, &status.state) {
            (Self::Json(writer), _) => writer.server_state(status),
            (Self::Person, ServerState::NeedsLogin) => {
                note(&format!("warning: MCP server `{server}` needs a login: windlass mcp login {server}"));
            }
            (Self::Person, ServerState::Failed { error, .. }) => {
                let error = visible(error);
                note(&format!(
                    "warning: MCP server `{server}` failed: {error}; `windlass mcp test {server}` shows more"
                ));
            }
            (Self::Person | Self::Silent, _) => {}
        }
    }
}
