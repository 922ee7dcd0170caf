//! The explicit form: all that a schema says, plus what every server demands.

use serde_json::{Map, Value, json};

use super::{infer_type, keywords};

/// Writes out the form. The check does without it: to JSON Schema, `properties` says nothing about
/// what is no object.
pub(super) fn explicit(schema: &Map<String, Value>) -> Value {
    let mut schema = Value::Object(schema.clone());
    demands(&mut schema);
    schema
}

/// Adds what servers refuse to do without. Not to what is only asked about a value:
/// `not: {required: ["x"]}` would let everything pass that is no object.
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
