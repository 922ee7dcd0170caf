//! Options of `mcp`.

use std::path::PathBuf;

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use windlass::mcp::ToolApprovalMode;

use super::{
    SandboxFlag,
    mcp_serve::{GATEWAY_EXAMPLES, McpGatewayOptions, McpServeOptions, SERVE_EXAMPLES},
};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the servers with their states.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one server. Secrets are hidden.
    Get {
        /// Name of the server.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add a server to the configuration file. Comments and the order of keys stay.
    ///
    /// A server that is a program runs in a sandbox: it reads everything but secrets, writes
    /// nothing, and has no network. `--sandbox`, `--network` and `--writable` allow more.
    #[command(after_help = ADD_EXAMPLES)]
    Add(Box<McpAddOptions>),
    /// Start a server, and show what it answers or what would let it run.
    ///
    /// Without a name, all servers are tested, one after the other. The exit code is 1 if one
    /// fails.
    Test {
        /// Name of the server. One that is turned off is tested, too.
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the approved definitions of tools, and what waits for approval.
    ///
    /// The first start of a server approves its tools. A tool that is new or changed later is held
    /// back until you approve it, and so are all tools of a server whose command line changed.
    Pins(McpPinsOptions),
    /// Log in to an HTTP server.
    ///
    /// Prints an address for a browser, on this or another machine. The login ends when the browser
    /// comes back to this machine, or when you paste the address to which it was sent.
    Login {
        /// Name of the server.
        name: String,
        /// Print JSON, one object per line: the address, then the login.
        #[arg(long)]
        json: bool,
    },
    /// Log out of an HTTP server.
    ///
    /// The login is deleted here, and revoked there if possible. The exit code is 1 if there is
    /// none.
    Logout {
        /// Name of the server.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the prompts of servers, or show one with its arguments filled in.
    ///
    /// `windlass exec --mcp-prompt SERVER/NAME` uses one as the request.
    Prompts(McpPromptsOptions),
    /// Serve the tools of Windlass to MCP clients, on stdin and stdout or over HTTP.
    ///
    /// Every call passes the same checks, the same sandbox and the same records as a call of a
    /// model. What needs approval is asked through the client, if it can ask; otherwise it is
    /// refused. A client can narrow what is allowed here by its roots, and never widen it.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(McpServeOptions),
    /// Put configured servers behind one endpoint, on stdin and stdout or over HTTP.
    ///
    /// Their tools keep the names, approvals, sandboxes, limits and records that they have in a
    /// session. What needs approval is asked through the client, if it can ask; otherwise it is
    /// refused. Secrets are removed from results.
    #[command(after_help = GATEWAY_EXAMPLES)]
    Gateway(McpGatewayOptions),
    /// Remove a server from the configuration file. The exit code is 1 if it is not there.
    Remove {
        /// Name of the server.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Show the approved definitions of tools.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpPinsOptions {
    /// Name of the server. Default: all.
    pub(crate) server: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<McpPinsAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpPinsAction {
    /// Approve what a server offers now, and show what changed. The server is started.
    Approve {
        /// Name of the server.
        server: String,
        /// Only this tool.
        tool: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forget what was approved: the next start of the server approves its tools.
    Forget {
        /// Name of the server.
        server: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// List the prompts of servers.
#[derive(Debug, Args)]
pub(crate) struct McpPromptsOptions {
    /// Name of the server. Default: all.
    pub(crate) server: Option<String>,
    /// Name of the prompt to show.
    pub(crate) name: Option<String>,
    /// Arguments of the prompt.
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) arguments: Vec<(String, String)>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const ADD_EXAMPLES: &str = "\
Examples:
  windlass mcp add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .
  windlass mcp add notes --writable ~/notes --env NOTES_DIR=/home/me/notes -- notes-server
  windlass mcp add tickets --url https://tickets.example/mcp --bearer-token-env-var TICKETS_TOKEN";

/// Add a server to the configuration file.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct McpAddOptions {
    /// Name of the server: letters, digits, `_` and `-`. Its tools are called `mcp__NAME__TOOL`.
    pub(crate) name: String,
    /// Address of a streamable HTTP server.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// Unix socket through which the address is reached.
    #[arg(long, value_name = "PATH", requires = "url")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Environment variable that holds the bearer token.
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// HTTP header of every request. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", requires = "url", value_parser = pair)]
    pub(crate) header: Vec<(String, String)>,
    /// HTTP header whose value is in an environment variable. Repeatable.
    #[arg(long, value_name = "NAME=VARIABLE", requires = "url", value_parser = pair)]
    pub(crate) env_header: Vec<(String, String)>,
    /// Scope that a login requests. Repeatable.
    #[arg(long, value_name = "SCOPE", requires = "url")]
    pub(crate) scope: Vec<String>,
    /// OAuth client id that was registered with the authorization server beforehand.
    #[arg(long, value_name = "ID", requires = "url")]
    pub(crate) oauth_client_id: Option<String>,
    /// Environment variable of the program. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", requires = "command", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,
    /// Variable that the program gets from the environment of Windlass. Repeatable.
    #[arg(long, value_name = "NAME", requires = "command")]
    pub(crate) env_var: Vec<String>,
    /// Directory in which the program runs. Default: the workspace.
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) cwd: Option<PathBuf>,
    // The id and the type are those of the option of all commands, which this one replaces.
    /// Sandbox of the program. Default: read-only.
    #[arg(
        short = 's',
        long,
        value_name = "MODE",
        requires = "command",
        value_parser = PossibleValuesParser::new(SERVER_SANDBOXES).map(|name| sandbox_of(&name))
    )]
    pub(crate) sandbox: Option<SandboxFlag>,
    /// Let the program use the network.
    #[arg(long, requires = "command")]
    pub(crate) network: bool,
    /// Further directory that the program may write. Repeatable.
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) writable: Vec<PathBuf>,
    /// Maximum memory of the program and its children, in MiB. Default: 2048.
    #[arg(long, value_name = "NUMBER", requires = "command")]
    pub(crate) memory_mb: Option<u64>,
    /// When to ask before a call. Default: auto.
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) approval_mode: Option<ToolApprovalFlag>,
    /// Believe the annotations of the tools, so that a call marked as read-only needs no question.
    #[arg(long)]
    pub(crate) trusted: bool,
    /// Offer only this tool. Repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Leave this tool out. Repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) without_tool: Vec<String>,
    /// Maximum time until the server has answered. Default: 30.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) startup_timeout: Option<f64>,
    /// Maximum time of one call. Default: 300.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) tool_timeout: Option<f64>,
    /// Time without calls after which the server is stopped. Default: 1800.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_timeout: Option<f64>,
    /// End a session at its start if the server cannot be used.
    #[arg(long)]
    pub(crate) required: bool,
    /// Keep the server in the file, but do not use it.
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Replace a server of the same name.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do not start the server to test it.
    #[arg(long)]
    pub(crate) no_test: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Program of the server and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}

/// The sandboxes of a server, as flags spell them.
const SERVER_SANDBOXES: [&str; 3] = ["read-only", "workspace-write", "none"];

fn sandbox_of(name: &str) -> SandboxFlag {
    match name {
        "none" => SandboxFlag::DangerFullAccess,
        "workspace-write" => SandboxFlag::WorkspaceWrite,
        _ => SandboxFlag::ReadOnly,
    }
}

/// Splits `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// The approval modes of tools, as flags spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolApprovalFlag {
    /// Before calls that may change something which the session may not change by itself.
    Auto,
    /// Before every call.
    Prompt,
    /// Before calls that may change something.
    Writes,
    /// Never.
    Approve,
}

impl From<ToolApprovalFlag> for ToolApprovalMode {
    fn from(mode: ToolApprovalFlag) -> Self {
        match mode {
            ToolApprovalFlag::Auto => Self::Auto,
            ToolApprovalFlag::Prompt => Self::Prompt,
            ToolApprovalFlag::Writes => Self::Writes,
            ToolApprovalFlag::Approve => Self::Approve,
        }
    }
}
