//! The client of a model, independent of the provider.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, Item, ToolSpec, id::ThreadId, item::Cached};

/// Sends prompts to one model. Implemented by `model` (and by fakes in tests), called by the turn
/// loop.
pub trait ModelClient: Send + Sync {
    /// Returns the model's name and its limits on retries.
    fn info(&self) -> &ModelInfo;

    /// Sends a prompt once. Returns an answer that has begun, or the reason that none did. The
    /// caller decides whether to try again (see [`ModelError::retry`]). Dropping the future or the
    /// stream ends the request.
    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>>;
}

/// An answer as it arrives. Each call in it has an id that is not blank and that no earlier call of
/// the history has. Outputs are paired with calls by these ids.
pub trait ModelStream: Send {
    /// Returns the next event; `None` after [`ModelEvent::Completed`] or an error.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>>;
}

/// The model, its provider and its limits on retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The configured provider.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// Wire protocol.
    pub wire: &'static str,
    /// Maximum number of times a request is sent again because the answer did not begin.
    pub request_retries: u32,
    /// Maximum number of times an answer is requested again because it broke off.
    pub stream_retries: u32,
    /// Maximum time spent on further tries while the server does not answer.
    pub retry_budget: Duration,
}

impl ModelInfo {
    /// Returns true if a model answers that can be asked anything. Rules and scripts answer only
    /// what they were written for.
    pub fn answers_questions(&self) -> bool {
        !matches!(self.wire, "builtin" | "rules" | "scripted")
    }
}

/// Everything the model receives in one request.
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    /// Id of the conversation. Servers use it to find their cache.
    pub thread: &'a ThreadId,
    /// Standing instructions.
    pub instructions: &'a str,
    /// The conversation so far. Items are only appended.
    pub history: &'a [Cached<Item>],
    /// The tools that are offered, in a fixed order.
    pub tools: &'a Cached<Vec<ToolSpec>>,
    /// True if the model may request several calls at once.
    pub parallel_calls: bool,
    /// JSON Schema of the final answer.
    pub output_schema: Option<&'a Value>,
}

/// A step of an answer.
#[derive(Debug, Clone)]
pub enum ModelEvent {
    /// A piece of the answer's text.
    TextDelta(String),
    /// A piece of reasoning.
    ReasoningDelta(String),
    /// A piece of a call's arguments. It shows progress; nothing can be run yet.
    CallDelta(String),
    /// A complete item. A call among them may be run at once; a call that was cut off is never
    /// sent.
    Item(Item),
    /// The answer is complete.
    Completed {
        /// Tokens used, if the server reports them.
        usage: Option<Usage>,
        /// State in which the answer leaves the request.
        finish: Finish,
    },
    /// A notice for the user that does not stop the turn.
    Notice(String),
}

/// State in which a complete answer leaves the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Nothing is left: it is the final answer, or calls precede it.
    Done,
    /// The server wants to continue although no tool was called.
    More,
    /// The request is not fulfilled: the model did not do it, cannot, or must know more first.
    Declined,
}

/// Tokens that answers used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Those of them that were in the server's cache.
    pub cached_input_tokens: u64,
    /// Those of them that the server put into its cache, if it reports that.
    #[serde(default)]
    pub cache_write_input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Those of them that are reasoning.
    pub reasoning_output_tokens: u64,
}

impl Usage {
    /// Returns the usage since an earlier one of the same count.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_sub(earlier.cached_input_tokens),
            cache_write_input_tokens: self
                .cache_write_input_tokens
                .saturating_sub(earlier.cache_write_input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            reasoning_output_tokens: self
                .reasoning_output_tokens
                .saturating_sub(earlier.reasoning_output_tokens),
        }
    }

    /// Returns the tokens read and written.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(more.cached_input_tokens);
        self.cache_write_input_tokens =
            self.cache_write_input_tokens.saturating_add(more.cache_write_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.reasoning_output_tokens =
            self.reasoning_output_tokens.saturating_add(more.reasoning_output_tokens);
    }
}

