//! One configured server: its state, its connection if it runs, and its tools.

mod starting;
mod supervision;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::Shared};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::{AbortHandle, JoinHandle},
    time::Instant,
};
use windlass_contract::BoxFuture;

use crate::{
    catalogue::Catalogue,
    config::McpServerConfig,
    connection::{ServerConnection, ending::ConnectionReport},
    listing::ServerListing,
    pool::{PoolSettings, RemoteError},
    status::{ServerState, ServerStatus},
};

/// First delay after a failed start. It doubles with each failure.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// Maximum number of tries to use a server that ends right after its start.
const MAX_SHORT_LIVES: usize = 6;
/// Longest delay after failed starts.
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// The parts of a pool that its servers share.
pub(crate) struct PoolContext {
    pub(crate) settings: PoolSettings,
    pub(crate) catalogue: Option<Catalogue>,
    pub(crate) changes: watch::Sender<u64>,
    pub(crate) is_closed: AtomicBool,
    /// The runtime on which servers live; without it, that of whoever starts one.
    pub(crate) runtime: OnceLock<Handle>,
}

impl PoolContext {
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match self.runtime.get() {
            Some(runtime) => runtime.spawn(task),
            None => tokio::spawn(task),
        }
    }

    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

type StartResult = Result<Arc<ServerConnection>, RemoteError>;

/// One configured server.
pub(crate) struct ServerSlot {
    pub(crate) name: String,
    pub(crate) config: McpServerConfig,
    context: Arc<PoolContext>,
    state: Mutex<SlotState>,
    /// Asks for the tools again in the background.
    refresh: Notify,
}

struct SlotState {
    phase: SlotPhase,
    /// State to show while the server does not run.
    resting: ServerState,
    listing: Option<Arc<ServerListing>>,
    failures: u32,
    /// Time before which no start is tried, and the last error.
    backoff: Option<(Instant, RemoteError)>,
    starts: u32,
    calls: usize,
    last_used: Instant,
    tasks: Vec<AbortHandle>,
}

impl SlotState {
    /// Puts the next start off: twice as long as after the last failure.
    fn back_off(&mut self, error: &RemoteError) {
        let doublings = self.failures.min(10);
        let delay = FIRST_BACKOFF.saturating_mul(1 << doublings).min(MAX_BACKOFF);
        self.failures = self.failures.saturating_add(1);
        self.backoff = Some((Instant::now() + delay, error.clone()));
    }
}

enum SlotPhase {
    Resting,
    Starting(Shared<BoxFuture<'static, StartResult>>),
    Running(Arc<ServerConnection>),
}

impl ServerSlot {
    pub(crate) fn new(name: String, config: McpServerConfig, context: Arc<PoolContext>) -> Arc<Self> {
        let saved = context.catalogue.as_ref().and_then(|catalogue| catalogue.load(&name, &config));
        let state = SlotState {
            phase: SlotPhase::Resting,
            resting: ServerState::Known,
            listing: saved.map(Arc::new),
            failures: 0,
            backoff: None,
            starts: 0,
            calls: 0,
            last_used: Instant::now(),
            tasks: Vec::new(),
        };
        Arc::new(Self { name, config, context, state: Mutex::new(state), refresh: Notify::new() })
    }

    /// Returns the tools. A list that is no longer fresh is asked for again if the server runs.
    pub(crate) fn listing(&self) -> Option<Arc<ServerListing>> {
        let state = self.state();
        let listing = state.listing.clone();
        if matches!(state.phase, SlotPhase::Running(_)) && listing.as_deref().is_some_and(is_stale) {
            self.refresh.notify_one();
        }
        listing
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let state = self.state();
        let (shown, pid) = match &state.phase {
            SlotPhase::Resting => (state.resting.clone(), None),
            SlotPhase::Starting(_) => (ServerState::Starting, None),
            SlotPhase::Running(connection) => (ServerState::Ready, connection.pid()),
        };
        ServerStatus {
            server: self.name.clone(),
            state: shown,
            tools: state.listing.as_ref().map(|listing| listing.tools.len()),
            pid,
            restarts: state.starts.saturating_sub(1),
            calls_in_flight: state.calls,
        }
    }

    /// Returns a use of the running server, which is started if necessary. While it lasts, the
    /// server is not idle.
    pub(crate) async fn acquire(self: &Arc<Self>) -> Result<ConnectionUse, RemoteError> {
        for _ in 0..MAX_SHORT_LIVES {
            let starting = {
                let mut state = self.state();
                if let SlotPhase::Running(connection) = &state.phase
                    && connection.is_live()
                {
                    let (connection, listing) = (Arc::clone(connection), state.listing.clone());
                    state.calls += 1;
                    return Ok(ConnectionUse { slot: Arc::clone(self), connection, listing });
                }
                self.starting(&mut state)?
            };
            starting.await?;
        }
        let error = self.not_started("it ended right after its start, again and again".to_owned());
        let mut state = self.state();
        if matches!(state.phase, SlotPhase::Resting) {
            state.back_off(&error);
        }
        Err(error)
    }

