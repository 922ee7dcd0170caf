//! `windlass mcp serve`: our tools for MCP clients.

mod agent_choice;
pub(super) mod allowed_tools;
mod client_questions;
mod client_roots;
pub(super) mod live_calls;
pub(super) mod result;
mod served_agents;
pub(super) mod served_session;
mod served_tools;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use windlass::{
    Stop,
    host::Window,
    mcp::serve::{
        BearerToken, ServeLimits, ServedTools, ToolServer,
        http::{HttpServer, TokenEndpoint},
        stdio::serve_pipes,
    },
};

use self::{allowed_tools::AllowedTools, served_tools::SandboxedTools};
use crate::{
    args::{CommonOptions, McpListening, McpServeOptions},
    exit::ProgramExit,
    interrupts,
    problem::{CliProblem, chain},
    retention_thread::RetentionThread,
    setup::{ProgramSetup, key},
};

/// Variable with the token of HTTP clients.
const TOKEN_VARIABLE: &str = "WINDLASS_MCP_TOKEN";

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &McpServeOptions) -> Result<ProgramExit, CliProblem> {
    let common = CommonOptions { cd: directory(common, options)?, ..common.clone() };
    let setup = ProgramSetup::for_serving(&common)?;
    let _cleaning = RetentionThread::start(&setup);
    let allowed = AllowedTools::parse(&options.allow_tools)?;
    let tools = Arc::new(SandboxedTools::new(&common, setup, allowed)?);
    let runtime = crate::runtime()?;
    let ended = runtime.block_on(async {
        let ended = until_end(Arc::clone(&tools) as Arc<dyn ServedTools>, &options.listening).await;
        tools.close().await;
        ended
    });
    // A read of stdin cannot be cancelled, and must not keep the process.
    runtime.shutdown_background();
    // A signal is the usual end of a server.
    ended.map(|()| ProgramExit::Done)
}

/// Serves tools until the client leaves or a signal ends the process.
pub(super) async fn until_end(
    tools: Arc<dyn ServedTools>,
    listening: &McpListening,
) -> Result<(), CliProblem> {
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::of_terminal())?;
    let server = ToolServer::new(tools, ServeLimits::default());
    let ended = match listening.http {
        None => on_pipes(&server, &stop).await,
        Some(address) => over_http(&server, address, listening, &stop).await,
    };
    server.shut_down().await;
    ended
}

/// An HTTP client with a token and tools of its own.
pub(super) struct NamedClient {
    pub(super) token: BearerToken,
    pub(super) tools: Arc<dyn ServedTools>,
}

/// Serves clients over HTTP, each its own tools, until a signal ends the process.
pub(super) async fn clients_until_end(
    clients: Vec<NamedClient>,
    address: SocketAddr,
    listening: &McpListening,
) -> Result<(), CliProblem> {
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::of_terminal())?;
    let limits = ServeLimits::default();
    let mut servers = Vec::new();
    let endpoints = clients.into_iter().map(|NamedClient { token, tools }| {
        let server = ToolServer::new(tools, limits);
        servers.push(server.clone());
        TokenEndpoint { token: Some(token), handler: Box::new(move || server.for_connection()) }
    });
    let endpoints: Vec<_> = endpoints.collect();
    let http = listen(address, listening).await?;
    announce_address(&http.url(), address.ip().is_loopback());
    crate::note("clients must send their token of `mcp_gateway.clients`");
    http.serve(endpoints, limits, &stop.token()).await;
    for server in servers {
        server.shut_down().await;
    }
    Ok(())
}

/// Returns the directory to work in.
fn directory(common: &CommonOptions, options: &McpServeOptions) -> Result<Option<PathBuf>, CliProblem> {
    match (&common.cd, &options.dir) {
        (Some(_), Some(_)) => {
            Err(CliProblem::usage("the directory is given twice; leave out `-C`, or the argument"))
        }
        (chosen, None) | (None, chosen) => Ok(chosen.clone()),
    }
}

async fn on_pipes(server: &ToolServer, stop: &Stop) -> Result<(), CliProblem> {
    let limit = server.limits().max_message_bytes;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let ended = serve_pipes(server.clone(), input, output, limit, &stop.token()).await;
    ended.map_err(|error| CliProblem::failed(chain(&error)))
}

async fn over_http(
    server: &ToolServer,
    address: SocketAddr,
    listening: &McpListening,
    stop: &Stop,
) -> Result<(), CliProblem> {
    let (token, made) = match key(TOKEN_VARIABLE) {
        Some(chosen) => (BearerToken::parse(&chosen), None),
        None => match BearerToken::generate() {
            Ok((token, text)) => (Ok(token), Some(text)),
            Err(error) => (Err(error), None),
        },
    };
    let token = token.map_err(|error| CliProblem::usage(format!("`{TOKEN_VARIABLE}`: {error}")))?;
    let http = listen(address, listening).await?;
    announce_address(&http.url(), address.ip().is_loopback());
    match made {
        // Written as it is: a note would hide it as a secret.
        Some(token) => print_token(&token),
        None => crate::note(&format!("clients must send the token of `{TOKEN_VARIABLE}`")),
    }
    let server = server.clone();
    let limits = *server.limits();
    let handler = Box::new(move || server.for_connection());
    http.serve(vec![TokenEndpoint { token: Some(token), handler }], limits, &stop.token()).await;
    Ok(())
}

async fn listen(address: SocketAddr, listening: &McpListening) -> Result<HttpServer, CliProblem> {
    let bound = HttpServer::bind(address).await;
    let bound = bound.map_err(|error| CliProblem::failed(format!("cannot listen on {address}: {error}")))?;
    Ok(listening.allow_host.iter().fold(bound, HttpServer::with_host))
}

/// Prints where the server is, on stderr: stdout belongs to the protocol.
fn announce_address(url: &str, is_local: bool) {
    crate::note(&format!("serving on {url}"));
    if !is_local {
        crate::note("warning: other machines can connect, and what they send is not encrypted");
    }
}

/// Prints a token that was made for this run.
fn print_token(token: &str) {
    use std::io::Write;
    // If stderr is gone, there is no place to report it.
    let _gone = writeln!(std::io::stderr().lock(), "clients must send: Authorization: Bearer {token}");
}
