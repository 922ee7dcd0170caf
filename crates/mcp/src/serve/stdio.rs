//! A server on a pair of pipes, usually standard input and output.

use rmcp::{ServerHandler, service::serve_server_with_ct, transport::async_rw::AsyncRwTransport};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// The reason why a server on pipes has not started.
#[derive(Debug, thiserror::Error)]
#[error("the client did not open the connection properly: {reason}")]
pub struct StdioServeError {
    /// The problem.
    reason: String,
}

/// Serves one client until it closes the input or `stop` is cancelled. Nothing else may be written
/// to the output.
pub async fn serve_pipes<H: ServerHandler>(
    handler: H,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    max_message_bytes: usize,
    stop: &CancellationToken,
) -> Result<(), StdioServeError> {
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(max_message_bytes);
    let serving = serve_server_with_ct(handler, transport, stop.child_token());
    let service = match serving.await {
        Ok(service) => service,
        // The client left before it said anything, or was interrupted.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(_) if stop.is_cancelled() => return Ok(()),
        Err(error) => return Err(StdioServeError { reason: error.to_string() }),
    };
    service.waiting().await.map(|_reason| ()).map_err(|error| StdioServeError { reason: error.to_string() })
}
