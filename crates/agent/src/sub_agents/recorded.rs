//! Agents of an earlier run of their parent, as their session files show them.

use std::path::{Path, PathBuf};

use windlass_contract::{
    Content, Item,
    id::ThreadId,
    item::{Body, Role},
    journal::ParentKind,
    program_message::AGENTS_START,
    sub_agent::AgentStatus,
};
use windlass_record::{RecordedTurnEnd, SessionEntry, last_turn_end, list};
use windlass_runtime::Reason;

use super::SubAgents;

/// An agent of an earlier run.
pub(super) struct RecordedAgent {
    pub(super) thread: ThreadId,
    pub(super) path: String,
    file: PathBuf,
}

impl RecordedAgent {
    fn status(&self) -> AgentStatus {
        match last_turn_end(&self.file) {
            Ok(Some(RecordedTurnEnd::Completed { answer })) => AgentStatus::Completed(answer),
            Ok(Some(RecordedTurnEnd::Failed { message })) if is_interruption(&message) => {
                AgentStatus::Interrupted
            }
            Ok(Some(RecordedTurnEnd::Failed { message })) => AgentStatus::Errored(message),
            Ok(None) => AgentStatus::Interrupted,
            Err(error) => AgentStatus::Errored(error.to_string()),
        }
    }
}

impl SubAgents {
    /// Returns the agents that this parent has started in earlier runs, oldest first.
    pub(super) fn recorded(&self) -> Vec<RecordedAgent> {
        let (Some(storage), Some(parent)) = (&self.template.storage, self.parent.get()) else {
            return Vec::new();
        };
        if self.is_resumed { recorded_agents(&storage.home, parent) } else { Vec::new() }
    }

    /// Returns one of them, by its id or its path.
    pub(super) fn recorded_agent(&self, name: &str) -> Option<RecordedAgent> {
        let is_meant =
            |agent: &RecordedAgent| agent.thread.as_str() == name || self.is_path(&agent.path, name);
        self.recorded().into_iter().rev().find(is_meant)
    }

    /// Returns the state of such an agent.
    pub(super) fn recorded_status(&self, name: &str) -> AgentStatus {
        self.recorded_agent(name).map_or(AgentStatus::NotFound, |agent| agent.status())
    }
}

fn recorded_agents(home: &Path, parent: &ThreadId) -> Vec<RecordedAgent> {
    let agent = |entry: SessionEntry| {
        let link = entry.parent.filter(|link| link.kind == ParentKind::Agent && link.id == *parent)?;
        Some(RecordedAgent { thread: entry.id, path: link.agent?, file: entry.path })
    };
    let mut agents: Vec<_> = list(home).unwrap_or_default().into_iter().filter_map(agent).collect();
    agents.reverse();
    agents
}

/// Returns the message for the model and the lines for the person about agents of a conversation
/// that is resumed. `None` if there is none that was interrupted.
pub(crate) fn report_recorded(
    home: &Path,
    parent: &ThreadId,
    history: &[Item],
) -> Option<(Item, Vec<String>)> {
    let spawns = |item: &Item| matches!(&item.body, Body::Call(call) if call.name.as_str() == "spawn_agent");
    if !history.iter().any(spawns) {
        return None;
    }
    let found: Vec<_> =
        recorded_agents(home, parent).into_iter().map(|agent| (agent.status(), agent)).collect();
    let line = |(status, agent): &(AgentStatus, RecordedAgent)| {
        format!("{} ({}): {}", agent.thread, agent.path, status.name())
    };
    let interrupted = found.iter().filter(|(status, _)| *status == AgentStatus::Interrupted);
    let interrupted: Vec<_> = interrupted
        .map(|each| format!("an agent was interrupted and can be continued: {}", line(each)))
        .collect();
    if interrupted.is_empty() || was_told(history) {
        return None;
    }
    let lines: Vec<_> = found.iter().map(line).collect();
    let text = format!(
        "{AGENTS_START}The program ended while agents worked. None of them works now; send_input continues one, and wait \
         shows its result.\n{}\n</agents>",
        lines.join("\n")
    );
    Some((Item::message(Role::User, text), interrupted))
}

/// Returns true if nothing has happened in the conversation since it was last told.
fn was_told(history: &[Item]) -> bool {
    let last = history.iter().rev().find_map(|item| match &item.body {
        Body::Message { role: Role::User, content } => Some(Content::join(content)),
        Body::Call(_) | Body::Message { .. } => Some(String::new()),
        _ => None,
    });
    last.is_some_and(|text| text.starts_with(AGENTS_START))
}

fn is_interruption(message: &str) -> bool {
    [Reason::Interrupted, Reason::Terminated].iter().any(|reason| reason.message() == message)
}
