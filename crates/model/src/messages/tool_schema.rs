//! Parameter schemas in the form that the Messages API accepts.

use serde_json::{Map, Value};

/// Keywords that the API refuses at the top of a schema.
const UNIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Replaces alternatives at the top of a schema by one object with the properties of all of them.
/// Arguments are still checked against the whole schema when a call arrives.
pub(super) fn without_union(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    for keyword in UNIONS {
        let Some(Value::Array(alternatives)) = schema.remove(keyword) else { continue };
        let mut properties = match schema.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        for (name, property) in alternatives.iter().filter_map(properties_of).flatten() {
            properties.entry(name.clone()).or_insert_with(|| property.clone());
        }
        schema.insert("properties".to_owned(), properties.into());
        // An alternative may allow what the others do not.
        schema.remove("additionalProperties");
    }
    schema.insert("type".to_owned(), "object".into());
    schema.into()
}

fn properties_of(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn alternatives_at_the_top_become_one_object() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "anyOf": [
                {"properties": {"a": {"type": "number"}, "b": {"anyOf": [{"type": "null"}]}}},
                {"required": ["a"]}
            ],
            "additionalProperties": false
        });
        let expected = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "null"}]}},
            "required": ["a"]
        });
        assert_eq!(without_union(schema), expected);
    }

    #[test]
    fn a_schema_without_alternatives_stays_as_it_is() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(without_union(schema.clone()), schema);
    }
}
