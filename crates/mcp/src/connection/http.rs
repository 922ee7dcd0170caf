//! The address of an HTTP server: headers, redirects, unix sockets, and access tokens.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use futures_util::stream::BoxStream;
use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};
use rmcp::{
    RoleClient,
    model::ClientJsonRpcMessage,
    transport::{
        StreamableHttpClientTransport, Transport, UnixSocketHttpClient,
        streamable_http_client::{
            AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
            StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};

use super::{access::ServerAccess, frame_limiter::MAX_MESSAGE};
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
            .max_sse_event_size(MAX_MESSAGE)
            .control_request_timeout(CONTROL_TIMEOUT);
        Ok(Self { address, config, access: Arc::new(access) })
    }

    /// Returns true if a header of the configuration already authorizes requests.
    pub(crate) fn is_authorized_by_header(config: &McpServerConfig) -> bool {
        let mut names = config.http_headers.keys().chain(config.env_http_headers.keys());
        names.any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// Returns a transport over TCP.
    pub(crate) fn over_tcp(self) -> Result<impl Transport<RoleClient> + 'static, HttpSetupError> {
        let client = client(&self.address).map_err(HttpSetupError::Client)?;
        let client = AuthorizedClient { inner: client, access: self.access };
        Ok(StreamableHttpClientTransport::with_client(client, self.config))
    }

    /// Returns a transport over a unix socket.
    pub(crate) fn over_socket(
        self,
        socket: &Path,
    ) -> Result<impl Transport<RoleClient> + 'static, HttpSetupError> {
        let path = socket.to_str().filter(|path| !path.is_empty() && *path != "@");
        let path = path.ok_or(HttpSetupError::Socket)?;
        let inner = UnixSocketHttpClient::new(path, self.address.as_str());
        let client = AuthorizedClient { inner, access: self.access };
        Ok(StreamableHttpClientTransport::with_client(client, self.config))
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

fn client(address: &Url) -> Result<Client, reqwest::Error> {
    // If another thread was faster, its provider is equivalent.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::custom(|attempt| {
            if is_same_origin_redirect(&attempt) { attempt.follow() } else { attempt.stop() }
        }))
        .retry(reqwest::retry::never());
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

/// An HTTP client whose errors can be shown.
pub(crate) trait ShownErrors: StreamableHttpClient + Sync {
    /// Removes the address from an error: its query may hold a key.
    fn without_address(error: Self::Error) -> Self::Error {
        error
    }
}

impl ShownErrors for Client {
    fn without_address(error: Self::Error) -> Self::Error {
        error.without_url()
    }
}

impl ShownErrors for UnixSocketHttpClient {}

/// An HTTP client that adds the access token, and asks for another one if it is refused.
#[derive(Clone)]
struct AuthorizedClient<C> {
    inner: C,
    access: Arc<ServerAccess>,
}

impl<C: ShownErrors> AuthorizedClient<C> {
    /// Sends a request, and once more with another token after a refusal. A refused request has
    /// not been carried out.
    async fn authorized<T, F, S>(&self, send: F) -> Result<T, StreamableHttpError<C::Error>>
    where
        F: Fn(Option<String>) -> S,
        S: Future<Output = Result<T, StreamableHttpError<C::Error>>>,
    {
        let Ok(token) = self.access.token().await else { return Err(login_needed("")) };
        let error = match send(token.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(challenge) = unauthorized(&error) else { return Err(self.explained(error).await) };
        match self.access.other_token(token.as_deref(), challenge).await {
            Some(other) => match send(Some(other)).await {
                Ok(answer) => Ok(answer),
                Err(error) => Err(self.explained(error).await),
            },
            None => Err(self.explained(error).await),
        }
    }

    /// Returns the error to show, and notes the challenge of a refusal.
    async fn explained(&self, error: StreamableHttpError<C::Error>) -> StreamableHttpError<C::Error> {
        let challenge = match &error {
            StreamableHttpError::InsufficientScope(scope) => Some(scope.www_authenticate_header.clone()),
            error => unauthorized(error).map(str::to_owned),
        };
        if let Some(challenge) = challenge {
            if let Some(refused) = self.access.fixed_refused() {
                return StreamableHttpError::UnexpectedServerResponse(refused.into());
            }
            self.access.note(&challenge).await;
            return login_needed(&challenge);
        }
        match error {
            StreamableHttpError::Client(error) => StreamableHttpError::Client(C::without_address(error)),
            error => error,
        }
    }
}

fn login_needed<E: std::error::Error + Send + Sync + 'static>(challenge: &str) -> StreamableHttpError<E> {
    StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.to_owned()))
}

/// Returns the challenge of a refusal for want of a valid token. Some servers send none.
fn unauthorized<E: std::error::Error + Send + Sync + 'static>(
    error: &StreamableHttpError<E>,
) -> Option<&str> {
    match error {
        StreamableHttpError::AuthRequired(error) => Some(&error.www_authenticate_header),
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => Some(""),
        _ => None,
    }
}

impl<C: ShownErrors> StreamableHttpClient for AuthorizedClient<C> {
    type Error = C::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            MAX_MESSAGE,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        self.authorized(|token| {
            self.inner.post_message_with_max_sse_event_size(
                Arc::clone(&uri),
                message.clone(),
                session_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.authorized(|token| {
            let (uri, session_id) = (Arc::clone(&uri), Arc::clone(&session_id));
            self.inner.delete_session(uri, session_id, token, custom_headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<sse_stream::Sse, SseError>>, StreamableHttpError<Self::Error>> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            MAX_MESSAGE,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<sse_stream::Sse, SseError>>, StreamableHttpError<Self::Error>> {
        self.authorized(|token| {
            self.inner.get_stream_with_max_sse_event_size(
                Arc::clone(&uri),
                session_id.clone(),
                last_event_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        })
        .await
    }
}
