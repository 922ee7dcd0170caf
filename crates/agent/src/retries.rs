//! Retries of one answer: decides on another try, and its delay.

use std::time::Duration;

use tokio::time::Instant;
use windlass_contract::{
    Event,
    model::{ModelError, ModelInfo},
};

/// The failed tries for one answer.
pub(crate) struct AnswerRetries {
    provider: String,
    requests: RetryCounter,
    streams: RetryCounter,
    /// Maximum time for retries since the last answer of the server.
    budget: Duration,
    failing_since: Option<Instant>,
}

/// Number of failed tries, and maximum number of retries.
struct RetryCounter {
    failed: u32,
    retries: u32,
}

/// The stage in which a try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedStage {
    /// The answer did not begin.
    Request,
    /// The answer had begun.
    Stream,
}

/// Another try, after a pause.
pub(crate) struct NextTry {
    pub(crate) delay: Duration,
    /// The event that announces it.
    pub(crate) event: Event,
}

impl AnswerRetries {
    pub(crate) fn new(info: &ModelInfo) -> Self {
        Self {
            provider: info.provider.clone(),
            requests: RetryCounter { failed: 0, retries: info.request_retries },
            streams: RetryCounter { failed: 0, retries: info.stream_retries },
            budget: info.retry_budget,
            failing_since: None,
        }
    }

    /// Notes a failure. Returns the next try, if one is left and makes sense after this error.
    pub(crate) fn next(&mut self, error: &ModelError, stage: FailedStage) -> Option<NextTry> {
        // Some servers begin an answer only to report in it that they are busy.
        let is_busy = matches!(error, ModelError::RateLimited { .. } | ModelError::Overloaded { .. });
        let has_answered = stage == FailedStage::Stream && !is_busy;
        if has_answered {
            self.failing_since = None;
        }
        let failing_since = *self.failing_since.get_or_insert_with(Instant::now);
        let left = self.budget.saturating_sub(failing_since.elapsed());
        let tries = if has_answered { &mut self.streams } else { &mut self.requests };
        tries.failed += 1;
        let RetryCounter { failed: attempt, retries: of } = *tries;
        let delay = error.retry().delay(attempt, left, fastrand::f64()).filter(|_| attempt <= of)?;
        let (provider, reason) = (self.provider.clone(), error.to_string());
        Some(NextTry { delay, event: Event::Retrying { provider, attempt, of, delay, left, reason } })
    }
}
