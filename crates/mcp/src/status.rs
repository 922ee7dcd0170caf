//! The state of a server, for lists and events.

use serde::{Deserialize, Serialize};

/// The state of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// Name in the configuration.
    pub server: String,
    /// State.
    #[serde(flatten)]
    pub state: ServerState,
    /// Number of tools, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Process id of a running stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Number of starts after the first.
    pub restarts: u32,
    /// Calls that are running now.
    pub calls_in_flight: usize,
}

/// States of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Not started. Its tools are known if it ran before.
    #[default]
    Known,
    /// Being started.
    Starting,
    /// Answers.
    Ready,
    /// Refuses requests until the user logs in with `windlass mcp login`.
    NeedsLogin,
    /// Could not be started, or has died. The next call tries again.
    Failed {
        /// The reason.
        error: String,
        /// The last lines of its standard error.
        stderr: String,
        /// The accesses that its sandbox blocked, with the settings that would allow them.
        denials: Vec<String>,
    },
}
