//! Answers that must have a shape, and conversations that fill the window.

use serde_json::json;

use super::*;

fn with_schema(answers: impl IntoIterator<Item = Vec<Step>>) -> World {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    World { output_schema: Some(AnswerSchema::new(schema).unwrap()), ..World::new(answers) }
}

#[tokio::test]
async fn an_answer_that_fits_is_taken_at_once() {
    let world = with_schema([vec![says("{\"n\": 1}"), done(1)]]);
    world.turn().await.result.unwrap();
    assert_eq!((world.requests(), world.warnings()), (1, vec![]));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_once_more_with_the_reason() {
    let world = with_schema([vec![says("one"), done(1)], vec![says("{\"n\": 1}"), done(1)]]);
    let ended = world.turn().await;
    ended.result.unwrap();
    assert_eq!(ended.answer, "{\"n\": 1}");
    let heard = world.heard(1);
    assert_eq!(heard[..2], ["user: go", "assistant: one"]);
    assert!(
        heard[2].starts_with("user: Your answer does not fit") && heard[2].contains("not JSON"),
        "{heard:?}"
    );
    assert_eq!(world.warnings().len(), 1);
}

#[tokio::test]
async fn a_second_answer_that_does_not_fit_fails_the_turn() {
    let world = with_schema([vec![says("one"), done(1)], vec![says("{\"n\": \"1\"}"), done(1)]]);
    let ended = world.turn().await;
    assert!(matches!(ended.result, Err(AgentError::UnfitAnswer { problem }) if problem.contains('n')));
    assert_eq!(world.requests(), 2);
    assert!(
        world
            .watcher
            .events()
            .iter()
            .any(|event| matches!(event, Event::Message { text } if text.contains("\"1\"")))
    );
}

#[tokio::test]
async fn a_window_that_fills_is_warned_of_once_before_and_once_when_it_is_full() {
    let long = "x".repeat(400);
    let asks = |id: &str| vec![says(&long), call(id, "count"), done(1)];
    let answers = [asks("c1"), asks("c2"), asks("c3"), asks("c4"), vec![says("ok"), done(1)]];
    let world = World { window: Some(450), ..World::new(answers) };
    world.turn().await.result.unwrap();
    let warnings = world.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("% of the 450") && warnings[1].contains("more than the 450"),
        "{warnings:?}"
    );
}
