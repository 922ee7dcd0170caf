//! A history as chat messages.
//!
//! Every item is written once, as the piece of a message it stands for; a request puts the pieces together. What the
//! model said in one go (thoughts, text, calls) is one assistant message, as the server itself would have it.

use serde::Serialize;
use serde_json::{Value, json};
use windlass_contract::{Body, Cached, CallId, Content, Input, Item, Role, ToolCall};

use super::FREEFORM;
use crate::{WireApi, calls::readable, json};

/// The field thoughts go in unless they came in another.
pub(super) const REASONING: &str = "reasoning";
/// The field other servers use for thoughts.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// Instructions and history as the JSON of a request's `messages`.
pub(super) fn encode(instructions: &str, history: &[Cached<Item>]) -> String {
    let mut messages = Messages::default();
    if !instructions.is_empty() {
        messages.push(&json::text_of(&Message { role: "system", content: instructions.into() }));
    }
    // Thoughts belong to the request they were about: once the user has spoken again they are left out.
    let is_user = |item: &Cached<Item>| matches!(item.get().body, Body::Message { role: Role::User, .. });
    let current = history.iter().rposition(is_user).unwrap_or(0);
    for (at, cached) in history.iter().enumerate() {
        let piece = cached.encoded(WireApi::Chat.name(), piece);
        match &cached.get().body {
            _ if piece.is_empty() => {}
            Body::Message { role: Role::Assistant, .. } => messages.assistant.say(&piece),
            Body::Reasoning { .. } if at >= current => messages.assistant.think(field(cached.get()), &piece),
            Body::Reasoning { .. } => {}
            Body::Call(_) => messages.assistant.call(&piece),
            Body::Message { .. } | Body::Output { .. } | Body::WebSearch { .. } | Body::Other => {
                messages.flush();
                messages.push(&piece);
            }
        }
    }
    messages.flush();
    format!("[{}]", messages.text)
}

/// Messages put together so far.
#[derive(Default)]
struct Messages {
    text: String,
    assistant: Assistant,
}

impl Messages {
    fn push(&mut self, message: &str) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(message);
    }

    fn flush(&mut self) {
        if let Some(message) = std::mem::take(&mut self.assistant).finish() {
            self.push(&message);
        }
    }
}

/// The assistant message under construction. Texts are the insides of JSON strings.
#[derive(Default)]
struct Assistant {
    content: String,
    last: String,
    reasoning: Option<(&'static str, String)>,
    calls: String,
}

impl Assistant {
    /// A text that only repeats the one before is left out: a server that was asked twice says it twice.
    fn say(&mut self, text: &str) {
        if text != self.last {
            join(&mut self.content, r"\n", text);
            text.clone_into(&mut self.last);
        }
    }

    fn think(&mut self, field: &'static str, text: &str) {
        join(&mut self.reasoning.get_or_insert((field, String::new())).1, r"\n", text);
    }

    fn call(&mut self, call: &str) {
        join(&mut self.calls, ",", call);
    }

    fn finish(self) -> Option<String> {
        if self.content.is_empty() && self.calls.is_empty() {
            return None;
        }
        let mut message = json::Object::with_capacity(self.content.len() + self.calls.len() + 64);
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

/// What an item adds to the messages: a whole message, a call, or the inside of a JSON string. Nothing if this wire
/// cannot express it.
fn piece(item: &Item) -> String {
    match &item.body {
        Body::Message { role: Role::Assistant, content } => inside(&Content::join(content)),
        Body::Message { role: Role::User, content } => {
            json::text_of(&Message { role: "user", content: Told::of(content) })
        }
        // Few servers know `developer`, and those that do treat it as `system`.
        Body::Message { role: Role::Developer | Role::System, content } => {
            json::text_of(&Message { role: "system", content: Told::of(content) })
        }
        Body::Reasoning { text, .. } => inside(text.join("\n").trim()),
        Body::Call(call) => match &item.raw {
            Some(raw) if raw.wire == WireApi::Chat.name() => raw.json.get().to_owned(),
            _ => called(call),
        },
        Body::Output { call, content, .. } => {
            json::text_of(&Output { role: "tool", tool_call_id: call, content: Told::of(content) })
        }
        Body::WebSearch { .. } | Body::Other => String::new(),
    }
}

fn inside(text: &str) -> String {
    let mut quoted = json::text_of(text);
    quoted.pop();
    quoted.split_off(1)
}

/// The field thoughts came in: servers look for them where they put them.
fn field(item: &Item) -> &'static str {
    let raw = item.raw.as_ref().filter(|raw| raw.wire == WireApi::Chat.name());
    match raw {
        Some(raw) if raw.json.get().starts_with(r#"{"reasoning_content""#) => REASONING_CONTENT,
        _ => REASONING,
    }
}

fn called(call: &ToolCall) -> String {
    let arguments = match &call.input {
        Input::Json(text) => readable(text),
        Input::Text(text) => json!({FREEFORM: text}).to_string().into(),
    };
    json::text_of(&json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments}
    }))
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Told<'a>,
}

#[derive(Serialize)]
struct Output<'a> {
    role: &'static str,
    tool_call_id: &'a CallId,
    content: Told<'a>,
}

/// Text, or parts if there is an image among them: not every server takes parts.
#[derive(Serialize)]
#[serde(untagged)]
enum Told<'a> {
    Text(std::borrow::Cow<'a, str>),
    Parts(Vec<Value>),
}

impl<'a> From<&'a str> for Told<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> Told<'a> {
    fn of(content: &'a [Content]) -> Self {
        let part = |content: &Content| match content {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::Image(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        };
        match content {
            [Content::Text(text)] => text.as_str().into(),
            parts if parts.iter().any(|part| matches!(part, Content::Image(_))) => {
                Self::Parts(parts.iter().map(part).collect())
            }
            texts => Self::Text(Content::join(texts).into()),
        }
    }
}

#[cfg(test)]
mod tests;
