//! The tools of a request, reduced to what reading a call requires.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use windlass_contract::{
    Content, Item, ToolSpec,
    item::{Body, Cached},
    spec::SpecKind,
};
use windlass_schema::Schema;

use super::TextCall;

/// The tools of the request.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    tools: HashMap<String, KnownTool>,
    /// Set for cautious reading, where only an unambiguous call counts.
    certain: Option<QuotedResults>,
}

#[derive(Debug)]
struct KnownTool {
    /// Parameters whose values are not text.
    typed: HashSet<String>,
    parameters: Option<Schema>,
}

/// Tool results that mention a tool, without blanks. A model that repeats one quotes it and calls
/// nothing.
#[derive(Debug, Default)]
struct QuotedResults(Vec<String>);

impl KnownTools {
    pub(crate) fn from_specs(tools: &[ToolSpec]) -> Self {
        let each = tools.iter().map(|tool| {
            let parameters = match &tool.kind {
                SpecKind::Function { parameters } | SpecKind::Search { parameters } => Some(parameters),
                SpecKind::Custom { .. } | SpecKind::LocalShell | SpecKind::WebSearch(_) => None,
            };
            let typed = parameters.into_iter().flat_map(|parameters| {
                let typed = parameters.properties().filter(|(_, schema)| !is_text(schema));
                typed.map(|(name, _)| name.to_owned())
            });
            let known = KnownTool { typed: typed.collect(), parameters: parameters.cloned() };
            (tool.name.to_string(), known)
        });
        Self { tools: each.collect(), certain: None }
    }

    /// Reads with caution. A call must name a tool, have valid arguments, and not be quoted from a
    /// tool result.
    pub(crate) fn with_caution(tools: &[ToolSpec], history: &[Cached<Item>]) -> Self {
        let outputs = history.iter().filter_map(|item| match &item.get().body {
            Body::Output { content, .. } => Some(Content::join(content)),
            _ => None,
        });
        let names = |text: &str| tools.iter().any(|tool| text.contains(tool.name.as_str()));
        let quoted = outputs.filter(|text| names(text)).map(|text| without_blanks(&text));
        Self { certain: Some(QuotedResults(quoted.collect())), ..Self::from_specs(tools) }
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    pub(super) fn is_cautious(&self) -> bool {
        self.certain.is_some()
    }

    /// Returns true if a call found in the text counts as one.
    pub(super) fn accepts(&self, TextCall { name, arguments }: &TextCall) -> bool {
        let Some(QuotedResults(quoted)) = &self.certain else { return true };
        let fits = |parameters: &Schema| {
            serde_json::from_str(arguments).is_ok_and(|value: Value| parameters.check(&value).is_empty())
        };
        let is_fit = self.tools.get(name).is_some_and(|tool| tool.parameters.as_ref().is_some_and(fits));
        let written = without_blanks(arguments);
        is_fit && !quoted.iter().any(|text| text.contains(name.as_str()) && text.contains(&written))
    }

    /// Returns the value of a parameter that was written as plain text.
    pub(super) fn value(&self, tool: &str, parameter: &str, text: &str) -> Value {
        let is_typed = self.tools.get(tool).is_some_and(|known| known.typed.contains(parameter));
        let value = is_typed.then(|| serde_json::from_str(text.trim()).ok()).flatten();
        value.unwrap_or_else(|| Value::from(text))
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns true if the schema accepts text; the value is then not parsed as JSON.
fn is_text(schema: &Value) -> bool {
    let says = |kind: &Value| kind == "string";
    match (schema.get("type"), schema.get("enum")) {
        (Some(Value::Array(kinds)), _) => kinds.iter().any(says),
        (Some(kind), _) => says(kind),
        (None, Some(Value::Array(words))) => words.iter().all(Value::is_string),
        (None, _) => false,
    }
}
