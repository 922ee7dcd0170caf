//! The form of a tool's parameter schema that a server is sent.

use serde_json::{Map, Value, json};
use windlass_schema::{Schema, infer_type};

/// Types that the lossy form keeps.
const TYPES: [&str; 5] = ["string", "number", "boolean", "object", "array"];

/// The form of parameter schemas that a server is sent.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SchemaProfile {
    /// Everything the schema says: enums, unions, references, integers.
    #[default]
    Faithful,
    /// Types, descriptions and required parameters only, for servers that stumble over more.
    Lossy,
}

impl SchemaProfile {
    /// Writes a schema in this form.
    pub(crate) fn project(self, schema: &Schema) -> Value {
        match self {
            Self::Faithful => schema.explicit(),
            Self::Lossy => reduce(schema.keywords()),
        }
    }
}

/// Reduces a schema to keywords that servers which build grammars understand.
fn reduce(schema: &Map<String, Value>) -> Value {
    let mut out = Map::new();
    let kind = type_of(schema);
    out.insert("type".into(), json!(kind));
    keep(schema, &mut out, "description");
    match kind {
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let each =
                properties.into_iter().flatten().map(|(name, schema)| (name.clone(), reduce_any(schema)));
            out.insert("properties".into(), Value::Object(each.collect()));
            keep(schema, &mut out, "required");
            match schema.get("additionalProperties") {
                Some(Value::Bool(open)) => drop(out.insert("additionalProperties".into(), json!(open))),
                Some(schema) => drop(out.insert("additionalProperties".into(), reduce_any(schema))),
                None => {}
            }
        }
        "array" => {
            let items = schema.get("items").map_or_else(|| json!({"type": "string"}), reduce_any);
            out.insert("items".into(), items);
        }
        _ => {}
    }
    Value::Object(out)
}

fn reduce_any(schema: &Value) -> Value {
    schema.as_object().map_or_else(|| json!({"type": "string"}), reduce)
}

fn keep(from: &Map<String, Value>, to: &mut Map<String, Value>, keyword: &str) {
    if let Some(value) = from.get(keyword) {
        to.insert(keyword.to_owned(), value.clone());
    }
}

/// Returns one supported type: the given one, the first supported of several, or the one the
/// keywords imply.
fn type_of(schema: &Map<String, Value>) -> &'static str {
    let supported = |value: &Value| {
        let name = value.as_str().map(|name| if name == "integer" { "number" } else { name })?;
        TYPES.into_iter().find(|each| *each == name)
    };
    let given = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find_map(supported),
        Some(kind) => supported(kind),
        None => None,
    };
    given.or_else(|| infer_type(schema)).unwrap_or("string")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lossy(schema: &Value) -> Value {
        SchemaProfile::Lossy.project(&Schema::new(schema).unwrap())
    }

    #[test]
    fn the_lossy_form_keeps_types_descriptions_and_required() {
        let schema = json!({
            "properties": {
                "any": true,
                "count": {"type": "integer", "default": 3},
                "choice": {"enum": ["a"]},
                "list": {"type": "array"},
                "bound": {"minimum": 3},
                "deep": {"properties": {"x": {"type": ["null", "boolean"]}}, "additionalProperties": {"type": "integer"}},
                "union": {"anyOf": [{"type": "number"}]},
                "pairs": {"prefixItems": [{"type": "string"}]}
            },
            "required": ["count"]
        });
        assert_eq!(
            lossy(&schema),
            json!({
                "type": "object",
                "properties": {
                    "any": {"type": "string"},
                    "count": {"type": "number"},
                    "choice": {"type": "string"},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "bound": {"type": "number"},
                    "deep": {"type": "object", "properties": {"x": {"type": "boolean"}}, "additionalProperties": {"type": "number"}},
                    "union": {"type": "string"},
                    "pairs": {"type": "array", "items": {"type": "string"}}
                },
                "required": ["count"]
            })
        );
    }

    #[test]
    fn a_schema_without_properties_still_has_the_key_servers_demand() {
        assert_eq!(lossy(&json!({})), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn reducing_twice_is_reducing_once() {
        let schema = json!({
            "properties": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}, "c": {"items": {"const": 1}}},
            "$defs": {"b": {"type": "integer", "minimum": 1}},
        });
        let once = lossy(&schema);
        assert_eq!(lossy(&once), once);
    }
}
