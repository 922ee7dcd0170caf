//! Reviews a call that has ended: compares it with earlier ones, and asks a reviewer about it.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass_contract::{
    Content, Outcome, ToolCall, Verdict,
    host::Exit,
    verdict::{Opinion, Reviewer},
};

use crate::Stop;

/// Maximum number of different calls that are remembered. Repetitions usually follow soon.
const MAX_REMEMBERED_CALLS: usize = 1024;

/// Loss of confidence, in per cent, if a result differs without a known reason.
const DIFFERENT_RESULT_PENALTY: u8 = 10;

/// Reviews calls. A review lowers the verdict or its confidence, and never raises it.
#[derive(Default)]
pub struct Review {
    reviewer: Option<(Arc<dyn Reviewer>, Duration)>,
    history: Mutex<ReviewHistory>,
}

impl fmt::Debug for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Review").field("reviewer", &self.reviewer.is_some()).finish_non_exhaustive()
    }
}

/// The earlier calls of this session.
#[derive(Default)]
struct ReviewHistory {
    calls: HashMap<u64, PastCall>,
    /// Number of ended calls that may have changed something.
    changes: u64,
}

/// The last result of a call.
#[derive(Clone, Copy)]
struct PastCall {
    result: u64,
    success: bool,
    /// Number of further failures in a row.
    failures: u32,
    /// Number of changes before it.
    changes: u64,
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

    fn compare(&self, call: &ToolCall, changes: bool, outcome: &Outcome, verdict: &mut Verdict) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.changes += u64::from(changes);
        // All calls of an unknown tool are the same mistake.
        let input = (!outcome.receipt.unknown_tool).then(|| call.input.as_str());
        let key = hash(&(call.name.as_str(), input));
        let before = history.calls.get(&key).copied();
        let result = fingerprint(outcome);
        let mut now = PastCall { result, success: verdict.success, failures: 0, changes: history.changes };
        match before {
            Some(before) if !now.success && !before.success => {
                now.failures = before.failures.saturating_add(1);
                let times = now.failures.saturating_add(1);
                let what = if input.is_some() { "this very call" } else { "a call of this name" };
                let how = if before.result == result { "the same way" } else { "too" };
                verdict.reasons.push(format!("{what} failed {how} before ({times} times in a row)"));
                let idle = now.changes - before.changes <= u64::from(changes);
                verdict.suggestions.push(advice(times, idle).to_owned());
            }
            Some(before) if !now.success && before.success => {
                verdict.reasons.push("this very call succeeded before".to_owned());
            }
            Some(before)
                if !changes && before.success && before.changes == now.changes && before.result != result =>
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
        if history.calls.len() >= MAX_REMEMBERED_CALLS && !history.calls.contains_key(&key) {
            history.calls.clear();
        }
        history.calls.insert(key, now);
    }
}

/// Number of failures in a row, without a change in between, that look like a loop. The turn ends
/// if that continues.
const LOOP_FAILURES: u32 = 3;

fn advice(times: u32, idle: bool) -> &'static str {
    if times >= LOOP_FAILURES && idle {
        "stop repeating it: do something else, or answer with what stands in the way; a turn that goes on like this is ended"
    } else {
        "do something else instead of repeating it"
    }
}

/// Hashes the result of a call: its end and its content, but not its duration.
pub fn fingerprint(outcome: &Outcome) -> u64 {
    let mut hasher = DefaultHasher::new();
    outcome.status.name().hash(&mut hasher);
    outcome.facts.exit().map(Exit::code).hash(&mut hasher);
    for part in &outcome.content {
        match part {
            Content::Text(text) => text.hash(&mut hasher),
            Content::Image(image) => image.hash(&mut hasher),
            Content::Tool(tool) => tool.name.hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
