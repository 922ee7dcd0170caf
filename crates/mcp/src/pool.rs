//! The servers of a process: one connection per configured server, shared by all agents.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::join_all;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
    task::AbortHandle,
};
use tokio_util::sync::CancellationToken;
use windlass_contract::{elicitation::Elicitor, remote::ServerLauncher};

use crate::{
    access_tokens::AccessTokens,
    catalogue::Catalogue,
    config::McpServerConfig,
    listing::ServerListing,
    result::{
        RemoteArguments, RemotePage, RemotePrompt, RemotePromptMessage, RemoteResource,
        RemoteResourceContent, RemoteResult,
    },
    server_slot::{ConnectionUse, PoolContext, ServerSlot, is_same_list},
    status::ServerStatus,
};

/// Maximum number of servers that start in the background at once.
const MAX_BACKGROUND_STARTS: usize = 4;

/// The servers of a pool and everything it needs to start them.
pub struct PoolSettings {
    /// The servers by name, checked with [`McpServerConfig::check`]. Disabled ones are left out.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// The environment of Windlass, for `env_vars`, `bearer_token_env_var` and `env_http_headers`.
    pub environment: BTreeMap<String, String>,
    /// Directory of the catalogue, the pins and the credentials. Without it nothing is kept.
    pub directory: Option<PathBuf>,
    /// The workspace, which is the root of old servers that ask for roots.
    pub workspace: PathBuf,
    /// Starts stdio servers.
    pub launcher: Arc<dyn ServerLauncher>,
    /// Supplies the access tokens of HTTP servers that need a login.
    pub tokens: Option<Arc<dyn AccessTokens>>,
}

impl fmt::Debug for PoolSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolSettings").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// One connection per configured server. Dropping the pool kills the process trees of its servers.
pub struct ServerPool {
    slots: BTreeMap<String, Arc<ServerSlot>>,
    context: Arc<PoolContext>,
    background: Mutex<Vec<AbortHandle>>,
}

impl fmt::Debug for ServerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerPool").finish_non_exhaustive()
    }
}

/// A call of a tool.
pub struct RemoteToolCall<'a> {
    /// Name of the server.
    pub server: &'a str,
    /// Name of the tool, as the server writes it.
    pub tool: &'a str,
    /// Arguments.
    pub arguments: &'a RemoteArguments,
    /// Receives progress. Must not block.
    pub progress: &'a (dyn Fn(RemoteProgress) + Send + Sync),
    /// Answers questions of the server; without it they are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Cancels the call.
    pub cancel: &'a CancellationToken,
}

impl fmt::Debug for RemoteToolCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteToolCall")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// Progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteProgress {
    /// Progress so far.
    pub progress: f64,
    /// Progress at the end, if known.
    pub total: Option<f64>,
    /// Message of the server. Untrusted.
    pub message: Option<String>,
}

/// The reason why a server has not answered a request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RemoteError {
    /// No such server.
    #[error("there is no MCP server `{server}`")]
    UnknownServer {
        /// The name.
        server: String,
    },
    /// The server did not start.
    #[error("MCP server `{server}` did not start: {reason}")]
    NotStarted {
        /// The server.
        server: String,
        /// The reason, with the tail of its standard error and the remedy.
        reason: String,
    },
    /// The server demands a login.
    #[error("MCP server `{server}` needs a login: run `windlass mcp login {server}`")]
    NeedsLogin {
        /// The server.
        server: String,
    },
    /// The server died or closed the connection during the request.
    #[error("MCP server `{server}` ended during the call: {reason}; what the call did is not known")]
    Died {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The server answered with an error of the protocol.
    #[error("MCP server `{server}` answered with error {code}: {message}")]
    Protocol {
        /// The server.
        server: String,
        /// JSON-RPC code.
        code: i32,
        /// Message. Untrusted.
        message: String,
    },
    /// The answer is too large or no valid message.
    #[error("MCP server `{server}` sent an unusable answer: {reason}")]
    BadAnswer {
        /// The server.
        server: String,
        /// The problem.
        reason: String,
    },
    /// The time limit was reached; the call was cancelled.
    #[error(
        "MCP server `{server}` did not answer within {seconds} s; the call was cancelled (`tool_timeout_sec`)"
    )]
    TimedOut {
        /// The server.
        server: String,
        /// The limit.
        seconds: f64,
    },
    /// The server has listed its tools again since the call was checked. Nothing was sent.
    #[error("MCP server `{server}` has listed its tools again; the call was not sent")]
    Relisted {
        /// The server.
        server: String,
    },
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
}

impl ServerPool {
    /// Creates a pool. Nothing is started.
    pub fn new(settings: PoolSettings) -> Arc<Self> {
        let servers = settings.servers.clone();
        let catalogue = settings.directory.as_ref().map(Catalogue::open);
        let (changes, _) = watch::channel(0);
        let context = Arc::new(PoolContext {
            settings,
            catalogue,
            changes,
            is_closed: AtomicBool::new(false),
            runtime: OnceLock::new(),
        });
        let slots = servers
            .into_iter()
            .filter(|(_, config)| config.is_enabled())
            .map(|(name, config)| (name.clone(), ServerSlot::new(name, config, Arc::clone(&context))))
            .collect();
        Arc::new(Self { slots, context, background: Mutex::new(Vec::new()) })
    }

    /// Lets all servers that are started from now on live on this runtime, whoever starts them. For
    /// programs with several runtimes. Only the first runtime counts.
    pub fn live_on(&self, runtime: Handle) {
        // A later one would part the servers.
        let _first = self.context.runtime.set(runtime);
    }

