//! The servers of a run: their tools for its agents, and a thread on which they live.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::mpsc;
use windlass::{
    AgentBuilder, Elicitor, counted, image_url,
    mcp::{
        ToolSource, UnlistedServer,
        names::model_tool_name,
        output::ImageFitter,
        pins::{HeldTool, Pins},
        pool::{RemoteError, ServerPool},
        status::{ServerState, ServerStatus},
        tool_source::{RemoteTools, RemoteToolsSettings},
    },
};

use super::{ConfiguredServers, StateOutput, connections};
use crate::{problem::CliProblem, screen::visible, setup::ProgramSetup};

/// Maximum time to wait for servers that have never listed their tools. One that hangs delays a run
/// by this time at most.
const MAX_FIRST_LISTING: Duration = Duration::from_secs(3);

/// The servers of a run. They start in the background, and end with it.
pub(crate) struct SessionServers {
    pub(crate) pool: Arc<ServerPool>,
    pub(crate) tools: Arc<RemoteTools>,
    thread: Option<ServerThread>,
}

/// The thread on which servers live, so that they do not depend on the runtimes of turns.
struct ServerThread {
    ending: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl SessionServers {
    /// Prepares the servers without starting any. Returns `None` if none is configured.
    pub(crate) fn known(
        setup: &ProgramSetup,
        configured: &ConfiguredServers,
        elicitor: Option<Arc<dyn Elicitor>>,
    ) -> Option<Self> {
        let enabled = configured.servers.iter().filter(|(_, server)| server.config.is_enabled());
        let enabled: Vec<_> = enabled.map(|(name, server)| (name.as_str(), server)).collect();
        if enabled.is_empty() {
            return None;
        }
        let pool = connections::pool(setup, enabled);
        let tools = RemoteTools::new(RemoteToolsSettings {
            pool: Arc::clone(&pool),
            pins: Arc::new(Pins::open(connections::directory(setup))),
            elicitor,
            images: ImageFitter::new(image_url),
        });
        Some(Self { pool, tools, thread: None })
    }

    /// Starts those that have to start, in the background. Waits only for required ones: if one
    /// cannot be used, that is the error.
    pub(crate) fn start(mut self, states: StateOutput) -> Result<Self, CliProblem> {
        let (ending, mut ended) = mpsc::channel(1);
        let (running, runs) = std::sync::mpsc::sync_channel(1);
        let (pool, tools) = (Arc::clone(&self.pool), Arc::clone(&self.tools));
        let live = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                // The receiver waits for it.
                Err(error) => return drop(running.send(Err(error))),
            };
            runtime.block_on(async {
                pool.live_on(tokio::runtime::Handle::current());
                tools.start();
                // The receiver waits for it.
                let _waits = running.send(Ok(required(&pool).await));
                tokio::select! {
                    _ended = ended.recv() => {}
                    () = states.follow(&pool) => {}
                }
                pool.shut_down().await;
            });
        };
        let cannot = |error: std::io::Error| CliProblem::failed(format!("cannot start: {error}"));
        let thread = thread::Builder::new().name("windlass-mcp".to_owned()).spawn(live).map_err(cannot)?;
        match runs.recv() {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(error))) => {
                drop(ending);
                let _ended = thread.join();
                return Err(CliProblem::failed(visible(&error.to_string())));
            }
            Ok(Err(error)) => return Err(cannot(error)),
            Err(error) => return Err(CliProblem::failed(format!("cannot start: {error}"))),
        }
        self.thread = Some(ServerThread { ending, thread });
        Ok(self)
    }

    /// Waits a moment for servers that have never listed their tools, so that the first request has
    /// them. Servers with a saved list are not waited for.
    pub(crate) async fn wait_for_first_lists(&self) {
        self.tools.wait_until_listed(MAX_FIRST_LISTING).await;
    }

    /// Waits for the tool of a single call, unless it is known: for its server until that has
    /// listed its tools or failed, for others a moment.
    pub(crate) async fn wait_for_tool(&self, tool: &str) {
        if self.tools.tools().iter().any(|known| known.name().as_str() == tool) {
            return;
        }
        let unlisted = self.tools.unlisted_servers().into_iter().map(|status| status.server);
        let mut owners = unlisted.filter(|server| tool.starts_with(&format!("mcp__{server}__")));
        match owners.next() {
            Some(server) => self.tools.start_server(&server).await,
            None => self.wait_for_first_lists().await,
        }
    }

    /// Describes what a list of tools lacks: servers whose tools are not known yet, and tools that
    /// wait for approval. One line each.
    pub(crate) fn missing(&self) -> Vec<String> {
        let unlisted = self.tools.unlisted().into_iter();
        let unlisted = unlisted.map(|UnlistedServer { server, state }| {
            format!("MCP server `{server}`: {state}; `windlass mcp test {server}` lists its tools")
        });
        let held = self.tools.held_tools().into_iter().map(|(server, held)| held_line(&server, &held));
        unlisted.chain(held).collect()
    }

    /// Returns why a tool is not on offer, if it waits for approval.
    pub(crate) fn held_back(&self, name: &str) -> Option<String> {
        let held = self.tools.held_tools().into_iter();
        held.filter(|(server, held)| model_tool_name(server, &held.tool).as_str() == name)
            .map(|(server, held)| held_line(&server, &held))
            .next()
    }

    /// Describes each server: its state, its tools, and what is wrong with it.
    pub(crate) fn states(&self) -> Vec<String> {
        let (held, unusable) = (self.tools.held_tools(), self.tools.unusable_tools());
        let mut lines = Vec::new();
        for status in self.pool.status() {
            let server = status.server.as_str();
            lines.push(state_line(&status));
            if let ServerState::Failed { error, denials, .. } = &status.state {
                lines.push(format!("  {}", visible(error)));
                lines.extend(denials.iter().map(|denial| format!("  {}", visible(denial))));
            }
            let held = held.iter().filter(|(of, _)| of == server);
            lines.extend(held.map(|(_, held)| {
                let HeldTool { tool, reason, .. } = held;
                format!("  `{}` is held back: {reason}; see /mcp pins {}", visible(tool), visible(server))
            }));
            let unusable = unusable.iter().filter(|(of, _)| of == server);
            lines.extend(unusable.map(|(_, tool)| {
                format!("  `{}` cannot be used: {}", visible(&tool.name), visible(&tool.reason))
            }));
        }
        lines
    }

    /// Gives an agent the tools of the servers.
    pub(crate) fn attach(&self, builder: AgentBuilder) -> AgentBuilder {
        let builder = builder.tool_source(self.tools.clone());
        self.tools.resource_tools().into_iter().fold(builder, AgentBuilder::tool)
    }
}

