//! Encodes a history as chat messages.
//!
//! Every item is encoded once, as the part of a message that it becomes; a request joins the parts.
//! Reasoning, text and calls of one answer form one assistant message, as the server itself would
//! write it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use windlass_contract::{
    CallId, Content, Input, Item, ToolCall,
    item::{Body, Cached, Role},
};

use crate::{
    Dialect, WireApi,
    calls::{valid_arguments, valid_name},
    freeform, json,
};

/// Default member for reasoning.
pub(super) const REASONING: &str = "reasoning";
/// Member that other servers use for reasoning.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// Returns instructions and history as the JSON of a request's `messages`. With a `prompt_dialect`,
/// calls and results are written as text; otherwise they are JSON members.
pub(super) fn encode(
    instructions: &str,
    history: &[Cached<Item>],
    prompt_dialect: Option<Dialect>,
) -> String {
    let mut messages = ChatMessages::default();
    if !instructions.is_empty() {
        messages.push(&json::to_text(&ChatMessage { role: "system", content: instructions.into() }));
    }
    // Reasoning belongs to the request it was about, so it is left out after the next user message.
    let is_user = |item: &Cached<Item>| matches!(item.get().body, Body::Message { role: Role::User, .. });
    let current = history.iter().rposition(is_user).unwrap_or(0);
    let wire = prompt_dialect.map_or(WireApi::Chat.name(), Dialect::cache_key);
    for (at, cached) in history.iter().enumerate() {
        let encoded = cached.encoded(wire, |item| encode_item(item, prompt_dialect));
        match &cached.get().body {
            _ if encoded.is_empty() => {}
            Body::Message { role: Role::Assistant, .. } => messages.assistant().push_text(&encoded),
            Body::Reasoning { .. } if at >= current => {
                messages.assistant().push_reasoning(reasoning_field(cached.get()), &encoded)
            }
            Body::Reasoning { .. } => {}
            Body::Call(_) if prompt_dialect.is_some() => {
                join(&mut messages.assistant().content, r"\n", &encoded)
            }
            Body::Call(_) => messages.assistant().push_call(&encoded),
            Body::Output { content, .. } if prompt_dialect.is_some() && !has_image(content) => {
                messages.push_result(&encoded)
            }
            Body::Message { .. } | Body::Output { .. } | Body::WebSearch { .. } | Body::Other => {
                messages.flush();
                messages.push(&encoded);
            }
        }
    }
    messages.flush();
    format!("[{}]", messages.text)
}

/// The messages encoded so far.
#[derive(Default)]
struct ChatMessages {
    text: String,
    assistant: AssistantMessage,
    /// Results written as text: the inside of a JSON string. They are one message, because many
    /// servers require user and assistant messages to alternate.
    results: String,
}

impl ChatMessages {
    fn push(&mut self, message: &str) {
        join(&mut self.text, ",", message);
    }

    fn assistant(&mut self) -> &mut AssistantMessage {
        self.flush_results();
        &mut self.assistant
    }

    fn push_result(&mut self, encoded: &str) {
        self.flush_assistant();
        join(&mut self.results, r"\n", encoded);
    }

    fn flush(&mut self) {
        self.flush_assistant();
        self.flush_results();
    }

    fn flush_assistant(&mut self) {
        if let Some(message) = std::mem::take(&mut self.assistant).finish() {
            self.push(&message);
        }
    }

