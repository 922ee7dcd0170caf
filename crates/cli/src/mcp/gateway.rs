//! `windlass mcp gateway`: configured servers behind one endpoint.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use windlass::{
    BoxFuture, SpecKind, Toolbox, image_url,
    mcp::{
        definition::RemoteToolDefinition,
        names::model_tool_name,
        output::ImageFitter,
        pins::Pins,
        pool::ServerPool,
        result::RemoteResult,
        serve::{ServedCall, ServedClient, ServedTools, ServerIdentity},
        tool_source::{RemoteTools, RemoteToolsSettings},
    },
};

use super::{
    ConfiguredServer, connections, reported_servers,
    serve::{
        allowed_tools::AllowedTools,
        result,
        served_session::{OutsideCaller, ServedSession},
        until_end,
    },
};
use crate::{
    args::{CommonOptions, McpGatewayOptions},
    exit::ProgramExit,
    problem::CliProblem,
    setup::ProgramSetup,
};

/// Maximum time in which servers that have never run list their tools before clients are served.
const LISTING_PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &McpGatewayOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_serving(common)?;
    let allowed = AllowedTools::parse(&options.tools)?;
    let configured = reported_servers(&setup);
    let chosen = options.servers.iter().map(|name| Ok((name.as_str(), configured.usable(name)?)));
    let mut servers: Vec<(&str, &ConfiguredServer)> = chosen.collect::<Result<_, CliProblem>>()?;
    if options.servers.is_empty() {
        servers = configured.servers.iter().map(|(name, server)| (name.as_str(), server)).collect();
    }
    if servers.is_empty() {
        let message = "no MCP server is configured; `windlass mcp add` configures one";
        return Err(CliProblem::usage(message));
    }
    let pool = connections::pool(&setup, servers);
    let runtime = crate::runtime()?;
    let ended = runtime.block_on(async {
        let tools = Arc::new(GatewayTools::start(setup, Arc::clone(&pool), allowed).await?);
        let ended = until_end(tools, &options.listening).await;
        pool.shut_down().await;
        ended
    });
    // A read of stdin cannot be cancelled, and must not keep the process.
    runtime.shutdown_background();
    ended.map(|()| ProgramExit::Done)
}

/// The tools of configured servers. Each call passes the gate, the limits, the redaction and the
/// records of a session.
struct GatewayTools {
    setup: ProgramSetup,
    allowed: AllowedTools,
    pool: Arc<ServerPool>,
    source: Arc<RemoteTools>,
    /// For the list of tools; it records nothing.
    listed: Toolbox,
    session: Mutex<Option<Arc<ServedSession>>>,
}

impl GatewayTools {
    /// Starts servers whose tools are not known yet, and waits a while for their lists.
    async fn start(
        setup: ProgramSetup,
        pool: Arc<ServerPool>,
        allowed: AllowedTools,
    ) -> Result<Self, CliProblem> {
        let source = RemoteTools::new(RemoteToolsSettings {
            pool: Arc::clone(&pool),
            pins: Arc::new(Pins::open(connections::directory(&setup))),
            elicitor: None,
            images: ImageFitter::new(image_url),
        });
        source.start();
        source.wait_until_listed(LISTING_PATIENCE).await;
        source.notes().iter().for_each(|line| crate::note(line));
        let listed = setup.gateway_agent(Arc::new(OutsideCaller::new()), source.clone())?;
        let listed = ServedSession::toolbox(listed, &setup.cwd)?;
        Ok(Self { setup, allowed, pool, source, listed, session: Mutex::default() })
    }

    /// Returns the session of all clients, started with the first call.
    fn session(&self, client: &ServedClient) -> Result<Arc<ServedSession>, String> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Arc::clone(session));
        }
        let started = self
            .setup
            .gateway_agent(Arc::new(OutsideCaller::new()), self.source.clone())
            .and_then(|builder| ServedSession::start(builder, &self.setup.cwd, client));
        let started = Arc::new(started.map_err(|problem| problem.message)?);
        *session = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Returns a tool as the registry knows it. One that waits for approval is not there.
    fn definition(&self, server: &str, tool: &RemoteToolDefinition) -> Option<RemoteToolDefinition> {
        let name = model_tool_name(server, &tool.name);
        let registered = self.listed.registry.find(name.as_str())?;
        if !self.allowed.allow(name.as_str()) {
            return None;
        }
        let SpecKind::Function { parameters } = &registered.spec.kind else { return None };
        Some(RemoteToolDefinition {
            name: name.to_string(),
            title: None,
            description: Some(registered.spec.description.clone()),
            input_schema: parameters.explicit().as_object()?.clone(),
            output_schema: Some(result::schema()),
            hints: tool.hints,
        })
    }
}

impl ServedTools for GatewayTools {
    fn identity(&self) -> ServerIdentity {
        let names: Vec<_> = self.pool.servers().map(|(name, _)| name).collect();
        ServerIdentity {
            name: "windlass-gateway".to_owned(),
            title: Some("Windlass gateway".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: Some(format!("Tools of the MCP servers {}.", names.join(", "))),
        }
    }

    fn tools(&self) -> Vec<RemoteToolDefinition> {
        self.listed.registry.join_new();
        let servers = self.pool.servers().filter_map(|(name, _)| Some((name, self.pool.listing(name)?)));
        let tools = servers.flat_map(|(server, listing)| {
            let tools = listing.tools.iter().filter_map(|tool| self.definition(server, tool));
            tools.collect::<Vec<_>>()
        });
        tools.collect()
    }

    fn call(&self, call: ServedCall) -> BoxFuture<'_, RemoteResult> {
        Box::pin(async move {
            match self.session(&call.client) {
                Ok(session) => Box::pin(session.call(call)).await,
                Err(problem) => RemoteResult::failed(problem),
            }
        })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.pool.changes())
    }
}
