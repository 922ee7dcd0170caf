//! One connection to a server: its process or address, the requests that run on it, and its end.

pub(crate) mod access;
mod authorized_client;
mod bounded_client;
mod call_clock;
mod calling;
mod conversion;
pub(crate) mod ending;
mod frame_limiter;
pub(crate) mod handshake;
pub(crate) mod http;
mod message_cost;
mod nesting;
mod requests;
mod running_calls;
mod sending;
mod server_requests;
mod server_stream;
mod stderr_tail;
mod stdio;
mod subscription;
mod tasks;
mod tool_lister;
mod watched_transport;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{NumberOrString, ProtocolVersion},
    service::{Peer, RunningService},
    transport::Transport,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until, timeout_at},
};
use windlass_contract::{BoxFuture, remote::LaunchedServer};

use self::{
    ending::{ConnectionEnd, ConnectionReport, EndCause},
    handshake::{HandshakeFailure, ProtocolEra, causes},
    http::{HttpSetupError, HttpTarget},
    running_calls::RunningCalls,
    server_requests::ServerRequests,
    stdio::StdioProcess,
    watched_transport::{MessageWatch, WatchedTransport},
};
use crate::{listing::ServerListing, pool::RemoteError};

/// Time for the output of a server that has ended, while a child of it still holds the pipes.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);
/// Maximum number of cancellations that wait to be sent for calls that were dropped.
const MAX_ABANDONED: usize = 64;

/// A connection to a server that has answered.
pub(crate) struct ServerConnection {
    server: String,
    peer: Peer<RoleClient>,
    handler: ServerRequests,
    calls: Arc<RunningCalls>,
    end: Arc<ConnectionEnd>,
    list_changed: Arc<Notify>,
    process: Option<Arc<StdioProcess>>,
    abandoned: mpsc::Sender<AbandonedWork>,
}

/// The part of a connection that runs in the background. It must be run with
/// [`ConnectionTask::run`], and ends the connection when it is dropped.
pub(crate) struct ConnectionTask {
    service: RunningService<RoleClient, ServerRequests>,
    connection: Arc<ServerConnection>,
    abandoned: mpsc::Receiver<AbandonedWork>,
}

/// Work of the server whose caller has gone.
enum AbandonedWork {
    Request(NumberOrString),
    Task(String),
}

/// A connection that runs; its result is the report of its end.
pub(crate) type ConnectionRun = BoxFuture<'static, Arc<ConnectionReport>>;

/// The names that a connection needs.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionNames {
    /// Name of the server in the configuration.
    pub(crate) server: String,
    /// The root of old servers.
    pub(crate) workspace: PathBuf,
}

impl ServerConnection {
    /// Begins a connection over the pipes of a process. The caller limits the time.
    pub(crate) async fn over_pipes(
        launched: LaunchedServer,
        names: &ConnectionNames,
        era: ProtocolEra,
        deadline: Instant,
    ) -> Result<(Arc<Self>, ConnectionTask), ConnectFailure> {
        let end = ConnectionEnd::new();
        let (process, transport) = StdioProcess::attach(launched, &end)
            .map_err(|error| ConnectFailure::without_output(error.to_string()))?;
        let process = Arc::new(process);
        let guard = Arc::clone(&process);
        let begun = tokio::select! {
            begun = Self::over(transport, names, era, &end, Some(process)) => begun,
            () = orphaned(&guard) => {
                Err(HandshakeFailure::OtherEra("it ended during the start".to_owned()))
            }
            () = sleep_until(deadline) => Err(HandshakeFailure::TooSlow),
        };
        match begun {
            Ok(begun) => Ok(begun),
            Err(failure) => {
                let is_slow = matches!(failure, HandshakeFailure::TooSlow);
                end.note(if is_slow { EndCause::Unresponsive } else { EndCause::Closed });
                Err(ConnectFailure::new(failure, guard.finish(end.noted().await).await))
            }
        }
    }

    /// Begins a connection to an HTTP server. The caller limits the time.
    pub(crate) async fn over_http(
        target: HttpTarget,
        socket: Option<&Path>,
        names: &ConnectionNames,
        era: ProtocolEra,
        deadline: Instant,
    ) -> Result<(Arc<Self>, ConnectionTask), ConnectFailure> {
        let end = ConnectionEnd::new();
        let begun = async {
            let unusable = |error: HttpSetupError| HandshakeFailure::Unreachable(causes(&error));
            let transport = target.connect(socket).map_err(unusable)?;
            Self::over(transport, names, era, &end, None).await
        };
        let begun = timeout_at(deadline, begun).await;
        begun.unwrap_or(Err(HandshakeFailure::TooSlow)).map_err(ConnectFailure::without_process)
    }

