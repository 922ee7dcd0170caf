//! Remembers the calls of a session that have ended, so that repetitions are noticed.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

use windlass_contract::{Content, Outcome, ToolCall, host::Exit};

/// Maximum number of calls that are remembered. Repetitions usually follow soon, and to forget them
/// only delays the end of a loop.
pub(crate) const MAX_REMEMBERED_CALLS: usize = 4096;

/// The ended calls of a session, in the order of their ends. The review compares a call with
/// earlier ones, and the loop detector looks for repetitions.
#[derive(Debug, Default)]
pub struct CallHistory {
    pub(crate) calls: VecDeque<PastCall>,
    /// Number of calls that were removed from the beginning.
    forgotten: usize,
}

/// An ended call, reduced to what tells it from others.
#[derive(Debug, Clone, Copy)]
pub struct PastCall {
    /// A hash of the name and the input. All calls of an unknown tool are the same mistake, so only
    /// their name counts.
    pub(crate) call: u64,
    /// A hash of the end and the content, but not of the duration.
    pub(crate) result: u64,
    pub(crate) is_unknown: bool,
    pub(crate) success: bool,
    /// The call may have changed something.
    pub(crate) changes: bool,
}

impl PastCall {
    /// Describes an ended call, as one that changes nothing.
    pub fn new(call: &ToolCall, outcome: &Outcome) -> Self {
        let is_unknown = outcome.receipt.unknown_tool;
        let input = (!is_unknown).then(|| call.input.as_str());
        Self {
            call: hash(&(call.name.as_str(), input)),
            result: hash_result(outcome),
            is_unknown,
            success: outcome.verdict.success,
            changes: false,
        }
    }

    /// Returns true if the other is the same call, with any result.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        self.call == other.call
    }

    /// Returns true if both calls had the same result.
    pub(crate) fn has_same_result(&self, other: &Self) -> bool {
        self.result == other.result
    }

    /// Returns true if the other is the same call and succeeded or failed the same way. Of an
    /// unknown tool, every call does.
    fn is_repeated_by(&self, other: &Self) -> bool {
        self.is_same_call(other)
            && self.success == other.success
            && (self.is_unknown || self.has_same_result(other))
    }
}

impl CallHistory {
    /// Adds a call that has ended.
    pub fn push(&mut self, call: PastCall) {
        if self.calls.len() >= MAX_REMEMBERED_CALLS {
            self.calls.pop_front();
            self.forgotten += 1;
        }
        self.calls.push_back(call);
    }

    /// Returns the number of calls that have ended so far.
    pub fn count(&self) -> usize {
        self.forgotten + self.calls.len()
    }

    /// Returns how often a call ended this way within a range of [`count`](Self::count).
    pub fn repetitions(&self, call: &PastCall, range: Range<usize>) -> usize {
        let (start, end) =
            (range.start.saturating_sub(self.forgotten), range.end.saturating_sub(self.forgotten));
        let calls = self.calls.iter().take(end).skip(start);
        calls.filter(|past| call.is_repeated_by(past)).count()
    }

    /// Returns the last time that the same call ended, and whether something may have changed
    /// since.
    pub(crate) fn last(&self, call: &PastCall) -> Option<(PastCall, bool)> {
        let at = self.calls.iter().rposition(|past| past.is_same_call(call))?;
        let changed = self.calls.iter().skip(at + 1).any(|past| past.changes);
        Some((*self.calls.get(at)?, changed))
    }

    /// Returns how often in a row the same call has failed.
    pub(crate) fn failures_in_a_row(&self, call: &PastCall) -> usize {
        let same = self.calls.iter().rev().filter(|past| past.is_same_call(call));
        same.take_while(|past| !past.success).count()
    }
}

fn hash_result(outcome: &Outcome) -> u64 {
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
mod tests {
    use windlass_contract::{Input, Verdict};

    use super::*;

    fn past(input: usize, text: &str) -> PastCall {
        let call = ToolCall { id: "c".into(), name: "t".into(), input: Input::Json(input.to_string()) };
        PastCall::new(&call, &Outcome::plain(Verdict::success(), text))
    }

    #[test]
    fn what_was_forgotten_still_counts_and_is_not_found() {
        let mut history = CallHistory::default();
        (0..=MAX_REMEMBERED_CALLS).for_each(|input| history.push(past(input, "x")));
        assert_eq!(history.count(), MAX_REMEMBERED_CALLS + 1);
        assert_eq!(history.repetitions(&past(0, "x"), 0..history.count()), 0);
        assert_eq!(history.repetitions(&past(1, "x"), 0..2), 1);
        assert_eq!(history.repetitions(&past(1, "x"), 2..history.count()), 0);
        assert_eq!(history.repetitions(&past(1, "y"), 0..2), 0, "another result is no repetition");
    }
}
