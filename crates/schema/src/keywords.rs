//! Keywords that contain schemas.

use serde_json::{Map, Value};

/// Keywords whose value is one schema.
pub(super) const ONE: [&str; 10] = [
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
pub(super) const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
pub(super) const MAPS: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];

/// Calls a function with every direct subschema and its keyword. The keyword decides, because not
/// every object in a schema is a schema: a parameter may be called `properties`.
pub(super) fn each(schema: &mut Map<String, Value>, mut change: impl FnMut(&str, &mut Value)) {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            (name, value) if ONE.contains(&name) => change(name, value),
            (name, Value::Array(list)) if LIST.contains(&name) => {
                for schema in list {
                    change(name, schema);
                }
            }
            (name, Value::Object(schemas)) if MAPS.contains(&name) => {
                for schema in schemas.values_mut() {
                    change(name, schema);
                }
            }
            _ => {}
        }
    }
}
