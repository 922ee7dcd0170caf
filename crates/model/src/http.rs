//! HTTP client for one server, with a keep-alive connection. It sends requests and separates event
//! streams from all other responses. A request is sent once; the turn loop decides about retries.

use std::{error::Error, io, net::IpAddr, sync::Arc, time::Duration};

use reqwest::{
    Certificate, Client, Request, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use rustls::{ClientConfig, RootCertStore, crypto};
use tokio::time::{Instant, timeout};
use windlass_contract::{id::ThreadId, model::ModelError};

use crate::{Provider, WireApi};

mod certificates;
mod error_response;
mod events;

pub(crate) use events::EventStream;

/// Maximum time for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum idle time of a pooled connection. Many servers and routers drop idle connections soon
/// after, some without notice; a request over such a connection fails.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum idle time for `http:`, where a new connection is cheap: llama.cpp and Node.js close
/// theirs after 5 s.
const PLAIN_POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Version of the Messages API. Servers refuse requests without it.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Time limits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamTimeouts {
    /// Maximum time without an event.
    pub(crate) idle: Duration,
    /// Maximum time for the whole answer.
    pub(crate) whole: Duration,
}

/// The endpoint of a provider. It has no `Debug`, because its address and headers hold keys.
pub(crate) struct HttpEndpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    timeouts: StreamTimeouts,
    names: EndpointNames,
}

/// Names that error messages use.
#[derive(Debug, Clone)]
struct EndpointNames {
    /// Id of the provider.
    id: String,
    /// The URL without its query, which may hold a key.
    url: String,
    /// Name of the variable or setting that holds the key.
    key: String,
}

impl HttpEndpoint {
    /// Builds the client. Connects to nothing.
    pub(crate) fn new(
        id: &str,
        provider: &Provider,
        path: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let unusable = |problem: String| ModelError::Provider { provider: id.to_owned(), problem };
        let url = endpoint(id, provider, path).map_err(unusable)?;
        let mut shown = url.clone();
        shown.set_query(None);
        let key = match (provider.key_variable(), &provider.experimental_bearer_token) {
            (Some(variable), _) => variable.to_owned(),
            (None, Some(_)) => format!("model_providers.{id}.experimental_bearer_token"),
            (None, None) => format!("model_providers.{id}.env_key"),
        };
        Ok(Self {
            client: client(&url, certificates::load(provider).map_err(unusable)?)
                .map_err(|error| unusable(certificates::explain(root_cause(error.as_ref()))))?,
            headers: headers(id, provider, env)?,
            timeouts: provider.timeouts(),
            names: EndpointNames { id: id.to_owned(), url: shown.into(), key },
            url,
        })
    }

    /// Sends a body once and waits until the answer begins.
    pub(crate) async fn post(&self, thread: &ThreadId, body: String) -> Result<EventStream, ModelError> {
        let request = self.request(thread, body)?;
        let begun = Instant::now();
        let idle = self.timeouts.idle;
        let sent = timeout(idle, self.client.execute(request)).await;
        let response = sent.map_err(|_| ModelError::Idle { after: idle, begun: false })?;
        let response = response.map_err(|error| self.unreachable(error))?;
        error_response::open_event_stream(response, begun, self.timeouts, &self.names).await
    }

    /// Requests a document. The limit is for the whole answer.
    pub(crate) async fn get(&self, max_bytes: usize, limit: Duration) -> Result<Vec<u8>, ModelError> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let answer = async {
            let sent = self.client.get(self.url.clone()).headers(headers).send().await;
            let response = sent.map_err(|error| self.unreachable(error))?;
            error_response::whole_body(response, max_bytes, limit, &self.names).await
        };
        timeout(limit, answer).await.map_err(|_| ModelError::Idle { after: limit, begun: false })?
    }

    fn request(&self, thread: &ThreadId, body: String) -> Result<Request, ModelError> {
        let mut headers = self.headers.clone();
        if let Ok(thread) = HeaderValue::from_str(thread.as_str()) {
            headers.entry("session_id").or_insert(thread);
        }
        let request = self.client.post(self.url.clone()).headers(headers).body(body).build();
        request.map_err(|error| self.unreachable(error))
    }

    /// Returns the error for a failed connection. A TLS error is permanent: a certificate that is
    /// rejected now is rejected on a retry, too.
    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let EndpointNames { id, url, .. } = &self.names;
        if is_about_tls(&error) {
            let problem = certificates::explain(format!("no secure connection to {url}: {}", cause(error)));
            return ModelError::Provider { provider: id.clone(), problem };
        }
        ModelError::Unreachable { url: url.clone(), cause: cause(error) }
    }
}