    /// Begins a connection over any transport.
    async fn over<T: Transport<RoleClient> + 'static>(
        transport: T,
        names: &ConnectionNames,
        era: ProtocolEra,
        end: &Arc<ConnectionEnd>,
        process: Option<Arc<StdioProcess>>,
    ) -> Result<(Arc<Self>, ConnectionTask), HandshakeFailure> {
        let calls = Arc::<RunningCalls>::default();
        let list_changed = Arc::<Notify>::default();
        let watch = MessageWatch {
            end: Arc::clone(end),
            calls: Arc::clone(&calls),
            list_changed: Arc::clone(&list_changed),
        };
        let handler = ServerRequests {
            server: names.server.clone(),
            calls: Arc::clone(&calls),
            workspace: names.workspace.clone(),
            offered_version: ProtocolVersion::LATEST_WITH_INITIALIZE,
        };
        let transport = WatchedTransport::new(transport, watch);
        let service = handshake::begin(transport, handler.clone(), era).await?;
        let (abandoned, abandoned_ids) = mpsc::channel(MAX_ABANDONED);
        let connection = Arc::new(Self {
            server: names.server.clone(),
            peer: service.peer().clone(),
            handler,
            calls,
            end: Arc::clone(end),
            list_changed,
            process,
            abandoned,
        });
        let task = ConnectionTask { service, connection: Arc::clone(&connection), abandoned: abandoned_ids };
        Ok((connection, task))
    }

    /// Returns true while new calls may be begun.
    pub(crate) fn is_live(&self) -> bool {
        !self.end.is_noted()
    }

    /// Returns the process id of a stdio server.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.pid())
    }

    /// Asks the connection to end.
    pub(crate) fn stop(&self) {
        self.end.note(EndCause::Stopped);
    }

    /// Ends the connection at once: kills the process tree.
    pub(crate) fn kill(&self) {
        self.end.note(EndCause::Stopped);
        if let Some(process) = &self.process {
            process.kill();
        }
    }

    /// Ends a connection whose server does not answer as it should.
    pub(crate) fn give_up(&self) {
        self.end.note(EndCause::Unresponsive);
    }

    /// Waits until the server says that its list of tools has changed.
    pub(crate) async fn list_changed(&self) {
        self.list_changed.notified().await;
    }

    /// Waits for the report of the end.
    pub(crate) async fn ended(&self) -> Arc<ConnectionReport> {
        self.end.report().await
    }

    async fn cancel_abandoned(&self, work: AbandonedWork) {
        match work {
            AbandonedWork::Request(id) => self.send_cancelled(id, "abandoned").await,
            AbandonedWork::Task(id) => {
                self.cancel_task(&id).await;
            }
        }
    }

    /// Lists the tools. The caller limits the time.
    pub(crate) async fn list_tools(&self) -> Result<ServerListing, RemoteError> {
        tokio::select! {
            biased;
            report = self.end.report() => Err(report.error(&self.server)),
            listed = tool_lister::list_tools(&self.peer) => match listed {
                Ok(listing) => Ok(listing),
                Err(tool_lister::ListFailure::Request(error)) => Err(self.error(error).await),
                Err(tool_lister::ListFailure::Answer(reason)) => {
                    Err(RemoteError::BadAnswer { server: self.server.clone(), reason })
                }
            },
        }
    }
}

impl ConnectionTask {
    /// Runs until the connection has ended, ends the process tree, and publishes the report.
    pub(crate) async fn run(mut self) -> Arc<ConnectionReport> {
        let connection = Arc::clone(&self.connection);
        let cause = loop {
            tokio::select! {
                cause = connection.end.noted() => break cause,
                () = orphaned_process(connection.process.as_deref()) => {
                    connection.end.note(EndCause::Closed);
                }
                Some(work) = self.abandoned.recv() => connection.cancel_abandoned(work).await,
            }
        };
        // Closes the standard input, which asks the server to end.
        self.service.cancellation_token().cancel();
        let report = match &connection.process {
            Some(process) => process.finish(cause).await,
            None => ConnectionReport::without_process(cause),
        };
        let report = Arc::new(report);
        connection.end.publish(Arc::clone(&report));
        report
    }
}

impl Drop for ConnectionTask {
    /// Ends a connection whose task was aborted: no call may wait for a report that never comes.
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.kill();
        connection.end.publish_first(|| ConnectionReport::without_process(EndCause::Stopped));
    }
}

async fn orphaned_process(process: Option<&StdioProcess>) {
    match process {
        Some(process) => orphaned(process).await,
        None => std::future::pending().await,
    }
}

/// Waits until the server has ended and the rest of its output is read.
async fn orphaned(process: &StdioProcess) {
    process.main_ended().await;
    tokio::time::sleep(ORPHAN_GRACE).await;
}

/// The reason why a connection could not be begun.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    /// The failure of the first exchange.
    pub(crate) failure: HandshakeFailure,
    /// The end of the process.
    pub(crate) report: ConnectionReport,
}

impl ConnectFailure {
    pub(crate) fn new(failure: HandshakeFailure, report: ConnectionReport) -> Self {
        Self { failure, report }
    }

    /// Returns the failure of a server that was not started.
    pub(crate) fn without_output(reason: String) -> Self {
        Self::without_process(HandshakeFailure::Unreachable(reason))
    }

    /// Returns the failure of a server that has no process.
    pub(crate) fn without_process(failure: HandshakeFailure) -> Self {
        Self { failure, report: ConnectionReport::without_process(EndCause::Unresponsive) }
    }
}
