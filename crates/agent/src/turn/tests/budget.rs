//! Tests of the budget of a session.

use super::*;
use crate::{BudgetLimits, ToolBudget};

fn with_budget(limits: BudgetLimits, answers: Vec<Vec<Step>>) -> World {
    World { budget: SessionBudget::new(limits), ..World::new(answers) }
}

fn reason(ended: &Ended) -> Reason {
    match &ended.result {
        Err(AgentError::Stopped(reason)) => *reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_beyond_the_budget_does_not_run_and_those_before_it_have_their_outputs() {
    let once = ToolBudget { calls: Some(1), time: None };
    let tools = BudgetLimits { tools: [("count".to_owned(), once)].into(), ..BudgetLimits::default() };
    let calls = BudgetLimits { calls: Some(1), ..BudgetLimits::default() };
    for (limits, expected) in [(tools, Reason::ToolBudget), (calls, Reason::CallBudget)] {
        let world = with_budget(limits, vec![vec![call("c1", "count"), call("c2", "count"), done(0)]]);
        assert_eq!(reason(&world.turn().await), expected);
        assert_eq!(world.ran.load(Ordering::SeqCst), 1);
        let outputs = world.journal.lines().into_iter().filter(|line| line["type"] == "outputs");
        assert_eq!(outputs.map(|line| line["payload"]["calls"].clone()).collect::<Vec<_>>(), [json!(["c1"])]);
        assert_eq!(world.budget.total().tools["count"].0, 1);
    }
}

#[tokio::test]
async fn a_request_beyond_the_budget_is_not_sent() {
    let limits = BudgetLimits { requests: Some(1), ..BudgetLimits::default() };
    let world = with_budget(limits, vec![vec![call("c1", "count"), done(0)]]);
    assert_eq!(reason(&world.turn().await), Reason::RequestBudget);
    assert_eq!((world.requests(), world.budget.total().requests), (1, 1));
}

#[tokio::test]
async fn tokens_of_all_spenders_count_and_an_answer_is_stopped_while_it_arrives() {
    let limits = BudgetLimits { tokens: Some(100), ..BudgetLimits::default() };
    let world = with_budget(limits.clone(), vec![vec![call("c1", "count"), done(60)]]);
    let usage = Usage { input_tokens: 40, ..Usage::default() };
    world.budget.for_spender("child").add_usage(&usage, None);
    assert_eq!(reason(&world.turn().await), Reason::TokenBudget);
    assert_eq!((world.requests(), world.budget.spent()["session"].tokens), (1, 60));
    let pieces = (0..9).map(|_| Step::Event(ModelEvent::TextDelta("word ".repeat(20))));
    let endless = with_budget(limits, vec![pieces.chain([Step::Hang]).collect()]);
    assert_eq!(reason(&endless.turn().await), Reason::TokenBudget);
}