/// Reason that a model did not answer. Each message is one line that names the cause and the
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The environment variable of the API key is not set.
    #[error("no API key: set the environment variable `{variable}`{hint}")]
    MissingKey {
        /// The variable.
        variable: String,
        /// Further advice, from the provider's configuration.
        hint: String,
    },
    /// The configuration of the provider cannot work.
    #[error("provider `{provider}` cannot be used: {problem}")]
    Provider {
        /// The provider.
        provider: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// The server could not be reached.
    #[error("cannot reach {url}: {cause}; is the server running, and is `base_url` right?")]
    Unreachable {
        /// URL of the server.
        url: String,
        /// Cause of the failure.
        cause: String,
    },
    /// The server rejects the credentials.
    #[error("{url} refused the API key (HTTP {status}): {message}; check `{variable}`")]
    Unauthorized {
        /// URL of the server.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Message of the server.
        message: String,
        /// Environment variable that holds the key.
        variable: String,
    },
    /// The server limits the rate of requests.
    #[error("the server is limiting requests (HTTP 429): {message}; {}", later(*.retry_after))]
    RateLimited {
        /// Message of the server.
        message: String,
        /// Delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The quota of the account is used up.
    #[error("the account's quota is used up: {message}; check its plan and billing")]
    QuotaExceeded {
        /// Message of the server.
        message: String,
    },
    /// The conversation exceeds the context window.
    #[error(
        "the request is longer than the model's context window{}; `windlass context` shows what fills it",
        .window.map(|window| format!(" of {window} tokens")).unwrap_or_default()
    )]
    ContextWindowExceeded {
        /// The context window in tokens, if the server names it.
        window: Option<u64>,
        /// Tokens of the request, if the server names them.
        requested: Option<u64>,
    },
    /// The server is overloaded.
    #[error("the model's server is overloaded: {message}; {}", later(*.retry_after))]
    Overloaded {
        /// Message of the server.
        message: String,
        /// Delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The server rejects the request.
    #[error(
        "the server rejected the request (HTTP {status}): {message}; check the input and the provider's settings"
    )]
    InvalidRequest {
        /// HTTP status.
        status: u16,
        /// Message of the server.
        message: String,
    },
    /// Any other HTTP status.
    #[error("{url} answered HTTP {status}: {message}; {}", advice(*.status, *.retry_after))]
    Status {
        /// URL of the server.
        url: String,
        /// HTTP status.
        status: u16,
        /// Message of the server.
        message: String,
        /// Delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The server's answer is not a stream of events.
    #[error(
        "{url} did not answer with an event stream but with {found}; is `base_url` right, and `wire_api`?"
    )]
    NotAStream {
        /// URL of the server.
        url: String,
        /// Description of the answer.
        found: String,
    },
    /// The server reported a failure inside the stream.
    #[error("the model's server failed: {message}; {}, or check the server's log", later(*.retry_after))]
    Failed {
        /// Message of the server.
        message: String,
        /// Delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The stream broke.
    #[error("the answer broke off: {cause}; check the server and the connection to it")]
    StreamBroken {
        /// Cause of the failure.
        cause: String,
    },
    /// The server sent an event that cannot be parsed.
    #[error(
        "the server sent an event that cannot be read: `{event}`; check the server's log, and `wire_api`"
    )]
    Unreadable {
        /// Beginning of the event, on one line.
        event: String,
    },
    /// No event came for too long.
    #[error("the server sent no event for {} s; a slow model may need a larger `stream_idle_timeout_ms`", .after.as_secs_f32())]
    Idle {
        /// Time waited.
        after: Duration,
        /// True if the server had sent an event of this answer before.
        begun: bool,
    },
    /// The answer did not end. Items received before are kept, as with [`Cut`](Self::Cut).
    #[error("the answer was not complete after {} s; a long one may need a larger `stream_timeout_ms`", .after.as_secs_f32())]
    Unending {
        /// Time waited.
        after: Duration,
    },
    /// The server sent more than is accepted.
    #[error(
        "the server sent {what} of more than {limit_bytes} bytes; check the server's log, or ask for less at once"
    )]
    TooLarge {
        /// Part that was too large, with its article.
        what: &'static str,
        /// The limit.
        limit_bytes: usize,
    },
    /// A limit or a filter cut the answer off. Items received before are kept; an incomplete call
    /// was not run.
    #[error("the answer was cut off by the server ({reason}); {}", way_past(reason))]
    Cut {
        /// The limit or filter, as the server names it.
        reason: String,
    },
    /// A script has no answer left, or cannot be read.
    #[error("script `{path}`: {problem}")]
    Script {
        /// The script.
        path: String,
        /// The problem.
        problem: String,
    },
}

