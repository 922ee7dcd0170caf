//! Turns responses that are not an event stream into errors.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::{
    Response, StatusCode, Url,
    header::{CONTENT_TYPE, DATE, HeaderMap, LOCATION, RETRY_AFTER},
};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use windlass_contract::{model::ModelError, wording::shortened};

use super::{EndpointNames, EventStream, StreamTimeouts, cause};
use crate::failure::{ServerFailure, one_line};

/// Maximum number of bytes read from such a response.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Maximum length of a quote from a page.
const MAX_QUOTE_CHARS: usize = 60;

/// Returns the event stream of a response, or the error that describes the response.
pub(super) async fn open_event_stream(
    mut response: Response,
    begun: Instant,
    timeouts: StreamTimeouts,
    names: &EndpointNames,
) -> Result<EventStream, ModelError> {
    let idle = timeouts.idle;
    if response.status().is_success() && is_event_stream(response.headers()) {
        return EventStream::new(response, &[], begun, timeouts);
    }
    // Some servers stream with another content type. The first byte decides: pages and JSON begin
    // with one of these, events do not.
    let mut body = Vec::new();
    read(&mut response, &mut body, 1, idle).await?;
    let begins = body.trim_ascii_start().first();
    if response.status().is_success() && begins.is_some_and(|byte| !b"<{[".contains(byte)) {
        return EventStream::new(response, &body, begun, timeouts);
    }
    read(&mut response, &mut body, MAX_BODY_BYTES, idle).await?;
    Err(refusal(response.status(), response.headers(), &body, names))
}

/// Returns the body of a response up to a size, or the error that describes the response.
pub(super) async fn whole_body(
    mut response: Response,
    max_bytes: usize,
    idle: Duration,
    names: &EndpointNames,
) -> Result<Vec<u8>, ModelError> {
    let is_success = response.status().is_success();
    let mut body = Vec::new();
    read(&mut response, &mut body, if is_success { max_bytes } else { MAX_BODY_BYTES }, idle).await?;
    if is_success { Ok(body) } else { Err(refusal(response.status(), response.headers(), &body, names)) }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// Reads until there are `enough` bytes or the body ends. A truncated body is still useful.
async fn read(
    response: &mut Response,
    body: &mut Vec<u8>,
    enough: usize,
    idle: Duration,
) -> Result<(), ModelError> {
    let all = async {
        while body.len() < enough {
            match response.chunk().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(error = cause(error), "the answer broke off");
                    break;
                }
            }
        }
    };
    let read = timeout(idle, all).await.map_err(|_| ModelError::Idle { after: idle, begun: false });
    body.truncate(enough.max(MAX_BODY_BYTES));
    read
}

fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8], names: &EndpointNames) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let url = names.url.clone();
    let json = serde_json::from_str::<Value>(text).ok();
    let failure = json.as_ref().and_then(ServerFailure::find);
    let page = text.starts_with('<').then(|| title(text));
    let code = status.as_u16();
    match (code, failure, page) {
        (200..=299, Some(failure), _) => failure.into_stream_error(),
        (200..=299, None, Some(page)) => {
            ModelError::NotAStream { url, found: format!("the web page {page}") }
        }
        (200..=299, None, None) => ModelError::NotAStream { url, found: describe(text, json.is_some()) },
        (300..=399, ..) => {
            let to = destination(headers, &url).map(|to| format!(" to {to}")).unwrap_or_default();
            ModelError::NotAStream { url, found: format!("a redirect{to} (HTTP {code})") }
        }
        (401 | 403, failure, page) => {
            let message = failure
                .map(|failure| failure.message)
                .or(page)
                .unwrap_or_else(|| text_or_reason(text, status));
            ModelError::Unauthorized { url, status: code, message, variable: names.key.clone() }
        }
        // Not for transient statuses: gateways send pages with those.
        (400..=407 | 410..=424 | 426..=428 | 430..=499, None, Some(page)) => {
            ModelError::NotAStream { url, found: format!("HTTP {code} and the web page {page}") }
        }
        // Usually a wrong URL or `wire_api`, unless the server reports an unknown model.
        (404 | 405, failure, _) if !text.to_ascii_lowercase().contains("model") => {
            let message = failure.map_or_else(|| text_or_reason(text, status), |failure| failure.message);
            ModelError::NotAStream { url, found: format!("HTTP {code} ({message})") }
        }
        (_, failure, page) => {
            let plain = || ServerFailure::from_message(page.unwrap_or_else(|| text_or_reason(text, status)));
            failure.unwrap_or_else(plain).into_status_error(&url, code, retry_after(headers))
        }
    }
}

