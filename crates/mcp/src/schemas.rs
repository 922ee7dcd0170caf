//! Schemas of remote tools, normalized for models.
//!
//! `windlass-schema` normalizes and bounds: references lead to the schema itself, nothing is
//! fetched, nothing is nested without end, and no constraint is lost. This module adds the limits
//! for texts and sizes that come from a server.

use serde_json::{Map, Value};
use windlass_schema::{Schema, SchemaError};

use crate::{
    listing::{ServerListing, UnusableTool},
    untrusted_text::{bounded_text, is_hidden, visible_line, visible_text},
};

/// Maximum size of a schema as the server sent it.
const MAX_SENT_BYTES: usize = 512 * 1024;
/// Maximum size of a schema as the model receives it: about 32,000 tokens.
const MAX_SCHEMA_BYTES: usize = 128 * 1024;
/// Maximum size of the schemas of one server together.
const MAX_SERVER_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size of one description in a schema.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;
/// Maximum depth of the JSON of a schema.
const MAX_JSON_DEPTH: usize = 128;
/// Keywords whose values are data, not schemas.
const DATA_KEYWORDS: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// The reason that the schema of a remote tool cannot be used. Only this tool is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteSchemaError {
    /// It is not valid, or cannot be bounded.
    #[error("the schema of its arguments cannot be used")]
    Invalid(#[from] SchemaError),
    /// It is too large.
    #[error("the schema of its arguments has {bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The schemas of the server are too large together.
    #[error("the schemas of its server have more than {} MiB together", MAX_SERVER_BYTES / 1024 / 1024)]
    ServerTooLarge,
    /// It is nested too deep to be read.
    #[error("the schema of its arguments is nested more than {MAX_JSON_DEPTH} deep")]
    TooDeep,
    /// A name or value has a control character or an invisible character.
    #[error("the schema of its arguments has a control or invisible character in a name or value")]
    HiddenCharacter,
}

impl RemoteSchemaError {
    /// Returns the reason with its cause, as one line.
    pub fn in_words(&self) -> String {
        match self {
            Self::Invalid(cause) => visible_line(&format!("{self}: {cause}"), 300),
            other => other.to_string(),
        }
    }
}

/// The room that is left for the schemas of one server. Without it, a server with many large
/// schemas could keep a processor busy.
#[derive(Debug, Clone, Copy)]
pub struct SchemaRoom(usize);

impl Default for SchemaRoom {
    fn default() -> Self {
        Self(MAX_SERVER_BYTES)
    }
}

impl SchemaRoom {
    /// Does the same as [`arguments_schema`] for one of the tools of a server.
    pub fn arguments_schema(&mut self, sent: &Map<String, Value>) -> Result<Schema, RemoteSchemaError> {
        let mut bytes = 0;
        for value in sent.values() {
            bytes += json_bytes(value, 1)?;
        }
        self.0 = self.0.checked_sub(bytes).ok_or(RemoteSchemaError::ServerTooLarge)?;
        arguments_schema(sent)
    }
}

/// Returns the tools of a listing whose schemas cannot be used, with the reason.
pub fn unusable_schemas(listing: &ServerListing) -> Vec<UnusableTool> {
    let mut room = SchemaRoom::default();
    let problems = listing.tools.iter().filter_map(|tool| {
        let problem = room.arguments_schema(&tool.input_schema).err()?;
        Some(UnusableTool { name: visible_line(&tool.name, 128), reason: problem.in_words() })
    });
    problems.collect()
}

/// Returns the normal form of the arguments schema of a remote tool. It is both the form for models
/// and the one that arguments are checked against: it has every constraint of the original.
pub fn arguments_schema(sent: &Map<String, Value>) -> Result<Schema, RemoteSchemaError> {
    let mut schema = Value::Object(sent.clone());
    let bytes = json_bytes(&schema, 0)?;
    if bytes > MAX_SENT_BYTES {
        return Err(RemoteSchemaError::TooLarge { bytes, limit: MAX_SENT_BYTES });
    }
    clean_descriptions(&mut schema);
    if has_hidden(&schema) {
        return Err(RemoteSchemaError::HiddenCharacter);
    }
    let schema = Schema::new(&schema)?;
    let bytes = schema.explicit().to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(RemoteSchemaError::TooLarge { bytes, limit: MAX_SCHEMA_BYTES });
    }
    Ok(schema)
}

/// Returns the approximate number of bytes of a value as JSON, without writing it.
fn json_bytes(value: &Value, depth: usize) -> Result<usize, RemoteSchemaError> {
    if depth > MAX_JSON_DEPTH {
        return Err(RemoteSchemaError::TooDeep);
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(8),
        Value::String(text) => Ok(text.len() + 3),
        Value::Array(items) => items.iter().try_fold(2, |sum, item| Ok(sum + json_bytes(item, depth + 1)?)),
        Value::Object(members) => members
            .iter()
            .try_fold(2, |sum, (name, member)| Ok(sum + name.len() + 4 + json_bytes(member, depth + 1)?)),
    }
}

