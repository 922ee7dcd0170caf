//! A tool, as its server defines it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_contract::remote::ToolHints;

/// A tool, as its server defines it. Every text is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteToolDefinition {
    /// Name that the server knows it by.
    pub name: String,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments, as the server sent it.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of the structured content, as the server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// Annotations.
    #[serde(default)]
    pub hints: ToolHints,
}
