//! The tools of a request, as far as it takes them to read a call.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use windlass_contract::{SpecKind, ToolSpec};

/// The tools that were offered, each with the parameters whose value is something else than text.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<String, HashSet<String>>);

impl Known {
    pub(crate) fn of(tools: &[ToolSpec]) -> Self {
        let each = tools.iter().map(|tool| {
            let typed = match &tool.kind {
                SpecKind::Function { parameters } | SpecKind::Search { parameters } => {
                    let typed = parameters.properties().filter(|(_, schema)| !is_text(schema));
                    typed.map(|(name, _)| name.to_owned()).collect()
                }
                SpecKind::Custom { .. } | SpecKind::LocalShell | SpecKind::WebSearch(_) => HashSet::new(),
            };
            (tool.name.to_string(), typed)
        });
        Self(each.collect())
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    /// A parameter that was written as plain text, as the value it stands for.
    pub(super) fn value(&self, tool: &str, parameter: &str, text: &str) -> Value {
        let is_typed = self.0.get(tool).is_some_and(|typed| typed.contains(parameter));
        let value = is_typed.then(|| serde_json::from_str(text.trim()).ok()).flatten();
        value.unwrap_or_else(|| Value::from(text))
    }
}

/// Whether a schema may mean text; then nothing else is read into it.
fn is_text(schema: &Value) -> bool {
    let says = |kind: &Value| kind == "string";
    match (schema.get("type"), schema.get("enum")) {
        (Some(Value::Array(kinds)), _) => kinds.iter().any(says),
        (Some(kind), _) => says(kind),
        (None, Some(Value::Array(words))) => words.iter().all(Value::is_string),
        (None, _) => false,
    }
}
