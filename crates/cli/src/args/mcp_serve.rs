//! Options of `mcp serve`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::{Args, ValueEnum};

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  windlass mcp serve ~/project -s workspace-write
  windlass mcp serve --allow-tools 'read_*' --allow-tools grep_files
  WINDLASS_MCP_TOKEN=$(openssl rand -hex 32) windlass mcp serve --http 127.0.0.1:8931";

pub(super) const GATEWAY_EXAMPLES: &str = "\
Examples:
  windlass mcp gateway
  windlass mcp gateway time files --tools 'mcp__time__*' --tools 'mcp__files__read_*'
  WINDLASS_MCP_TOKEN=$(openssl rand -hex 32) windlass mcp gateway --http 127.0.0.1:8932";

/// Serve the tools of Windlass to MCP clients.
#[derive(Debug, Args)]
pub(crate) struct McpServeOptions {
    /// Directory to work in. Default: this one.
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listening: McpListening,
    /// Offer only this tool; `*` stands for any characters. Repeatable.
    #[arg(long, value_name = "TOOL")]
    pub(crate) allow_tools: Vec<String>,
}

/// Put configured servers behind one endpoint.
#[derive(Debug, Args)]
pub(crate) struct McpGatewayOptions {
    /// Servers to offer. Default: all that are configured.
    pub(crate) servers: Vec<String>,
    #[command(flatten)]
    pub(crate) listening: McpListening,
    /// Offer only this tool, by its name in the list, such as `mcp__time__*`; `*` stands for any
    /// characters. Repeatable.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tools: Vec<String>,
    /// List `tool_search` and `call_tool` instead of the tools.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) search: GatewaySearch,
}

/// The condition for a search instead of a list of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GatewaySearch {
    /// If the list costs more than `tool_context_percent` of the context window.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The way by which clients reach a server.
#[derive(Debug, Args)]
pub(crate) struct McpListening {
    /// Serve over HTTP on this address instead. Clients must send the token of the variable
    /// `WINDLASS_MCP_TOKEN`, or the one that is printed.
    #[arg(long, value_name = "ADDR", value_parser = listening_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Name by which HTTP clients reach this machine, if it is not an address of it. Repeatable.
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
}

/// Returns an address; a port alone is one of this machine only.
fn listening_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    if let Ok(port) = port {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = local.as_deref().unwrap_or(text).parse();
    address.map_err(|_| "write an address and a port, such as 127.0.0.1:8931".to_owned())
}
