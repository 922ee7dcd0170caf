//! Outcomes of calls in the words of the protocol.

use serde_json::{Map, Value, json};
use windlass::{
    Content, Outcome, SpecKind, ToolReport,
    mcp::result::{RemoteContent, RemoteResult},
};

/// Maximum size of the data of a tool that is passed on. Clients may show all of it to their model.
const MAX_DATA_BYTES: usize = 32 * 1024;

/// Returns the result of a call for its client.
pub(crate) fn served(outcome: &Outcome) -> RemoteResult {
    let mut content: Vec<_> = outcome.for_model().iter().filter_map(piece).collect();
    if content.is_empty() {
        content.push(RemoteContent::Text { text: String::new() });
    }
    let structured_content = Some(structured(outcome));
    RemoteResult { content, structured_content, is_error: !outcome.verdict.success }
}

/// Returns the result of a call through the gateway. It has the data of the tool itself. A list of
/// tools with schemas of data would promise data in every result: limits can leave it out.
pub(crate) fn passed_on(outcome: &Outcome) -> RemoteResult {
    let data = match &outcome.data {
        Some(ToolReport::Json(data)) if data.is_object() => Some(data.clone()),
        _ => None,
    };
    let structured_content = data.filter(|data| data.to_string().len() <= MAX_DATA_BYTES);
    RemoteResult { structured_content, ..served(outcome) }
}

fn piece(content: &Content) -> Option<RemoteContent> {
    match content {
        Content::Text(text) => Some(RemoteContent::Text { text: text.clone() }),
        Content::Image(url) => {
            let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
            Some(RemoteContent::Image { data: data.to_owned(), mime_type: mime_type.to_owned() })
        }
        Content::Tool(spec) => {
            let SpecKind::Function { parameters } = &spec.kind else { return None };
            let tool = json!({
                "name": spec.name,
                "description": spec.description,
                "inputSchema": parameters.explicit(),
            });
            Some(RemoteContent::Text { text: tool.to_string() })
        }
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
