//! The server that the official conformance suite tests: our server with the fixture tools,
//! resources and prompts that its scenarios call. See `tests/real/mcp.sh`.
//!
//! Ordinary tools run behind `ToolServer`, as those of `windlass mcp serve` do. Capabilities that
//! Windlass itself does not have (resources, prompts, sampling, logging) are only here.

mod fixture_handler;
mod fixture_tools;
mod input_required;
mod prompts;
mod resources;

use std::{error::Error, net::SocketAddr, sync::Arc};

use tokio_util::sync::CancellationToken;
use windlass_mcp::serve::{
    ServeLimits, ToolServer,
    http::{HttpServer, TokenEndpoint},
};

use crate::{fixture_handler::FixtureHandler, fixture_tools::FixtureTools};

/// A red pixel as PNG.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = HttpServer::bind(address.parse::<SocketAddr>()?).await?;
    let limits = ServeLimits::default();
    let tools = ToolServer::new(Arc::new(FixtureTools::new()), limits);
    let fixture = FixtureHandler::new(tools);
    let endpoint = TokenEndpoint { token: None, handler: Box::new(move || fixture.for_connection()) };
    write_line(&server.url())?;
    let stop = CancellationToken::new();
    let serving = server.serve(vec![endpoint], limits, &stop);
    tokio::select! {
        () = serving => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}

fn write_line(line: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
