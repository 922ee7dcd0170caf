//! Calls as a model wrote them, before anything in them is validated.

use serde::{Deserialize, Serialize};

use crate::{CallId, ToolName};

/// Maximum size of the input of a call: more than models write into one, and checked in about a
/// second.
pub const MAX_INPUT_BYTES: usize = 4 * 1024 * 1024;

/// A request to run a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Pairs the call with its output.
    pub id: CallId,
    /// A name or alias of a tool; not yet known to exist.
    pub name: ToolName,
    /// Arguments for the tool.
    pub input: Input,
}

/// The unparsed input of a call. A model's JSON may be broken, and history keeps exactly what it
/// wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// JSON text for a function tool.
    Json(String),
    /// Plain text for a freeform tool, such as a patch.
    Text(String),
    /// JSON text of a search for tools, requested in the form that the wire has for it.
    Search(String),
}

/// Kind of input that a call carries. Its output must go back in the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// A function call.
    Json,
    /// A freeform call.
    Text,
    /// A search for tools, in the wire's own form.
    Search,
}

impl Input {
    /// Returns the kind of this input.
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Json(_) => InputKind::Json,
            Self::Text(_) => InputKind::Text,
            Self::Search(_) => InputKind::Search,
        }
    }

    /// Returns the text of an input of any kind.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Json(text) | Self::Text(text) | Self::Search(text) => text,
        }
    }
}
