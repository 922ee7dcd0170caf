//! The configuration of one MCP server, `[mcp_servers.NAME]`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_contract::remote::{ServerProfile, ServerReach, ServerSandbox, ToolApprovalMode};

/// Default time limit of a start. Cold starts by `npx` or `uvx` install packages first.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Default time limit of a call.
const TOOL_TIMEOUT: Duration = Duration::from_mins(5);
/// Default time after which a server without calls is stopped.
const IDLE_TIMEOUT: Duration = Duration::from_mins(30);
/// Default limit on the memory of a stdio server, in MiB.
const MEMORY_MB: u64 = 2048;

/// An MCP server: a program (`command`), an address (`url`), or an address behind a unix socket
/// (`url` and `unix_socket`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServerConfig {
    /// Program of a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to a few harmless ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of variables that the program gets from the environment of Windlass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<String>,
    /// Directory in which the program runs. Default: the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Address of a streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Unix socket through which the address is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_socket: Option<PathBuf>,
    /// Environment variable that holds the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_env_var: Option<String>,
    /// HTTP headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub http_headers: BTreeMap<String, String>,
    /// HTTP headers whose values come from environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env_http_headers: BTreeMap<String, String>,
    /// Scopes that a login requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// OAuth client id that was registered with the authorization server beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_client_id: Option<String>,
    /// Environment variable that holds the secret of that client, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_client_secret_env_var: Option<String>,
    /// Port of 127.0.0.1 to which a login returns, if that client is registered with a fixed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_callback_port: Option<u16>,
    /// Uses the server. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Ends a session at its start if the server cannot be used. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Maximum time until the server has answered, in seconds. Default: 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_timeout_sec: Option<f64>,
    /// Maximum time of one call, in seconds. Default: 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_timeout_sec: Option<f64>,
    /// Time without calls after which the server is stopped, in seconds. Default: 1800.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_sec: Option<f64>,
    /// Tools on offer. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<BTreeSet<String>>,
    /// Tools that are left out.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub disabled_tools: BTreeSet<String>,
    /// Believes the annotations of the tools, so that a call marked as read-only needs no question.
    /// Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// When to ask before a call. Default: `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tools_approval_mode: Option<ToolApprovalMode>,
    /// Settings of single tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, McpToolConfig>,
    /// Sandbox of the program. Default: `read-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<ServerSandbox>,
    /// Lets the program use the network. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Further directories that the program may write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Maximum memory of the program and its children, in MiB. Default: 2048.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

/// Settings of one tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpToolConfig {
    /// When to ask before a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ToolApprovalMode>,
}

/// A fault of the configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpConfigError {
    /// The name has other characters than letters, digits, `_` and `-`.
    #[error("the name of an MCP server has only letters, digits, `_` and `-`: `{0}`")]
    Name(String),
    /// Neither a program nor an address is given.
    #[error("MCP server `{0}` needs `command` or `url`")]
    NoTransport(String),
    /// A key belongs to the other transport.
    #[error("MCP server `{server}` has `{transport}`, which excludes `{key}`")]
    WrongTransport {
        /// The server.
        server: String,
        /// The key that chose the transport.
        transport: &'static str,
        /// The key that does not fit.
        key: &'static str,
    },
    /// A time limit is not a positive number.
    #[error("MCP server `{server}`: `{key}` must be a positive number of seconds")]
    Timeout {
        /// The server.
        server: String,
        /// The key.
        key: &'static str,
    },
}

