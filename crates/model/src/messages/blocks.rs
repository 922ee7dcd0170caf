//! Encodes items as content blocks.
//!
//! The API refuses blocks of blank text, so those are left out everywhere.

use std::fmt::Write;

use serde_json::{Value, json, value::RawValue};
use windlass_contract::{
    CallId, Content, Input, Item, ToolCall,
    item::{Body, Role},
};

use crate::{
    WireApi,
    calls::{valid_arguments, valid_name},
    freeform, json,
};

/// Encodes an item as blocks, separated by commas. Returns an empty string if it has none.
pub(super) fn encode(item: &Item) -> String {
    match &item.body {
        Body::Message { role: Role::Assistant, content } => {
            let text = Content::join(content);
            if text.trim().is_empty() { String::new() } else { text_block(text.trim_end()) }
        }
        Body::Message { content, .. } => blocks(content).join(","),
        Body::Call(call) => tool_use(call),
        Body::Output { call, content, failed, .. } => tool_result(call, content, *failed),
        // Only the server's own form has the signature, without which it is refused.
        Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {
            own_json(item).map(|json| json.get().to_owned()).unwrap_or_default()
        }
    }
}

/// Returns the JSON of an item that came over this wire.
pub(super) fn own_json(item: &Item) -> Option<&RawValue> {
    let raw = item.raw.as_ref().filter(|raw| raw.wire == WireApi::Messages.name());
    raw.map(|raw| raw.json.as_ref())
}

/// Encodes a text.
pub(super) fn text_block(text: &str) -> String {
    json::to_text(&json!({"type": "text", "text": text}))
}

/// Encodes a result for a call that has none in the history.
pub(super) fn missing_result(call: &CallId) -> String {
    json::to_text(&json!({
        "type": "tool_result",
        "tool_use_id": valid_id(call),
        "content": "the call was interrupted; its result is not known",
        "is_error": true
    }))
}

fn tool_use(call: &ToolCall) -> String {
    let arguments = match &call.input {
        Input::Json(text) | Input::Search(text) => valid_arguments(text),
        Input::Text(text) => freeform::arguments(text).into(),
    };
    let mut object = json::JsonObjectWriter::with_capacity(arguments.len() + 128);
    object.member("type", "tool_use");
    object.member("id", &valid_id(&call.id));
    object.member("name", &valid_name(call.name.as_str()));
    object.raw("input", &arguments);
    object.finish()
}

fn tool_result(call: &CallId, content: &[Content], failed: bool) -> String {
    let mut object = json::JsonObjectWriter::with_capacity(256);
    object.member("type", "tool_result");
    object.member("tool_use_id", &valid_id(call));
    if content.iter().any(|part| matches!(part, Content::Image(_))) {
        object.raw("content", &format!("[{}]", blocks(content).join(",")));
    } else {
        object.member("content", &Content::join(content));
    }
    if failed {
        object.member("is_error", &true);
    }
    object.finish()
}

fn blocks(content: &[Content]) -> Vec<String> {
    let block = |part: &Content| match part {
        Content::Text(text) if text.trim().is_empty() => None,
        Content::Text(text) => Some(text_block(text)),
        Content::Image(url) => Some(image_block(url)),
        // The next request lists this tool in `tools`.
        Content::Tool(_) => None,
    };
    content.iter().filter_map(block).collect()
}

/// Encodes an image: the bytes of a `data:` URL, or an address for the server to read.
fn image_block(url: &str) -> String {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let source: Value = match data {
        Some((media_type, data)) => json!({"type": "base64", "media_type": media_type, "data": data}),
        None => json!({"type": "url", "url": url}),
    };
    json::to_text(&json!({"type": "image", "source": source}))
}

/// Returns an id in the characters that the API accepts. Ids from other wires may have others.
fn valid_id(id: &CallId) -> String {
    let mut valid = String::with_capacity(id.as_str().len());
    for c in id.as_str().chars() {
        if c.is_ascii_alphanumeric() || "_-".contains(c) {
            valid.push(c);
        } else {
            // Different ids must stay different.
            let _ = write!(valid, "_{:x}_", u32::from(c));
        }
    }
    valid
}