/// Returns the remedy for a status.
fn advice(status: u16, retry_after: Option<Duration>) -> String {
    if is_temporary(status) {
        format!("{}, or check the server's log", later(retry_after))
    } else {
        "check the model's name and the provider's settings".to_owned()
    }
}

/// Returns the advice when to try again: after the server's delay, if it names one.
fn later(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) if wait >= Duration::from_secs(1) => {
            format!("the server asks to wait {} s", wait.as_secs_f64().ceil())
        }
        _ => "try again later".to_owned(),
    }
}

/// Returns true if the same request may succeed later: timeouts, conflicts, and failures of the
/// server.
fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..)
}

/// Returns the remedy for an answer that was cut off.
fn way_past(reason: &str) -> &'static str {
    match reason {
        "content_filter" => "its filter rejects the request or the answer: rephrase the request",
        _ => "raise its output or context limit, or ask for less",
    }
}

/// Advice on repeating a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Do not repeat it: it would fail again.
    Never,
    /// Repeat it after a backoff delay.
    Backoff,
    /// Repeat it after the server's delay.
    After(Duration),
}

/// First delay between two tries. Each further one is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Maximum backoff delay. A server that is back is found within this time.
const MAX_BACKOFF: Duration = Duration::from_secs(20);
/// Maximum delay that a server can ask for. A longer one is reported at once, because the user may
/// have another server.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

impl Retry {
    /// Returns the delay before the next try, or `None` if there should be none. `failed` is the
    /// number of failed tries, `left` the remaining time for tries. `chance` is a random number
    /// below 1. It varies the delay by up to a tenth, so that many clients do not retry at once.
    ///
    /// If a server asks for less than the first delay, the backoff delays are used instead.
    /// Otherwise it would be asked again and again without a pause.
    pub fn delay(self, failed: u32, left: Duration, chance: f64) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(delay) if delay >= FIRST_DELAY => {
                Some(delay).filter(|delay| *delay <= MAX_RETRY_AFTER.min(left))
            }
            Self::After(_) | Self::Backoff => {
                let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
                let delay = FIRST_DELAY.saturating_mul(doubled).min(MAX_BACKOFF).mul_f64(0.9 + 0.2 * chance);
                // The last try is made when the time is up.
                Some(delay.min(left)).filter(|_| left >= FIRST_DELAY)
            }
        }
    }
}

