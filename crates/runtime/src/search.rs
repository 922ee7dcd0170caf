//! `tool_search`: finds deferred tools, which are left out of the prompt because all of them would
//! not fit.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;
use serde_json::json;
use windlass_contract::{
    AnyTool, BoxFuture, Content, Cx, Effects, Input, Meta, Output, ParsedCall, Ready, ToolError, ToolName,
    ToolSpec,
    meta::{Category, Example},
    remote::ToolSource,
    spec::SpecKind,
};
use windlass_schema::{Schema, SchemaError};
use windlass_select::{Card, ChoiceContext, Index, ToolRequest, Usage, choose_among};

use crate::registry::{Deferral, Registered};

mod servers;

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

/// The tool `tool_search`. Its clones search the same tools.
#[derive(Clone)]
pub(crate) struct ToolSearch {
    form: SearchForm,
    searched: Arc<Mutex<SearchedTools>>,
    indexer: Indexer,
    servers: Option<Arc<dyn ToolSource>>,
}

/// The tools that are searched.
struct SearchedTools {
    cards: Vec<Card>,
    specs: Vec<ToolSpec>,
    /// Made for the first search of these tools.
    made: Option<Arc<(Index, Usage)>>,
}

/// The result of a search.
struct SearchResult {
    /// The tools that fit, best first.
    found: Vec<ToolSpec>,
    /// If none fits, the nearest ones.
    nearest: Vec<ToolSpec>,
}

impl ToolSearch {
    pub(crate) fn new<'a>(
        tools: impl Iterator<Item = &'a Registered>,
        deferral: &Deferral,
        servers: Option<Arc<dyn ToolSource>>,
    ) -> Self {
        let (form, indexer) = (deferral.form, Arc::clone(&deferral.indexer));
        let (cards, specs) = tools.map(card_and_spec).unzip();
        let searched = Arc::new(Mutex::new(SearchedTools { cards, specs, made: None }));
        Self { form, searched, indexer, servers }
    }

    /// Adds tools; one of a name that is known replaces the other.
    pub(crate) fn add<'a>(&self, tools: impl Iterator<Item = &'a Registered>) {
        let mut searched = self.searched();
        for tool in tools {
            let (card, spec) = card_and_spec(tool);
            if let Some(at) = searched.specs.iter().position(|known| known.name == spec.name) {
                (searched.cards[at], searched.specs[at]) = (card, spec);
            } else {
                searched.cards.push(card);
                searched.specs.push(spec);
            }
        }
        searched.made = None;
    }

    fn searched(&self) -> MutexGuard<'_, SearchedTools> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tools that fit a request, best first, or the nearest ones if none fits.
    fn find(&self, query: &str, limit: usize) -> SearchResult {
        let mut searched = self.searched();
        let made = match &searched.made {
            Some(made) => Arc::clone(made),
            None => Arc::new((self.indexer)(&searched.cards)),
        };
        searched.made = Some(Arc::clone(&made));
        let (index, usage) = &*made;
        let request = ToolRequest::new(query);
        let hits = index.search(&request, limit.max(MAX_RESULTS));
        let fitting: Vec<_> = hits.iter().filter(|hit| hit.is_related()).map(|hit| hit.id).collect();
        let situation = ChoiceContext { usage: Some(usage), ..ChoiceContext::default() };
        let choice = choose_among(index, &request, situation, &fitting, limit);
        let spec_of = |name: &str| searched.specs.iter().find(|spec| spec.name.as_str() == name).cloned();
        let found: Vec<_> =
            choice.candidates.iter().filter_map(|candidate| spec_of(&candidate.name)).collect();
        let nearest = if found.is_empty() {
            hits.iter().take(MAX_NEAREST).filter_map(|hit| spec_of(index.name(hit.id)?)).collect()
        } else {
            Vec::new()
        };
        SearchResult { found, nearest }
    }
}

impl fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSearch").field("tools", &self.searched().specs.len()).finish_non_exhaustive()
    }
}

impl AnyTool for ToolSearch {
    fn name(&self) -> ToolName {
        NAME.into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let more = match self.searched().specs.len() {
            0 => "There may be more than you were told about".to_owned(),
            count => format!("There are {count} more than you were told about"),
        };
        let servers = servers::description(self.servers.as_deref());
        let description = format!(
            "Find tools. {more}; what is found can be called from then on. Search before you say that something cannot be \
             done, and whenever a tool made for the task would serve better than a general one. Do not search again for \
             tools you already have.{servers}"
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

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let SearchResult { found, nearest } = self.search.find(&self.query, self.limit);
            let mut text = match (found.is_empty(), nearest.is_empty()) {
                (false, _) => "These tools can be called from now on:".to_owned(),
                (true, false) => "No tool fits. The nearest, by name:".to_owned(),
                (true, true) => "No tool fits.".to_owned(),
            };
            text.extend(found.iter().chain(&nearest).map(line));
            if let Some(source) = &self.search.servers {
                text.push_str(&servers::report(&**source, &self.query, &cx.cancel).await);
            }
            let tools = found.into_iter().map(|spec| Content::Tool(Box::new(spec)));
            let content = std::iter::once(Content::Text(text)).chain(tools).collect();
            Ok(Output { content, ..Output::default() })
        })
    }
}

fn card_and_spec(tool: &Registered) -> (Card, ToolSpec) {
    (Card::from_spec(&tool.spec, &tool.meta), tool.spec.clone())
}

fn line(spec: &ToolSpec) -> String {
    let about = spec.description.trim().lines().next().unwrap_or_default();
    let about = about.split_inclusive(". ").next().unwrap_or_default().trim_end();
    format!("\n- {}: {about}", spec.name)
}

#[cfg(test)]
mod tests;
