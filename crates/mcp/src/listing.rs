//! The listing of a server: its tools, and the protocol version that reached it.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::definition::RemoteToolDefinition;

/// The tools of a server, as it listed them. Saved in the catalogue, so that the next session
/// knows them before the server has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerListing {
    /// Version of the protocol that worked, such as `2026-07-28`. The next start tries it first.
    pub protocol_version: String,
    /// Name that the server gives itself.
    pub server_name: String,
    /// Version that the server gives itself.
    pub server_version: String,
    /// The server's instructions for its use. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// True if the server has resources.
    #[serde(default)]
    pub has_resources: bool,
    /// True if the server has prompts.
    #[serde(default)]
    pub has_prompts: bool,
    /// Its tools, in its order.
    pub tools: Vec<RemoteToolDefinition>,
    /// Tools whose definition could not be used, with the reason.
    #[serde(default)]
    pub unusable: Vec<UnusableTool>,
    /// Time of the listing.
    pub listed_at: SystemTime,
    /// Time for which the list may be used without asking again (`ttlMs`), if the server gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_for: Option<Duration>,
    /// True if the list is for this user only (`cacheScope: private`).
    #[serde(default)]
    pub is_private: bool,
}

/// A tool that cannot be used. The other tools of its server are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusableTool {
    /// Its name, without control characters and at most 128 bytes.
    pub name: String,
    /// The problem.
    pub reason: String,
}
