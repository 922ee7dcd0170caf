//! Supplies the tools of all servers to a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::task::{AbortHandle, spawn_blocking};
use windlass_contract::{
    AnyTool, BoxFuture, ToolName,
    elicitation::Elicitor,
    remote::{SourceTools, ToolSource, UnlistedServer},
};

use crate::{
    config::McpServerConfig,
    listing::{ServerListing, UnusableTool},
    output::ImageFitter,
    pins::{HeldTool, PinReview, Pins},
    pool::ServerPool,
    resources::resource_tools,
    schemas::SchemaRoom,
    status::{ServerState, ServerStatus},
    tool::{RemoteCalls, RemoteTool},
    untrusted_text::visible_line,
};

/// Maximum size of the state of a server in a list.
const MAX_STATE_BYTES: usize = 300;

/// Everything that the tools of servers need.
pub struct RemoteToolsSettings {
    /// The servers.
    pub pool: Arc<ServerPool>,
    /// The approved definitions.
    pub pins: Arc<Pins>,
    /// Answers questions of servers; without it they are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Prepares images for models.
    pub images: ImageFitter,
}

impl fmt::Debug for RemoteToolsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteToolsSettings").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// The tools of all servers of a pool that are approved and can be used.
pub struct RemoteTools {
    calls: RemoteCalls,
    servers: Vec<(String, Arc<McpServerConfig>)>,
    state: Mutex<ToolState>,
    /// Taken by each refresh from its beginning to its end, so that none overtakes another.
    refreshing: Mutex<()>,
    watcher: Mutex<Option<AbortHandle>>,
    itself: Weak<Self>,
}

#[derive(Default)]
struct ToolState {
    servers: BTreeMap<String, ServerTools>,
    /// Number of refreshes that added or replaced a tool.
    version: u64,
}

/// The tools of one server.
struct ServerTools {
    listing: Arc<ServerListing>,
    /// The tools on offer, each with the version in which it was added.
    tools: BTreeMap<ToolName, (Arc<RemoteTool>, u64)>,
    /// All tools ever made, with those that the server has withdrawn. A tool that comes back is not
    /// new.
    made: BTreeMap<ToolName, (Arc<RemoteTool>, u64)>,
    held: Vec<HeldTool>,
    unusable: Vec<UnusableTool>,
}

impl fmt::Debug for RemoteTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTools").field("pool", &self.calls.pool).finish_non_exhaustive()
    }
}

impl RemoteTools {
    /// Collects the tools that are known without starting a server. Reads the pins, one small file
    /// per server with a saved list.
    pub fn new(settings: RemoteToolsSettings) -> Arc<Self> {
        let RemoteToolsSettings { pool, pins, elicitor, images } = settings;
        let servers =
            pool.servers().map(|(name, config)| (name.to_owned(), Arc::new(config.clone()))).collect();
        let tools = Arc::new_cyclic(|itself| Self {
            calls: RemoteCalls { pool, pins, elicitor, images },
            servers,
            state: Mutex::default(),
            refreshing: Mutex::default(),
            watcher: Mutex::default(),
            itself: itself.clone(),
        });
        tools.refresh();
        tools
    }

    /// Starts the servers that have to start, and watches all of them for new and changed tools,
    /// until this source is dropped. Must be called within a runtime.
    pub fn start(self: &Arc<Self>) {
        self.calls.pool.start_in_background();
        let mut changes = self.calls.pool.changes();
        let tools = Arc::downgrade(self);
        let watcher = tokio::spawn(async move {
            // The first refresh sees what has changed before the watch began.
            loop {
                let Some(tools) = Weak::upgrade(&tools) else { return };
                tools.refresh_elsewhere().await;
                if changes.changed().await.is_err() {
                    return;
                }
            }
        });
        let before = self.watcher().replace(watcher.abort_handle());
        before.iter().for_each(AbortHandle::abort);
    }

    /// Waits until every server has listed its tools once, now or in an earlier session, or has
    /// failed, but no longer than `limit`. Without it, the first request of a session lacks the
    /// tools of servers that have never run before.
    pub async fn wait_until_listed(self: &Arc<Self>, limit: Duration) {
        let mut changes = self.calls.pool.changes();
        let listed = async { while self.has_unlisted() && changes.changed().await.is_ok() {} };
        // What is missing then comes with a later request.
        let _in_time = tokio::time::timeout(limit, listed).await;
        Arc::clone(self).refresh_elsewhere().await;
    }

