//! The lossy form: types, descriptions and required parameters, and nothing else. Servers that build grammars from
//! schemas understand all of it.

use serde_json::{Map, Value, json};

use super::infer_type;

const TYPES: [&str; 5] = ["string", "number", "boolean", "object", "array"];

/// Reduces a schema.
pub(super) fn project(schema: &Map<String, Value>) -> Value {
    let mut out = Map::new();
    let kind = type_of(schema);
    out.insert("type".into(), json!(kind));
    keep(schema, &mut out, "description");
    match kind {
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let each = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), any(schema)));
            out.insert("properties".into(), Value::Object(each.collect()));
            keep(schema, &mut out, "required");
            match schema.get("additionalProperties") {
                Some(Value::Bool(open)) => drop(out.insert("additionalProperties".into(), json!(open))),
                Some(schema) => drop(out.insert("additionalProperties".into(), any(schema))),
                None => {}
            }
        }
        "array" => {
            let items = schema.get("items").map_or_else(|| json!({"type": "string"}), any);
            out.insert("items".into(), items);
        }
        _ => {}
    }
    Value::Object(out)
}

fn any(schema: &Value) -> Value {
    schema.as_object().map_or_else(|| json!({"type": "string"}), project)
}

fn keep(from: &Map<String, Value>, to: &mut Map<String, Value>, keyword: &str) {
    if let Some(value) = from.get(keyword) {
        to.insert(keyword.to_owned(), value.clone());
    }
}

/// One supported type: the given one, the first supported of several, or the one the keywords hint at.
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
