//! An HTTP client whose answers are bounded. The client of rmcp bounds the events of a stream, but
//! reads any other answer whole, however long it is.

use std::{collections::HashMap, io, sync::Arc};

use futures_util::{StreamExt, stream, stream::BoxStream};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage},
    transport::{
        auth::WWWAuthenticateParams,
        common::http_header::{
            EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
        },
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
            StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Sse, SseStream};

use super::{
    message_cost::{MAX_MESSAGE, MessageCost},
    nesting::NestingLimiter,
    server_stream::ServerStream,
};

/// Maximum size of an answer that is no message, such as the page of a proxy.
const MAX_ERROR_PAGE: usize = 64 * 1024;
/// Maximum length of such an answer in an error.
const MAX_QUOTED_CHARS: usize = 300;

type Headers = HashMap<HeaderName, HeaderValue>;
/// An error of the transport.
pub(crate) type ExchangeError = StreamableHttpError<HttpExchangeError>;

/// A reason why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpExchangeError {
    /// The request failed. The address is left out, because its query may hold a key.
    #[error("the request failed")]
    Request(#[source] reqwest::Error),
    /// The answer is too large.
    #[error("the answer has more than {} MiB or too many values", MAX_MESSAGE / (1024 * 1024))]
    TooLarge,
}

impl From<reqwest::Error> for HttpExchangeError {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error.without_url())
    }
}

/// The client of one server.
#[derive(Clone)]
pub(crate) struct BoundedClient {
    client: Client,
    stream: Arc<ServerStream>,
}

impl BoundedClient {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, stream: Arc::default() }
    }

    /// Sends a request. An answer that refuses it is an error.
    async fn send(
        &self,
        request: RequestBuilder,
        token: Option<String>,
        session_id: Option<&str>,
        headers: Headers,
    ) -> Result<Response, ExchangeError> {
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let request = match session_id {
            Some(session_id) => request.header(HEADER_SESSION_ID, session_id),
            None => request,
        };
        let request = request.headers(checked(headers)?);
        let answer = request.send().await.map_err(failed)?;
        refusal(&answer).map_or(Ok(answer), Err)
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = HttpExchangeError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, ExchangeError> {
        if session_id.is_some() && is_call(&message) {
            self.stream.settled().await;
        }
        let request = self.client.post(uri.as_ref()).header(ACCEPT, accepted_types()).json(&message);
        let answer = self.send(request, token, session_id.as_deref(), headers).await?;
        let status = answer.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return unsuccessful(answer, &message, session_id.is_some()).await;
        }
        let session = header(answer.headers(), HEADER_SESSION_ID);
        if has_type(&answer, EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(events(answer), session));
        }
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if has_type(&answer, JSON_MIME_TYPE) {
            let body = read_message(answer).await?;
            return match serde_json::from_slice(&body) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
                Err(error) => Err(unexpected(&format!("its JSON is no message ({error})"))),
            };
        }
        if !is_request && read_page(answer).await?.is_empty() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        Err(unexpected("it has neither JSON nor a stream of events"))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), ExchangeError> {
        let answer = self.send(self.client.delete(uri.as_ref()), token, Some(&session_id), headers).await?;
        match answer.status() {
            status if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status => Err(unexpected(&format!("HTTP {status}"))),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, ExchangeError> {
        let request = self.client.get(uri.as_ref()).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        let request = match last_event_id {
            Some(id) => request.header(HEADER_LAST_EVENT_ID, id),
            None => request,
        };
        let answer = self.send(request, token, session_id.as_deref(), headers).await;
        self.stream.note_answer();
        let answer = answer?;
        match answer.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(unexpected(&format!("HTTP {status}"))),
            _ if has_type(&answer, EVENT_STREAM_MIME_TYPE) => Ok(events(answer)),
            _ => Err(StreamableHttpError::UnexpectedContentType(header(answer.headers(), "content-type"))),
        }
    }
}

fn is_call(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::CallToolRequest(_))
}

fn accepted_types() -> String {
    format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}")
}

/// Refuses headers of the configuration that belong to the protocol.
fn checked(headers: Headers) -> Result<HeaderMap, ExchangeError> {
    let reserved = ["accept", HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];
    let is_reserved =
        |name: &HeaderName| reserved.iter().any(|each| name.as_str().eq_ignore_ascii_case(each));
    match headers.keys().find(|name| is_reserved(name)) {
        Some(name) => Err(StreamableHttpError::ReservedHeaderConflict(name.to_string())),
        None => Ok(headers.into_iter().collect()),
    }
}

/// Returns the error of an answer that demands a login, a further scope, or patience.
fn refusal(answer: &Response) -> Option<ExchangeError> {
    let challenge = header(answer.headers(), WWW_AUTHENTICATE.as_str());
    match (answer.status(), challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default())))
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let scope = WWWAuthenticateParams::parse(&challenge, answer.url()).scope;
            let error = InsufficientScopeError::new(challenge, scope);
            Some(StreamableHttpError::InsufficientScope(error))
        }
        (StatusCode::TOO_MANY_REQUESTS, _) => Some(status_error(answer).into()),
        (status, _) if status.is_server_error() && !has_type(answer, JSON_MIME_TYPE) => {
            Some(status_error(answer).into())
        }
        _ => None,
    }
}

