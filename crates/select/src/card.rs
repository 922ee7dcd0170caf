//! A tool as the index sees it, wherever it comes from.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_contract::{Meta, ToolSpec, meta::Category, spec::SpecKind};

use crate::hash::WordHasher;

/// The description of a tool that is indexed. Only the name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The name by which the tool is called.
    pub name: String,
    /// The purpose of the tool.
    #[serde(default)]
    pub description: String,
    /// The subject of the tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// The server it comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The JSON Schema of its parameters. Untrusted: invalid parts are ignored.
    #[serde(default, alias = "inputSchema", alias = "input_schema")]
    pub parameters: Value,
    /// Requests that the tool answers: examples of its author, and requests for which it was used
    /// with success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The effect of the tool on its surroundings.
    #[serde(default)]
    pub changes: ToolChanges,
}

/// Tells whether a tool changes anything outside itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChanges {
    /// The tool only reads.
    Nothing,
    /// It writes, sends, starts or deletes something.
    Something,
    /// The effect is not known.
    #[default]
    Unsaid,
}

impl Card {
    /// Returns the key that identifies the tool: its server and its name.
    pub fn key(&self) -> String {
        Self::join_key(&self.server, &self.name)
    }

    /// Returns a hash of all fields.
    pub fn digest(&self) -> u64 {
        let mut hash = WordHasher::default();
        (&self.name, &self.description, &self.category, &self.server).hash(&mut hash);
        (&self.examples, &self.changes, &self.parameters).hash(&mut hash);
        hash.finish()
    }

    pub(crate) fn join_key(server: &str, name: &str) -> String {
        if server.is_empty() { name.to_owned() } else { format!("{server}/{name}") }
    }

    /// Creates the card of a built-in tool.
    pub fn from_spec(spec: &ToolSpec, meta: &Meta) -> Self {
        let parameters = match &spec.kind {
            SpecKind::Function { parameters } | SpecKind::Search { parameters } => parameters.explicit(),
            SpecKind::LocalShell | SpecKind::WebSearch(_) | SpecKind::Custom { .. } => Value::Null,
        };
        // A web search sends a query but changes nothing on the server.
        let changes = match meta.category {
            Category::Web => ToolChanges::Nothing,
            _ if meta.side_effects.is_empty() => ToolChanges::Nothing,
            _ => ToolChanges::Something,
        };
        Self {
            name: spec.name.to_string(),
            description: spec.description.clone(),
            category: meta.category.title().to_owned(),
            server: String::new(),
            parameters,
            examples: meta
                .examples
                .iter()
                .map(|example| example.request.to_owned())
                .chain(meta.requests.iter().cloned())
                .collect(),
            changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_schema::Schema;

    use super::*;

    #[test]
    fn a_row_of_a_foreign_list_needs_only_a_name() {
        let card: Card = serde_json::from_value(json!({"name": "x", "eq": ["y"]})).unwrap();
        assert_eq!(card, Card { name: "x".to_owned(), ..Card::default() });
    }

    #[test]
    fn what_our_own_tools_say_they_change_is_kept() {
        let spec = ToolSpec {
            name: "write_file".into(),
            description: "Write a file.".to_owned(),
            kind: SpecKind::Function { parameters: Schema::default() },
        };
        let meta = Meta { side_effects: vec!["changes files".to_owned()], ..Meta::default() };
        assert_eq!(Card::from_spec(&spec, &meta).changes, ToolChanges::Something);
        assert_eq!(Card::from_spec(&spec, &Meta::default()).changes, ToolChanges::Nothing);
    }
}
