//! The tries for one answer: whether there is another one, and when.

use std::time::Duration;

use tokio::time::Instant;
use windlass_contract::{
    Event,
    model::{ModelError, ModelInfo},
};

/// The tries for one answer that failed so far.
pub(crate) struct AnswerRetries {
    provider: String,
    requests: Tries,
    streams: Tries,
    /// The longest time for tries since the server answered last.
    budget: Duration,
    failing_since: Option<Instant>,
}

/// The tries that failed, and how many may be made after the first.
struct Tries {
    failed: u32,
    retries: u32,
}

/// Where a try failed.
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
    /// What is announced.
    pub(crate) event: Event,
}

impl AnswerRetries {
    pub(crate) fn new(info: &ModelInfo) -> Self {
        Self {
            provider: info.provider.clone(),
            requests: Tries { failed: 0, retries: info.request_retries },
            streams: Tries { failed: 0, retries: info.stream_retries },
            budget: info.retry_budget,
            failing_since: None,
        }
    }

    /// Notes a failure. Returns the next try, if one is left and makes sense after this error.
    pub(crate) fn next(&mut self, error: &ModelError, stage: FailedStage) -> Option<NextTry> {
        // Some servers begin an answer only to say in it that they are busy.
        let is_busy = matches!(error, ModelError::RateLimited { .. } | ModelError::Overloaded { .. });
        let has_answered = stage == FailedStage::Stream && !is_busy;
        if has_answered {
            self.failing_since = None;
        }
        let failing_since = *self.failing_since.get_or_insert_with(Instant::now);
        let left = self.budget.saturating_sub(failing_since.elapsed());
        let tries = if has_answered { &mut self.streams } else { &mut self.requests };
        tries.failed += 1;
        let Tries { failed: attempt, retries: of } = *tries;
        let delay = error.retry().delay(attempt, left, fastrand::f64()).filter(|_| attempt <= of)?;
        let (provider, reason) = (self.provider.clone(), error.to_string());
        Some(NextTry { delay, event: Event::Retrying { provider, attempt, of, delay, left, reason } })
    }
}
