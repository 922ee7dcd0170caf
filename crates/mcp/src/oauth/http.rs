//! The HTTP client of every OAuth request: encrypted or on this machine, bounded in time and size,
//! without redirects.
//!
//! The addresses come from documents of servers. A server elsewhere must not make this machine
//! send requests to itself.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt;
use hyper::http;
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

/// Maximum size of an answer. Metadata and tokens are a few KiB.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024;

type RequestError = Box<dyn Error + Send + Sync>;

/// Sends the OAuth requests for one server.
#[derive(Debug, Clone)]
pub(crate) struct GuardedClient {
    client: Client,
    is_local: bool,
}

/// The reason why a request was not sent or its answer was dropped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefusedRequest {
    #[error("`{0}` is refused: OAuth needs `https`, or `http` on this machine")]
    Address(String),
    #[error("the answer is larger than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
}

impl GuardedClient {
    /// Creates the client for a server. `time_limit` holds for each request.
    pub(crate) fn new(server: &Url, time_limit: Duration) -> Result<Self, reqwest::Error> {
        // If another thread was faster, its provider is equivalent.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let is_local = is_loopback(server);
        let builder = Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .timeout(time_limit)
            .redirect(Policy::none())
            .retry(reqwest::retry::never());
        let builder =
            if is_local { builder.no_proxy() } else { builder.dns_resolver(Arc::new(RemoteAddresses)) };
        Ok(Self { client: builder.build()?, is_local })
    }

    /// Returns an error unless OAuth may use an address.
    pub(crate) fn check(&self, url: &Url) -> Result<(), RefusedRequest> {
        let is_safe = match url.scheme() {
            "https" => self.is_local || !is_forbidden_literal(url),
            "http" => self.is_local && is_loopback(url),
            _ => false,
        };
        let has_login = !url.username().is_empty() || url.password().is_some();
        if is_safe && !has_login && url.has_host() {
            return Ok(());
        }
        Err(RefusedRequest::Address(origin_text(url)))
    }

    /// Sends one request and reads its bounded answer.
    pub(crate) async fn send(
        &self,
        request: reqwest::Request,
    ) -> Result<http::Response<Vec<u8>>, RequestError> {
        self.check(request.url())?;
        let answer = self.client.execute(request).await.map_err(reqwest::Error::without_url)?;
        let mut builder = http::Response::builder().status(answer.status()).version(answer.version());
        for (name, value) in answer.headers() {
            builder = builder.header(name, value);
        }
        let mut body = Vec::new();
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(reqwest::Error::without_url)?;
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(RefusedRequest::TooLarge.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(builder.body(body)?)
    }

    /// Posts a form, with the secret of the client if it has one. Returns the status of the answer.
    pub(crate) async fn post_form(
        &self,
        url: Url,
        fields: &[(&str, &str)],
        basic: Option<(&str, &str)>,
    ) -> Result<http::StatusCode, RequestError> {
        let body = Url::parse_with_params("http://form", fields)?;
        let request = self
            .client
            .post(url)
            .header(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body.query().unwrap_or_default().to_owned());
        let request = match basic {
            Some((user, secret)) => request.basic_auth(user, Some(secret)),
            None => request,
        };
        Ok(self.send(request.build()?).await?.status())
    }
}

impl OAuthHttpClient for GuardedClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move { self.send(reqwest::Request::try_from(request.request)?).await })
    }
}

/// Resolves names for servers elsewhere. Private addresses stay possible, because companies run
/// their servers there.
struct RemoteAddresses;

impl Resolve for RemoteAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|address| !is_forbidden(address.ip())).collect();
            if allowed.is_empty() {
                let reason = "the name leads to this machine or to no usable address";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Returns true if a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    literal(url).map_or(url.host_str() == Some("localhost"), |address| address.is_loopback())
}

/// Returns the scheme, host and port of a URL. Its other parts may hold secrets.
pub(crate) fn origin_text(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

fn is_forbidden_literal(url: &Url) -> bool {
    literal(url).map_or(url.host_str() == Some("localhost"), is_forbidden)
}

/// Returns true for this machine, and for link-local addresses, which serve the credentials of
/// cloud machines.
fn is_forbidden(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4.is_multicast(),
        IpAddr::V6(v6) => {
            v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified() || v6.is_multicast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(server: &str, url: &str) -> bool {
        let client = GuardedClient::new(&Url::parse(server).unwrap(), Duration::from_secs(1)).unwrap();
        client.check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn a_server_elsewhere_cannot_point_to_this_machine_or_to_plain_http() {
        let server = "https://mcp.example.com/mcp";
        assert!(is_allowed(server, "https://login.example.com/token"));
        assert!(is_allowed(server, "https://10.0.0.9/token"));
        for url in [
            "http://login.example.com/token",
            "https://127.0.0.1/token",
            "https://[::1]/token",
            "https://[::ffff:127.0.0.1]/token",
            "https://localhost/token",
            "https://169.254.169.254/latest",
            "http://127.0.0.1/token",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://user:password@login.example.com/",
        ] {
            assert!(!is_allowed(server, url), "{url}");
        }
    }

    #[test]
    fn a_server_on_this_machine_may_use_plain_http_on_this_machine_only() {
        let server = "http://127.0.0.1:3000/mcp";
        assert!(is_allowed(server, "http://localhost:4000/token"));
        assert!(is_allowed(server, "https://login.example.com/token"));
        assert!(!is_allowed(server, "http://login.example.com/token"));
    }
}
