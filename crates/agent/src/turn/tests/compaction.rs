//! Conversations that are made shorter during a turn.

use windlass_contract::compaction::{CompactionMethod, CompactionReason};

use super::*;
use crate::BudgetLimits;

fn too_long(window: Option<u64>, requested: Option<u64>) -> Step {
    Step::Refuse(ModelError::ContextWindowExceeded { window, requested })
}

impl World {
    /// Adds an answer to a request for a summary.
    fn with_summary(self, steps: Vec<Step>) -> Self {
        self.model.summaries.lock().unwrap().push_back(steps);
        self
    }
}

/// Rounds of remarks and calls, more than a small window takes.
fn rounds(count: usize) -> Vec<Vec<Step>> {
    let round =
        |number: usize| vec![says(&"word ".repeat(120)), call(&format!("c{number}"), "count"), done(1)];
    (0..count).map(round).collect()
}

fn compactions(world: &World) -> Vec<(CompactionReason, CompactionMethod, bool)> {
    let ended = world.watcher.events().into_iter().filter_map(|event| match event {
        Event::CompactionEnded { reason, method, tokens_before, tokens_after, .. } => {
            Some((reason, method, tokens_after < tokens_before))
        }
        _ => None,
    });
    ended.collect()
}

/// Asserts that each call in a request is followed by its output, before the next message.
fn assert_paired(request: &[String]) {
    let calls = request.iter().filter_map(|item| item.strip_prefix("call "));
    for id in calls {
        let outputs = request.iter().filter(|item| item.starts_with(&format!("{id} -> "))).count();
        assert_eq!(outputs, 1, "{id} in {request:?}");
    }
    let outputs =
        request.iter().filter(|item| item.contains(" -> ") && !item.contains("conversation_summary"));
    for output in outputs {
        let id = output.split(" -> ").next().unwrap();
        assert!(request.contains(&format!("call {id}")), "{output}");
    }
}

#[tokio::test]
async fn a_full_window_leads_to_a_summary_by_the_model_and_the_turn_goes_on() {
    let mut answers = rounds(12);
    answers.push(vec![says("ok"), done(1)]);
    let world = World { window: Some(1700), compact_at: CompactAt::Percent(80), ..World::new(answers) }
        .with_summary(vec![says("SUMMARY: twelve rounds"), done(1)]);
    let ended = world.turn().await;
    ended.result.unwrap();
    assert_eq!(ended.answer, "ok");
    assert_eq!(compactions(&world), [(CompactionReason::Window, CompactionMethod::Summary, true)]);
    let last = world.heard(world.requests() - 1);
    assert_eq!(last[0], "user: go");
    assert!(
        last[1].contains("<conversation_summary>") && last[1].contains("SUMMARY: twelve rounds"),
        "{last:?}"
    );
    assert_paired(&last);
    let types = world.journal.types();
    assert_eq!(types.iter().filter(|kind| *kind == "compacted").count(), 1);
}

#[tokio::test]
async fn a_refused_request_is_made_shorter_and_sent_once_more() {
    let mut answers = rounds(8);
    answers.push(vec![too_long(Some(1500), Some(1800))]);
    answers.push(vec![says("ok"), done(1)]);
    let refused = ModelError::InvalidRequest { status: 400, message: "no summary".into() };
    let world =
        World { window: Some(100_000), ..World::new(answers) }.with_summary(vec![Step::Fail(refused)]);
    let ended = world.turn().await;
    ended.result.unwrap();
    assert_eq!(compactions(&world), [(CompactionReason::ContextError, CompactionMethod::Rules, true)]);
    assert!(world.warnings()[0].contains("so rules do it"), "{:?}", world.warnings());
    let last = world.heard(world.requests() - 1);
    assert!(last.iter().any(|item| item.contains("- count {} ->")), "{last:?}");
    assert_paired(&last);
}

#[tokio::test]
async fn a_second_refusal_ends_the_turn() {
    let mut answers = rounds(8);
    answers.push(vec![too_long(None, None)]);
    answers.push(vec![too_long(None, None)]);
    let world =
        World { window: Some(100_000), ..World::new(answers) }.with_summary(vec![says("summary"), done(1)]);
    let error = world.turn().await.result.unwrap_err();
    assert!(matches!(error, AgentError::Model(ModelError::ContextWindowExceeded { .. })), "{error}");
    assert_eq!(compactions(&world).len(), 1);
}

#[tokio::test]
async fn where_compaction_is_off_the_window_is_only_warned_of() {
    let mut answers = rounds(8);
    answers.push(vec![says("ok"), done(1)]);
    let world = World { window: Some(900), compact_at: CompactAt::Off, ..World::new(answers) };
    world.turn().await.result.unwrap();
    assert_eq!((compactions(&world), world.warnings().len()), (Vec::new(), 2));
}

#[tokio::test]
async fn requests_only_grow_at_their_end_between_compactions() {
    let mut answers = rounds(12);
    answers.push(vec![call("late", "count"), done(1)]);
    answers.push(vec![says("ok"), done(1)]);
    let world = World { window: Some(1700), compact_at: CompactAt::Percent(80), ..World::new(answers) }
        .with_summary(vec![says("SUMMARY"), done(1)]);
    world.turn().await.result.unwrap();
    let requests: Vec<_> = (0..world.requests()).map(|at| world.heard(at)).collect();
    let breaks = requests.windows(2).filter(|pair| !pair[1].starts_with(&pair[0])).count();
    assert_eq!(breaks, 1, "only the compaction changes what was sent");
    assert!(requests.iter().all(|request| request[0] == "user: go"));
}

#[tokio::test]
async fn a_summary_is_a_request_and_beyond_the_budget_rules_write_it() {
    for requests in 1.. {
        let budget = SessionBudget::new(BudgetLimits { requests: Some(requests), ..BudgetLimits::default() });
        let compact_at = CompactAt::Percent(80);
        let world = World { window: Some(1700), compact_at, budget, ..World::new(rounds(12)) }
            .with_summary(vec![says("SUMMARY"), done(1)]);
        let result = world.turn().await.result;
        assert!(matches!(result, Err(AgentError::Stopped(Reason::RequestBudget))), "{result:?}");
        if !compactions(&world).is_empty() {
            assert_eq!(compactions(&world), [(CompactionReason::Window, CompactionMethod::Rules, true)]);
            assert_eq!((world.model.summaries.lock().unwrap().len(), world.requests() as u64), (1, requests));
            return;
        }
    }
}
