//! What the model is told it can call. Grows at the end alone: servers keep what does not change in their cache.

use windlass_contract::{
    Content, Item, ToolCall, ToolName, ToolSpec,
    item::{Body, Cached},
    spec::SpecKind,
};
use windlass_runtime::{Exposure, Registry};

/// The tools that every request names: first what the model is told from the start, then what it has found or called, in that
/// order. Where the wire has a form for searching, what is found stands in the answer, and this stays as it was.
pub(crate) struct Offered {
    specs: Cached<Vec<ToolSpec>>,
    grows: bool,
}

impl Offered {
    /// What is on offer at the end of a conversation.
    pub(crate) fn after(history: &[Item], registry: &Registry) -> Self {
        let specs = registry.specs();
        let grows = !specs.iter().any(|spec| matches!(spec.kind, SpecKind::Search { .. }));
        let mut offered = Self { specs: specs.into(), grows };
        for item in history {
            match &item.body {
                Body::Call(call) => offered.learn(call, &[], registry),
                Body::Output { content, .. } => found(content).for_each(|name| offered.add(name, registry)),
                Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
            }
        }
        offered
    }

    /// What requests name.
    pub(crate) fn specs(&self) -> &Cached<Vec<ToolSpec>> {
        &self.specs
    }

    /// Adds what a call has found, and its own tool if the model knew that without being told.
    pub(crate) fn learn(&mut self, call: &ToolCall, content: &[Content], registry: &Registry) {
        for name in std::iter::once(&call.name).chain(found(content)) {
            self.add(name, registry);
        }
    }

    fn add(&mut self, name: &ToolName, registry: &Registry) {
        let Some((tool, _)) = registry.resolve(name.as_str()) else { return };
        let known = || self.specs.get().iter().any(|spec| spec.name == tool.spec.name);
        if self.grows && tool.exposure == Exposure::Deferred && !known() {
            let mut specs = self.specs.get().clone();
            specs.push(tool.spec.clone());
            self.specs = specs.into();
        }
    }
}

fn found(content: &[Content]) -> impl Iterator<Item = &ToolName> {
    content.iter().filter_map(|part| match part {
        Content::Tool(spec) => Some(&spec.name),
        Content::Text(_) | Content::Image(_) => None,
    })
}
