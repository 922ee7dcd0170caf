//! Messages of the user while a turn runs.

use super::*;

fn text(text: &str) -> Vec<Content> {
    vec![Content::Text(text.to_owned())]
}

#[tokio::test]
async fn a_message_during_an_answer_reaches_the_model_after_the_outputs_of_its_calls() {
    let world = World::new([]);
    let steer = |text| Step::Steer(world.steering.clone(), text);
    let first = vec![steer("not that file"), call("c1", "count"), steer("this one"), done(0)];
    world.model.answers.lock().unwrap().extend([first, vec![says("ok"), done(0)]]);
    world.turn().await.result.unwrap();
    assert_eq!(world.heard(0), ["user: go"]);
    assert_eq!(
        world.heard(1),
        ["user: go", "call c1", "c1 -> ran 1", "user: not that file", "user: this one"]
    );
    let taken = world.watcher.events().into_iter().filter_map(|event| match event {
        Event::UserMessage { text } => Some(text),
        _ => None,
    });
    assert_eq!(taken.collect::<Vec<_>>(), ["not that file", "this one"]);
    let lines = world.journal.lines();
    assert_eq!(lines.iter().filter(|line| line.to_string().contains("this one")).count(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_turn_does_not_end_while_a_message_waits() {
    let world = World::new([]);
    let first = vec![says("first"), Step::Steer(world.steering.clone(), "one more thing"), done(0)];
    world.model.answers.lock().unwrap().extend([first, vec![says("second"), done(0)]]);
    assert_eq!(world.turn().await.answer, "second");
    assert_eq!(world.heard(1), ["user: go", "assistant: first", "user: one more thing"]);
    assert!(world.steering.is_empty());
}

#[tokio::test]
async fn a_message_can_be_taken_back_and_is_kept_when_the_turn_fails() {
    let world = World::new([]);
    let cut = ModelError::Cut { reason: "length".into() };
    let steps = ["kept", "taken back"].map(|text| Step::Steer(world.steering.clone(), text));
    let steps = steps.into_iter().chain([Step::Fail(cut)]).collect();
    world.model.answers.lock().unwrap().push_back(steps);
    world.turn().await.result.unwrap_err();
    assert_eq!(world.steering.take_back(), Some(text("taken back")));
    assert_eq!(world.steering.take_all(), [text("kept")]);
    assert_eq!(world.requests(), 1);
}

#[tokio::test]
async fn the_context_in_use_is_announced_with_every_answer() {
    let world = World { window: Some(1000), ..World::new([]) };
    let answers = [vec![call("c1", "count"), done(50)], vec![says("ok"), done(70)]];
    world.model.answers.lock().unwrap().extend(answers);
    world.turn().await.result.unwrap();
    let used = world.watcher.events().into_iter().filter_map(|event| match event {
        Event::ContextUsed { tokens, window, .. } => Some((tokens, window)),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [(50, Some(1000)), (70, Some(1000))]);
}

#[tokio::test]
async fn a_message_gives_a_model_that_repeats_itself_another_chance() {
    let asks = |id: usize| vec![call(&format!("c{id}"), "nope"), done(1)];
    let world = World::new((0..20).map(asks));
    let steer = Step::Steer(world.steering.clone(), "try the other one");
    if let Some(fifth) = world.model.answers.lock().unwrap().get_mut(4) {
        fifth.insert(0, steer);
    }
    let ended = world.turn().await;
    assert!(matches!(ended.result, Err(AgentError::Stopped(Reason::Looping))));
    // Without the message it is stopped after the ninth.
    assert_eq!(world.requests(), 5 + 9);
}