impl ModelError {
    /// Returns the advice on repeating the request.
    pub fn retry(&self) -> Retry {
        let after = |delay: &Option<Duration>| delay.map_or(Retry::Backoff, Retry::After);
        match self {
            Self::Unreachable { .. } | Self::StreamBroken { .. } | Self::Idle { begun: true, .. } => {
                Retry::Backoff
            }
            Self::Failed { retry_after, .. }
            | Self::RateLimited { retry_after, .. }
            | Self::Overloaded { retry_after, .. } => after(retry_after),
            Self::Status { status, retry_after, .. } if is_temporary(*status) => after(retry_after),
            // Do not retry an idle timeout if the server sent nothing at all, nor an answer without
            // an end: each try would take as long.
            Self::Idle { .. }
            | Self::Unending { .. }
            | Self::Status { .. }
            | Self::MissingKey { .. }
            | Self::Provider { .. }
            | Self::Unauthorized { .. }
            | Self::QuotaExceeded { .. }
            | Self::ContextWindowExceeded { .. }
            | Self::InvalidRequest { .. }
            | Self::NotAStream { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Cut { .. }
            | Self::Script { .. } => Retry::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_says_what_to_do_about_it() {
        let (message, retry_after) = (|| "m".to_owned(), None);
        let status =
            |status| ModelError::Status { url: "URL".into(), status, message: message(), retry_after };
        let rows = [
            (
                ModelError::RateLimited { message: message(), retry_after },
                "the server is limiting requests (HTTP 429): m; try again later",
            ),
            (
                ModelError::Overloaded { message: message(), retry_after },
                "the model's server is overloaded: m; try again later",
            ),
            (
                ModelError::InvalidRequest { status: 400, message: message() },
                "the server rejected the request (HTTP 400): m; check the input and the provider's settings",
            ),
            (status(404), "URL answered HTTP 404: m; check the model's name and the provider's settings"),
            (status(408), "URL answered HTTP 408: m; try again later, or check the server's log"),
            (status(500), "URL answered HTTP 500: m; try again later, or check the server's log"),
            (
                ModelError::Failed { message: message(), retry_after },
                "the model's server failed: m; try again later, or check the server's log",
            ),
            (
                ModelError::RateLimited { message: message(), retry_after: Some(Duration::from_hours(1)) },
                "the server is limiting requests (HTTP 429): m; the server asks to wait 3600 s",
            ),
            (
                ModelError::Unending { after: Duration::from_mins(30) },
                "the answer was not complete after 1800 s; a long one may need a larger `stream_timeout_ms`",
            ),
            (
                ModelError::StreamBroken { cause: message() },
                "the answer broke off: m; check the server and the connection to it",
            ),
            (
                ModelError::TooLarge { what: "an event", limit_bytes: 8 },
                "the server sent an event of more than 8 bytes; check the server's log, or ask for less at once",
            ),
        ];
        for (error, expected) in rows {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn delays_double_within_a_tenth_and_stay_bounded() {
        let plenty = Duration::from_mins(2);
        let millis =
            |failed, chance| Retry::Backoff.delay(failed, plenty, chance).map(|delay| delay.as_millis());
        assert_eq!(
            [millis(1, 0.0), millis(1, 0.5), millis(2, 0.5), millis(4, 0.5)],
            [180, 200, 400, 1600].map(Some)
        );
        assert_eq!(millis(99, 0.5), Some(20_000));
        assert_eq!(Retry::Never.delay(1, plenty, 0.5), None);
    }

    #[test]
    fn a_delay_fits_into_what_is_left_of_the_time() {
        let seconds = Duration::from_secs;
        assert_eq!(Retry::Backoff.delay(99, seconds(3), 0.5), Some(seconds(3)), "the last try");
        assert_eq!(Retry::Backoff.delay(1, Duration::ZERO, 0.5), None);
        assert_eq!(Retry::After(seconds(7)).delay(1, seconds(7), 0.5), Some(seconds(7)));
        assert_eq!(Retry::After(seconds(7)).delay(1, seconds(6), 0.5), None, "it is not asked too early");
        assert_eq!(Retry::After(seconds(61)).delay(1, seconds(120), 0.5), None);
    }

    #[test]
    fn a_server_that_asks_for_no_delay_gets_our_own() {
        let asked = |delay| Retry::After(delay).delay(4, Duration::from_mins(2), 0.5);
        assert_eq!(asked(Duration::ZERO), Some(Duration::from_millis(1600)));
        assert_eq!(asked(Duration::from_millis(300)), Some(Duration::from_millis(300)));
    }

    #[test]
    fn what_may_pass_is_retried_and_what_cannot_is_not() {
        let retry = |status| {
            let (url, message) = ("URL".to_owned(), "m".to_owned());
            ModelError::Status { url, status, message, retry_after: None }.retry()
        };
        for status in [408, 409, 425, 500, 502, 503, 504, 520, 529] {
            assert_eq!(retry(status), Retry::Backoff, "{status}");
        }
        for status in [402, 404, 405, 410, 418, 451] {
            assert_eq!(retry(status), Retry::Never, "{status}");
        }
    }
}