    fn flush_results(&mut self) {
        let results = std::mem::take(&mut self.results);
        if !results.is_empty() {
            self.push(&format!(r#"{{"role":"user","content":"{results}"}}"#));
        }
    }
}

/// The assistant message under construction. Texts are the inside of JSON strings.
#[derive(Default)]
struct AssistantMessage {
    content: String,
    last: String,
    reasoning: Option<(&'static str, String)>,
    calls: String,
}

impl AssistantMessage {
    /// Adds text, unless it repeats the previous text: a request that was retried may yield the
    /// same text twice.
    fn push_text(&mut self, text: &str) {
        if text != self.last {
            join(&mut self.content, r"\n", text);
            text.clone_into(&mut self.last);
        }
    }

    fn push_reasoning(&mut self, field: &'static str, text: &str) {
        join(&mut self.reasoning.get_or_insert((field, String::new())).1, r"\n", text);
    }

    fn push_call(&mut self, call: &str) {
        join(&mut self.calls, ",", call);
    }

    fn finish(self) -> Option<String> {
        if self.content.is_empty() && self.calls.is_empty() {
            return None;
        }
        let mut message = json::JsonObjectWriter::with_capacity(self.content.len() + self.calls.len() + 64);
        message.member("role", "assistant");
        let content =
            if self.content.is_empty() { "null".to_owned() } else { format!("\"{}\"", self.content) };
        message.raw("content", &content);
        if let Some((field, text)) = self.reasoning {
            message.raw(field, &format!("\"{text}\""));
        }
        if !self.calls.is_empty() {
            message.raw("tool_calls", &format!("[{}]", self.calls));
        }
        Some(message.finish())
    }
}

fn join(to: &mut String, separator: &str, text: &str) {
    if !to.is_empty() {
        to.push_str(separator);
    }
    to.push_str(text);
}

/// Encodes an item as a message, a call, or the inside of a JSON string. Returns an empty string if
/// this protocol cannot express it.
fn encode_item(item: &Item, prompt_dialect: Option<Dialect>) -> String {
    match (&item.body, prompt_dialect) {
        (Body::Message { role: Role::Assistant, content }, _) => json_string_body(&Content::join(content)),
        (Body::Message { role: Role::User, content }, _) => {
            json::to_text(&ChatMessage { role: "user", content: MessageContent::from_parts(content) })
        }
        // Few servers know `developer`, and those that do treat it as `system`.
        (Body::Message { role: Role::Developer | Role::System, content }, _) => {
            json::to_text(&ChatMessage { role: "system", content: MessageContent::from_parts(content) })
        }
        (Body::Reasoning { text, .. }, _) => json_string_body(text.join("\n").trim()),
        (Body::Call(call), Some(dialect)) => {
            json_string_body(&dialect.call(call.name.as_str(), &arguments(call)))
        }
        (Body::Call(call), None) => match &item.raw {
            Some(raw) if raw.wire == WireApi::Chat.name() => raw.json.get().to_owned(),
            _ => encode_call(call),
        },
        (Body::Output { content, .. }, Some(_)) if has_image(content) => {
            json::to_text(&ChatMessage { role: "user", content: MessageContent::from_parts(content) })
        }
        (Body::Output { content, .. }, Some(dialect)) => {
            json_string_body(&dialect.result(&Content::join(content)))
        }
        (Body::Output { call, content, .. }, None) => json::to_text(&ToolMessage {
            role: "tool",
            tool_call_id: call,
            content: MessageContent::from_parts(content),
        }),
        (Body::WebSearch { .. } | Body::Other, _) => String::new(),
    }
}

fn has_image(content: &[Content]) -> bool {
    content.iter().any(|part| matches!(part, Content::Image(_)))
}

fn json_string_body(text: &str) -> String {
    let mut quoted = json::to_text(text);
    quoted.pop();
    quoted.split_off(1)
}

/// Returns the member in which the reasoning arrived. Servers expect it there.
fn reasoning_field(item: &Item) -> &'static str {
    let raw = item.raw.as_ref().filter(|raw| raw.wire == WireApi::Chat.name());
    match raw {
        Some(raw) if raw.json.get().starts_with(r#"{"reasoning_content""#) => REASONING_CONTENT,
        _ => REASONING,
    }
}

fn encode_call(call: &ToolCall) -> String {
    json::to_text(&json!({
        "id": call.id,
        "type": "function",
        "function": {"name": valid_name(call.name.as_str()), "arguments": arguments(call)}
    }))
}

fn arguments(call: &ToolCall) -> Cow<'_, str> {
    match &call.input {
        Input::Json(text) | Input::Search(text) => valid_arguments(text),
        Input::Text(text) => freeform::arguments(text).into(),
    }
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: MessageContent<'a>,
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a CallId,
    content: MessageContent<'a>,
}

/// Text, or a list of parts if it has an image. Not every server accepts parts.
#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

impl<'a> From<&'a str> for MessageContent<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> MessageContent<'a> {
    fn from_parts(content: &'a [Content]) -> Self {
        let part = |content: &Content| match content {
            Content::Text(text) => Some(json!({"type": "text", "text": text})),
            Content::Image(url) => Some(json!({"type": "image_url", "image_url": {"url": url}})),
            // The next request lists this tool in `tools`.
            Content::Tool(_) => None,
        };
        match content {
            [Content::Text(text)] => text.as_str().into(),
            parts if has_image(parts) => Self::Parts(parts.iter().filter_map(part).collect()),
            texts => Self::Text(Content::join(texts).into()),
        }
    }
}

#[cfg(test)]
mod tests;
