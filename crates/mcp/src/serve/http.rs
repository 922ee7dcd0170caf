//! A server on streamable HTTP: who may connect, and how much.

use std::{convert::Infallible, fmt, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Method, Request, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::local::{LocalSessionManager, SessionConfig},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    ServeLimits,
    bearer::BearerToken,
    http_body::{HttpRefusal, ResponseBody, WholeBody, read_body},
};

/// Path of the endpoint.
pub const ENDPOINT_PATH: &str = "/mcp";
/// Maximum time in which a client sends the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time for open connections to end.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The clients with one token, and the server that they reach. Each has its own sessions.
pub struct TokenEndpoint<H> {
    /// The token. Without one every client on the machine is let in, which is for tests only.
    pub token: Option<BearerToken>,
    /// Makes the handler of one connection.
    pub handler: Box<dyn Fn() -> H + Send + Sync>,
}

impl<H> fmt::Debug for TokenEndpoint<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenEndpoint").field("token", &self.token).finish_non_exhaustive()
    }
}

/// A server on streamable HTTP.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    hosts: Vec<String>,
}

impl HttpServer {
    /// Opens an address.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !address.ip().is_loopback() && !address.ip().is_unspecified() {
            hosts.push(address.ip().to_string());
        }
        Ok(Self { listener, address, hosts })
    }

    /// Lets clients reach the server by another host name.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Returns the address of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{ENDPOINT_PATH}", self.address)
    }

    /// Serves clients until `stop` is cancelled.
    pub async fn serve<H: ServerHandler>(
        self,
        endpoints: Vec<TokenEndpoint<H>>,
        limits: ServeLimits,
        stop: &CancellationToken,
    ) {
        let stop = stop.child_token();
        let config = protocol_config(&self.hosts, &limits, &stop);
        let endpoints = endpoints.into_iter().map(|endpoint| OpenEndpoint::new(endpoint, &config, &limits));
        let endpoints: Arc<[OpenEndpoint<H>]> = endpoints.collect();
        let slots = Arc::new(Semaphore::new(limits.max_connections));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_ended) = connections.join_next() => continue,
                () = stop.cancelled() => break,
            };
            let stream = match accepted {
                Ok((stream, _client)) => stream,
                Err(error) => {
                    // Usually no file descriptor is left. Others may become free.
                    tracing::warn!(%error, "a connection was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Dropping the stream closes it.
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                tracing::warn!("too many connections");
                continue;
            };
            let (endpoints, stop) = (Arc::clone(&endpoints), stop.clone());
            connections.spawn(async move {
                serve_connection(stream, &endpoints, limits, &stop).await;
                drop(slot);
            });
        }
        let closing = async { while connections.join_next().await.is_some() {} };
        if timeout(CLOSING_TIMEOUT, closing).await.is_err() {
            tracing::warn!("connections were still open at the end");
        }
    }
}

/// An endpoint with its sessions.
struct OpenEndpoint<H> {
    token: Option<BearerToken>,
    sessions: Arc<LocalSessionManager>,
    service: StreamableHttpService<H, LocalSessionManager>,
}

impl<H: ServerHandler> OpenEndpoint<H> {
    fn new(endpoint: TokenEndpoint<H>, config: &StreamableHttpServerConfig, limits: &ServeLimits) -> Self {
        let mut sessions = LocalSessionManager::default();
        let mut session = SessionConfig::default();
        session.keep_alive = Some(limits.session_idle);
        sessions.session_config = session;
        let sessions = Arc::new(sessions);
        let handler = endpoint.handler;
        let service =
            StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config.clone());
        Self { token: endpoint.token, sessions, service }
    }
}

fn protocol_config(
    hosts: &[String],
    limits: &ServeLimits,
    stop: &CancellationToken,
) -> StreamableHttpServerConfig {
    let origins = hosts.iter().map(|host| {
        if host.contains(':') { format!("http://[{host}]:*") } else { format!("http://{host}:*") }
    });
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts.iter().cloned())
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits.max_message_bytes)
        .with_cancellation_token(stop.clone())
}

async fn serve_connection<H: ServerHandler>(
    stream: TcpStream,
    endpoints: &[OpenEndpoint<H>],
    limits: ServeLimits,
    stop: &CancellationToken,
) {
    let service = service_fn(|request| async move {
        Ok::<_, Infallible>(match admit(request, endpoints, &limits).await {
            Ok((endpoint, request)) => endpoint.service.handle(request).await.map(ResponseBody::Protocol),
            Err(refusal) => {
                tracing::warn!(status = refusal.status.as_u16(), message = refusal.message, "refused");
                refusal.response()
            }
        })
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let mut connection = std::pin::pin!(protocol.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// Checks a request before the protocol sees it: path, token, size and number of sessions.
async fn admit<'a, H: ServerHandler>(
    request: Request<Incoming>,
    endpoints: &'a [OpenEndpoint<H>],
    limits: &ServeLimits,
) -> Result<(&'a OpenEndpoint<H>, Request<WholeBody>), HttpRefusal> {
    if request.uri().path() != ENDPOINT_PATH {
        return Err(HttpRefusal::new(StatusCode::NOT_FOUND, format!("the endpoint is {ENDPOINT_PATH}")));
    }
    let endpoint = authorized(&request, endpoints)?;
    let (parts, body) = request.into_parts();
    let body = read_body(body, limits.max_message_bytes).await?;
    let opens_session = parts.method == Method::POST
        && !parts.headers.contains_key("mcp-session-id")
        && endpoint.sessions.sessions.read().await.len() >= limits.max_sessions;
    if opens_session && is_initialize(&body) {
        let message = format!("the limit of {} sessions is reached", limits.max_sessions);
        return Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, message));
    }
    let body = WholeBody(Some(body).filter(|body| !body.is_empty()));
    Ok((endpoint, Request::from_parts(parts, body)))
}

/// Returns the endpoint whose token the client has presented.
fn authorized<'a, H, B>(
    request: &Request<B>,
    endpoints: &'a [OpenEndpoint<H>],
) -> Result<&'a OpenEndpoint<H>, HttpRefusal> {
    let presented = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let presented = presented.and_then(|value| value.split_once(' '));
    let presented = presented.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = presented.map_or("", |(_, token)| token.trim());
    let endpoint = endpoints.iter().find(|endpoint| match &endpoint.token {
        Some(expected) => expected.accepts(token),
        None => true,
    });
    endpoint.ok_or_else(|| HttpRefusal::new(StatusCode::UNAUTHORIZED, "a valid bearer token is required"))
}

/// Returns true if a body asks to open a session.
fn is_initialize(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct MethodOnly<'a> {
        #[serde(borrow)]
        method: Option<std::borrow::Cow<'a, str>>,
    }
    let message = serde_json::from_slice::<MethodOnly<'_>>(body);
    message.is_ok_and(|message| message.method.as_deref() == Some("initialize"))
}

#[cfg(test)]
mod tests;
