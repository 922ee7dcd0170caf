//! Describes the parameters of a tool, so that a model corrects its next call.

use serde_json::{Map, Value, json};
use windlass_contract::wording::shortened;
use windlass_schema::Schema;

/// Maximum length of a shape. The model has the schema anyway.
const MAX_CHARS: usize = 1_000;
const MAX_DEPTH: usize = 4;

/// Returns the expected shape and an example, on two lines. `example` is the one of the tool's
/// author, if there is one.
pub fn describe_expected(schema: &Schema, example: Option<&str>) -> String {
    let root = schema.explicit();
    let shape = shortened(&shape(&root, &root, 0), MAX_CHARS);
    let example = example.map_or_else(|| sample(&root, &root, 0).to_string(), str::to_owned);
    let example = shortened(&example, MAX_CHARS);
    format!("expected: {shape}\nexample: {example}")
}

/// Returns a schema in the notation of TypeScript, which models know best.
fn shape(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = target(root, schema);
    if depth > MAX_DEPTH {
        return "…".to_owned();
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().take(20).map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(forms) = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(union)?.as_array()) {
        let forms: Vec<_> = forms.iter().take(8).map(|form| shape(root, form, depth + 1)).collect();
        return forms.join(" | ");
    }
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        Some(Value::String(kind)) if kind == "array" => {
            format!(
                "[{}, …]",
                schema.get("items").map_or("any".to_owned(), |items| shape(root, items, depth + 1))
            )
        }
        Some(Value::String(kind)) if kind == "object" => {
            let members = properties(schema).map(|(name, property)| {
                let mark = if requires(schema, name) { "" } else { "?" };
                format!("\"{name}\"{mark}: {}", shape(root, property, depth + 1))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Some(Value::String(kind)) => kind.clone(),
        _ => "any".to_owned(),
    }
}

/// Returns a value that fits, with only the required members.
fn sample(root: &Value, schema: &Value, depth: usize) -> Value {
    let schema = target(root, schema);
    let given = ["const", "default"].iter().find_map(|keyword| schema.get(keyword));
    let listed = ["enum", "examples"].iter().find_map(|keyword| schema.get(keyword)?.as_array()?.first());
    if let Some(value) = given.or(listed).filter(|value| !value.is_null()) {
        return value.clone();
    }
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(form) = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(union)?.as_array()?.first()) {
        return sample(root, form, depth + 1);
    }
    let kind = schema.get("type").map(|kind| kind.as_array().and_then(|kinds| kinds.first()).unwrap_or(kind));
    match kind.and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => {
            json!([schema.get("items").map_or(json!("…"), |items| sample(root, items, depth + 1))])
        }
        Some("object") => {
            let members = properties(schema).filter(|(name, _)| requires(schema, name));
            let members: Map<String, Value> =
                members.map(|(name, each)| (name.clone(), sample(root, each, depth + 1))).collect();
            Value::Object(members)
        }
        _ => json!("…"),
    }
}

fn target<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str);
    target.and_then(|target| root.pointer(target.trim_start_matches('#'))).unwrap_or(schema)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().take(40)
}

fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|each| each == name))
}
