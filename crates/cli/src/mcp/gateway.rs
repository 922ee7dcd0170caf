//! `windlass mcp gateway`: configured servers behind one endpoint.

mod call_questions;
mod client_tools;
mod filtered_source;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::{
    image_url,
    mcp::{
        output::ImageFitter,
        pins::Pins,
        pool::ServerPool,
        serve::BearerToken,
        tool_source::{RemoteTools, RemoteToolsSettings},
    },
};

use self::{call_questions::CallQuestions, client_tools::ClientTools, filtered_source::FilteredSource};
use super::{
    ConfiguredServer, connections, reported_servers,
    serve::{
        NamedClient,
        allowed_tools::{AllowedTools, ClientFilter},
        clients_until_end,
        live_calls::LiveCalls,
        until_end,
    },
};
use crate::{
    args::{CommonOptions, GatewaySearch, McpGatewayOptions},
    config::GatewayClient,
    exit::ProgramExit,
    problem::CliProblem,
    setup::{ProgramSetup, key},
};

/// Maximum time in which servers that have never run list their tools before clients are served.
const LISTING_PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &McpGatewayOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_serving(common)?;
    let allowed = AllowedTools::parse(&options.tools)?;
    let clients = match options.listening.http {
        Some(_) => named_clients(&setup, &allowed)?,
        None => BTreeMap::new(),
    };
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
        let served = Arc::new(ServedServers::start(setup, Arc::clone(&pool), options.search).await);
        let ended = match options.listening.http {
            Some(address) if !clients.is_empty() => {
                let clients = clients.into_iter().map(|(name, (token, filter))| {
                    let tools = ClientTools::new(&served, Some(name), filter)?;
                    Ok(NamedClient { token, tools: Arc::new(tools) })
                });
                match clients.collect::<Result<_, CliProblem>>() {
                    Ok(clients) => clients_until_end(clients, address, &options.listening).await,
                    Err(problem) => Err(problem),
                }
            }
            _ => match ClientTools::new(&served, None, ClientFilter::new(vec![allowed], Vec::new())) {
                Ok(tools) => until_end(Arc::new(tools), &options.listening).await,
                Err(problem) => Err(problem),
            },
        };
        pool.shut_down().await;
        ended
    });
    // A read of stdin cannot be cancelled, and must not keep the process.
    runtime.shutdown_background();
    ended.map(|()| ProgramExit::Done)
}

/// Returns the configured clients with their tokens and tools. A client that could not be told from
/// another is an error.
fn named_clients(
    setup: &ProgramSetup,
    allowed: &AllowedTools,
) -> Result<BTreeMap<String, (BearerToken, ClientFilter)>, CliProblem> {
    let mut owners = BTreeMap::new();
    let clients = setup.config().mcp_gateway.clients.iter().map(|(name, client)| {
        let GatewayClient { token_env_var, tools, deny } = client;
        let fault = |problem: String| CliProblem::usage(format!("`mcp_gateway.clients.{name}`: {problem}"));
        let text = key(token_env_var);
        let text = text.ok_or_else(|| fault(format!("the variable `{token_env_var}` has no token")))?;
        let token = BearerToken::parse(&text).map_err(|error| fault(error.to_string()))?;
        if let Some(other) = owners.insert(text, name) {
            return Err(fault(format!("`{other}` has the same token")));
        }
        let own =
            AllowedTools::parse(tools).map_err(|_empty| fault("a name of a tool is empty".to_owned()))?;
        let filter = ClientFilter::new(vec![allowed.clone(), own], deny.clone());
        Ok((name.clone(), (token, filter)))
    });
    clients.collect()
}

/// The servers behind the endpoint, for all clients.
struct ServedServers {
    setup: ProgramSetup,
    search: GatewaySearch,
    pool: Arc<ServerPool>,
    tools: Arc<RemoteTools>,
    calls: Arc<LiveCalls>,
}

impl ServedServers {
    /// Starts servers whose tools are not known yet, and waits a while for their lists.
    async fn start(setup: ProgramSetup, pool: Arc<ServerPool>, search: GatewaySearch) -> Self {
        let calls = Arc::new(LiveCalls::default());
        let tools = RemoteTools::new(RemoteToolsSettings {
            pool: Arc::clone(&pool),
            pins: Arc::new(Pins::open(connections::directory(&setup))),
            elicitor: Some(Arc::new(CallQuestions(Arc::clone(&calls)))),
            images: ImageFitter::new(image_url),
        });
        tools.start();
        tools.wait_until_listed(LISTING_PATIENCE).await;
        tools.notes().iter().for_each(|line| crate::note(line));
        Self { setup, search, pool, tools, calls }
    }
}
