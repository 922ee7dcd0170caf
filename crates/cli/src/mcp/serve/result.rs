//! Outcomes of calls in the words of the protocol.

use serde_json::{Map, Value, json};
use windlass::{
    Content, Outcome,
    mcp::result::{RemoteContent, RemoteResult},
};

/// Returns the result of a call for its client.
pub(crate) fn served(outcome: &Outcome) -> RemoteResult {
    let mut content: Vec<_> = outcome.for_model().iter().filter_map(piece).collect();
    if content.is_empty() {
        content.push(RemoteContent::Text { text: String::new() });
    }
    let structured_content = Some(structured(outcome));
    RemoteResult { content, structured_content, is_error: !outcome.verdict.success }
}

fn piece(content: &Content) -> Option<RemoteContent> {
    match content {
        Content::Text(text) => Some(RemoteContent::Text { text: text.clone() }),
        Content::Image(url) => {
            let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
            Some(RemoteContent::Image { data: data.to_owned(), mime_type: mime_type.to_owned() })
        }
        Content::Tool(_) => None,
    }
}

/// Returns the result as data. It has the whole output, because some clients show only this.
fn structured(outcome: &Outcome) -> Value {
    let mut result = json!({
        "status": outcome.status,
        "success": outcome.verdict.success,
        "output": outcome.text(),
    });
    if let Some(exit) = outcome.facts.exit() {
        result["exit_code"] = json!(exit.code());
    }
    result
}

/// Returns the schema of all results.
pub(crate) fn schema() -> Map<String, Value> {
    let statuses = ["success", "error", "timeout", "rejected", "permission_denied", "not_found"];
    let schema = json!({
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": statuses, "description": "How the call ended"},
            "success": {"type": "boolean", "description": "True if the call did what was asked"},
            "output": {"type": "string", "description": "What the tool returned, without secrets"},
            "exit_code": {"type": ["integer", "null"], "description": "Exit code of a command"},
        },
        "required": ["status", "success", "output"],
    });
    schema.as_object().cloned().unwrap_or_default()
}
