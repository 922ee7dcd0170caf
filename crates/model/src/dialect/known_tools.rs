//! The tools of a request, as far as it takes them to read a call.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use windlass_contract::{
    Content, Item, ToolSpec,
    item::{Body, Cached},
    spec::SpecKind,
};
use windlass_schema::Schema;

use super::TextCall;

/// The tools that were offered.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    tools: HashMap<String, KnownTool>,
    /// Set if only what is certainly meant is a call.
    certain: Option<QuotedResults>,
}

#[derive(Debug)]
struct KnownTool {
    /// The parameters whose value is something else than text.
    typed: HashSet<String>,
    parameters: Option<Schema>,
}

/// Results of tools that look as if they held calls, without blanks. A model that repeats one shows it.
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

    /// The same where only what is certainly meant is a call: with the name of a tool, with arguments that fit, and not
    /// repeated from a result.
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

    /// Whether what was read as a call is taken for one.
    pub(super) fn accepts(&self, TextCall { name, arguments }: &TextCall) -> bool {
        let Some(QuotedResults(quoted)) = &self.certain else { return true };
        let fits = |parameters: &Schema| {
            serde_json::from_str(arguments).is_ok_and(|value: Value| parameters.check(&value).is_empty())
        };
        let is_fit = self.tools.get(name).is_some_and(|tool| tool.parameters.as_ref().is_some_and(fits));
        let written = without_blanks(arguments);
        is_fit && !quoted.iter().any(|text| text.contains(name.as_str()) && text.contains(&written))
    }

    /// A parameter that was written as plain text, as the value it stands for.
    pub(super) fn value(&self, tool: &str, parameter: &str, text: &str) -> Value {
        let is_typed = self.tools.get(tool).is_some_and(|known| known.typed.contains(parameter));
        let value = is_typed.then(|| serde_json::from_str(text.trim()).ok()).flatten();
        value.unwrap_or_else(|| Value::from(text))
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
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
