//! The start of a server: its process or address, the first exchange, and its tools.

use std::{collections::BTreeMap, io, sync::Arc};

use tokio::time::{Instant, timeout_at};
use windlass_contract::remote::ServerCommand;

use super::{ServerSlot, SlotPhase, StartResult};
use crate::{
    catalogue::Catalogue,
    config::McpServerConfig,
    connection::{
        ConnectFailure, ConnectionNames, ConnectionRun, ServerConnection,
        access::{AccessSource, ServerAccess},
        ending::EndCause,
        handshake::{HandshakeFailure, ProtocolEra, causes},
        http::{HttpSetupError, HttpTarget},
    },
    listing::ServerListing,
    pool::RemoteError,
    status::ServerState,
    untrusted_text::visible_line,
};

/// Maximum size of the reason of a failed start.
const MAX_REASON: usize = 4096;

/// A server that has answered and told its tools.
struct StartedServer {
    connection: Arc<ServerConnection>,
    run: ConnectionRun,
    listing: ServerListing,
}

impl ServerSlot {
    /// Starts the server and notes the outcome.
    pub(super) async fn run_start(self: Arc<Self>) -> StartResult {
        match self.start_once().await {
            Ok(started) => {
                let (listing, _) = self.note_listing(started.listing);
                self.save(listing).await;
                let connection = started.connection;
                let mut state = self.state();
                state.failures = 0;
                state.backoff = None;
                state.last_used = Instant::now();
                state.phase = SlotPhase::Running(Arc::clone(&connection));
                let supervision =
                    tokio::spawn(Arc::clone(&self).supervise(Arc::clone(&connection), started.run));
                state.tasks.push(supervision.abort_handle());
                drop(state);
                self.context.changed();
                Ok(connection)
            }
            Err(failure) => {
                let (error, shown) = self.explained(&failure);
                tracing::debug!(server = self.name, %error, "an MCP server did not start");
                self.save_failure(shown.clone()).await;
                self.note_failure(&error, shown);
                Err(error)
            }
        }
    }

    /// Tries each way to begin until one works.
    async fn start_once(&self) -> Result<StartedServer, ConnectFailure> {
        let deadline = Instant::now() + self.config.startup_timeout();
        let known_version = self.state().listing.as_ref().map(|listing| listing.protocol_version.clone());
        let [first, second] = ProtocolEra::attempts(known_version.as_deref());
        let (connection, run) = match self.connect(first, deadline).await {
            Err(ConnectFailure { failure: HandshakeFailure::OtherEra(reason), .. })
                if Instant::now() < deadline =>
            {
                tracing::debug!(server = self.name, reason, "trying the other way to begin");
                self.connect(second, deadline).await?
            }
            begun => begun?,
        };
        self.first_listing(connection, run, deadline).await
    }

    async fn first_listing(
        &self,
        connection: Arc<ServerConnection>,
        mut run: ConnectionRun,
        deadline: Instant,
    ) -> Result<StartedServer, ConnectFailure> {
        let listed = tokio::select! {
            biased;
            listed = timeout_at(deadline, connection.list_tools()) => listed,
            report = &mut run => {
                let failure = if report.cause == EndCause::LoginNeeded {
                    HandshakeFailure::NeedsLogin
                } else {
                    HandshakeFailure::Unreachable(report.reason.clone())
                };
                return Err(ConnectFailure::new(failure, report.as_ref().clone()));
            }
        };
        let failure = match listed {
            Ok(Ok(listing)) => return Ok(StartedServer { connection, run, listing }),
            Ok(Err(RemoteError::NeedsLogin { .. })) => HandshakeFailure::NeedsLogin,
            Ok(Err(error)) => HandshakeFailure::Unreachable(format!("it did not list its tools: {error}")),
            Err(_) => HandshakeFailure::Unreachable(self.too_slow("list its tools")),
        };
        connection.give_up();
        let report = run.await;
        Err(ConnectFailure::new(failure, report.as_ref().clone()))
    }