fn endpoint(id: &str, provider: &Provider, path: &str) -> Result<Url, String> {
    let base = provider.base_url.as_deref().ok_or_else(|| {
        let azure = ", such as `https://NAME.openai.azure.com/openai/v1`";
        let example = if provider.is_azure() { azure } else { "" };
        format!("it has no `base_url`; set `model_providers.{id}.base_url`{example}")
    })?;
    let mut url = Url::parse(base).map_err(|error| format!("`base_url` is not an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`base_url` begins with `{}:`; use http or https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`base_url` holds a password; use `env_key` or `env_http_headers`".to_owned());
    }
    let segments = url.path_segments_mut();
    segments.map_err(|()| "`base_url` takes no path")?.pop_if_empty().extend(path.split('/'));
    if !provider.query_params.is_empty() {
        let pairs = provider.query_params.iter().map(|(name, value)| (name, value.reveal()));
        url.query_pairs_mut().extend_pairs(pairs);
    }
    Ok(url)
}

fn headers(
    id: &str,
    provider: &Provider,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<HeaderMap, ModelError> {
    let bad = |what: &str| ModelError::Provider {
        provider: id.to_owned(),
        problem: format!("{what} has characters a header cannot carry"),
    };
    let set = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let secret = |what: &str, value: &str| {
        let mut value = HeaderValue::from_str(value).map_err(|_| bad(what))?;
        value.set_sensitive(true);
        Ok::<_, ModelError>(value)
    };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let is_messages = provider.wire_api == WireApi::Messages;
    if is_messages {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    match key(provider, &set)? {
        Some(key) if is_messages => drop(headers.insert("x-api-key", secret("the API key", &key)?)),
        Some(key) => {
            drop(headers.insert(AUTHORIZATION, secret("the API key", &format!("Bearer {key}"))?));
        }
        None => {}
    }
    let given = provider.http_headers.iter().map(|(name, value)| (name, Some(value.reveal().to_owned())));
    let from_env = provider.env_http_headers.iter().map(|(name, variable)| (name, set(variable)));
    for (name, value) in given.chain(from_env) {
        if let Some(value) = value {
            let value = secret(&format!("header `{name}`"), &value)?;
            headers
                .insert(HeaderName::try_from(name).map_err(|_| bad(&format!("the name `{name}`")))?, value);
        }
    }
    Ok(headers)
}

/// Returns the key to send, if any. A required key that is missing is an error before anything is
/// sent.
fn key(provider: &Provider, set: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, ModelError> {
    let token = provider.experimental_bearer_token.as_ref().map(|token| token.reveal().to_owned());
    let Some(variable) = provider.key_variable() else { return Ok(token) };
    let missing = || ModelError::MissingKey {
        variable: variable.to_owned(),
        hint: provider.env_key_instructions.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default(),
    };
    set(variable).or(token).ok_or_else(missing).map(Some)
}

/// Builds the HTTP client. For `http:` it gets an empty root store, because the default one reads
/// and parses the system's bundle (8 ms measured in a comparable tool). A proxy must then be
/// `http:`, too. Redirects are not followed: they could send the key to a server that is not
/// configured.
fn client(url: &Url, authorities: Vec<Certificate>) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let is_tls = url.scheme() == "https";
    let builder = Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(if is_tls { POOL_IDLE_TIMEOUT } else { PLAIN_POOL_IDLE_TIMEOUT })
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none());
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    let builder = if is_tls {
        // If another thread was faster, its provider is equivalent.
        let _ = crypto::ring::default_provider().install_default();
        builder.tls_certs_merge(authorities)
    } else {
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        builder.tls_backend_preconfigured(config)
    };
    Ok(builder.build()?)
}

/// Returns true if a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the cause of an error without the URL, whose query may hold a key.
fn cause(error: reqwest::Error) -> String {
    root_cause(&error.without_url())
}

fn is_about_tls(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // `source` of an I/O error skips the error inside it, so look at that first.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    false
}

/// Returns the innermost error; the outer ones only say "error sending request".
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    crate::failure::one_line(&cause.to_string())
}

#[cfg(test)]
mod tests;
