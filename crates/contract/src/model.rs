//! The client of a model, without saying which.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, Item, ToolSpec, id::ThreadId, item::Cached};

/// Speaks to one model. Implemented by `model` (and by fakes in tests), called by the turn loop.
pub trait ModelClient: Send + Sync {
    /// Which model this is and what it can do.
    fn info(&self) -> &ModelInfo;

    /// Sends a prompt, once. What comes back is an answer that has begun, or why none did; whether that is worth another
    /// try is for the caller to decide (see [`ModelError::retry`]). Dropping the future or the stream ends the request.
    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>>;
}

/// An answer as it arrives. Each call in it has an id that is not blank and that no earlier call of the history has, so
/// that outputs can be paired with it.
pub trait ModelStream: Send {
    /// The next event; `None` after [`ModelEvent::Completed`] or an error.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>>;
}

/// Which model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The configured provider.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The wire it speaks.
    pub wire: &'static str,
    /// How often a request for one answer is sent again because the answer did not begin.
    pub request_retries: u32,
    /// How often one answer is asked for again because it broke off.
    pub stream_retries: u32,
    /// The longest time spent on further tries while the server does not answer.
    pub retry_budget: Duration,
}

/// Everything the model is told in one request.
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    /// The conversation; servers use it to find their cache.
    pub thread: &'a ThreadId,
    /// Standing instructions.
    pub instructions: &'a str,
    /// The conversation so far. Only ever grows at the end.
    pub history: &'a [Cached<Item>],
    /// The tools on offer, in a fixed order.
    pub tools: &'a Cached<Vec<ToolSpec>>,
    /// Whether the model may ask for several calls at once.
    pub parallel_calls: bool,
    /// The shape the final answer must have.
    pub output_schema: Option<&'a Value>,
}

/// A step of an answer.
#[derive(Debug, Clone)]
pub enum ModelEvent {
    /// A piece of the answer's text.
    TextDelta(String),
    /// A piece of reasoning.
    ReasoningDelta(String),
    /// A piece of a call's arguments. Nothing can be run yet; it tells how much has been written.
    CallDelta(String),
    /// A complete item. A call among them may be run at once; a call that was cut off never gets here.
    Item(Item),
    /// The answer is complete.
    Completed {
        /// What it cost, where the server says so.
        usage: Option<Usage>,
        /// What it leaves.
        finish: Finish,
    },
    /// Worth telling a person, not worth stopping for.
    Notice(String),
}

/// What a complete answer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Nothing: it is the answer, or the calls before it.
    Done,
    /// The server wants to go on although no tool was called.
    More,
    /// What was asked for: the model says that it did not do it, cannot, or must know more first.
    Declined,
}

/// What answers cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Of those, found in the server's cache.
    pub cached_input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// Of those, reasoning.
    pub reasoning_output_tokens: u64,
}

impl Usage {
    /// Read and written together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(more.cached_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.reasoning_output_tokens =
            self.reasoning_output_tokens.saturating_add(more.reasoning_output_tokens);
    }
}