    async fn connect(
        &self,
        era: ProtocolEra,
        deadline: Instant,
    ) -> Result<(Arc<ServerConnection>, ConnectionRun), ConnectFailure> {
        let settings = &self.context.settings;
        let names = ConnectionNames { server: self.name.clone(), workspace: settings.workspace.clone() };
        if let Some(command) = self.command() {
            let launched = match timeout_at(deadline, settings.launcher.launch(&command)).await {
                Ok(Ok(launched)) => launched,
                Ok(Err(error)) => return Err(ConnectFailure::without_output(causes(&error))),
                Err(_) => return Err(ConnectFailure::without_output(self.too_slow("start"))),
            };
            let (connection, task) = ServerConnection::over_pipes(launched, &names, era, deadline).await?;
            return Ok((connection, Box::pin(task.run())));
        }
        let target = self.target().map_err(|error| ConnectFailure::without_output(causes(&error)))?;
        let socket = self.config.unix_socket.as_deref();
        let (connection, task) = ServerConnection::over_http(target, socket, &names, era, deadline).await?;
        Ok((connection, Box::pin(task.run())))
    }

    /// Returns the address of an HTTP server, with its headers and the source of its tokens.
    fn target(&self) -> Result<HttpTarget, HttpSetupError> {
        let settings = &self.context.settings;
        let variable = |name: &str| settings.environment.get(name).cloned();
        let source = match (&self.config.bearer_token_env_var, &settings.tokens) {
            (Some(name), _) => AccessSource::Environment(
                variable(name).ok_or_else(|| HttpSetupError::Variable(name.clone()))?,
            ),
            (None, Some(tokens)) if !HttpTarget::is_authorized_by_header(&self.config) => {
                AccessSource::Login(Arc::clone(tokens))
            }
            _ => AccessSource::Nothing,
        };
        let access = ServerAccess::new(self.name.clone(), source);
        HttpTarget::new(&self.config, access, &variable)
    }

    /// Returns the command line of a stdio server.
    fn command(&self) -> Option<ServerCommand> {
        let config = &self.config;
        let program = config.command.clone()?;
        let ours = &self.context.settings.environment;
        let mut environment: BTreeMap<String, String> =
            config.env_vars.iter().filter_map(|name| Some((name.clone(), ours.get(name)?.clone()))).collect();
        environment.extend(config.env.clone());
        Some(ServerCommand {
            argv: [program].into_iter().chain(config.args.iter().cloned()).collect(),
            cwd: config.cwd.clone(),
            environment,
            profile: config.profile(),
        })
    }

    fn too_slow(&self, task: &str) -> String {
        let seconds = self.config.startup_timeout().as_secs_f64();
        format!("it did not {task} within {seconds} s (`startup_timeout_sec`)")
    }

    /// Returns the error of a failed start and the state to show.
    fn explained(&self, failure: &ConnectFailure) -> (RemoteError, ServerState) {
        let server = self.name.clone();
        let reason = match &failure.failure {
            HandshakeFailure::NeedsLogin => {
                return (RemoteError::NeedsLogin { server }, ServerState::NeedsLogin);
            }
            HandshakeFailure::TooSlow => self.too_slow("answer"),
            HandshakeFailure::OtherEra(reason) | HandshakeFailure::Unreachable(reason) => {
                visible_line(reason, MAX_REASON)
            }
        };
        let mut report = failure.report.clone();
        report.reason =
            if report.says_more_than(&reason) { format!("{reason}; {}", report.reason) } else { reason };
        let shown = ServerState::Failed {
            error: report.reason.clone(),
            stderr: report.stderr.clone(),
            denials: report.denials.clone(),
        };
        (RemoteError::NotStarted { server, reason: report.explained() }, shown)
    }

    /// Saves the tools for the next session.
    pub(super) async fn save(&self, listing: Arc<ServerListing>) {
        self.save_with(move |catalogue, name, config| catalogue.save(name, config, &listing)).await;
    }

    /// Saves the failure of a start, for lists of servers.
    async fn save_failure(&self, state: ServerState) {
        self.save_with(move |catalogue, name, config| catalogue.save_failure(name, config, &state)).await;
    }

    async fn save_with(
        &self,
        save: impl FnOnce(&Catalogue, &str, &McpServerConfig) -> io::Result<()> + Send + 'static,
    ) {
        let Some(catalogue) = self.context.catalogue.clone() else { return };
        let (name, config) = (self.name.clone(), self.config.clone());
        let saved = tokio::task::spawn_blocking(move || save(&catalogue, &name, &config)).await;
        if let Err(error) = saved.unwrap_or_else(|panicked| Err(io::Error::other(panicked))) {
            tracing::warn!(server = self.name, %error, "the tools or the state of a server were not saved");
        }
    }
}
