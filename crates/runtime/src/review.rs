//! A second look at a call that has ended: was the same asked before, and what does a reviewer think of it?

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass_contract::{
    Content, Outcome, ToolCall,
    host::Exit,
    verdict::{Opinion, Reviewer},
};

use crate::Stop;

/// So many different calls are remembered. Those who repeat themselves do so soon.
const REMEMBERED: usize = 1024;

/// What a result that differs without a reason costs, in per cent of confidence.
const DIFFERENT: u8 = 10;

/// Looks at calls again. What it finds makes a verdict worse or less sure, never better.
#[derive(Default)]
pub struct Review {
    reviewer: Option<(Arc<dyn Reviewer>, Duration)>,
    earlier: Mutex<Earlier>,
}

impl fmt::Debug for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Review").field("reviewer", &self.reviewer.is_some()).finish_non_exhaustive()
    }
}

/// What this session has asked for before.
#[derive(Default)]
struct Earlier {
    calls: HashMap<u64, Seen>,
    /// How many calls that may have changed something have ended.
    changes: u64,
}

/// How a call ended the last time.
#[derive(Clone, Copy)]
struct Seen {
    result: u64,
    success: bool,
    /// How often in a row it failed.
    failures: u32,
    /// How many changes there had been.
    changes: u64,
}

impl Review {
    /// Asks this reviewer too, for no longer than this.
    #[must_use]
    pub fn by(reviewer: Arc<dyn Reviewer>, patience: Duration) -> Self {
        Self { reviewer: Some((reviewer, patience)), ..Self::default() }
    }

    /// Looks at a call; `changes` says whether it may have changed something.
    pub(crate) async fn look(&self, call: &ToolCall, changes: bool, outcome: &mut Outcome, stop: &Stop) {
        if changes && outcome.verdict.success {
            self.ask(call, outcome, stop).await;
        }
        self.compare(call, changes, outcome);
    }

    async fn ask(&self, call: &ToolCall, outcome: &mut Outcome, stop: &Stop) {
        let Some((reviewer, patience)) = &self.reviewer else { return };
        let opinion = tokio::select! {
            biased;
            _reason = stop.stopped() => return,
            opinion = tokio::time::timeout(*patience, reviewer.review(call, outcome)) => opinion,
        };
        match opinion {
            Ok(Ok(opinion)) => outcome.verdict.lower(opinion),
            Ok(Err(why)) => {
                outcome.verdict.reasons.push(format!("the model could not be asked about it: {why}"))
            }
            Err(_too_late) => {
                let seconds = patience.as_secs_f32();
                outcome
                    .verdict
                    .reasons
                    .push(format!("the model was asked about it and did not answer in {seconds} s"));
            }
        }
    }

    fn compare(&self, call: &ToolCall, changes: bool, outcome: &mut Outcome) {
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.changes += u64::from(changes);
        // Whatever is asked of a tool that does not exist, the mistake is one.
        let input = (!outcome.receipt.unknown_tool).then(|| call.input.as_str());
        let key = hash(&(call.name.as_str(), input));
        let before = earlier.calls.get(&key).copied();
        let result = fingerprint(outcome);
        let mut now =
            Seen { result, success: outcome.verdict.success, failures: 0, changes: earlier.changes };
        match before {
            Some(before) if !now.success && !before.success => {
                now.failures = before.failures.saturating_add(1);
                let times = now.failures.saturating_add(1);
                let what = if input.is_some() { "this very call" } else { "a call of this name" };
                let how = if before.result == result { "the same way" } else { "too" };
                outcome.verdict.reasons.push(format!("{what} failed {how} before ({times} times in a row)"));
                let idle = now.changes - before.changes <= u64::from(changes);
                outcome.verdict.suggestions.push(advice(times, idle).to_owned());
            }
            Some(before) if !now.success && before.success => {
                outcome.verdict.reasons.push("this very call succeeded before".to_owned());
            }
            Some(before)
                if !changes && before.success && before.changes == now.changes && before.result != result =>
            {
                outcome.verdict.lower(Opinion {
                    success: true,
                    confidence: outcome.verdict.confidence.saturating_sub(DIFFERENT),
                    reasons: vec![
                        "its result differs from before, and nothing was changed here since".to_owned(),
                    ],
                    suggestions: Vec::new(),
                });
            }
            _ => {}
        }
        if earlier.calls.len() >= REMEMBERED && !earlier.calls.contains_key(&key) {
            earlier.calls.clear();
        }
        earlier.calls.insert(key, now);
    }
}

/// So many failures in a row, with nothing changed in between, look like a circle. Who runs the turn ends it if that goes on.
const CIRCLE: u32 = 3;

fn advice(times: u32, idle: bool) -> &'static str {
    if times >= CIRCLE && idle {
        "stop repeating it: do something else, or answer with what stands in the way; a turn that goes on like this is ended"
    } else {
        "do something else instead of repeating it"
    }
}

/// What tells two results of the same call apart: how it ended and what it gave, not how long it took.
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
