//! Tests of the review and its effects on a verdict.

use windlass_contract::{BoxFuture, Input, Verdict, outcome::Status};

use super::*;
use crate::{Reason, call_history::MAX_REMEMBERED_CALLS};

fn call(input: &str) -> ToolCall {
    ToolCall { id: "c".into(), name: "t".into(), input: Input::Json(input.into()) }
}

fn ended(verdict: Verdict, text: &str) -> Outcome {
    Outcome::plain(verdict, text)
}

/// Runs calls through one review: input, whether it changes something, whether it succeeded, text.
async fn verdicts(review: &Review, calls: &[(&str, bool, bool, &str)]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (input, changes, success, text) in calls {
        let verdict = if *success { Verdict::success() } else { Verdict::failure("no") };
        let outcome = ended(verdict, text);
        verdicts.push(review.look(&call(input), *changes, &outcome, &Stop::default()).await);
    }
    verdicts
}

#[tokio::test]
async fn a_call_that_fails_again_is_told_so_with_how_often() {
    let told = verdicts(
        &Review::default(),
        &[("a", true, false, "x"), ("b", true, false, "x"), ("a", true, false, "x"), ("a", true, false, "y")],
    )
    .await;
    assert_eq!(told[0].reasons, ["no"]);
    assert_eq!(told[1].reasons, ["no"], "another call is not this one");
    assert_eq!(told[2].reasons, ["no", "this very call failed the same way before (2 times in a row)"]);
    assert_eq!(told[2].suggestions, ["do something else instead of repeating it"]);
    assert_eq!(told[3].reasons, ["no", "this very call failed too before (3 times in a row)"]);
}

#[tokio::test]
async fn a_success_in_between_ends_the_row() {
    let told = verdicts(
        &Review::default(),
        &[("a", true, false, "x"), ("a", true, true, "ok"), ("a", true, false, "x"), ("a", true, false, "x")],
    )
    .await;
    assert_eq!(told[1], Verdict::success());
    assert_eq!(told[2].reasons, ["no", "this very call succeeded before"]);
    assert_eq!(told[3].reasons[1], "this very call failed the same way before (2 times in a row)");
}

#[tokio::test]
async fn a_result_that_differs_without_a_reason_is_less_sure() {
    let calls = [("a", false, true, "1"), ("a", false, true, "1"), ("a", false, true, "2")];
    let told = verdicts(&Review::default(), &calls).await;
    assert_eq!((told[1].success, told[1].confidence), (true, 100));
    assert_eq!((told[2].success, told[2].confidence), (true, 90));
    assert_eq!(told[2].reasons, ["its result differs from before, and nothing was changed here since"]);
    let calls = [("a", false, true, "1"), ("b", true, true, ""), ("a", false, true, "2")];
    let told = verdicts(&Review::default(), &calls).await;
    assert_eq!(told[2], Verdict::success(), "something was changed in between");
}

#[tokio::test]
async fn memory_is_bounded() {
    let review = Review::default();
    for number in 0..=MAX_REMEMBERED_CALLS {
        verdicts(&review, &[(&number.to_string(), false, false, "x")]).await;
    }
    assert!(review.history.lock().unwrap().calls.len() <= MAX_REMEMBERED_CALLS);
}

/// Says this of everything, or nothing at all.
struct Says(Option<Result<Opinion, String>>);

impl Reviewer for Says {
    fn review<'a>(
        &'a self,
        _call: &'a ToolCall,
        _outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Opinion, String>> {
        Box::pin(async {
            match &self.0 {
                Some(opinion) => opinion.clone(),
                None => std::future::pending().await,
            }
        })
    }
}

fn opinion(success: bool, confidence: u8) -> Opinion {
    Opinion { success, confidence, reasons: vec!["look".into()], suggestions: vec!["fix it".into()] }
}

async fn reviewed(says: Option<Result<Opinion, String>>, changes: bool, success: bool) -> Verdict {
    let review = Review::with_reviewer(Arc::new(Says(says)), Duration::from_millis(1));
    verdicts(&review, &[("a", changes, success, "x")]).await.remove(0)
}

#[tokio::test]
async fn a_reviewer_can_turn_a_success_into_a_failure_and_never_the_other_way() {
    let lowered = reviewed(Some(Ok(opinion(false, 80))), true, true).await;
    assert_eq!((lowered.success, lowered.confidence), (false, 80));
    assert_eq!((lowered.reasons, lowered.suggestions), (vec!["look".into()], vec!["fix it".into()]));
    let doubtful = reviewed(Some(Ok(opinion(true, 60))), true, true).await;
    assert_eq!((doubtful.success, doubtful.confidence), (true, 60));
    let failed = reviewed(Some(Ok(opinion(true, 100))), true, false).await;
    assert_eq!(failed, Verdict::failure("no"));
}

#[tokio::test]
async fn a_reviewer_is_not_asked_about_calls_that_change_nothing() {
    assert_eq!(reviewed(Some(Ok(opinion(false, 80))), false, true).await, Verdict::success());
}

#[tokio::test]
async fn a_reviewer_that_has_no_answer_leaves_the_verdict_and_is_mentioned() {
    let broken = reviewed(Some(Err("no route".into())), true, true).await;
    assert!(broken.success);
    assert_eq!(broken.reasons, ["the model could not be asked about it: no route"]);
    let late = reviewed(None, true, true).await;
    assert!(late.success);
    assert_eq!(late.reasons, ["the model was asked about it and did not answer in 0.001 s"]);
}

#[tokio::test]
async fn nobody_waits_for_a_reviewer_once_the_turn_is_stopped() {
    let review = Review::with_reviewer(Arc::new(Says(None)), Duration::from_hours(1));
    let stop = Stop::default();
    stop.stop(Reason::Interrupted);
    let outcome = ended(Verdict::success(), "x");
    let verdict = review.look(&call("a"), true, &outcome, &stop).await;
    assert_eq!(verdict, Verdict::success());
}

#[tokio::test]
async fn a_call_that_fails_a_third_time_is_told_that_the_turn_will_end() {
    let last = |told: Vec<Verdict>| told.into_iter().next_back().unwrap().suggestions;
    let fails = ("a", true, false, "x");
    let told = last(verdicts(&Review::default(), &[fails, fails, fails]).await);
    assert!(told[0].contains("is ended"), "{told:?}");
    let told = last(verdicts(&Review::default(), &[fails, fails, ("b", true, true, ""), fails]).await);
    assert_eq!(told, ["do something else instead of repeating it"], "something was changed in between");
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_one_mistake_whatever_it_is_asked() {
    let review = Review::default();
    let mut told = Vec::new();
    for input in ["1", "2"] {
        let mut outcome = Outcome { status: Status::NotFound, ..ended(Verdict::failure("no"), "x") };
        outcome.receipt.unknown_tool = true;
        told = review.look(&call(input), false, &outcome, &Stop::default()).await.reasons;
    }
    assert_eq!(told, ["no", "a call of this name failed the same way before (2 times in a row)"]);
}
