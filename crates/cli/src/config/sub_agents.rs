//! Agents that an agent may start.

use std::num::{NonZeroU64, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::SandboxMode;

/// Default maximum number of agents at the same time.
const MAX_AGENTS: NonZeroUsize = NonZeroUsize::new(6).unwrap();

/// Agents that an agent may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SubAgents")]
pub(crate) struct SubAgentLimits {
    /// Lets the model start agents that work on parts of a task. Unset means only if a role is
    /// configured in `agents`.
    pub(crate) enabled: Option<bool>,
    /// Maximum number of agents that exist at the same time.
    pub(crate) max_agents: NonZeroUsize,
    /// Maximum number of levels of agents below the first.
    pub(crate) max_depth: NonZeroUsize,
}

impl Default for SubAgentLimits {
    fn default() -> Self {
        Self { enabled: None, max_agents: MAX_AGENTS, max_depth: NonZeroUsize::MIN }
    }
}

/// The role of an agent that another starts. It narrows what that one may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "AgentRole")]
pub(crate) struct ConfiguredRole {
    /// Description for the model that chooses a role.
    pub(crate) description: String,
    /// The model. Unset means that of the first agent.
    pub(crate) model: Option<String>,
    /// The provider of the model: a key of `model_providers`.
    pub(crate) model_provider: Option<String>,
    /// Instructions in addition to those of every agent.
    pub(crate) instructions: Option<String>,
    /// The sandbox mode. One wider than that of the first agent has no effect.
    pub(crate) sandbox_mode: Option<SandboxMode>,
    /// The tools that it gets, by name; a `*` at the end stands for any rest. Empty means all.
    pub(crate) tools: Vec<String>,
    /// Maximum number of tokens of a turn, within `turn_token_limit` of the first agent.
    pub(crate) turn_token_limit: Option<NonZeroU64>,
    /// Maximum duration of a turn in seconds, within `turn_time_limit_sec` of the first agent.
    pub(crate) turn_time_limit_sec: Option<NonZeroU64>,
}