    /// Returns the enabled servers, sorted by name.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &McpServerConfig)> {
        self.slots.iter().map(|(name, slot)| (name.as_str(), &slot.config))
    }

    /// Returns the state of every server, sorted by name.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.slots.values().map(|slot| slot.status()).collect()
    }

    /// Returns a receiver whose value changes when a state or a list of tools changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.context.changes.subscribe()
    }

    /// Returns the tools of a server: as it listed them, or saved from an earlier session.
    pub fn listing(&self, server: &str) -> Option<Arc<ServerListing>> {
        self.slots.get(server)?.listing()
    }

    /// Starts servers in the background: those without a saved list, and those that are required.
    /// At most four start at once; none waits for one that is slow longer than its time limit.
    pub fn start_in_background(self: &Arc<Self>) {
        let permits = Arc::new(Semaphore::new(MAX_BACKGROUND_STARTS));
        let needed =
            |slot: &&Arc<ServerSlot>| slot.config.required.unwrap_or(false) || slot.listing().is_none();
        for slot in self.slots.values().filter(needed) {
            let (slot, permits) = (Arc::clone(slot), Arc::clone(&permits));
            let task = self.context.spawn(async move {
                let Ok(_permit) = permits.acquire().await else { return };
                if let Err(error) = slot.acquire().await {
                    // The state of the server shows it.
                    tracing::debug!(%error, "an MCP server did not start in the background");
                }
            });
            self.background.lock().unwrap_or_else(PoisonError::into_inner).push(task.abort_handle());
        }
    }

    /// Starts a server if necessary, and waits until it answers or has failed.
    pub async fn start(&self, server: &str) -> Result<Arc<ServerListing>, RemoteError> {
        let server_use = self.slot(server)?.acquire().await?;
        let listing = server_use.listing.clone();
        listing.ok_or_else(|| RemoteError::BadAnswer {
            server: server.to_owned(),
            reason: "it did not list its tools".to_owned(),
        })
    }

    /// Calls a tool.
    pub async fn call(&self, call: RemoteToolCall<'_>) -> Result<RemoteResult, RemoteError> {
        let server = self.acquire_for(&call).await?;
        server.connection.call(&call, server.config().tool_timeout()).await
    }

    /// Calls a tool that was checked in this listing. If the server has another list by then, such
    /// as after a restart, nothing is sent and the error is [`RemoteError::Relisted`].
    pub async fn call_listed(
        &self,
        call: RemoteToolCall<'_>,
        checked: &Arc<ServerListing>,
    ) -> Result<RemoteResult, RemoteError> {
        let server = self.acquire_for(&call).await?;
        let is_same =
            |listing: &Arc<ServerListing>| Arc::ptr_eq(listing, checked) || is_same_list(listing, checked);
        if !server.listing.as_ref().is_some_and(is_same) {
            return Err(RemoteError::Relisted { server: call.server.to_owned() });
        }
        server.connection.call(&call, server.config().tool_timeout()).await
    }

    async fn acquire_for(&self, call: &RemoteToolCall<'_>) -> Result<ConnectionUse, RemoteError> {
        let slot = self.slot(call.server)?;
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(RemoteError::Cancelled),
            server = slot.acquire() => server,
        }
    }

    /// Returns one page of the resources of a server.
    pub async fn list_resources(
        &self,
        server: &str,
        cursor: Option<String>,
    ) -> Result<RemotePage<RemoteResource>, RemoteError> {
        let server = self.slot(server)?.acquire().await?;
        server.connection.list_resources(cursor, server.config().tool_timeout()).await
    }

    /// Returns one page of the resource templates of a server.
    pub async fn list_resource_templates(
        &self,
        server: &str,
        cursor: Option<String>,
    ) -> Result<RemotePage<RemoteResource>, RemoteError> {
        let server = self.slot(server)?.acquire().await?;
        server.connection.list_resource_templates(cursor, server.config().tool_timeout()).await
    }

    /// Reads a resource.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<Vec<RemoteResourceContent>, RemoteError> {
        let server = self.slot(server)?.acquire().await?;
        server.connection.read_resource(uri, server.config().tool_timeout()).await
    }

    /// Returns the prompts of a server.
    pub async fn list_prompts(&self, server: &str) -> Result<Vec<RemotePrompt>, RemoteError> {
        let server = self.slot(server)?.acquire().await?;
        server.connection.list_prompts(server.config().tool_timeout()).await
    }

    /// Returns the messages of a prompt.
    pub async fn get_prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: &RemoteArguments,
    ) -> Result<Vec<RemotePromptMessage>, RemoteError> {
        let server = self.slot(server)?.acquire().await?;
        server.connection.get_prompt(prompt, arguments, server.config().tool_timeout()).await
    }

    /// Ends all servers: asks them to end, and kills their process trees after two seconds. No
    /// server starts afterwards.
    pub async fn shut_down(&self) {
        self.context.is_closed.store(true, Ordering::Release);
        self.abort_background();
        join_all(self.slots.values().map(|slot| slot.shut_down())).await;
    }

    fn slot(&self, server: &str) -> Result<&Arc<ServerSlot>, RemoteError> {
        self.slots.get(server).ok_or_else(|| RemoteError::UnknownServer { server: server.to_owned() })
    }

    fn abort_background(&self) {
        let tasks = std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for ServerPool {
    fn drop(&mut self) {
        self.context.is_closed.store(true, Ordering::Release);
        self.abort_background();
        self.slots.values().for_each(|slot| slot.kill());
    }
}