impl McpServerConfig {
    /// Checks what the types do not say.
    pub fn check(&self, server: &str) -> Result<(), McpConfigError> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if server.is_empty() || !server.chars().all(is_valid) {
            return Err(McpConfigError::Name(server.to_owned()));
        }
        let stdio_keys = [
            ("args", self.args.is_empty()),
            ("env", self.env.is_empty()),
            ("env_vars", self.env_vars.is_empty()),
            ("cwd", self.cwd.is_none()),
            ("sandbox", self.sandbox.is_none()),
            ("network", self.network.is_none()),
            ("writable", self.writable.is_empty()),
            ("memory_mb", self.memory_mb.is_none()),
        ];
        let http_keys = [
            ("url", self.url.is_none()),
            ("unix_socket", self.unix_socket.is_none()),
            ("bearer_token_env_var", self.bearer_token_env_var.is_none()),
            ("http_headers", self.http_headers.is_empty()),
            ("env_http_headers", self.env_http_headers.is_empty()),
            ("scopes", self.scopes.is_empty()),
            ("oauth_client_id", self.oauth_client_id.is_none()),
            ("oauth_client_secret_env_var", self.oauth_client_secret_env_var.is_none()),
            ("oauth_callback_port", self.oauth_callback_port.is_none()),
        ];
        let (transport, others) = match (&self.command, &self.url) {
            (Some(_), _) => ("command", &http_keys[..]),
            (None, Some(_)) => ("url", &stdio_keys[..]),
            (None, None) => return Err(McpConfigError::NoTransport(server.to_owned())),
        };
        if let Some((key, _)) = others.iter().find(|(_, is_absent)| !is_absent) {
            return Err(McpConfigError::WrongTransport { server: server.to_owned(), transport, key });
        }
        let limits = [
            ("startup_timeout_sec", self.startup_timeout_sec),
            ("tool_timeout_sec", self.tool_timeout_sec),
            ("idle_timeout_sec", self.idle_timeout_sec),
        ];
        let is_wrong = |seconds: f64| seconds <= 0.0 || Duration::try_from_secs_f64(seconds).is_err();
        match limits.into_iter().find(|(_, seconds)| seconds.is_some_and(is_wrong)) {
            Some((key, _)) => Err(McpConfigError::Timeout { server: server.to_owned(), key }),
            None => Ok(()),
        }
    }

    /// Returns true unless the server is turned off.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Returns true if a tool is on offer.
    pub fn offers(&self, tool: &str) -> bool {
        self.enabled_tools.as_ref().is_none_or(|names| names.contains(tool))
            && !self.disabled_tools.contains(tool)
    }

    /// Returns when to ask before a call of a tool.
    pub fn approval_mode(&self, tool: &str) -> ToolApprovalMode {
        let of_tool = self.tools.get(tool).and_then(|tool| tool.approval_mode);
        of_tool.or(self.default_tools_approval_mode).unwrap_or_default()
    }

    /// Returns the confinement of the program.
    pub fn profile(&self) -> ServerProfile {
        ServerProfile {
            sandbox: self.sandbox.unwrap_or_default(),
            network: self.network.unwrap_or(false),
            writable: self.writable.clone(),
            memory_bytes: Some(self.memory_mb.unwrap_or(MEMORY_MB).saturating_mul(1024 * 1024)),
        }
    }

    /// Returns everything that the server can change.
    pub fn reach(&self) -> ServerReach {
        if self.command.is_some() { self.profile().reach() } else { ServerReach::Outside }
    }

    /// Returns the maximum time until the server has answered.
    pub fn startup_timeout(&self) -> Duration {
        timeout(self.startup_timeout_sec, STARTUP_TIMEOUT)
    }

    /// Returns the maximum time of one call.
    pub fn tool_timeout(&self) -> Duration {
        timeout(self.tool_timeout_sec, TOOL_TIMEOUT)
    }

    /// Returns the time without calls after which the server is stopped.
    pub fn idle_timeout(&self) -> Duration {
        timeout(self.idle_timeout_sec, IDLE_TIMEOUT)
    }
}

fn timeout(seconds: Option<f64>, default: Duration) -> Duration {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: serde_json::Value) -> McpServerConfig {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn keys_of_the_other_transport_are_an_error() {
        let config = parsed(serde_json::json!({"command": "x", "url": "http://localhost"}));
        let error = config.check("a").unwrap_err().to_string();
        assert_eq!(error, "MCP server `a` has `command`, which excludes `url`");
        let config = parsed(serde_json::json!({"url": "http://localhost", "network": true}));
        assert!(config.check("a").unwrap_err().to_string().contains("excludes `network`"));
        assert_eq!(McpServerConfig::default().check("a"), Err(McpConfigError::NoTransport("a".into())));
        assert!(parsed(serde_json::json!({"command": "x"})).check("a b").is_err());
    }

    #[test]
    fn a_time_limit_is_positive() {
        for seconds in [0.0, -1.0, f64::MAX] {
            let config = parsed(serde_json::json!({"command": "x", "tool_timeout_sec": seconds}));
            assert!(config.check("a").unwrap_err().to_string().contains("`tool_timeout_sec`"), "{seconds}");
        }
    }

    #[test]
    fn the_list_of_disabled_tools_wins() {
        let config = parsed(serde_json::json!({
            "command": "x", "enabled_tools": ["a", "b"], "disabled_tools": ["b"],
            "default_tools_approval_mode": "prompt", "tools": {"a": {"approval_mode": "approve"}},
        }));
        assert_eq!([config.offers("a"), config.offers("b"), config.offers("c")], [true, false, false]);
        assert_eq!(config.approval_mode("a"), ToolApprovalMode::Approve);
        assert_eq!(config.approval_mode("c"), ToolApprovalMode::Prompt);
    }
}