/// Cleans the texts that only explain. Names and values have to stay as they are.
fn clean_descriptions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(clean_descriptions),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "description" | "title" | "$comment") => {
                        *text = bounded_text(&visible_text(text), MAX_DESCRIPTION_BYTES);
                    }
                    _ if DATA_KEYWORDS.contains(&name.as_str()) => {}
                    member => clean_descriptions(member),
                }
            }
        }
        _ => {}
    }
}

fn has_hidden(value: &Value) -> bool {
    let is_unclean = |text: &str| text.contains(|c| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t'));
    match value {
        Value::String(text) => is_unclean(text),
        Value::Array(items) => items.iter().any(has_hidden),
        Value::Object(members) => {
            members.iter().any(|(name, member)| name.contains(is_hidden) || has_hidden(member))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn normal(schema: &Value) -> Result<Schema, RemoteSchemaError> {
        arguments_schema(schema.as_object().unwrap())
    }

    #[test]
    fn a_usual_schema_keeps_its_constraints() {
        let schema = normal(&json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"n": {"$ref": "#/definitions/n"}},
            "required": ["n"],
            "definitions": {"n": {"type": "integer", "minimum": 1, "description": "how\u{202e} many\u{7}"}},
        }))
        .unwrap();
        assert!(schema.check(&json!({"n": 1})).is_empty());
        assert!(!schema.check(&json!({"n": 0})).is_empty());
        assert!(!schema.check(&json!({})).is_empty());
        assert!(schema.explicit().to_string().contains("\"how many\""));
        assert!(normal(&json!({})).unwrap().check(&json!({})).is_empty());
    }

    #[test]
    fn a_schema_that_cannot_be_used_says_the_reason() {
        let long = "x".repeat(MAX_SCHEMA_BYTES);
        let cases = [
            (json!({"type": "string"}), "type `object`"),
            (json!({"properties": 5}), "`properties`"),
            (json!({"$ref": "http://127.0.0.1:9/schema.json"}), "not in the schema"),
            (json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}), "not in the schema"),
            (json!({"properties": {"a\u{1b}b": {}}}), "control or invisible"),
            (json!({"properties": {"a": {"enum": ["\u{e0041}"]}}}), "control or invisible"),
            (json!({"properties": {"a": {"default": {"description": "\u{0}"}}}}), "control or invisible"),
            (json!({"properties": {"a": {"enum": [long]}}}), "bytes"),
        ];
        for (schema, reason) in cases {
            let problem = normal(&schema).unwrap_err().in_words();
            assert!(problem.contains(reason) && !problem.contains(char::is_control), "{problem}");
        }
    }

    #[test]
    fn a_schema_bomb_is_refused_without_being_expanded() {
        // Each definition uses the next one twice: 2^40 when written out.
        let mut definitions = Map::new();
        for number in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            definitions.insert(format!("d{number}"), json!({"properties": {"a": next, "b": next}}));
        }
        definitions.insert("d40".into(), json!({"type": "string"}));
        let bomb =
            json!({"type": "object", "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}});
        // It is either refused or stays small; it must not be written out.
        if let Ok(schema) = normal(&bomb) {
            assert!(schema.explicit().to_string().len() < MAX_SCHEMA_BYTES);
        }
        let endless = json!({"properties": {"a": {"$ref": "#"}}});
        assert!(normal(&endless).unwrap().check(&json!({"a": {"a": {}}})).is_empty());
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"properties": {"a": deep}});
        }
        assert!(normal(&deep).is_err());
    }

    #[test]
    fn the_schemas_of_a_server_are_bounded_together() {
        let large = json!({"properties": {"a": {"enum": ["x".repeat(100 * 1024)]}}});
        let mut room = SchemaRoom::default();
        let results: Vec<_> =
            (0..50).map(|_| room.arguments_schema(large.as_object().unwrap()).is_ok()).collect();
        assert!(results[..30].iter().all(|is_usable| *is_usable) && !results[45..].contains(&true));
        let tiny = room.arguments_schema(&Map::new());
        assert!(tiny.is_ok(), "a small schema still has room");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "type",
            "properties",
            "$ref",
            "$defs",
            "items",
            "anyOf",
            "enum",
            "const",
            "required",
            "#",
            "#/$defs/a",
            "object",
            "a",
            "default",
            "pattern",
            "allOf",
            "\u{7}",
            "$id",
            "description",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            words.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((words.clone(), inner), 0..6).prop_map(|members| {
                    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_server_sends_is_refused_or_bounded_and_clean(sent in any_json()) {
            let sent = json!({"properties": {"p": sent}});
            match normal(&sent) {
                Ok(schema) => {
                    let explicit = schema.explicit();
                    prop_assert!(!has_hidden(&explicit));
                    prop_assert!(explicit.to_string().len() <= MAX_SCHEMA_BYTES);
                    schema.check(&json!({"p": {"a": [1]}}));
                }
                Err(problem) => prop_assert!(!problem.in_words().contains(char::is_control)),
            }
        }
    }
}
