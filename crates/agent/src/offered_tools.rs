//! The tools that requests offer to the model. They only grow at the end, to keep the prompt cache
//! of servers valid.

use std::collections::BTreeMap;

use windlass_contract::{
    Content, Item, ToolCall, ToolName, ToolSpec,
    item::{Body, Cached},
    spec::SpecKind,
};
use windlass_runtime::{Exposure, JoinedTools, Registry};

/// Maximum number of missing tools that are remembered.
const MAX_MISSING: usize = 1000;

/// The tools in every request: first the advertised ones, then those that the model has found or
/// called, in that order. If the wire protocol has search items, found tools are in the answer, and
/// this list does not change.
pub(crate) struct OfferedTools {
    specs: Cached<Vec<ToolSpec>>,
    /// Estimated tokens of the tools, by server.
    tokens: BTreeMap<String, u64>,
    grows: bool,
    /// Names in the conversation that no tool has yet. Their servers may not have started.
    missing: Vec<ToolName>,
}

impl OfferedTools {
    /// Creates the list at the end of a conversation, with the tools that were found before its
    /// last compaction.
    pub(crate) fn from_history(found: &[ToolName], history: &[Item], registry: &Registry) -> Self {
        let specs = registry.specs();
        let grows = !has_search_item(&specs);
        let tokens = tokens_by_server(&specs);
        let mut offered = Self { specs: specs.into(), tokens, grows, missing: Vec::new() };
        for name in found {
            offered.add(name, registry);
        }
        for item in history {
            match &item.body {
                Body::Call(call) => offered.learn(call, &[], registry),
                Body::Output { content, .. } => {
                    found_tools(content).for_each(|name| offered.add(name, registry))
                }
                Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
            }
        }
        offered
    }

    /// Returns the specifications for a request.
    pub(crate) fn specs(&self) -> &Cached<Vec<ToolSpec>> {
        &self.specs
    }

    /// Returns the tools that the model has found.
    pub(crate) fn found(&self, registry: &Registry) -> Vec<ToolName> {
        let is_found = |name: &ToolName| {
            registry.resolve(name.as_str()).is_some_and(|(tool, _)| tool.exposure == Exposure::Deferred)
        };
        let names = self.specs.get().iter().map(|spec| &spec.name);
        names.filter(|name| is_found(name)).chain(&self.missing).cloned().collect()
    }

    /// Estimates the tokens of all tools.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.values().sum()
    }

    /// Estimates the tokens of the tools, by MCP server; those of no server are `built-in`.
    pub(crate) fn tokens_by_server(&self) -> &BTreeMap<String, u64> {
        &self.tokens
    }

    fn set_specs(&mut self, specs: Vec<ToolSpec>) {
        (self.tokens, self.specs) = (tokens_by_server(&specs), specs.into());
    }

    /// Adds the tools that a call has found, and its own tool if the model knew it already.
    pub(crate) fn learn(&mut self, call: &ToolCall, content: &[Content], registry: &Registry) {
        for name in std::iter::once(&call.name).chain(found_tools(content)) {
            self.add(name, registry);
        }
    }

    /// Adds tools that have joined the session, at the end. A changed specification takes the place
    /// of the earlier one: the model must not call by an outdated one.
    pub(crate) fn join(&mut self, joined: &JoinedTools, registry: &Registry) {
        let JoinedTools { advertised, replaced, deferred, .. } = joined;
        let mut specs = self.specs.get().clone();
        let mut is_changed = !advertised.is_empty();
        for new in replaced {
            if let Some(old) = specs.iter_mut().find(|old| old.name == new.name) {
                old.clone_from(new);
                is_changed = true;
            }
        }
        specs.extend(advertised.iter().cloned());
        if is_changed {
            self.grows &= !has_search_item(advertised);
            self.set_specs(specs);
        }
        let known: Vec<_> = self.missing.extract_if(.., |name| deferred.contains(name)).collect();
        for name in known {
            self.add(&name, registry);
        }
    }

    fn add(&mut self, name: &ToolName, registry: &Registry) {
        let Some((tool, _)) = registry.resolve(name.as_str()) else {
            if self.missing.len() < MAX_MISSING && !self.missing.contains(name) {
                self.missing.push(name.clone());
            }
            return;
        };
        let known = || self.specs.get().iter().any(|spec| spec.name == tool.spec.name);
        if self.grows && tool.exposure == Exposure::Deferred && !known() {
            let mut specs = self.specs.get().clone();
            specs.push(tool.spec.clone());
            self.set_specs(specs);
        }
    }
}

/// The prefix of the names of MCP tools, and what separates the server from the tool.
const MCP_PREFIX: &str = "mcp__";
const MCP_DELIMITER: &str = "__";

fn tokens_by_server(specs: &[ToolSpec]) -> BTreeMap<String, u64> {
    let mut tokens = BTreeMap::new();
    for spec in specs {
        let name = spec.name.as_str().strip_prefix(MCP_PREFIX);
        let server = name.and_then(|name| name.split(MCP_DELIMITER).next()).unwrap_or("built-in");
        *tokens.entry(server.to_owned()).or_default() += u64::try_from(spec.tokens()).unwrap_or(u64::MAX);
    }
    tokens
}

/// Returns true if the wire protocol has an item for searches.
fn has_search_item(specs: &[ToolSpec]) -> bool {
    specs.iter().any(|spec| matches!(spec.kind, SpecKind::Search { .. }))
}

fn found_tools(content: &[Content]) -> impl Iterator<Item = &ToolName> {
    content.iter().filter_map(|part| match part {
        Content::Tool(spec) => Some(&spec.name),
        Content::Text(_) | Content::Image(_) => None,
    })
}
