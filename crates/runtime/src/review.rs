//! Reviews a call that has ended: compares it with earlier ones, and asks a reviewer about it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use windlass_contract::{
    Outcome, ToolCall, Verdict,
    verdict::{Opinion, Reviewer},
};

use crate::{
    Stop,
    call_history::{CallHistory, PastCall},
};

/// Loss of confidence, in per cent, if a result differs without a known reason.
const DIFFERENT_RESULT_PENALTY: u8 = 10;

/// Reviews calls. A review lowers the verdict or its confidence, and never raises it.
#[derive(Default)]
pub struct Review {
    reviewer: Option<(Arc<dyn Reviewer>, Duration)>,
    history: Mutex<CallHistory>,
}

impl fmt::Debug for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Review").field("reviewer", &self.reviewer.is_some()).finish_non_exhaustive()
    }
}

impl Review {
    /// Creates a review that also asks this reviewer, with a time limit.
    #[must_use]
    pub fn with_reviewer(reviewer: Arc<dyn Reviewer>, patience: Duration) -> Self {
        Self { reviewer: Some((reviewer, patience)), ..Self::default() }
    }

    /// Reviews a call and returns its final verdict. `changes` is true if it may have changed
    /// something.
    pub(crate) async fn look(
        &self,
        call: &ToolCall,
        changes: bool,
        outcome: &Outcome,
        stop: &Stop,
    ) -> Verdict {
        let mut verdict = outcome.verdict.clone();
        if changes && verdict.success {
            self.ask(call, outcome, &mut verdict, stop).await;
        }
        self.compare(call, changes, outcome, &mut verdict);
        verdict
    }

    async fn ask(&self, call: &ToolCall, outcome: &Outcome, verdict: &mut Verdict, stop: &Stop) {
        let Some((reviewer, patience)) = &self.reviewer else { return };
        let opinion = tokio::select! {
            biased;
            _reason = stop.stopped() => return,
            opinion = tokio::time::timeout(*patience, reviewer.review(call, outcome)) => opinion,
        };
        match opinion {
            Ok(Ok(opinion)) => verdict.lower(opinion),
            Ok(Err(why)) => verdict.reasons.push(format!("the model could not be asked about it: {why}")),
            Err(_too_late) => {
                let seconds = patience.as_secs_f32();
                verdict
                    .reasons
                    .push(format!("the model was asked about it and did not answer in {seconds} s"));
            }
        }
    }

    /// Returns the calls that have ended.
    pub fn history(&self) -> MutexGuard<'_, CallHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compare(&self, call: &ToolCall, changes: bool, outcome: &Outcome, verdict: &mut Verdict) {
        let mut history = self.history();
        let now = PastCall { changes, success: verdict.success, ..PastCall::new(call, outcome) };
        match history.last(&now) {
            Some((before, is_stale)) if !now.success && !before.success => {
                let times = history.failures_in_a_row(&now) + 1;
                let what =
                    if outcome.receipt.unknown_tool { "a call of this name" } else { "this very call" };
                let how = if now.has_same_result(&before) { "the same way" } else { "too" };
                verdict.reasons.push(format!("{what} failed {how} before ({times} times in a row)"));
                verdict.suggestions.push(advice(times, !is_stale).to_owned());
            }
            Some((before, _)) if !now.success && before.success => {
                verdict.reasons.push("this very call succeeded before".to_owned());
            }
            Some((before, is_stale))
                if !changes && before.success && !is_stale && !now.has_same_result(&before) =>
            {
                verdict.lower(Opinion {
                    success: true,
                    confidence: verdict.confidence.saturating_sub(DIFFERENT_RESULT_PENALTY),
                    reasons: vec![
                        "its result differs from before, and nothing was changed here since".to_owned(),
                    ],
                    suggestions: Vec::new(),
                });
            }
            _ => {}
        }
        history.push(now);
    }
}

/// Number of failures in a row, without a change in between, that look like a loop. The turn ends
/// if that continues.
const LOOP_FAILURES: usize = 3;

fn advice(times: usize, idle: bool) -> &'static str {
    if times >= LOOP_FAILURES && idle {
        "stop repeating it: do something else, or answer with what stands in the way; a turn that goes on like this is ended"
    } else {
        "do something else instead of repeating it"
    }
}

#[cfg(test)]
mod tests;
