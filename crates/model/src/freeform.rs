//! Freeform tools on wires that know only functions: the text becomes one string parameter.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use windlass_contract::{
    ToolSpec,
    spec::{Grammar, SpecKind},
};

/// Name of the parameter that carries the text.
pub(crate) const FREEFORM_PARAMETER: &str = "input";

/// Returns the parameter schema of a freeform tool.
pub(crate) fn schema(grammar: &Grammar) -> Value {
    let about = format!("The text, which fits this {} grammar:\n{}", grammar.syntax, grammar.definition);
    json!({
        "type": "object",
        "properties": {FREEFORM_PARAMETER: {"type": "string", "description": about}},
        "required": [FREEFORM_PARAMETER],
        "additionalProperties": false
    })
}

/// Returns the names of tools whose calls carry text instead of JSON.
pub(crate) fn names(tools: &[ToolSpec]) -> HashSet<String> {
    let custom = tools.iter().filter(|tool| matches!(tool.kind, SpecKind::Custom { .. }));
    custom.map(|tool| tool.name.to_string()).collect()
}

/// Returns the arguments that carry a text.
pub(crate) fn arguments(text: &str) -> String {
    json!({FREEFORM_PARAMETER: text}).to_string()
}

/// Returns the text in the arguments of a freeform tool, or the arguments unchanged if they cannot
/// be parsed.
pub(crate) fn text(arguments: &str) -> String {
    let text = serde_json::from_str::<Map<String, Value>>(arguments)
        .ok()
        .and_then(|mut map| map.remove(FREEFORM_PARAMETER));
    match text {
        Some(Value::String(text)) => text,
        _ => arguments.to_owned(),
    }
}
