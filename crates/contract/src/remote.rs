//! Tools of MCP servers: their calls as effects, and the processes of stdio servers.

use std::{collections::BTreeMap, fmt, os::fd::OwnedFd, path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AnyTool, BoxFuture,
    grant::Held,
    host::{Exit, HostError},
    wording::shortened,
};

/// A call of a tool on an MCP server, as an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteCall {
    /// Name of the server in the configuration.
    pub server: String,
    /// Name of the tool, as the server writes it.
    pub tool: String,
    /// Everything that the server can change, whatever it says about itself.
    pub reach: ServerReach,
    /// The annotations of the tool. They can raise what the call counts as; they lower it only if
    /// the server is trusted.
    #[serde(default)]
    pub hints: ToolHints,
    /// True if the user trusts the annotations of the server.
    #[serde(default)]
    pub trusted: bool,
    /// When to ask about the call.
    #[serde(default)]
    pub approval: ToolApprovalMode,
}

impl RemoteCall {
    /// Returns true if the call may change something: the server can reach it, and no annotation
    /// that the user trusts says otherwise.
    pub fn may_change(&self) -> bool {
        let promised = self.trusted && self.hints.read_only == Some(true);
        self.is_destructive() || (self.reach != ServerReach::Nothing && !promised)
    }

    /// Returns true if the annotations say that the call destroys something.
    pub fn is_destructive(&self) -> bool {
        self.hints.destructive == Some(true) && self.hints.read_only != Some(true)
    }

    /// Returns true if the call may change something beyond this machine.
    pub fn is_outward(&self) -> bool {
        let closed = self.trusted && self.hints.open_world == Some(false);
        self.reach == ServerReach::Outside && self.may_change() && !closed
    }
}

impl RemoteCall {
    /// Returns the tool and its server for a person, as in `create_issue of MCP server github`.
    pub fn title(&self) -> String {
        format!("{} of MCP server {}", short_name(&self.tool), short_name(&self.server))
    }

    /// Returns the setting that allows the tool without a question.
    pub fn approving_setting(&self) -> String {
        let (server, tool) = (toml_key(&self.server), toml_key(&self.tool));
        format!("mcp_servers.{server}.tools.{tool}.approval_mode = \"approve\"")
    }
}

/// Maximum length of the name of a server or tool for a person.
const MAX_NAME_CHARS: usize = 100;

/// Returns a name of a server or of one of its tools for a person: without control characters and
/// marks of code, cut.
pub fn short_name(name: &str) -> String {
    let shown: String = name.chars().filter(|char| !char.is_control() && *char != '`').collect();
    shortened(&shown, MAX_NAME_CHARS)
}

/// Writes a name as a key of TOML.
fn toml_key(name: &str) -> String {
    let is_bare = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    let short = short_name(name);
    if !short.is_empty() && short.chars().all(is_bare) { short } else { Value::from(short).to_string() }
}

/// The annotations of a tool. A hint that the server does not give is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// Everything that a server can change, mildest first. It follows from the sandbox of the server,
/// not from its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerReach {
    /// Nothing: its sandbox lets it read, without network.
    Nothing,
    /// The directories that its sandbox makes writable, without network.
    Files,
    /// Anything: it has the network, no sandbox, or runs on another machine.
    #[default]
    Outside,
}

impl ServerReach {
    /// Describes the reach for a person: the end of a sentence that begins with "the server".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Nothing => "can change nothing on this machine or elsewhere",
            Self::Files => "can write files, and has no network",
            Self::Outside => "can reach other machines",
        }
    }
}

/// When to ask about a call of an MCP tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ToolApprovalMode {
    /// Before calls that may change something which the session may not change by itself.
    #[default]
    Auto,
    /// Before every call.
    Prompt,
    /// Before calls that may change something.
    Writes,
    /// Never: the user has approved the tool.
    Approve,
}

/// Starts the processes of stdio servers, confined. Implemented by `host`, called by `mcp`.
pub trait ServerLauncher: Send + Sync {
    /// Starts one process. Its profile is enforced, or it does not start.
    fn launch<'a>(&'a self, command: &'a ServerCommand) -> BoxFuture<'a, Result<LaunchedServer, HostError>>;
}

/// The command line of a stdio server, and its confinement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Directory to run in; the workspace if there is none.
    pub cwd: Option<PathBuf>,
    /// Variables in addition to the usual few (`HOME`, `PATH`, …), which the launcher sets.
    pub environment: BTreeMap<String, String>,
    /// Confinement.
    pub profile: ServerProfile,
}

/// Confinement of a stdio server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerProfile {
    /// Kind of sandbox.
    pub sandbox: ServerSandbox,
    /// True if the server may use the network.
    pub network: bool,
    /// Directories that it may write, in addition to those of the kind.
    pub writable: Vec<PathBuf>,
    /// Maximum memory of all its processes together, in bytes.
    pub memory_bytes: Option<u64>,
}

