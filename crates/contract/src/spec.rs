//! The description of a tool that a model receives.

use serde::{Deserialize, Serialize};

use crate::ToolName;
use windlass_schema::Schema;

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name by which the model calls it.
    pub name: ToolName,
    /// Purpose of the tool and its limits. Part of the prompt.
    pub description: String,
    /// Form of its calls.
    pub kind: SpecKind,
}

/// Approximate size of the JSON around name, description and parameters.
const FRAME_BYTES: usize = 60;

impl ToolSpec {
    /// Estimates the number of tokens of the description: a quarter of its bytes.
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

/// Kinds of tools that a model can be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum SpecKind {
    /// Called with JSON that matches a schema.
    Function {
        /// The parameters; always an object.
        parameters: Schema,
    },
    /// The shell tool that some models know natively, without a schema.
    LocalShell,
    /// Search performed by the model's server.
    WebSearch(WebSearch),
    /// Called with text that matches a grammar.
    Custom {
        /// The grammar.
        grammar: Grammar,
    },
    /// Finds tools that were not described to the model, in the form that a wire has for it. Over
    /// other wires it is a function.
    Search {
        /// The parameters; always an object.
        parameters: Schema,
    },
}

/// Scope of a hosted web search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebSearch {
    /// Only pages that the server has stored.
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
