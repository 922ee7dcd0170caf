//! Agents that another agent starts.

use serde::{Deserialize, Serialize};

/// State of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It was made and has no turn yet.
    PendingInit,
    /// It works on a turn.
    Running,
    /// Its turn has ended with this answer.
    Completed(Option<String>),
    /// Its turn has failed for this reason.
    Errored(String),
    /// Its turn was ended early. Another message continues it.
    Interrupted,
    /// It was closed.
    Shutdown,
    /// There is no such agent.
    NotFound,
}

impl AgentStatus {
    /// Returns true if the agent does no more by itself.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::PendingInit | Self::Running)
    }

    /// Returns the state in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PendingInit => "pending_init",
            Self::Running => "running",
            Self::Completed(_) => "completed",
            Self::Errored(_) => "errored",
            Self::Interrupted => "interrupted",
            Self::Shutdown => "shutdown",
            Self::NotFound => "not_found",
        }
    }
}

/// Returns what happened to an agent, in one line for a person.
pub fn agent_news(agent: &str, thread: &str, status: &AgentStatus, activity: Option<&str>) -> String {
    match (activity, status) {
        (Some(activity), _) => format!("{agent}: {activity}"),
        (None, AgentStatus::Running) => format!("{agent}: works in session {thread}"),
        (None, AgentStatus::Errored(reason)) => format!("{agent}: failed: {reason}"),
        (None, status) => format!("{agent}: {}", status.name()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_have_the_form_that_models_know() {
        let form = |status: AgentStatus| serde_json::to_value(status).unwrap();
        assert_eq!(form(AgentStatus::PendingInit), json!("pending_init"));
        assert_eq!(form(AgentStatus::Completed(Some("done".into()))), json!({"completed": "done"}));
        assert_eq!(form(AgentStatus::Completed(None)), json!({"completed": null}));
        assert_eq!(form(AgentStatus::Errored("no".into())), json!({"errored": "no"}));
        assert_eq!(form(AgentStatus::NotFound), json!("not_found"));
    }
}
