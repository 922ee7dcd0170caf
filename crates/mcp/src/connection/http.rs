//! The address of an HTTP server: headers, redirects and unix sockets.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};
use rmcp::{
    RoleClient,
    transport::{
        StreamableHttpClientTransport, Transport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use super::{access::ServerAccess, authorized_client::AuthorizedClient, bounded_client::BoundedClient};
use crate::config::McpServerConfig;

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time of a cancellation or an answer to the server.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 3;

type Headers = HashMap<HeaderName, HeaderValue>;

/// A reason why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpSetupError {
    #[error("`url` is not an address of the kind `https://…`")]
    Address,
    #[error("the environment variable `{0}` is not set")]
    Variable(String),
    #[error("`{0}` cannot be an HTTP header")]
    Header(String),
    #[error("the path `unix_socket` is empty or not valid")]
    Socket,
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// A streamable HTTP server, ready to be connected to.
pub(crate) struct HttpTarget {
    address: Url,
    config: StreamableHttpClientTransportConfig,
    access: Arc<ServerAccess>,
}

impl HttpTarget {
    /// Reads the address and the headers. `variable` is the environment of Windlass.
    pub(crate) fn new(
        config: &McpServerConfig,
        access: ServerAccess,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, HttpSetupError> {
        let address = config.url.as_deref().and_then(|url| Url::parse(url).ok());
        let address = address.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let address = address.ok_or(HttpSetupError::Address)?;
        let mut headers = Headers::new();
        for (name, value) in &config.http_headers {
            add_header(&mut headers, name, value)?;
        }
        for (name, source) in &config.env_http_headers {
            let value = variable(source).ok_or_else(|| HttpSetupError::Variable(source.clone()))?;
            add_header(&mut headers, name, &value)?;
        }
        let config = StreamableHttpClientTransportConfig::with_uri(address.as_str())
            .custom_headers(headers)
            .control_request_timeout(CONTROL_TIMEOUT);
        Ok(Self { address, config, access: Arc::new(access) })
    }

    /// Returns true if a header of the configuration already authorizes requests.
    pub(crate) fn is_authorized_by_header(config: &McpServerConfig) -> bool {
        let mut names = config.http_headers.keys().chain(config.env_http_headers.keys());
        names.any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// Returns a transport over TCP, or over a unix socket.
    pub(crate) fn connect(
        self,
        socket: Option<&Path>,
    ) -> Result<impl Transport<RoleClient> + 'static, HttpSetupError> {
        let socket = socket.map(socket_path).transpose()?;
        let client = client(&self.address, socket).map_err(HttpSetupError::Client)?;
        let client = AuthorizedClient::new(BoundedClient::new(client), self.access);
        Ok(StreamableHttpClientTransport::with_client(client, self.config))
    }
}

/// Returns the path of a socket. `@name` is a name in the abstract namespace.
fn socket_path(socket: &Path) -> Result<PathBuf, HttpSetupError> {
    let path = socket.to_str().ok_or(HttpSetupError::Socket)?;
    match path.strip_prefix('@') {
        Some("") => Err(HttpSetupError::Socket),
        Some(name) => Ok(format!("\0{name}").into()),
        None if path.is_empty() => Err(HttpSetupError::Socket),
        None => Ok(socket.to_owned()),
    }
}

fn add_header(headers: &mut Headers, name: &str, value: &str) -> Result<(), HttpSetupError> {
    let invalid = || HttpSetupError::Header(name.to_owned());
    let parsed = HeaderName::try_from(name).map_err(|_| invalid())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
    value.set_sensitive(true);
    headers.insert(parsed, value);
    Ok(())
}

fn client(address: &Url, socket: Option<PathBuf>) -> Result<Client, reqwest::Error> {
    // If another thread was faster, its provider is equivalent.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::custom(|attempt| {
            if is_same_origin_redirect(&attempt) { attempt.follow() } else { attempt.stop() }
        }))
        .retry(reqwest::retry::never());
    let builder = match socket {
        Some(socket) => builder.unix_socket(socket),
        None => builder,
    };
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_local { builder.no_proxy().build() } else { builder.build() }
}

/// Returns true for a redirect that keeps the message and the origin, so that neither the token nor
/// a header goes to another server.
fn is_same_origin_redirect(attempt: &Attempt<'_>) -> bool {
    let keeps_message =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let previous = attempt.previous();
    let is_same = previous.last().is_some_and(|url| url.origin() == attempt.url().origin());
    keeps_message && is_same && previous.len() <= MAX_REDIRECTS
}
