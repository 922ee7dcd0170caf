//! The schema of a Rust type, in the form for models.

use serde_json::{Map, Value, json};

use super::keywords;

/// Formats in which `schemars` notes the width of numbers.
const WIDTHS: [&str; 14] = [
    "int", "int8", "int16", "int32", "int64", "int128", "uint", "uint8", "uint16", "uint32", "uint64",
    "uint128", "float", "double",
];

/// Returns the type's schema and its doc comment.
pub(super) fn schema_of<T: schemars::JsonSchema>() -> (Value, String) {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let description = schema.as_object_mut().and_then(|root| root.remove("description"));
    if schema.get("type").is_none() && schema.as_object().is_some_and(Map::is_empty) {
        // The arguments are a `serde_json::Value`: anything is accepted, and the tool should bring
        // its own schema.
        schema = json!({"type": "object", "properties": {}});
    }
    tidy(&mut schema, SchemaStanding::Whole);
    (schema, description.and_then(|text| text.as_str().map(unwrap_lines)).unwrap_or_default())
}

/// Keywords whose schemas apply to the same value as the schema that contains them.
const IN_PLACE: [&str; 7] = ["anyOf", "oneOf", "allOf", "if", "then", "else", "dependentSchemas"];

/// Position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaStanding {
    /// It is the only schema for its value.
    Whole,
    /// Another schema applies to the same value, and closes the object.
    Part,
}

/// Closes objects, and removes details that matter only to Rust: number widths, and `null` for
/// optional parameters.
fn tidy(schema: &mut Value, standing: SchemaStanding) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = unwrap_lines(text);
    }
    if has_width(map) {
        map.remove("format");
    }
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        let optional = properties.iter_mut().filter(|(name, _)| !required.iter().any(|each| each == *name));
        optional.for_each(|(_, schema)| drop_null(schema));
    }
    let has_more = IN_PLACE.iter().any(|keyword| map.contains_key(*keyword));
    let is_divided = has_more && (map.contains_key("properties") || map.contains_key("allOf"));
    if standing == SchemaStanding::Whole && !map.contains_key("additionalProperties") {
        if is_divided {
            map.entry("unevaluatedProperties").or_insert(json!(false));
        } else if map.contains_key("properties") {
            map.insert("additionalProperties".into(), json!(false));
        }
    }
    keywords::each(map, |keyword, schema| {
        let in_place = IN_PLACE.contains(&keyword);
        let is_part = in_place && (is_divided || standing == SchemaStanding::Part);
        tidy(schema, if is_part { SchemaStanding::Part } else { SchemaStanding::Whole });
    });
}

/// Returns true if `format` is the width of a number. Any other format is kept.
fn has_width(schema: &Map<String, Value>) -> bool {
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    let numeric = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_number),
        Some(kind) => is_number(kind),
        None => false,
    };
    numeric && schema.get("format").and_then(Value::as_str).is_some_and(|format| WIDTHS.contains(&format))
}

/// Turns `["string", "null"]` into `"string"` and `anyOf [X, null]` into `X`, and removes `default:
/// null`.
fn drop_null(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(Value::Array(kinds)) = map.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            map.insert("type".into(), kind);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
        }
    }
}

/// Joins the lines of a wrapped doc comment. A blank line stays a paragraph break, and a paragraph
/// between fences (` ```text `) keeps its lines, without the fences.
fn unwrap_lines(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines: Vec<_> = paragraph.lines().collect();
        match lines[..] {
            [first, ref inner @ .., "```"] if first.starts_with("```") => inner.join("\n"),
            _ => lines.join(" "),
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_joined_and_fenced_ones_stay() {
        let text = "One\nsentence.\n\n```text\n*** Begin\n+ line\n```\n\nLast\nwords.";
        assert_eq!(unwrap_lines(text), "One sentence.\n\n*** Begin\n+ line\n\nLast words.");
    }
}
