//! Notices a turn that goes in circles: calls that fail as they failed before, or that bring nothing new for long.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use windlass_contract::{Outcome, Status, ToolCall};
use windlass_runtime::fingerprint;

/// So many answers in a row with a call that had failed before end the turn. Its result tells the model so from the second on.
const REPEATED: u32 = 8;

/// So many answers in a row without anything new end the turn: more than anyone waits for something that never changes.
const IDLE: u32 = 32;

/// So many results are remembered; forgetting them only makes the brake later.
const REMEMBERED: usize = 4096;

/// The brake of one turn.
#[derive(Debug, Default)]
pub(crate) struct Brake {
    /// What succeeded, with its result.
    done: HashSet<u64>,
    /// What failed since something new came of a call.
    failed: HashSet<u64>,
    repeated: u32,
    idle: u32,
}

impl Brake {
    /// Takes note of what came of one answer. Says what goes on if the turn should end.
    pub(crate) fn note(&mut self, calls: &[(ToolCall, Outcome)]) -> Option<String> {
        let (mut new, mut again) = (false, None);
        for (call, outcome) in calls {
            if outcome.verdict.success {
                new |=
                    self.done.insert(hash(&(call.name.as_str(), call.input.as_str(), fingerprint(outcome))));
            } else if !self.failed.insert(failure(call, outcome)) {
                again = Some(&call.name);
            }
        }
        if new {
            self.failed.clear();
            (self.repeated, self.idle) = (0, 0);
        } else {
            self.repeated += u32::from(again.is_some());
            self.idle += 1;
        }
        if self.done.len().max(self.failed.len()) > REMEMBERED {
            self.done.clear();
            self.failed.clear();
        }
        match again {
            Some(tool) if self.repeated >= REPEATED => Some(format!(
                "`{tool}` was called again and failed again, {REPEATED} times, and nothing else came of the turn"
            )),
            _ if self.idle >= IDLE => {
                Some(format!("{IDLE} answers of the model in a row brought nothing new"))
            }
            _ => None,
        }
    }
}

/// What makes a failed call the same as another. Their texts may differ by a time or an address, and whatever is asked
/// of a tool that does not exist, the mistake is one.
fn failure(call: &ToolCall, outcome: &Outcome) -> u64 {
    let input = (outcome.status != Status::NotFound).then(|| call.input.as_str());
    hash(&(call.name.as_str(), input))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Content, Facts, Input, Receipt, Verdict, View};

    use super::*;

    fn ended(name: &str, input: &str, status: Status, text: &str) -> (ToolCall, Outcome) {
        let verdict = if status == Status::Success { Verdict::success() } else { Verdict::failure("no") };
        let outcome = Outcome {
            status,
            content: vec![Content::Text(text.into())],
            view: View::default(),
            data: None,
            facts: Facts::None,
            insight: None,
            verdict,
            receipt: Receipt::default(),
        };
        (ToolCall { id: "c".into(), name: name.into(), input: Input::Json(input.into()) }, outcome)
    }

    /// After how many answers a turn is ended whose answers are these, over and over.
    fn ends_after(answer: impl Fn(usize) -> Vec<(ToolCall, Outcome)>) -> Option<usize> {
        let mut brake = Brake::default();
        (0..200).find(|round| brake.note(&answer(*round)).is_some()).map(|round| round + 1)
    }

    #[test]
    fn a_call_that_only_fails_again_ends_the_turn() {
        let fails = |round: usize| vec![ended("make", "{}", Status::Error, &format!("at {round}"))];
        assert_eq!(ends_after(fails), Some(9), "once, and eight times again");
        let circle = |round: usize| vec![ended(["a", "b", "c"][round % 3], "{}", Status::Error, "")];
        assert_eq!(ends_after(circle), Some(11));
        let looks = |_| vec![ended("ls", "{}", Status::Success, "x"), ended("make", "{}", Status::Error, "")];
        assert_eq!(ends_after(looks), Some(10), "looking at the same thing in between changes nothing");
    }

    #[test]
    fn a_tool_that_does_not_exist_is_one_mistake_whatever_it_is_asked() {
        let asks =
            |round: usize| vec![ended("browser", &round.to_string(), Status::NotFound, "no such tool")];
        assert_eq!(ends_after(asks), Some(9));
    }

    #[test]
    fn work_between_failures_is_no_circle() {
        let works = |round: usize| match round % 2 {
            0 => vec![ended("make", "{}", Status::Error, "one error")],
            _ => vec![ended("apply_patch", &round.to_string(), Status::Success, "done")],
        };
        assert_eq!(ends_after(works), None);
        let back_and_forth = |round: usize| match round % 2 {
            0 => vec![ended("make", "{}", Status::Error, "one error")],
            _ => vec![ended("apply_patch", &(round / 2 % 2).to_string(), Status::Success, "done")],
        };
        assert_eq!(ends_after(back_and_forth), Some(21), "the same two patches over and over");
    }

    #[test]
    fn what_brings_nothing_new_may_go_on_for_a_while() {
        let waits = |_| vec![ended("tail", "{}", Status::Success, "not yet")];
        assert_eq!(ends_after(waits), Some(33));
        let wild = |round: usize| vec![ended("sh", &round.to_string(), Status::Error, "")];
        assert_eq!(ends_after(wild), Some(32));
    }
}
