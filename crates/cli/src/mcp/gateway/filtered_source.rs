//! The tools of servers that one client of the gateway may know.

use std::sync::Arc;

use windlass::{
    BoxFuture,
    mcp::{SourceTools, ToolSource, UnlistedServer, tool_source::RemoteTools},
};

use crate::mcp::serve::allowed_tools::ClientFilter;

/// The tools of servers without those that a filter leaves out. A search does not find them either.
pub(super) struct FilteredSource {
    pub(super) tools: Arc<RemoteTools>,
    pub(super) filter: ClientFilter,
}

impl ToolSource for FilteredSource {
    fn tools_since(&self, version: u64) -> SourceTools {
        let mut new = self.tools.tools_since(version);
        new.tools.retain(|tool| self.filter.allow(tool.name().as_str()));
        new
    }

    fn unlisted(&self) -> Vec<UnlistedServer> {
        // The names of servers and their tools are not for everyone.
        if self.filter.is_open() { self.tools.unlisted() } else { Vec::new() }
    }

    fn held_back(&self) -> Vec<String> {
        if self.filter.is_open() { self.tools.held_back() } else { Vec::new() }
    }

    fn start_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        self.tools.start_server(server)
    }
}
