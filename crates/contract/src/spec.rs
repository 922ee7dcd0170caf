//! What a model is told about a tool.

use serde::{Deserialize, Serialize};

use crate::{Schema, ToolName};

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name to call it by.
    pub name: ToolName,
    /// What it is for, and what not; part of the prompt.
    pub description: String,
    /// How it is called.
    pub kind: SpecKind,
}

/// The kinds of tool a model can be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum SpecKind {
    /// Called with JSON that fits a schema.
    Function {
        /// The parameters; always an object.
        parameters: Schema,
    },
    /// The shell tool some models know natively, without a schema.
    LocalShell,
    /// Search done by the model's server itself.
    WebSearch(WebSearch),
    /// Called with text that fits a grammar.
    Custom {
        /// The grammar.
        grammar: Grammar,
    },
    /// Finds tools the model was not told about, in the form a wire has for that. Over other wires it is a function.
    Search {
        /// The parameters; always an object.
        parameters: Schema,
    },
}

/// How far a hosted web search may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebSearch {
    /// Only what the server has stored.
    Cached,
    /// The live web.
    Live,
}

/// The grammar of a freeform tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grammar {
    /// The notation, such as `lark`.
    pub syntax: String,
    /// The grammar itself.
    pub definition: String,
}
