//! The explicit form: the whole schema, plus the keywords that servers require.

use serde_json::{Map, Value, json};

use super::{infer_type, keywords};

/// Returns the explicit form. The check does not use it: in JSON Schema, `properties` does not
/// imply an object.
pub(super) fn explicit(schema: &Map<String, Value>) -> Value {
    let mut schema = Value::Object(schema.clone());
    demands(&mut schema);
    schema
}

/// Adds the keywords that servers require, but not to conditions: with a type, `not: {required:
/// ["x"]}` would accept everything that is not an object.
fn demands(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    keywords::each(map, |keyword, schema| {
        if !["not", "if"].contains(&keyword) {
            demands(schema);
        }
    });
    if !map.contains_key("type")
        && let Some(kind) = infer_type(map).filter(|kind| matches!(*kind, "object" | "array"))
    {
        map.insert("type".into(), json!(kind));
    }
    match map.get("type").and_then(Value::as_str) {
        Some("object") => map.entry("properties").or_insert_with(|| json!({})),
        Some("array") if !map.contains_key("prefixItems") => map.entry("items").or_insert_with(|| json!({})),
        _ => return,
    };
}
