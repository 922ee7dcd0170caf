//! The MCP server: our tools for any client.
