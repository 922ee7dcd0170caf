//! `tool_search`: finds deferred tools, which are left out of the prompt because all of them would
//! not fit.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::Deserialize;
use serde_json::json;
use windlass_contract::{
    AnyTool, BoxFuture, Content, Cx, Effects, Input, Meta, Output, ParsedCall, Ready, ToolError, ToolName,
    ToolSpec,
    meta::{Category, Example},
    spec::SpecKind,
};
use windlass_schema::{Schema, SchemaError};
use windlass_select::{Card, ChoiceContext, Index, ToolRequest, Usage, choose_among};

use crate::registry::Registered;

pub(crate) const NAME: &str = "tool_search";

/// Default and maximum number of results. Each result costs the tokens that deferral saved.
const DEFAULT_RESULTS: usize = 8;
const MAX_RESULTS: usize = 50;

/// Maximum number of tools named if none fits.
const MAX_NEAREST: usize = 5;

/// The form in which a model searches for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchForm {
    /// A function call. Tools that are found join the tools of the next request.
    Function,
    /// The search items of the wire protocol.
    Wire,
}

/// Builds the index of the tool cards, and the usage of tools in earlier calls. It is called at the
/// first search, because most models never search.
pub type Indexer = Arc<dyn Fn(&[Card]) -> (Index, Usage) + Send + Sync>;

/// The tool `tool_search`.
pub(crate) struct ToolSearch {
    form: SearchForm,
    cards: Vec<Card>,
    specs: Vec<ToolSpec>,
    indexer: Indexer,
    made: OnceLock<(Index, Usage)>,
}

impl ToolSearch {
    pub(crate) fn new<'a>(
        tools: impl Iterator<Item = &'a Registered>,
        form: SearchForm,
        indexer: Indexer,
    ) -> Self {
        let (cards, specs) =
            tools.map(|tool| (Card::from_spec(&tool.spec, &tool.meta), tool.spec.clone())).unzip();
        Self { form, cards, specs, indexer, made: OnceLock::new() }
    }

    /// Returns the tools that fit a request, best first, or the nearest ones as an error if none
    /// fits.
    fn find(&self, query: &str, limit: usize) -> Result<Vec<&ToolSpec>, Vec<&ToolSpec>> {
        let (index, usage) = self.made.get_or_init(|| (self.indexer)(&self.cards));
        let request = ToolRequest::new(query);
        let hits = index.search(&request, limit.max(MAX_RESULTS));
        let fitting: Vec<_> = hits.iter().filter(|hit| hit.is_related()).map(|hit| hit.id).collect();
        let situation = ChoiceContext { usage: Some(usage), ..ChoiceContext::default() };
        let choice = choose_among(index, &request, situation, &fitting, limit);
        let found: Vec<_> =
            choice.candidates.iter().filter_map(|candidate| self.spec_of(&candidate.name)).collect();
        if found.is_empty() {
            let nearest = hits.iter().take(MAX_NEAREST).filter_map(|hit| index.name(hit.id));
            return Err(nearest.filter_map(|name| self.spec_of(name)).collect());
        }
        Ok(found)
    }

    fn spec_of(&self, name: &str) -> Option<&ToolSpec> {
        self.specs.iter().find(|spec| spec.name.as_str() == name)
    }
}

impl fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSearch").field("tools", &self.specs.len()).finish_non_exhaustive()
    }
}

impl AnyTool for ToolSearch {
    fn name(&self) -> ToolName {
        NAME.into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let description = format!(
            "Find tools. There are {} more than you were told about; what is found can be called from then on. Search \
             before you say that something cannot be done, and whenever a tool made for the task would serve better than \
             a general one. Do not search again for tools you already have.",
            self.specs.len()
        );
        let parameters = Schema::new(&json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What the tool should do, in a few words, or its name."
                },
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MAX_RESULTS,
                    "description": format!("How many tools at most. Default: {DEFAULT_RESULTS}.")
                }
            },
            "required": ["query"],
            "additionalProperties": false
        }))?;
        let kind = match self.form {
            SearchForm::Function => SpecKind::Function { parameters },
            SearchForm::Wire => SpecKind::Search { parameters },
        };
        Ok(ToolSpec { name: self.name(), description, kind })
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Planning,
            examples: vec![Example {
                request: "find a tool that knows the weather",
                input: r#"{"query":"weather forecast"}"#,
            }],
            returns: "the tools that were found, which can then be called".to_owned(),
            ..Meta::default()
        }
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        let SearchArguments { query, limit } = input.parse(&self.name())?;
        match (query.trim(), limit) {
            ("", _) => Err(ToolError::bad_input("query must not be empty")),
            (_, Some(0)) => Err(ToolError::bad_input("limit must be greater than zero")),
            _ => {
                let limit = limit.unwrap_or(DEFAULT_RESULTS).min(MAX_RESULTS);
                Ok(ParsedCall::runs(SearchCall { search: self, query, limit }))
            }
        }
    }
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    limit: Option<usize>,
}

struct SearchCall {
    search: Arc<ToolSearch>,
    query: String,
    limit: usize,
}

impl Ready for SearchCall {
    fn effects(&self) -> Effects {
        Effects::none()
    }

    fn run<'a>(&'a self, _cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let (said, tools, found) = match self.search.find(&self.query, self.limit) {
                Ok(found) => ("These tools can be called from now on:", found.clone(), found),
                Err(nearest) => ("No tool fits. The nearest, by name:", nearest, Vec::new()),
            };
            let lines: String = tools.iter().map(|spec| line(spec)).collect();
            let tools = found.into_iter().map(|spec| Content::Tool(Box::new(spec.clone())));
            let content = std::iter::once(Content::Text(format!("{said}{lines}"))).chain(tools).collect();
            Ok(Output { content, ..Output::default() })
        })
    }
}

fn line(spec: &ToolSpec) -> String {
    let about = spec.description.trim().lines().next().unwrap_or_default();
    let about = about.split_inclusive(". ").next().unwrap_or_default().trim_end();
    format!("\n- {}: {about}", spec.name)
}

#[cfg(test)]
mod tests;
