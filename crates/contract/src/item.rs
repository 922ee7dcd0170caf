//! One step of a conversation, the same for every provider.

use std::{borrow::Cow, sync::OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{CallId, ToolCall, ToolSpec, call::InputKind};

/// One step of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Item {
    /// Content in the provider-independent form.
    pub body: Body,
    /// The provider's exact JSON. It is sent back unchanged if its shape is right, so that unknown
    /// fields and items survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// A provider's own JSON for an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Raw {
    /// The wire it came over, as [`ModelInfo::wire`](crate::model::ModelInfo) names it. Over
    /// another wire, the body is used instead.
    pub wire: Cow<'static, str>,
    /// The JSON.
    pub json: Box<RawValue>,
}

/// Content of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Body {
    /// A message.
    Message {
        /// Author of the message.
        role: Role,
        /// Parts of the message.
        content: Vec<Content>,
    },
    /// Reasoning of the model.
    Reasoning {
        /// The model's own summary.
        #[serde(default)]
        summary: Vec<String>,
        /// The reasoning text, where the provider shows it.
        #[serde(default)]
        text: Vec<String>,
    },
    /// The model requests a tool call.
    Call(ToolCall),
    /// Output of a call.
    Output {
        /// The call.
        call: CallId,
        /// The kind of its input.
        input: InputKind,
        /// Content for the model.
        content: Vec<Content>,
        /// True if the call did not do what was requested. Some wires have a member for it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
    /// The provider searched the web on its own.
    WebSearch {
        /// Search query.
        query: String,
    },
    /// An item that only the provider understands. It is kept to be sent back.
    Other,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The vendor of the system.
    System,
    /// The program that runs the model.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A part of a message or of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, as a URL; mostly a `data:` one.
    Image(String),
    /// A tool that a search found. The model can call it from now on.
    Tool(Box<ToolSpec>),
}

impl Content {
    /// Returns the text of all parts, one per line.
    pub fn join(parts: &[Self]) -> String {
        let texts = parts.iter().filter_map(|part| match part {
            Self::Text(text) => Some(text.as_str()),
            Self::Image(_) | Self::Tool(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl From<Body> for Item {
    fn from(body: Body) -> Self {
        Self { body, raw: None }
    }
}

impl Item {
    /// Builds a text message.
    pub fn message(role: Role, text: impl Into<String>) -> Self {
        Body::Message { role, content: vec![Content::Text(text.into())] }.into()
    }
}

/// A value with its wire form and its tokens, which are computed once and not in every turn.
#[derive(Debug)]
pub struct Cached<T> {
    value: T,
    wire: OnceLock<(&'static str, Box<str>)>,
    tokens: OnceLock<(&'static str, u64)>,
}

impl<T> Cached<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self { value, wire: OnceLock::new(), tokens: OnceLock::new() }
    }

    /// Returns the value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// Returns the value encoded for a wire. The result is cached for the first wire that asks, and
    /// computed again for any other.
    pub fn encoded(&self, wire: &'static str, encode: impl Fn(&T) -> String) -> Cow<'_, str> {
        let (kept, text) = self.wire.get_or_init(|| (wire, encode(&self.value).into()));
        if *kept == wire { Cow::Borrowed(text) } else { Cow::Owned(encode(&self.value)) }
    }

    /// Returns the tokens of the value by a tokenizer. The result is cached for the first tokenizer
    /// that asks, and computed again for any other.
    pub fn tokens(&self, tokenizer: &'static str, count: impl Fn(&T) -> u64) -> u64 {
        let (kept, tokens) = *self.tokens.get_or_init(|| (tokenizer, count(&self.value)));
        if kept == tokenizer { tokens } else { count(&self.value) }
    }
}

impl<T> From<T> for Cached<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_value_is_written_once_for_its_wire_and_freshly_for_another() {
        let written = Cell::new(0);
        let encode = |number: &u32| {
            written.set(written.get() + 1);
            number.to_string()
        };
        let cached = Cached::new(7);
        assert_eq!(cached.encoded("a", encode), "7");
        assert_eq!(cached.encoded("a", encode), "7");
        assert_eq!(written.get(), 1);
        assert_eq!(cached.encoded("b", encode), "7");
        assert_eq!(written.get(), 2);
    }

    #[test]
    fn an_item_survives_the_session_file() {
        let raw = Raw {
            wire: "responses".into(),
            json: RawValue::from_string(r#"{"b":1, "a":[]}"#.into()).unwrap(),
        };
        let item = Item { body: Body::Other, raw: Some(raw) };
        let text = serde_json::to_string(&item).unwrap();
        let back: Item = serde_json::from_str(&text).unwrap();
        assert_eq!(back.raw.unwrap().json.get(), r#"{"b":1, "a":[]}"#);
    }
}
