//! Settings of `windlass mcp gateway`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `windlass mcp gateway`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "McpGateway")]
pub(crate) struct GatewaySettings {
    /// The HTTP clients, by name. With any, only these are let in.
    pub(crate) clients: BTreeMap<String, GatewayClient>,
}

/// One HTTP client of the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatewayClient {
    /// The variable that holds the token of the client, at least 32 characters.
    pub(crate) token_env_var: String,
    /// The tools on offer, by their names in the list; `*` stands for any characters. Empty means
    /// all.
    pub(crate) tools: Vec<String>,
    /// Tools that are left out, written in the same way.
    pub(crate) deny: Vec<String>,
}
