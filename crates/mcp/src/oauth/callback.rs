//! The address on this machine to which the browser returns after a login.

use std::{convert::Infallible, io, net::Ipv4Addr, pin::pin, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, CONTENT_TYPE, REFERRER_POLICY},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// Path of the address.
const PATH: &str = "/callback";
/// Maximum time of one connection. A browser sends its request at once.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of connections at a time. Further ones wait.
const MAX_CONNECTIONS: usize = 16;
/// Maximum size of the head of a request.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// Listens on a port of this machine for the redirect of one login.
#[derive(Debug)]
pub(crate) struct CallbackListener {
    listener: TcpListener,
    address: Url,
}

/// The parameters with which the authorization server sends the browser back.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedirectParameters {
    pub(crate) state: String,
    pub(crate) code: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) error: Option<String>,
}

impl CallbackListener {
    /// Starts to listen on a port; 0 stands for any free one.
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        let address = Url::parse(&format!("http://127.0.0.1:{port}{PATH}"));
        Ok(Self { listener, address: address.map_err(io::Error::other)? })
    }

    /// Returns the redirect address of the login.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// Waits for a redirect with the state of this login. All other requests are refused, so that
    /// another program or page cannot end the login.
    pub(crate) async fn receive(&self, state: &str) -> RedirectParameters {
        // Room for one: the first redirect with the right state counts.
        let (sender, mut receiver) = mpsc::channel(1);
        let mut connections = FuturesUnordered::new();
        loop {
            let has_room = connections.len() < MAX_CONNECTIONS;
            tokio::select! {
                accepted = self.listener.accept(), if has_room => {
                    if let Ok((stream, _)) = accepted {
                        connections.push(self.answer(stream, state, sender.clone()));
                    }
                }
                Some(()) = connections.next() => {
                    // The browser has its page before the redirect is used.
                    if let Ok(parameters) = receiver.try_recv() {
                        return parameters;
                    }
                }
            }
        }
    }

    /// Reads the address that a person has copied from the browser.
    pub(crate) fn parse_pasted(&self, pasted: &str, state: &str) -> Option<RedirectParameters> {
        let url = Url::parse(pasted.trim()).ok()?;
        let is_ours = url.origin() == self.address.origin() && url.path() == PATH;
        RedirectParameters::parse(&url).filter(|parameters| is_ours && parameters.state == state)
    }

    async fn answer(&self, stream: TcpStream, state: &str, sender: mpsc::Sender<RedirectParameters>) {
        let service = service_fn(|request: Request<Incoming>| {
            let found = self.parse_request(&request, state);
            let is_found = found.is_some();
            if let Some(parameters) = found {
                // A second redirect finds the place taken and is dropped.
                let _ = sender.try_send(parameters);
            }
            async move { Ok::<_, Infallible>(page(is_found)) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(CONNECTION_TIMEOUT)
            .max_buf_size(MAX_HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        // A browser that goes away has its request counted or not; both are handled.
        let _ = tokio::time::timeout(CONNECTION_TIMEOUT, pin!(connection)).await;
    }

    fn parse_request<B>(&self, request: &Request<B>, state: &str) -> Option<RedirectParameters> {
        let url = self.address.join(request.uri().path_and_query()?.as_str()).ok()?;
        let is_ours = request.method() == Method::GET && url.path() == PATH;
        let parameters = RedirectParameters::parse(&url).filter(|_| is_ours)?;
        (url.origin() == self.address.origin() && parameters.state == state).then_some(parameters)
    }
}

impl RedirectParameters {
    /// Reads the query. A parameter that occurs twice makes it invalid.
    fn parse(url: &Url) -> Option<Self> {
        let once = |name: &str| {
            let mut values = url.query_pairs().filter(|(key, _)| key == name);
            let first = values.next().map(|(_, value)| value.into_owned());
            if values.next().is_some() { Err(()) } else { Ok(first) }
        };
        let (code, error) = (once("code").ok()?, once("error").ok()?);
        if code.is_some() == error.is_some() {
            return None;
        }
        Some(Self { state: once("state").ok()??, code, issuer: once("iss").ok()?, error })
    }
}

fn page(is_found: bool) -> Response<String> {
    let (status, text) = if is_found {
        (StatusCode::OK, "Windlass has received the answer. You can close this page.\n")
    } else {
        (StatusCode::NOT_FOUND, "This is not the page of a running login.\n")
    };
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, hyper::header::HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn get(listener: &CallbackListener, path: &str) -> String {
        let port = listener.address().port().unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_a_redirect_with_the_right_state_ends_the_wait() {
        let listener = CallbackListener::bind(0).await.unwrap();
        // A connection that says nothing must not block the others.
        let port = listener.address().port().unwrap();
        let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let requests = async {
            for wrong in [
                "/favicon.ico",
                "/callback",
                "/callback?code=a&state=other",
                "/callback?code=a&code=b&state=right",
                "/callback?code=a&error=b&state=right",
                "//evil.example/callback?code=a&state=right",
                "/other?code=a&state=right",
            ] {
                assert!(get(&listener, wrong).await.starts_with("HTTP/1.1 404"), "{wrong}");
            }
            get(&listener, "/callback?code=c%20d&state=right&iss=https%3A%2F%2Fa").await
        };
        let (received, answer) = tokio::join!(listener.receive("right"), requests);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(received.code.as_deref(), Some("c d"));
        assert_eq!(received.issuer.as_deref(), Some("https://a"));
    }

    #[tokio::test]
    async fn a_pasted_address_must_be_the_redirect_of_this_login() {
        let listener = CallbackListener::bind(0).await.unwrap();
        let address = listener.address().to_string();
        let pasted = format!(" {address}?code=a&state=right\n");
        assert!(listener.parse_pasted(&pasted, "right").is_some());
        assert!(listener.parse_pasted(&pasted, "other").is_none());
        assert!(listener.parse_pasted("http://127.0.0.1:1/callback?code=a&state=right", "right").is_none());
        assert!(listener.parse_pasted("a", "right").is_none());
    }
}