/// Returns the target of a redirect without query, fragment and credentials: servers copy the query
/// of the request, which may hold a key.
fn destination(headers: &HeaderMap, from: &str) -> Option<String> {
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let mut to = Url::parse(from).ok()?.join(location).ok()?;
    to.set_query(None);
    to.set_fragment(None);
    to.set_username("").ok()?;
    to.set_password(None).ok()?;
    Some(one_line(to.as_str()))
}

/// Returns the text of a response, or the reason phrase of its status.
fn text_or_reason(text: &str, status: StatusCode) -> String {
    match one_line(text) {
        line if line.is_empty() => status.canonical_reason().unwrap_or("no explanation").to_owned(),
        line => line,
    }
}

fn describe(text: &str, is_json: bool) -> String {
    match (text.is_empty(), is_json) {
        (true, _) => "nothing".to_owned(),
        (_, true) => "one JSON document".to_owned(),
        _ => quote(text),
    }
}

/// Returns the title of a page, or its first words.
fn title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let begin = lower.find("<title").and_then(|at| Some(at + lower[at..].find('>')? + 1));
    let inside = begin.and_then(|begin| Some(&page[begin..begin + lower[begin..].find('<')?]));
    match inside.map(str::trim) {
        Some(title) if !title.is_empty() => quote(title),
        _ => quote(&without_tags(page)),
    }
}

fn without_tags(page: &str) -> String {
    page.split('<')
        .map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quote(text: &str) -> String {
    format!("“{}”", shortened(&one_line(text), MAX_QUOTE_CHARS))
}

/// Returns the delay that the server asks for: milliseconds, seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let given = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = given.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // Prefer the server's clock: ours may be wrong.
    let now = text(DATE.as_str()).and_then(date).unwrap_or_else(SystemTime::now);
    Some(date(given)?.duration_since(now).unwrap_or_default())
}

fn date(text: &str) -> Option<SystemTime> {
    let at = DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(at.as_second()).ok()?))
}

#[cfg(test)]
mod tests {
    use windlass_contract::model::Retry;

    use super::*;

    fn names() -> EndpointNames {
        EndpointNames { id: "x".to_owned(), url: "http://x/v1/responses".to_owned(), key: "KEY".to_owned() }
    }

    fn message(status: u16, body: &str) -> String {
        refusal(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes(), &names())
            .to_string()
    }