impl ServerProfile {
    /// Returns everything that a server with this profile can change.
    pub fn reach(&self) -> ServerReach {
        match self.sandbox {
            ServerSandbox::None => ServerReach::Outside,
            _ if self.network => ServerReach::Outside,
            ServerSandbox::ReadOnly if self.writable.is_empty() => ServerReach::Nothing,
            ServerSandbox::ReadOnly | ServerSandbox::WorkspaceWrite => ServerReach::Files,
        }
    }
}

/// Kind of sandbox of a stdio server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ServerSandbox {
    /// It reads everything but secrets, and writes nothing but its private temporary directory.
    #[default]
    ReadOnly,
    /// It also writes the workspace.
    WorkspaceWrite,
    /// No sandbox.
    None,
}

/// A running stdio server. When the last handle of `process` is dropped, the whole process tree is
/// killed.
pub struct LaunchedServer {
    /// Writing end of its standard input, blocking.
    pub stdin: OwnedFd,
    /// Reading end of its standard output, blocking.
    pub stdout: OwnedFd,
    /// Reading end of its standard error, blocking.
    pub stderr: OwnedFd,
    /// The process.
    pub process: Arc<dyn ServerProcess>,
}

impl fmt::Debug for LaunchedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchedServer").field("pid", &self.process.pid()).finish_non_exhaustive()
    }
}

/// The process tree of a stdio server. Implemented by `host`, used by `mcp`.
pub trait ServerProcess: Send + Sync {
    /// Returns the process id of the server, as this process sees it.
    fn pid(&self) -> u32;

    /// Returns the confinement that is enforced.
    fn held(&self) -> Held;

    /// Asks the whole tree to end (`SIGTERM`).
    fn terminate(&self);

    /// Kills the whole tree (`SIGKILL`).
    fn kill(&self);

    /// Waits until the whole tree is gone. Can be called any number of times.
    fn ended(&self) -> BoxFuture<'_, ServerEnd>;
}

/// The end of a stdio server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEnd {
    /// Exit of the server; `None` if that is not known.
    pub exit: Option<Exit>,
    /// Accesses that its sandbox blocked, each in one line with the setting that would allow it.
    pub denials: Vec<String>,
}

/// Supplies tools that become known while a session runs: a server has started, or its list of
/// tools has changed. Implemented by `mcp`, called by the turn loop before each request. Several
/// agents can share one source: each remembers the version that it has seen.
pub trait ToolSource: Send + Sync {
    /// Returns the tools that were added or replaced after a version; all of them for version 0. A
    /// tool that was replaced or withdrawn refuses its calls by itself. Must not block.
    fn tools_since(&self, version: u64) -> SourceTools;

    /// Returns the servers whose tools are not known yet. Must not block. The default has none.
    fn unlisted(&self) -> Vec<UnlistedServer> {
        Vec::new()
    }

    /// Returns the tools that wait for the user's approval, one line each with the reason. Must not
    /// block. The default has none.
    fn held_back(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts a server, and waits until its tools are known or it has failed. The wait is bounded
    /// by its time limit, and the start goes on if the future is dropped. The default does nothing.
    fn start_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        let _ = server;
        Box::pin(async {})
    }
}

/// Tools of a source.
pub struct SourceTools {
    /// The version to ask with next time.
    pub version: u64,
    /// The tools, in an order that does not depend on the time at which servers answer.
    pub tools: Vec<Arc<dyn AnyTool>>,
}

impl fmt::Debug for SourceTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.name()).collect();
        f.debug_struct("SourceTools").field("version", &self.version).field("tools", &names).finish()
    }
}

/// A server whose tools are not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlistedServer {
    /// Name in the configuration.
    pub server: String,
    /// Its state in a few words, such as `not started` or `failed: …`. Without control characters.
    pub state: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(reach: ServerReach, hints: ToolHints, trusted: bool) -> RemoteCall {
        let approval = ToolApprovalMode::Auto;
        RemoteCall { server: "s".into(), tool: "t".into(), reach, hints, trusted, approval }
    }

    #[test]
    fn a_hint_lowers_only_what_a_trusted_server_says() {
        let reads = ToolHints { read_only: Some(true), ..ToolHints::default() };
        assert!(call(ServerReach::Outside, reads, false).may_change());
        assert!(!call(ServerReach::Outside, reads, true).may_change());
        assert!(!call(ServerReach::Nothing, ToolHints::default(), false).may_change());
    }

    #[test]
    fn a_hint_raises_whatever_the_sandbox_says() {
        let destroys = ToolHints { destructive: Some(true), ..ToolHints::default() };
        assert!(call(ServerReach::Nothing, destroys, false).may_change());
        assert!(call(ServerReach::Nothing, destroys, true).is_destructive());
    }

    #[test]
    fn the_reach_of_a_server_follows_from_its_profile() {
        let profile = ServerProfile::default();
        assert_eq!(profile.reach(), ServerReach::Nothing);
        assert_eq!(ServerProfile { network: true, ..profile.clone() }.reach(), ServerReach::Outside);
        let writable = vec!["/data".into()];
        assert_eq!(ServerProfile { writable, ..profile.clone() }.reach(), ServerReach::Files);
        let sandbox = ServerSandbox::None;
        assert_eq!(ServerProfile { sandbox, ..profile }.reach(), ServerReach::Outside);
    }
}
