//! The description of a tool that a model is given.

use serde::{Deserialize, Serialize};

use crate::ToolName;
use windlass_schema::Schema;

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

/// What is written around name, description and parameters.
const FRAME_BYTES: usize = 60;

impl ToolSpec {
    /// About how many tokens it costs to tell the model: a quarter of the bytes of what it is told.
    pub fn tokens(&self) -> usize {
        let parameters = match &self.kind {
            SpecKind::Function { parameters } | SpecKind::Search { parameters } => {
                parameters.explicit().to_string().len()
            }
            SpecKind::Custom { grammar } => grammar.definition.len(),
            SpecKind::LocalShell | SpecKind::WebSearch(_) => 0,
        };
        (FRAME_BYTES + self.name.as_str().len() + self.description.len() + parameters).div_ceil(4)
    }
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