    /// Returns the tools that can be called, sorted by name.
    pub fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.tools_since(0).tools
    }

    /// Returns the tools that list and read resources; none if no server is configured.
    pub fn resource_tools(&self) -> Vec<Arc<dyn AnyTool>> {
        if self.servers.is_empty() {
            return Vec::new();
        }
        resource_tools(&self.calls.pool, &self.calls.images)
    }

    /// Returns the servers whose tools are not known yet, sorted by name.
    pub fn unlisted_servers(&self) -> Vec<ServerStatus> {
        let statuses = self.calls.pool.status().into_iter();
        statuses.filter(|status| self.calls.pool.listing(&status.server).is_none()).collect()
    }

    /// Returns the tools that wait for approval, with their server, sorted by it.
    pub fn held_tools(&self) -> Vec<(String, HeldTool)> {
        let state = self.state();
        let held = state.servers.iter().map(|(name, server)| (name, &server.held));
        held.flat_map(|(name, held)| held.iter().map(|held| (name.clone(), held.clone()))).collect()
    }

    /// Returns the tools that cannot be used, with their server, sorted by it.
    pub fn unusable_tools(&self) -> Vec<(String, UnusableTool)> {
        let state = self.state();
        let unusable = state.servers.iter().map(|(name, server)| (name, &server.unusable));
        unusable.flat_map(|(name, tools)| tools.iter().map(|tool| (name.clone(), tool.clone()))).collect()
    }

    /// Returns what a person should know beside the tools, one line each: the servers whose tools
    /// are not known yet, and the tools that are held back.
    pub fn notes(&self) -> Vec<String> {
        let servers = self.unlisted().into_iter();
        let servers =
            servers.map(|UnlistedServer { server, state }| format!("MCP server `{server}`: {state}"));
        let held = self.held_back().into_iter().map(|line| format!("waits for approval: {line}"));
        servers.chain(held).collect()
    }

    fn has_unlisted(&self) -> bool {
        let is_pending =
            |status: &ServerStatus| matches!(status.state, ServerState::Known | ServerState::Starting);
        self.unlisted_servers().iter().any(is_pending)
    }

    /// Refreshes on a thread for blocking work.
    async fn refresh_elsewhere(self: Arc<Self>) {
        if let Err(error) = spawn_blocking(move || self.refresh()).await {
            tracing::error!(%error, "the tools of servers could not be compared with their pins");
        }
    }

    /// Compares the lists that have changed with their pins. Reads files, and may wait for the lock
    /// of the pins.
    fn refresh(&self) {
        let _alone = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        for (server, config) in &self.servers {
            let Some(listing) = self.calls.pool.listing(server) else { continue };
            let known = self.state().servers.get(server).map(|known| Arc::clone(&known.listing));
            if known.is_none_or(|known| !Arc::ptr_eq(&known, &listing)) {
                self.refresh_server(server, config, listing);
            }
        }
    }

    /// Replaces the tools of a server. Only [`refresh`](Self::refresh) changes the state, so that
    /// it is not locked while schemas are checked.
    fn refresh_server(&self, server: &str, config: &Arc<McpServerConfig>, listing: Arc<ServerListing>) {
        let PinReview { offered, held } = self.calls.pins.review(server, config, &listing);
        let (mut made, taken, version) = {
            let state = self.state();
            let made = state.servers.get(server).map(|before| before.made.clone()).unwrap_or_default();
            let others = state.servers.iter().filter(|(other, _)| *other != server);
            let taken: BTreeSet<ToolName> =
                others.flat_map(|(_, other)| other.tools.keys().cloned()).collect();
            (made, taken, state.version + 1)
        };
        let mut room = SchemaRoom::default();
        let (mut tools, mut unusable) = (BTreeMap::new(), listing.unusable.clone());
        for definition in &offered {
            let made_now = RemoteTool::new(server, definition, config, &self.calls, &mut room);
            let usable = made_now.map_err(|error| error.in_words()).and_then(|tool| match tool.name() {
                name if taken.contains(&name) || tools.contains_key(&name) => {
                    Err(format!("another tool has the name `{name}`"))
                }
                _ => Ok(tool),
            });
            match usable {
                Ok(tool) => {
                    let name = tool.name();
                    let same = made.get(&name).filter(|(made, _)| made.definition() == definition);
                    let tool = same.cloned().unwrap_or_else(|| (Arc::new(tool), version));
                    made.insert(name.clone(), tool.clone());
                    tools.insert(name, tool);
                }
                Err(reason) => {
                    unusable.push(UnusableTool { name: visible_line(&definition.name, 128), reason });
                }
            }
        }
        let mut state = self.state();
        if tools.values().any(|(_, added)| *added == version) {
            state.version = version;
        }
        let tools = ServerTools { listing, tools, made, held, unusable };
        state.servers.insert(server.to_owned(), tools);
    }

    fn state(&self) -> MutexGuard<'_, ToolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watcher(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolSource for RemoteTools {
    fn tools_since(&self, version: u64) -> SourceTools {
        let state = self.state();
        let tools: BTreeMap<_, _> = state.servers.values().flat_map(|server| &server.tools).collect();
        let new = tools.into_values().filter(|(_, added)| *added > version);
        let tools = new.map(|(tool, _)| Arc::clone(tool) as Arc<dyn AnyTool>).collect();
        SourceTools { version: state.version, tools }
    }

    fn unlisted(&self) -> Vec<UnlistedServer> {
        self.unlisted_servers().into_iter().map(unlisted_server).collect()
    }

    fn held_back(&self) -> Vec<String> {
        let held = self.held_tools().into_iter().map(|(server, held)| {
            let HeldTool { tool, reason, .. } = held;
            format!("`{tool}` of MCP server `{server}`: {reason}")
        });
        held.collect()
    }

    fn start_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(tools) = self.itself.upgrade() else { return };
            if let Err(error) = self.calls.pool.start(server).await {
                // The state of the server says it.
                tracing::debug!(server, %error, "an MCP server did not start");
            }
            tools.refresh_elsewhere().await;
        })
    }
}

fn unlisted_server(status: ServerStatus) -> UnlistedServer {
    let ServerStatus { server, state, .. } = status;
    let state = match &state {
        ServerState::Known | ServerState::Ready => "not started".to_owned(),
        ServerState::Starting => "starting".to_owned(),
        ServerState::NeedsLogin => format!("needs a login: the user runs `windlass mcp login {server}`"),
        ServerState::Failed { error, .. } => format!("failed: {}", visible_line(error, MAX_STATE_BYTES)),
    };
    UnlistedServer { server, state }
}

impl Drop for RemoteTools {
    fn drop(&mut self) {
        self.watcher().iter().for_each(AbortHandle::abort);
    }
}
