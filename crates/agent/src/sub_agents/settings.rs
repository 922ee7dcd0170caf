//! The roles and limits of agents that an agent starts.

use std::{collections::BTreeMap, fmt, sync::Arc};

use windlass_contract::{model::ModelClient, policy::SandboxMode};

use crate::TurnLimits;

/// Default maximum number of agents that exist at the same time, as other agents have it.
const MAX_AGENTS: usize = 6;

/// The role of an agent whose starter names none.
pub const DEFAULT_ROLE: &str = "default";

/// The roles and limits of agents that an agent starts.
#[derive(Debug, Clone)]
pub struct SubAgentSettings {
    /// The roles, by name. The one called `default` is that of an agent whose starter names none.
    pub roles: BTreeMap<String, AgentRole>,
    /// Maximum number of agents that exist at the same time, over all levels.
    pub max_agents: usize,
    /// Maximum number of levels below the first agent.
    pub max_depth: usize,
}

/// The settings of the agents of one role. A role narrows what its parent may do and never widens
/// it.
#[derive(Clone, Default)]
pub struct AgentRole {
    /// Description for the model that chooses a role.
    pub description: String,
    /// The model, or the reason that it cannot be used. By default that of the parent.
    pub model: Option<Result<Arc<dyn ModelClient>, String>>,
    /// Instructions in addition to those of the parent.
    pub instructions: Option<String>,
    /// The sandbox mode. A wider one than that of the parent has no effect.
    pub sandbox: Option<SandboxMode>,
    /// The tools of the parent that it gets; a `*` at the end stands for any rest. By default all.
    pub tools: Option<Vec<String>>,
    /// Limits of each turn, within those of the parent.
    pub limits: TurnLimits,
}

impl fmt::Debug for AgentRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRole").field("description", &self.description).finish_non_exhaustive()
    }
}

impl Default for SubAgentSettings {
    fn default() -> Self {
        Self { roles: built_in_roles(), max_agents: MAX_AGENTS, max_depth: 1 }
    }
}

/// Returns the roles that exist without configuration.
pub fn built_in_roles() -> BTreeMap<String, AgentRole> {
    let role = |name: &str, description: &str, sandbox| {
        let description = description.to_owned();
        (name.to_owned(), AgentRole { description, sandbox, ..AgentRole::default() })
    };
    BTreeMap::from([
        role(DEFAULT_ROLE, "any task, with the rights of its parent", None),
        role("explorer", "questions about the code; it changes nothing", Some(SandboxMode::ReadOnly)),
        role("worker", "a part of the work that can be done on its own; say which files are its", None),
    ])
}

impl AgentRole {
    /// Returns the limits of a turn: those of the role, within those of the parent.
    pub(super) fn limits_within(&self, parent: TurnLimits) -> TurnLimits {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        TurnLimits {
            time: least(self.limits.time, parent.time),
            tokens: least(self.limits.tokens, parent.tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_limits_of_a_role_never_exceed_those_of_the_parent() {
        let second = Some(Duration::from_secs(1));
        let role = |limits| AgentRole { limits, ..AgentRole::default() };
        let parent = TurnLimits { time: second, tokens: Some(10) };
        assert_eq!(role(TurnLimits::default()).limits_within(parent), parent);
        let wide = role(TurnLimits { time: Some(Duration::MAX), tokens: Some(11) });
        assert_eq!(wide.limits_within(parent), parent);
        let narrow = TurnLimits { time: None, tokens: Some(9) };
        assert_eq!(role(narrow).limits_within(parent), TurnLimits { time: second, tokens: Some(9) });
        assert_eq!(role(narrow).limits_within(TurnLimits::default()), narrow);
    }
}
