//! One step of a conversation, the same for every provider.

use std::{borrow::Cow, sync::OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{CallId, ToolCall, ToolSpec, call::InputKind};

/// One step of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Item {
    /// What it says, in our words.
    pub body: Body,
    /// What the provider sent, to the letter. It is sent back as it came as far as its shape is
    /// right, so that fields and items we do not know survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// A provider's own JSON for an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Raw {
    /// The wire it came over, as [`ModelInfo::wire`](crate::model::ModelInfo) names it. Over another wire the body is used.
    pub wire: Cow<'static, str>,
    /// The JSON.
    pub json: Box<RawValue>,
}

/// What an item says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Body {
    /// Someone said something.
    Message {
        /// Who.
        role: Role,
        /// What.
        content: Vec<Content>,
    },
    /// The model thought something.
    Reasoning {
        /// Its own summary.
        #[serde(default)]
        summary: Vec<String>,
        /// The thoughts, where the provider shows them.
        #[serde(default)]
        text: Vec<String>,
    },
    /// The model wants a tool to run.
    Call(ToolCall),
    /// What came of a call.
    Output {
        /// The call.
        call: CallId,
        /// The kind of its input.
        input: InputKind,
        /// What the model is told.
        content: Vec<Content>,
    },
    /// The provider searched the web by itself.
    WebSearch {
        /// What for.
        query: String,
    },
    /// Something only the provider understands; kept for its sake.
    Other,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The maker of the system.
    System,
    /// The program around the model.
    Developer,
    /// The person.
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
    /// A tool that was found, and that the model can call from now on.
    Tool(Box<ToolSpec>),
}

impl Content {
    /// All text of the parts, one per line.
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
    /// A text message.
    pub fn message(role: Role, text: impl Into<String>) -> Self {
        Body::Message { role, content: vec![Content::Text(text.into())] }.into()
    }
}

/// A value with its wire form, which is written once and not again every turn.
#[derive(Debug)]
pub struct Cached<T> {
    value: T,
    wire: OnceLock<(&'static str, Box<str>)>,
}

impl<T> Cached<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self { value, wire: OnceLock::new() }
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// The value as written for a wire: kept for the first wire that asks, made anew for any other.
    pub fn encoded(&self, wire: &'static str, encode: impl Fn(&T) -> String) -> Cow<'_, str> {
        let (kept, text) = self.wire.get_or_init(|| (wire, encode(&self.value).into()));
        if *kept == wire { Cow::Borrowed(text) } else { Cow::Owned(encode(&self.value)) }
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
