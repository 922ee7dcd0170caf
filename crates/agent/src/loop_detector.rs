//! Loop detection: finds turns whose calls fail as they failed before, or that bring nothing new
//! for long. Waiting is not a loop, even a long one: the time limit ends that.

use std::{
    collections::VecDeque,
    mem,
    time::{Duration, Instant},
};

use windlass_runtime::{CallHistory, FinishedCall, PastCall};

/// Number of answers with a call that failed the same way before, after which the turn ends. From
/// the second on, the result warns the model.
const MAX_REPEATED_FAILURES: usize = 8;

/// Number of answers without anything new after which the turn ends.
const MAX_IDLE_ANSWERS: usize = 32;

/// Minimum duration of the calls of an answer that counts as waiting, and not for a loop.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Minimum average interval of answers that are no loop: a model that polls something also waits,
/// if only in a separate call before each poll.
const MIN_ANSWER_INTERVAL: Duration = Duration::from_secs(15);

/// The loop detector of one turn. It remembers no calls, but places in the history of the session.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    /// The first call of the turn.
    turn_start: usize,
    /// The first call after the last new result.
    idle_start: usize,
    /// The first call of the next answer.
    answer_start: usize,
    repeated: AnswerStreak<MAX_REPEATED_FAILURES>,
    idle: AnswerStreak<MAX_IDLE_ANSWERS>,
}

impl LoopDetector {
    /// Creates a detector for a turn that begins now.
    pub(crate) fn new(history: &CallHistory) -> Self {
        let start = history.count();
        Self { turn_start: start, idle_start: start, answer_start: start, ..Self::default() }
    }

    /// Notes the calls of one answer, which the history has already. Returns a message if the turn
    /// should end.
    pub(crate) fn note(
        &mut self,
        calls: &[FinishedCall],
        history: &CallHistory,
        now: Instant,
    ) -> Option<String> {
        let end = history.count();
        let start = mem::replace(&mut self.answer_start, end);
        let (mut new, mut again) = (false, None);
        for FinishedCall { call, outcome, .. } in calls {
            let past = PastCall::new(call, outcome);
            if outcome.verdict.success {
                new |= history.repetitions(&past, self.turn_start..start) == 0;
            } else if history.repetitions(&past, self.idle_start..start) > 0
                || history.repetitions(&past, start..end) > 1
            {
                again = Some(&call.name);
            }
        }
        if new {
            self.idle_start = end;
            (self.repeated, self.idle) = (AnswerStreak::default(), AnswerStreak::default());
            return None;
        }
        if calls.iter().map(|finished| finished.outcome.receipt.duration).sum::<Duration>() >= MIN_WAIT {
            return None;
        }
        let idle = self.idle.is_complete(now);
        match again {
            Some(tool) if self.repeated.is_complete(now) => Some(format!(
                "`{tool}` was called again and failed again, {MAX_REPEATED_FAILURES} times, and nothing else came of the turn"
            )),
            _ if idle => {
                Some(format!("{MAX_IDLE_ANSWERS} answers of the model in a row brought nothing new"))
            }
            _ => None,
        }
    }
}

/// Times of the last `MAX` answers of a kind.
#[derive(Debug, Default)]
struct AnswerStreak<const MAX: usize>(VecDeque<Instant>);

impl<const MAX: usize> AnswerStreak<MAX> {
    /// Counts one more. Returns true if too many came too fast.
    fn is_complete(&mut self, now: Instant) -> bool {
        self.0.push_back(now);
        if self.0.len() > MAX {
            self.0.pop_front();
        }
        let took = self.0.front().map_or(Duration::ZERO, |first| now.saturating_duration_since(*first));
        let answers = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.len() == MAX && took < MIN_ANSWER_INTERVAL.saturating_mul(answers)
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Effects, Input, Outcome, ToolCall, Verdict,
        outcome::{Receipt, Status},
    };
    use windlass_fakes::clean;

    use super::*;

    fn ended(name: &str, input: &str, status: Status, text: &str) -> FinishedCall {
        let verdict = if status == Status::Success { Verdict::success() } else { Verdict::failure("no") };
        let outcome = clean(Outcome { status, ..Outcome::plain(verdict, text) });
        let call = ToolCall { id: "c".into(), name: name.into(), input: Input::Json(input.into()) };
        FinishedCall { call, arguments: None, effects: Effects::none(), outcome }
    }

    /// Returns the number of answers after which a turn ends if these answers repeat without a
    /// pause.
    fn ends_after(answer: impl Fn(usize) -> Vec<FinishedCall>) -> Option<usize> {
        ends_at_pace(|_| Duration::ZERO, answer)
    }

    /// Like `ends_after`, with a pause before each answer.
    fn ends_at_pace(
        pause: impl Fn(usize) -> Duration,
        answer: impl Fn(usize) -> Vec<FinishedCall>,
    ) -> Option<usize> {
        let mut history = CallHistory::default();
        let (mut detector, mut now) = (LoopDetector::new(&history), Instant::now());
        let mut ends = |round: &usize| {
            now += pause(*round);
            let calls = answer(*round);
            for FinishedCall { call, outcome, .. } in &calls {
                history.push(PastCall::new(call, outcome));
            }
            detector.note(&calls, &history, now).is_some()
        };
        (0..200).find(&mut ends).map(|round| round + 1)
    }

    #[test]
    fn what_an_earlier_turn_brought_is_new_in_this_one() {
        let mut history = CallHistory::default();
        let calls = [ended("ls", "{}", Status::Success, "x")];
        history.push(PastCall::new(&calls[0].call, &calls[0].outcome));
        let mut detector = LoopDetector::new(&history);
        history.push(PastCall::new(&calls[0].call, &calls[0].outcome));
        assert_eq!(detector.note(&calls, &history, Instant::now()), None);
        assert_eq!(detector.idle_start, 2);
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn with_receipt(ended: FinishedCall, change: impl FnOnce(&mut Receipt)) -> FinishedCall {
        let mut outcome = ended.outcome.into_inner();
        change(&mut outcome.receipt);
        FinishedCall { outcome: clean(outcome), ..ended }
    }

    fn lasting(duration: Duration, ended: FinishedCall) -> FinishedCall {
        with_receipt(ended, |receipt| receipt.duration = duration)
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
            let ended = ended("browser", &round.to_string(), Status::NotFound, "no such tool");
            vec![with_receipt(ended, |receipt| receipt.unknown_tool = true)]
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
