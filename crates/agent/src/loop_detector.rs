//! Detects loops: turns whose calls fail as they failed before, or that bring nothing new for long.
//! Waiting is no loop, however long it takes: the limit on time ends that.

use std::{
    collections::{HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use windlass_contract::{Outcome, ToolCall};
use windlass_runtime::{FinishedCall, fingerprint};

/// So many answers with a call that had failed the same way before end the turn. Its result tells the model so from the
/// second on.
const REPEATED: usize = 8;

/// So many answers without anything new end the turn.
const IDLE: usize = 32;

/// An answer whose calls took so long together has waited for something, and counts for nothing.
const WAITED: Duration = Duration::from_secs(1);

/// Answers that come no faster than this, on average, are no circle: who looks after something once in a while also
/// waits, if only in a call of its own before each look.
const PACE: Duration = Duration::from_secs(15);

/// So many results are remembered; forgetting them only delays the end of a loop.
const REMEMBERED: usize = 4096;

/// The loop detector of one turn.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    /// What succeeded, with its result.
    done: HashSet<u64>,
    /// What failed since something new came of a call.
    failed: HashSet<u64>,
    repeated: Streak<REPEATED>,
    idle: Streak<IDLE>,
}

impl LoopDetector {
    /// Takes note of what came of one answer by now. Says what goes on if the turn should end.
    pub(crate) fn note(&mut self, calls: &[FinishedCall], now: Instant) -> Option<String> {
        if self.done.len().max(self.failed.len()) > REMEMBERED {
            self.done.clear();
            self.failed.clear();
        }
        let (mut new, mut again) = (false, None);
        for FinishedCall { call, outcome, .. } in calls {
            if outcome.verdict.success {
                new |=
                    self.done.insert(hash(&(call.name.as_str(), call.input.as_str(), fingerprint(outcome))));
            } else if !self.failed.insert(failure(call, outcome)) {
                again = Some(&call.name);
            }
        }
        if new {
            self.failed.clear();
            (self.repeated, self.idle) = (Streak::default(), Streak::default());
            return None;
        }
        if calls.iter().map(|finished| finished.outcome.receipt.duration).sum::<Duration>() >= WAITED {
            return None;
        }
        let idle = self.idle.is_complete(now);
        match again {
            Some(tool) if self.repeated.is_complete(now) => Some(format!(
                "`{tool}` was called again and failed again, {REPEATED} times, and nothing else came of the turn"
            )),
            _ if idle => Some(format!("{IDLE} answers of the model in a row brought nothing new")),
            _ => None,
        }
    }
}

/// When the last answers of a kind came, of those of which so many are too many.
#[derive(Debug, Default)]
struct Streak<const MOST: usize>(VecDeque<Instant>);

impl<const MOST: usize> Streak<MOST> {
    /// Counts one more. Tells whether too many came too fast.
    fn is_complete(&mut self, now: Instant) -> bool {
        self.0.push_back(now);
        if self.0.len() > MOST {
            self.0.pop_front();
        }
        let took = self.0.front().map_or(Duration::ZERO, |first| now.saturating_duration_since(*first));
        let answers = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.len() == MOST && took < PACE.saturating_mul(answers)
    }
}

/// What makes a failed call the same as another: it was asked the same and gave the same. Whatever is asked of a tool
/// that does not exist, the mistake is one.
fn failure(call: &ToolCall, outcome: &Outcome) -> u64 {
    let what = (!outcome.receipt.unknown_tool).then(|| (call.input.as_str(), fingerprint(outcome)));
    hash(&(call.name.as_str(), what))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Effects, Input, Verdict, outcome::Status};

    use super::*;

    fn ended(name: &str, input: &str, status: Status, text: &str) -> FinishedCall {
        let verdict = if status == Status::Success { Verdict::success() } else { Verdict::failure("no") };
        let outcome = Outcome { status, ..Outcome::plain(verdict, text) };
        let call = ToolCall { id: "c".into(), name: name.into(), input: Input::Json(input.into()) };
        FinishedCall { call, arguments: None, effects: Effects::none(), outcome }
    }

    /// After how many answers a turn is ended whose answers are these, over and over, as fast as can be.
    fn ends_after(answer: impl Fn(usize) -> Vec<FinishedCall>) -> Option<usize> {
        ends_at_pace(|_| Duration::ZERO, answer)
    }

    /// The same, if so much time goes by before each.
    fn ends_at_pace(
        pause: impl Fn(usize) -> Duration,
        answer: impl Fn(usize) -> Vec<FinishedCall>,
    ) -> Option<usize> {
        let (mut detector, mut now) = (LoopDetector::default(), Instant::now());
        let mut ends = |round: &usize| {
            now += pause(*round);
            detector.note(&answer(*round), now).is_some()
        };
        (0..200).find(&mut ends).map(|round| round + 1)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn lasting(duration: Duration, mut ended: FinishedCall) -> FinishedCall {
        ended.outcome.receipt.duration = duration;
        ended
    }

    #[test]
    fn a_call_that_only_fails_again_ends_the_turn() {
        let fails = |_| vec![ended("make", "{}", Status::Error, "one error")];
        assert_eq!(ends_after(fails), Some(9), "once, and eight times again");
        assert_eq!(ends_at_pace(|_| seconds(10), fails), Some(9), "a model may think about it");
        let circle = |round: usize| vec![ended(["a", "b", "c"][round % 3], "{}", Status::Error, "")];
        assert_eq!(ends_after(circle), Some(11));
        let looks = |_| vec![ended("ls", "{}", Status::Success, "x"), ended("make", "{}", Status::Error, "")];
        assert_eq!(ends_after(looks), Some(10), "looking at the same thing in between changes nothing");
    }

    #[test]
    fn a_tool_that_does_not_exist_is_one_mistake_whatever_it_is_asked() {
        let asks = |round: usize| {
            let mut ended = ended("browser", &round.to_string(), Status::NotFound, "no such tool");
            ended.outcome.receipt.unknown_tool = true;
            vec![ended]
        };
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
    fn failures_that_differ_are_no_repetition_but_nothing_new_either() {
        let fails = |round: usize| vec![ended("checks", "{}", Status::Error, &format!("{round} pending"))];
        assert_eq!(ends_after(fails), Some(32));
    }

    #[test]
    fn an_answer_whose_calls_took_their_time_counts_for_nothing() {
        let waits = |status, millis| {
            move |_| vec![lasting(Duration::from_millis(millis), ended("sh", "sleep 2; cat x", status, ""))]
        };
        assert_eq!(ends_after(waits(Status::Error, 1000)), None);
        assert_eq!(ends_after(waits(Status::Success, 1000)), None);
        assert_eq!(ends_after(waits(Status::Error, 999)), Some(9));
        let both = |_| [waits(Status::Error, 500)(0), waits(Status::Success, 500)(0)].concat();
        assert_eq!(ends_after(both), None, "together");
    }

    #[test]
    fn who_looks_once_in_a_while_goes_in_no_circle() {
        let looks = |status| move |_| vec![ended("tail", "build.log", status, "not yet")];
        for status in [Status::Success, Status::Error] {
            assert_eq!(ends_at_pace(|_| seconds(60), looks(status)), None);
            let between = |round: usize| match round % 2 {
                0 => vec![lasting(seconds(30), ended("sh", "sleep 30", Status::Success, ""))],
                _ => looks(status)(round),
            };
            assert_eq!(ends_at_pace(|round| seconds([30, 0][round % 2]), between), None, "{status:?}");
        }
        let hurries = |round| if round < 100 { seconds(60) } else { seconds(1) };
        assert_eq!(ends_at_pace(hurries, looks(Status::Error)), Some(106), "what was slow is forgotten");
    }

    #[test]
    fn what_brings_nothing_new_may_go_on_for_a_while() {
        let waits = |_| vec![ended("tail", "{}", Status::Success, "not yet")];
        assert_eq!(ends_after(waits), Some(33));
        let wild = |round: usize| vec![ended("sh", &round.to_string(), Status::Error, "")];
        assert_eq!(ends_after(wild), Some(32));
    }
}