    #[test]
    fn each_answer_becomes_one_line_that_names_the_cause() {
        let html = "<!doctype html><HTML><Title>\n Welcome to nginx! </Title></HTML>";
        let rows = [
            (
                200,
                html,
                "http://x/v1/responses did not answer with an event stream but with the web page “Welcome to nginx!”; is `base_url` right, and `wire_api`?",
            ),
            (
                200,
                "<p>Hello <b>there</b>",
                "http://x/v1/responses did not answer with an event stream but with the web page “Hello there”; is `base_url` right, and `wire_api`?",
            ),
            (
                200,
                r#"{"id":"r1","output":[]}"#,
                "http://x/v1/responses did not answer with an event stream but with one JSON document; is `base_url` right, and `wire_api`?",
            ),
            (
                200,
                "",
                "http://x/v1/responses did not answer with an event stream but with nothing; is `base_url` right, and `wire_api`?",
            ),
            (
                200,
                r#"{"error":"out of memory"}"#,
                "the model's server failed: out of memory; try again later, or check the server's log",
            ),
            (
                404,
                html,
                "http://x/v1/responses did not answer with an event stream but with HTTP 404 and the web page “Welcome to nginx!”; is `base_url` right, and `wire_api`?",
            ),
            (
                401,
                r#"{"error":{"message":"bad\nkey"}}"#,
                "http://x/v1/responses refused the API key (HTTP 401): bad key; check `KEY`",
            ),
            (403, "", "http://x/v1/responses refused the API key (HTTP 403): Forbidden; check `KEY`"),
            (
                400,
                r#"{"error":{"message":"bad image"}}"#,
                "the server rejected the request (HTTP 400): bad image; check the input and the provider's settings",
            ),
            (402, "{}", "the account's quota is used up: {}; check its plan and billing"),
            (
                404,
                r#"{"error":{"message":"no model"}}"#,
                "http://x/v1/responses answered HTTP 404: no model; check the model's name and the provider's settings",
            ),
            (
                429,
                r#"{"error":{"message":"slow down"}}"#,
                "the server is limiting requests (HTTP 429): slow down; try again later",
            ),
            (
                429,
                r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#,
                "the account's quota is used up: pay; check its plan and billing",
            ),
            (
                502,
                html,
                "http://x/v1/responses answered HTTP 502: “Welcome to nginx!”; try again later, or check the server's log",
            ),
            (
                500,
                "",
                "http://x/v1/responses answered HTTP 500: Internal Server Error; try again later, or check the server's log",
            ),
            (
                599,
                "",
                "http://x/v1/responses answered HTTP 599: no explanation; try again later, or check the server's log",
            ),
            (
                408,
                html,
                "http://x/v1/responses answered HTTP 408: “Welcome to nginx!”; try again later, or check the server's log",
            ),
            (
                409,
                r#"{"error":{"message":"busy"}}"#,
                "http://x/v1/responses answered HTTP 409: busy; try again later, or check the server's log",
            ),
            (
                425,
                "",
                "http://x/v1/responses answered HTTP 425: Too Early; try again later, or check the server's log",
            ),
            (
                308,
                "",
                "http://x/v1/responses did not answer with an event stream but with a redirect (HTTP 308); is `base_url` right, and `wire_api`?",
            ),
        ];
        for (status, body, expected) in rows {
            assert_eq!(message(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_redirect_shows_where_it_leads_and_no_key() {
        let rows = [
            ("https://y.example/v2/responses?api-key=sk-1#sk-2", " to https://y.example/v2/responses"),
            ("https://me:sk-1@y.example/v2", " to https://y.example/v2"),
            ("//sk-1@y.example", " to http://y.example/"),
            ("/login?key=sk-1", " to http://x/login"),
            ("?key=sk-1", " to http://x/v1/responses"),
            ("mailto:sk-1@y.example", ""),
            ("http://[sk-1", ""),
        ];
        for (location, to) in rows {
            let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
            let error = refusal(StatusCode::TEMPORARY_REDIRECT, &headers, b"", &names()).to_string();
            assert!(error.contains(&format!("but with a redirect{to} (HTTP 307);")), "{location}: {error}");
        }
    }

    #[test]
    fn the_servers_delay_comes_with_the_error() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().unwrap())]);
        for status in [408, 409, 425, 429, 500, 503, 529] {
            let error = refusal(StatusCode::from_u16(status).unwrap(), &headers, b"", &names());
            assert_eq!(error.retry(), Retry::After(Duration::from_secs(7)), "{error}");
        }
    }

    #[test]
    fn a_delay_is_read_in_all_three_notations() {
        let after = |name: &'static str, value: &str| {
            retry_after(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]))
        };
        assert_eq!(after("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(after("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(after("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let far = after("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        assert!(far > Duration::from_hours(8760));
        let skewed =
            [("date", "Wed, 21 Oct 2015 07:27:48 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")];
        let skewed = skewed.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        assert_eq!(retry_after(&HeaderMap::from_iter(skewed)), Some(Duration::from_secs(12)));
        for nonsense in ["soon", "-1", "1e999", "NaN", ""] {
            assert_eq!(after("retry-after", nonsense), None, "{nonsense}");
        }
    }
}