/// Why a model did not answer. Each message is one line that names the cause and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The key's variable is not set.
    #[error("no API key: set the environment variable `{variable}`{hint}")]
    MissingKey {
        /// The variable.
        variable: String,
        /// More to do, from the provider's configuration.
        hint: String,
    },
    /// The configuration of the provider cannot work.
    #[error("provider `{provider}` cannot be used: {problem}")]
    Provider {
        /// The provider.
        provider: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The server could not be reached.
    #[error("cannot reach {url}: {cause}; is the server running, and is `base_url` right?")]
    Unreachable {
        /// Where we looked.
        url: String,
        /// What went wrong.
        cause: String,
    },
    /// The server does not know us.
    #[error("{url} refused the API key (HTTP {status}): {message}; check `{variable}`")]
    Unauthorized {
        /// Where.
        url: String,
        /// 401 or 403.
        status: u16,
        /// What the server said.
        message: String,
        /// Where the key comes from.
        variable: String,
    },
    /// The server wants fewer requests.
    #[error("the server is limiting requests (HTTP 429): {message}; {}", later(*.retry_after))]
    RateLimited {
        /// What the server said.
        message: String,
        /// How long it wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The account has nothing left.
    #[error("the account's quota is used up: {message}; check its plan and billing")]
    QuotaExceeded {
        /// What the server said.
        message: String,
    },
    /// The conversation no longer fits.
    #[error(
        "the conversation is longer than the model's context window; start a new session or use a larger model"
    )]
    ContextWindowExceeded,
    /// The server has too much to do.
    #[error("the model's server is overloaded: {message}; {}", later(*.retry_after))]
    Overloaded {
        /// What the server said.
        message: String,
        /// How long it wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The server rejects what we sent.
    #[error(
        "the server rejected the request (HTTP {status}): {message}; check the input and the provider's settings"
    )]
    InvalidRequest {
        /// Its status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// A status we have no better word for.
    #[error("{url} answered HTTP {status}: {message}; {}", advice(*.status, *.retry_after))]
    Status {
        /// Where.
        url: String,
        /// Its status.
        status: u16,
        /// What it said.
        message: String,
        /// How long it wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The server answered something that is not a stream of events.
    #[error(
        "{url} did not answer with an event stream but with {found}; is `base_url` right, and `wire_api`?"
    )]
    NotAStream {
        /// Where.
        url: String,
        /// What it was.
        found: String,
    },
    /// The server reported a failure inside the stream.
    #[error("the model's server failed: {message}; {}, or check the server's log", later(*.retry_after))]
    Failed {
        /// What it said.
        message: String,
        /// How long it wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The stream broke.
    #[error("the answer broke off: {cause}; check the server and the connection to it")]
    StreamBroken {
        /// How.
        cause: String,
    },
    /// What the server sent makes no sense.
    #[error(
        "the server sent an event that cannot be read: `{event}`; check the server's log, and `wire_api`"
    )]
    Unreadable {
        /// How it begins, on one line.
        event: String,
    },
    /// No event came for too long.
    #[error("the server sent no event for {} s; a slow model may need a larger `stream_idle_timeout_ms`", .after.as_secs_f32())]
    Idle {
        /// How long we waited.
        after: Duration,
        /// The server had sent an event of this answer before.
        begun: bool,
    },
    /// The answer did not end. What was said stays said, as with [`Cut`](Self::Cut).
    #[error("the answer was not complete after {} s; a long one may need a larger `stream_timeout_ms`", .after.as_secs_f32())]
    Unending {
        /// How long we waited.
        after: Duration,
    },
    /// The server sent more than we take.
    #[error(
        "the server sent {what} of more than {limit_bytes} bytes; check the server's log, or ask for less at once"
    )]
    TooLarge {
        /// What was too large, with its article.
        what: &'static str,
        /// The limit.
        limit_bytes: usize,
    },
    /// The answer was cut by a limit or a filter. What was said stays said; nothing half-asked was run.
    #[error("the answer was cut off by the server ({reason}); {}", way_past(reason))]
    Cut {
        /// By what.
        reason: String,
    },
    /// A script has no answer left, or cannot be read.
    #[error("script `{path}`: {problem}")]
    Script {
        /// The script.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// Returns what to do about a status.
fn advice(status: u16, retry_after: Option<Duration>) -> String {
    if is_temporary(status) {
        format!("{}, or check the server's log", later(retry_after))
    } else {
        "check the model's name and the provider's settings".to_owned()
    }
}

/// Returns when to try again: when the server says, if it does.
fn later(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) if wait >= Duration::from_secs(1) => {
            format!("the server asks to wait {} s", wait.as_secs_f64().ceil())
        }
        _ => "try again later".to_owned(),
    }
}

/// Tells whether the same request may succeed later: timeouts, conflicts, and failures of the
/// server.
fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..)
}

/// What to do about an answer that was cut.
fn way_past(reason: &str) -> &'static str {
    match reason {
        "content_filter" => "its filter objects to the request or the answer: say it in other words",
        _ => "raise its output or context limit, or ask for less",
    }
}

/// Whether a failed request is worth another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// Yes, after our own delay.
    Backoff,
    /// Yes, after the server's delay.
    After(Duration),
}

/// The first delay between two tries; each further one is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The longest delay of our own. A server that is back is found within this time.
const MAX_BACKOFF: Duration = Duration::from_secs(20);
/// The longest delay a server can ask for. If it wants more, that is reported at once: a person may
/// have another server.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

impl Retry {
    /// Returns the delay before the next try, after so many that failed, if another try is to be
    /// made in what is left of the time for that. `chance` is a random number below 1, which
    /// spreads many clients a tenth to either side.
    ///
    /// A server that asks for less than our first delay gets our own ones: it would be asked again
    /// and again at once.
    pub fn delay(self, failed: u32, left: Duration, chance: f64) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(delay) if delay >= FIRST_DELAY => {
                Some(delay).filter(|delay| *delay <= MAX_RETRY_AFTER.min(left))
            }
            Self::After(_) | Self::Backoff => {
                let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
                let delay = FIRST_DELAY.saturating_mul(doubled).min(MAX_BACKOFF).mul_f64(0.9 + 0.2 * chance);
                // The last try comes at the end of the time.
                Some(delay.min(left)).filter(|_| left >= FIRST_DELAY)
            }
        }
    }
}

impl ModelError {
    /// Whether another try makes sense.
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
            | Self::ContextWindowExceeded
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
