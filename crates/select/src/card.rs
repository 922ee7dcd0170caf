//! A tool as the index sees it, wherever it comes from.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_contract::{Category, Meta, Profile, SpecKind, ToolSpec};

use crate::hash::WordHasher;

/// What is known about a tool when it is looked for. Only the name must be there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// What it is called by.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// The server it comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The JSON Schema of its parameters. Untrusted: what makes no sense in it is passed over.
    #[serde(default, alias = "inputSchema", alias = "input_schema")]
    pub parameters: Value,
    /// Requests it is the answer to: examples of its author, and what it was used for with success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Whether it changes anything.
    #[serde(default)]
    pub changes: ToolChanges,
}

/// Whether a tool changes anything outside itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChanges {
    /// It only looks.
    Nothing,
    /// It writes, sends, starts or deletes something.
    Something,
    /// Nobody said.
    #[default]
    Unsaid,
}

impl Card {
    /// What tells it from every other tool.
    pub fn key(&self) -> String {
        Self::join_key(&self.server, &self.name)
    }

    /// A number that stands for everything on it.
    pub fn digest(&self) -> u64 {
        let mut hash = WordHasher::default();
        (&self.name, &self.description, &self.category, &self.server).hash(&mut hash);
        (&self.examples, &self.changes, &self.parameters).hash(&mut hash);
        hash.finish()
    }

    pub(crate) fn join_key(server: &str, name: &str) -> String {
        if server.is_empty() { name.to_owned() } else { format!("{server}/{name}") }
    }

    /// The card of one of our own tools.
    pub fn from_spec(spec: &ToolSpec, meta: &Meta) -> Self {
        let parameters = match &spec.kind {
            SpecKind::Function { parameters } | SpecKind::Search { parameters } => {
                parameters.project(Profile::Faithful)
            }
            SpecKind::LocalShell | SpecKind::WebSearch(_) | SpecKind::Custom { .. } => Value::Null,
        };
        // What a search sends away changes nothing at the other end.
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
    use windlass_contract::Schema;

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