    /// Returns the start that runs, or begins one.
    fn starting(
        self: &Arc<Self>,
        state: &mut SlotState,
    ) -> Result<Shared<BoxFuture<'static, StartResult>>, RemoteError> {
        if self.context.is_closed.load(Ordering::Acquire) {
            return Err(self.not_started("the servers are being shut down".to_owned()));
        }
        match &state.phase {
            SlotPhase::Starting(start) => return Ok(start.clone()),
            // It has ended; its supervision is about to note that.
            SlotPhase::Running(connection) => {
                let connection = Arc::clone(connection);
                let slot = Arc::clone(self);
                let ended: BoxFuture<'static, StartResult> = Box::pin(async move {
                    let report = connection.ended().await;
                    slot.note_end(&connection, &report);
                    Ok(connection)
                });
                return Ok(ended.shared());
            }
            SlotPhase::Resting => {}
        }
        if let Some((until, error)) = &state.backoff
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let slot = Arc::clone(self);
        let task = self.context.spawn(async move { slot.run_start().await });
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(task.abort_handle());
        let name = self.name.clone();
        let start: BoxFuture<'static, StartResult> = Box::pin(async move {
            task.await.unwrap_or_else(|_| {
                let reason = "the start was cancelled".to_owned();
                Err(RemoteError::NotStarted { server: name, reason })
            })
        });
        let start = start.shared();
        state.phase = SlotPhase::Starting(start.clone());
        state.starts = state.starts.saturating_add(1);
        self.context.changed();
        Ok(start)
    }

    /// Notes that a start has failed.
    fn note_failure(&self, error: &RemoteError, shown: ServerState) {
        let mut state = self.state();
        state.phase = SlotPhase::Resting;
        if matches!(shown, ServerState::NeedsLogin) {
            state.backoff = None;
        } else {
            state.back_off(error);
        }
        state.resting = shown;
        drop(state);
        self.context.changed();
    }

    /// Notes that a connection has ended. Calling it twice does nothing.
    fn note_end(&self, connection: &Arc<ServerConnection>, report: &ConnectionReport) {
        let mut state = self.state();
        match &state.phase {
            SlotPhase::Running(running) if Arc::ptr_eq(running, connection) => {}
            _ => return,
        }
        state.phase = SlotPhase::Resting;
        state.resting = resting_after(report);
        drop(state);
        self.context.changed();
    }

    /// Replaces the tools. Returns true if they differ from the last ones.
    fn note_listing(&self, listing: ServerListing) -> (Arc<ServerListing>, bool) {
        let listing = Arc::new(listing);
        let mut state = self.state();
        let is_same = state.listing.as_deref().is_some_and(|old| is_same_list(old, &listing));
        state.listing = Some(Arc::clone(&listing));
        drop(state);
        if !is_same {
            self.context.changed();
        }
        (listing, !is_same)
    }

    /// Ends the server: asks it, and kills it after two seconds. The pool is closed before.
    pub(crate) async fn shut_down(&self) {
        let (connection, start) = {
            let state = self.state();
            match &state.phase {
                SlotPhase::Running(connection) => (Some(Arc::clone(connection)), None),
                SlotPhase::Starting(start) => (None, Some(start.clone())),
                SlotPhase::Resting => (None, None),
            }
        };
        if let Some(start) = start {
            self.abort_tasks();
            // It ends at once: its process is killed with the task.
            if let Ok(connection) = start.await {
                connection.kill();
            }
            self.state().phase = SlotPhase::Resting;
        }
        if let Some(connection) = connection {
            connection.stop();
            let report = connection.ended().await;
            self.note_end(&connection, &report);
        }
    }

    /// Kills the server at once.
    pub(crate) fn kill(&self) {
        self.abort_tasks();
        let phase = std::mem::replace(&mut self.state().phase, SlotPhase::Resting);
        if let SlotPhase::Running(connection) = phase {
            connection.kill();
        }
    }

    fn abort_tasks(&self) {
        let tasks = std::mem::take(&mut self.state().tasks);
        tasks.iter().for_each(AbortHandle::abort);
    }

    fn not_started(&self, reason: String) -> RemoteError {
        RemoteError::NotStarted { server: self.name.clone(), reason }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A use of a running server.
pub(crate) struct ConnectionUse {
    slot: Arc<ServerSlot>,
    pub(crate) connection: Arc<ServerConnection>,
    /// The tools that this connection has listed.
    pub(crate) listing: Option<Arc<ServerListing>>,
}

impl ConnectionUse {
    pub(crate) fn config(&self) -> &McpServerConfig {
        &self.slot.config
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        let mut state = self.slot.state();
        state.calls = state.calls.saturating_sub(1);
        state.last_used = Instant::now();
    }
}

fn resting_after(report: &ConnectionReport) -> ServerState {
    use crate::connection::ending::EndCause;
    match report.cause {
        EndCause::Stopped => ServerState::Known,
        EndCause::LoginNeeded => ServerState::NeedsLogin,
        _ => ServerState::Failed {
            error: report.reason.clone(),
            stderr: report.stderr.clone(),
            denials: report.denials.clone(),
        },
    }
}

fn is_stale(listing: &ServerListing) -> bool {
    let age = listing.listed_at.elapsed().unwrap_or(Duration::MAX);
    listing.fresh_for.is_some_and(|fresh_for| age > fresh_for)
}

/// Returns true if two lists differ in nothing but their time.
pub(crate) fn is_same_list(one: &ServerListing, other: &ServerListing) -> bool {
    let timeless = ServerListing { listed_at: other.listed_at, ..one.clone() };
    timeless == *other
}
