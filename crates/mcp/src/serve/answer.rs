//! Our tools and results in the words of the protocol.

use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig, Tool};
use serde_json::json;

use super::ServerIdentity;
use crate::{
    definition::RemoteToolDefinition,
    result::{RemoteContent, RemoteResult},
};

impl RemoteResult {
    /// Returns a failure with a message for the model.
    pub fn failed(message: impl Into<String>) -> Self {
        let content = vec![RemoteContent::Text { text: message.into() }];
        Self { content, structured_content: None, is_error: true }
    }
}

/// Returns a tool as the protocol writes it. `None` if its definition has no valid form.
pub(super) fn tool(definition: &RemoteToolDefinition) -> Option<Tool> {
    let hints = &definition.hints;
    let mut tool = json!({
        "name": definition.name,
        "inputSchema": definition.input_schema,
        "annotations": {
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        },
    });
    if let Some(title) = &definition.title {
        tool["title"] = json!(title);
    }
    if let Some(description) = &definition.description {
        tool["description"] = json!(description);
    }
    if let Some(schema) = &definition.output_schema {
        tool["outputSchema"] = json!(schema);
    }
    serde_json::from_value(tool)
        .inspect_err(|error| tracing::warn!(tool = definition.name, %error, "a tool cannot be served"))
        .ok()
}

/// Returns a result as the protocol writes it.
pub(super) fn result(result: RemoteResult) -> CallToolResult {
    let content = result.content.iter().map(serde_json::to_value).map(|piece| {
        let block = piece.and_then(serde_json::from_value::<ContentBlock>);
        block.unwrap_or_else(|error| {
            tracing::warn!(%error, "a piece of a result has no valid form");
            ContentBlock::text("[a piece of the result could not be sent]")
        })
    });
    let content = content.collect();
    let mut answer =
        if result.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    answer.structured_content = result.structured_content;
    answer
}

/// Returns the introduction of a server with tools.
pub(super) fn introduction(identity: ServerIdentity, changes: bool) -> ServerConfig {
    let capabilities = ServerCapabilities::builder().enable_tools();
    let capabilities = if changes { capabilities.enable_tool_list_changed() } else { capabilities };
    let mut introduction = ServerConfig::new(capabilities.build());
    let mut implementation = Implementation::new(identity.name, identity.version);
    implementation.title = identity.title;
    introduction.server_info = implementation;
    introduction.instructions = identity.instructions;
    introduction
}
