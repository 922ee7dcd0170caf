//! Errors that a server reports, in the body of a response or inside a stream, as a [`ModelError`].

mod context_length;

use std::time::Duration;

use serde_json::Value;
use windlass_contract::model::ModelError;

use self::context_length::RequestSizes;

/// Maximum length of a server's message.
const MAX_MESSAGE_CHARS: usize = 500;

/// Maximum length of the excerpt of an unreadable event.
const MAX_EVENT_CHARS: usize = 200;

/// A failure as a server reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerFailure {
    /// The message, on one line.
    pub(crate) message: String,
    /// `code` and `type`, if they are words.
    words: Vec<String>,
    /// `code`, if it is an HTTP status.
    status: Option<u16>,
    /// The size of the request and of the window, if the server names them as numbers.
    sizes: RequestSizes,
}

/// Cause of a failure, from the error codes that servers use.
enum FailureKind {
    ContextWindow,
    Quota,
    Rejected,
    Overloaded,
    RateLimit,
    Unknown,
}

impl ServerFailure {
    /// Finds the error in a JSON value. Servers put it under `error` (an object or a text),
    /// `detail` or `message`. One server wraps it in a list.
    pub(crate) fn find(value: &Value) -> Option<Self> {
        match value {
            Value::Array(list) => list.first().and_then(Self::find),
            Value::Object(map) => match (map.get("error"), map.get("detail"), map.get("message")) {
                (Some(error), ..) if !error.is_null() => Some(Self::from_error(error)),
                (_, Some(detail), _) => Some(Self::from_error(detail)),
                (.., Some(Value::String(_))) => Some(Self::from_error(value)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Parses an error object, or a text in its place.
    pub(crate) fn from_error(error: &Value) -> Self {
        let text = |name| error.get(name).and_then(Value::as_str);
        let message = text("message").or(error.as_str()).map_or_else(|| error.to_string(), str::to_owned);
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Self {
            message: one_line(&message),
            words: [text("code"), text("type")].into_iter().flatten().map(str::to_owned).collect(),
            status: code.filter(|code| (400..600).contains(code)),
            sizes: RequestSizes::from_fields(error),
        }
    }

    /// Returns the error that an event of a stream reports.
    pub(crate) fn error_in_event(data: &str) -> ModelError {
        let value: Value = serde_json::from_str(data).unwrap_or_default();
        Self::find(&value).unwrap_or_else(|| Self::from_error(&value)).into_stream_error()
    }

    /// Makes a failure from a message alone.
    pub(crate) fn from_message(message: String) -> Self {
        Self { message, ..Self::default() }
    }

    /// Returns the error for a response with this status.
    pub(crate) fn into_status_error(
        self,
        url: &str,
        status: u16,
        retry_after: Option<Duration>,
    ) -> ModelError {
        let retry_after = retry_after.or_else(|| self.requested_delay());
        let message = self.message.clone();
        match (self.kind(), status) {
            (FailureKind::ContextWindow, _) => self.too_long(),
            (FailureKind::Quota, _) | (_, 402) => ModelError::QuotaExceeded { message },
            (FailureKind::Overloaded, _) | (_, 529) => ModelError::Overloaded { message, retry_after },
            (_, 429) => ModelError::RateLimited { message, retry_after },
            (_, 400 | 413 | 422) => ModelError::InvalidRequest { status, message },
            _ => ModelError::Status { url: url.to_owned(), status, message, retry_after },
        }
    }

    /// Returns the error for a failure inside a stream.
    pub(crate) fn into_stream_error(self) -> ModelError {
        let retry_after = self.requested_delay();
        let message = self.message.clone();
        match (self.kind(), self.status) {
            (FailureKind::ContextWindow, _) => self.too_long(),
            (FailureKind::Quota, _) | (_, Some(402)) => ModelError::QuotaExceeded { message },
            (FailureKind::Overloaded, _) | (_, Some(503 | 529)) => {
                ModelError::Overloaded { message, retry_after }
            }
            (FailureKind::RateLimit, _) | (_, Some(429)) => ModelError::RateLimited { message, retry_after },
            (_, Some(status @ 400..=499)) => ModelError::InvalidRequest { status, message },
            (FailureKind::Rejected, _) => ModelError::InvalidRequest { status: 400, message },
            (FailureKind::Unknown, _) => ModelError::Failed { message, retry_after },
        }
    }

    fn kind(&self) -> FailureKind {
        let kind = |word: &String| match word.as_str() {
            "context_length_exceeded" | "exceed_context_size_error" => Some(FailureKind::ContextWindow),
            "insufficient_quota"
            | "usage_limit_reached"
            | "usage_not_included"
            | "billing_error"
            | "billing_hard_limit_reached" => Some(FailureKind::Quota),
            "invalid_prompt"
            | "bio_policy"
            | "cyber_policy"
            | "misalignment_policy_violation"
            | "invalid_request_error"
            | "request_too_large" => Some(FailureKind::Rejected),
            "server_is_overloaded" | "slow_down" | "overloaded_error" => Some(FailureKind::Overloaded),
            "rate_limit_exceeded" | "rate_limit_error" => Some(FailureKind::RateLimit),
            _ => None,
        };
        if context_length::is_too_long(&self.message) {
            return FailureKind::ContextWindow;
        }
        if self.message.contains("credit balance is too low") {
            return FailureKind::Quota;
        }
        self.words.iter().find_map(kind).unwrap_or(FailureKind::Unknown)
    }

    /// Returns the error for a request that is too long, with the sizes that the server names.
    fn too_long(&self) -> ModelError {
        let RequestSizes { window, requested } = self.sizes.or(RequestSizes::from_message(&self.message));
        ModelError::ContextWindowExceeded { window, requested }
    }

    /// Returns the delay that the message asks for: "try again in 1.5s", "in 20 ms", "in 3 seconds"
    /// or "in 1m30s".
    fn requested_delay(&self) -> Option<Duration> {
        const PHRASE: &str = "try again in";
        let lower = self.message.to_ascii_lowercase();
        let mut rest = lower.split_once(PHRASE)?.1.trim_start();
        let mut seconds = None;
        loop {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
            let after = rest[digits..].trim_start();
            let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            let unit = match &after[..letters] {
                "s" | "sec" | "second" | "seconds" => 1.0,
                "ms" => 0.001,
                "m" | "min" | "minute" | "minutes" => 60.0,
                "h" | "hour" | "hours" => 3600.0,
                _ => break,
            };
            seconds = Some(seconds.unwrap_or(0.0) + number * unit);
            rest = after[letters..].trim_start();
        }
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// Returns the error for an event that cannot be parsed.
pub(crate) fn unreadable_event(data: &str) -> ModelError {
    ModelError::Unreadable { event: truncated_line(data, MAX_EVENT_CHARS) }
}

/// Returns the error for a truncated event.
pub(crate) fn truncated_event(data: &str) -> ModelError {
    ModelError::StreamBroken {
        cause: format!("an event stops after `{}`", truncated_line(data, MAX_EVENT_CHARS)),
    }
}

/// Returns a server's text on one line, without control characters, shortened if it is long.
pub(crate) fn one_line(text: &str) -> String {
    truncated_line(text, MAX_MESSAGE_CHARS)
}

fn truncated_line(text: &str, max_chars: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((cut, _)) = line.char_indices().nth(max_chars) {
            line.truncate(cut);
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn message(value: &Value) -> Option<String> {
        ServerFailure::find(value).map(|failure| failure.message)
    }

    #[test]
    fn the_message_is_found_wherever_servers_put_it() {
        let found = Some("no such model".to_owned());
        assert_eq!(message(&json!({"error": {"message": "no such  model", "code": 404}})), found);
        assert_eq!(message(&json!({"error": "no such\nmodel"})), found);
        assert_eq!(message(&json!({"detail": "no such model"})), found);
        assert_eq!(message(&json!({"object": "error", "message": "no such model"})), found);
        assert_eq!(message(&json!([{"error": {"message": "no such model"}}])), found);
        assert_eq!(message(&json!({"error": {"oops": 1}})).as_deref(), Some(r#"{"oops":1}"#));
        assert_eq!(message(&json!({"error": null, "id": "r1"})), None);
        assert_eq!(message(&json!("text")), None);
    }

    #[test]
    fn failures_of_the_messages_api_are_told_apart() {
        let error = |status, kind: &str, message: &str| {
            let body =
                json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"});
            ServerFailure::find(&body).unwrap().into_status_error("URL", status, None)
        };
        let text = || "m".to_owned();
        let rejected = ModelError::InvalidRequest { status: 400, message: text() };
        assert_eq!(error(400, "invalid_request_error", "m"), rejected);
        let long = "prompt is too long: 210000 tokens > 200000 maximum";
        let too_long =
            |window, requested| ModelError::ContextWindowExceeded { window: Some(window), requested };
        assert_eq!(error(400, "invalid_request_error", long), too_long(200_000, Some(210_000)));
        let both = "input length and `max_tokens` exceed context limit: 1 + 2 > 2";
        assert_eq!(error(400, "invalid_request_error", both), too_long(2, Some(3)));
        let poor = "Your credit balance is too low to access the API.";
        assert_eq!(
            error(400, "invalid_request_error", poor),
            ModelError::QuotaExceeded { message: poor.to_owned() }
        );
        assert_eq!(error(402, "billing_error", "m"), ModelError::QuotaExceeded { message: text() });
        assert_eq!(
            error(413, "request_too_large", "m"),
            ModelError::InvalidRequest { status: 413, message: text() }
        );
        let retry_after = None;
        assert_eq!(
            error(429, "rate_limit_error", "m"),
            ModelError::RateLimited { message: text(), retry_after }
        );
        let overloaded = ModelError::Overloaded { message: text(), retry_after };
        assert_eq!(error(529, "overloaded_error", "m"), overloaded);
        let data = r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
        assert_eq!(ServerFailure::error_in_event(data), overloaded);
    }

    #[test]
    fn words_and_statuses_decide_what_a_failure_in_a_stream_means() {
        let error = |value: Value| ServerFailure::from_error(&value).into_stream_error();
        let message = || "m".to_owned();
        let too_long = ModelError::ContextWindowExceeded { window: None, requested: None };
        assert_eq!(error(json!({"code": "context_length_exceeded"})), too_long);
        assert_eq!(
            error(
                json!({"code": 400, "type": "exceed_context_size_error", "message": "m", "n_ctx": 8, "n_prompt_tokens": 9})
            ),
            ModelError::ContextWindowExceeded { window: Some(8), requested: Some(9) }
        );
        assert_eq!(
            error(json!({"code": "insufficient_quota", "message": "m"})),
            ModelError::QuotaExceeded { message: message() }
        );
        assert_eq!(
            error(json!({"code": "slow_down", "message": "m"})),
            ModelError::Overloaded { message: message(), retry_after: None }
        );
        assert_eq!(
            error(json!({"code": "invalid_prompt", "message": "m"})),
            ModelError::InvalidRequest { status: 400, message: message() }
        );
        assert_eq!(
            error(json!({"code": 500, "type": "server_error", "message": "m"})),
            ModelError::Failed { message: message(), retry_after: None }
        );
        assert_eq!(
            error(json!({"code": "rate_limit_exceeded", "message": "Try again in 1.5s."})),
            ModelError::RateLimited {
                message: "Try again in 1.5s.".to_owned(),
                retry_after: Some(Duration::from_millis(1500))
            }
        );
    }

    #[test]
    fn a_delay_is_read_from_the_message() {
        let wait = |text: &str| ServerFailure::from_error(&json!(text)).requested_delay();
        assert_eq!(wait("Please TRY AGAIN IN 11.054s. Visit …"), Some(Duration::from_millis(11054)));
        assert_eq!(wait("try again in 28ms"), Some(Duration::from_millis(28)));
        assert_eq!(wait("try again in 3 seconds"), Some(Duration::from_secs(3)));
        assert_eq!(wait("try again in 1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(wait("try again in a moment"), None);
        assert_eq!(wait("try again in 99999999999999999999999999999 hours"), None);
        assert_eq!(wait("no"), None);
    }

    proptest! {
        #[test]
        fn a_message_is_always_one_short_line(text in "\\PC{0,900}|[ a\n\r\t\u{1b}]{0,900}") {
            let line = one_line(&text);
            prop_assert!(line.chars().count() <= MAX_MESSAGE_CHARS + 1);
            prop_assert!(!line.contains(char::is_control));
            ServerFailure::from_error(&json!(format!("try again in {text}"))).requested_delay();
        }
    }
}