/// Reads the message in an answer with an error status, if it has one.
async fn unsuccessful(
    answer: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, ExchangeError> {
    let (status, is_json) = (answer.status(), has_type(&answer, JSON_MIME_TYPE));
    let session = header(answer.headers(), HEADER_SESSION_ID);
    let shown = status_error(&answer);
    let body = read_page(answer).await?;
    let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok().filter(|_| is_json);
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && status != StatusCode::FORBIDDEN
        && !has_session
    {
        // An old server, or a program before it, does not know the request and cannot repeat its
        // number. The answer must reach the hand-shake all the same, which then tries the old way.
        let error = match parsed {
            Some(ServerJsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
        };
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match parsed {
        Some(error @ ServerJsonRpcMessage::Error(_)) if status != StatusCode::FORBIDDEN => {
            Ok(StreamableHttpPostResponse::Json(error, session))
        }
        _ if status.is_server_error() => Err(shown.into()),
        _ => {
            let page: String = String::from_utf8_lossy(&body).chars().take(MAX_QUOTED_CHARS).collect();
            Err(unexpected(&format!("HTTP {status}: {page}")))
        }
    }
}

/// Reads a message.
async fn read_message(answer: Response) -> Result<Vec<u8>, ExchangeError> {
    let mut chunks = answer.bytes_stream();
    let (mut body, mut cost) = (Vec::new(), MessageCost::default());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(failed)?;
        if cost.add(&chunk) {
            return Err(StreamableHttpError::Client(HttpExchangeError::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(NestingLimiter::bounded(body))
}

/// Reads the beginning of an answer that need not be a message.
async fn read_page(answer: Response) -> Result<Vec<u8>, ExchangeError> {
    let mut chunks = answer.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(failed)?);
        if body.len() >= MAX_ERROR_PAGE {
            break;
        }
    }
    Ok(body)
}

/// Returns the events of an answer. It ends with an error at an event that is too large.
fn events(answer: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut size = EventSize::default();
    let chunks = answer.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| io::Error::other(HttpExchangeError::from(error)))?;
        size.add(&chunk).map(|()| chunk)
    });
    // A stream is not read on after its first error.
    let chunks = stream::unfold(Some(chunks.boxed()), |chunks| async move {
        let mut chunks = chunks?;
        let chunk: io::Result<_> = chunks.next().await?;
        let rest = chunk.is_ok().then_some(chunks);
        Some((chunk, rest))
    });
    SseStream::from_bytes_stream(chunks.boxed()).map(|event| event.map(shallow)).boxed()
}

/// Returns an event without what is nested too deep.
fn shallow(mut event: Sse) -> Sse {
    let bounded = event.data.as_deref().and_then(|data| NestingLimiter::default().rewritten(data.as_bytes()));
    if let Some(bounded) = bounded {
        event.data = Some(String::from_utf8_lossy(&bounded).into_owned());
    }
    event
}

/// The size of the event that is being read.
#[derive(Default)]
struct EventSize {
    event: MessageCost,
    line: usize,
}

impl EventSize {
    /// Counts a chunk. An empty line ends an event.
    fn add(&mut self, chunk: &[u8]) -> io::Result<()> {
        for byte in chunk {
            let is_too_large = self.event.add_byte(*byte);
            match byte {
                b'\n' if self.line == 0 => self.event = MessageCost::default(),
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            if is_too_large {
                return Err(io::Error::other(HttpExchangeError::TooLarge));
            }
        }
        Ok(())
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn has_type(answer: &Response, kind: &str) -> bool {
    let found = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let found = found.and_then(|found| found.split(';').next()).unwrap_or_default();
    found.trim().eq_ignore_ascii_case(kind)
}

fn status_error(answer: &Response) -> HttpStatusError {
    HttpStatusError::new(answer.status().as_u16(), header(answer.headers(), RETRY_AFTER.as_str()))
}

fn unexpected(reason: &str) -> ExchangeError {
    StreamableHttpError::UnexpectedServerResponse(reason.to_owned().into())
}

fn failed(error: reqwest::Error) -> ExchangeError {
    StreamableHttpError::Client(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_size_of_one_event_is_bounded() {
        let mut size = EventSize::default();
        let half = vec![b'x'; MAX_MESSAGE / 2];
        for _ in 0..4 {
            size.add(&half).unwrap();
            size.add(b"\r\n\r\n").unwrap();
        }
        size.add(&half).unwrap();
        size.add(b"\n").unwrap();
        assert!(size.add(&half).is_err(), "a line alone does not end an event");
    }
}