impl Drop for SessionServers {
    fn drop(&mut self) {
        let Some(ServerThread { ending, thread }) = self.thread.take() else { return };
        drop(ending);
        // The pool kills what does not end within its limit.
        let _ended = thread.join();
    }
}

fn held_line(server: &str, HeldTool { tool, reason, .. }: &HeldTool) -> String {
    format!("tool `{tool}` of MCP server `{server}` is held back: {reason}; see `windlass mcp pins {server}`")
}

fn state_line(status: &ServerStatus) -> String {
    let state = match &status.state {
        ServerState::Known => "not started",
        ServerState::Starting => "starting",
        ServerState::Ready => "ready",
        ServerState::NeedsLogin => "needs a login: /mcp login",
        ServerState::Failed { .. } => "failed",
    };
    let mut line = format!("{}: {state}", visible(&status.server));
    let facts = [
        status.tools.map(|tools| counted(tools as u64, "tool")),
        (status.calls_in_flight > 0).then(|| counted(status.calls_in_flight as u64, "running call")),
        (status.restarts > 0).then(|| counted(u64::from(status.restarts), "restart")),
    ];
    facts.into_iter().flatten().for_each(|fact| line.push_str(&format!(", {fact}")));
    line
}

/// Starts the required servers. Returns the error of the first that cannot be used.
async fn required(pool: &ServerPool) -> Option<RemoteError> {
    for (name, config) in pool.servers() {
        if config.required.unwrap_or(false)
            && let Err(error) = pool.start(name).await
        {
            return Some(error);
        }
    }
    None
}

/// Gives an agent the tools of servers, if there are some.
pub(crate) fn with_servers(builder: AgentBuilder, servers: Option<&SessionServers>) -> AgentBuilder {
    match servers {
        Some(servers) => servers.attach(builder),
        None => builder,
    }
}
