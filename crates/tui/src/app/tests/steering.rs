//! Messages that are sent while the agent works.

use windlass::Content;

use super::*;
use crate::prompt_images::tests::PNG;

fn working() -> (App, Instant) {
    let (mut app, now) = (app(), Instant::now());
    app.submit("one".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("one".into())]);
    (app, now)
}

fn send(app: &mut App, text: &str, key: Key, now: Instant) {
    write(app, text, now);
    press(app, key, now);
}

fn finished(app: &mut App) -> Vec<String> {
    app.take_finished().iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

#[test]
fn enter_sends_into_the_running_turn_and_tab_into_the_next_one() {
    let (mut app, now) = working();
    send(&mut app, "not that", Key::Enter, now);
    send(&mut app, "later", Key::Tab, now);
    assert_eq!(app.take_actions(), []);
    let shown = screen(&mut app, now);
    let lines = ["  this turn: not that", "  next turn: later", "  (Alt-Up takes the last one back)"];
    assert!(lines.iter().all(|line| shown.contains(&(*line).to_owned())), "{shown:#?}");
    assert_eq!(app.links.steering.take_back(), Some(vec![Content::Text("not that".into())]));
    finished(&mut app);
    app.on_event(Event::UserMessage { text: "not that".into() }, now);
    assert_eq!(finished(&mut app), ["", "› not that", ""]);
    app.on_message(SessionMessage::Idle, now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("later".into())]);
    assert!(app.pending.is_empty());
}

#[test]
fn what_the_turn_did_not_take_begins_the_next_one_before_what_was_queued() {
    let (mut app, now) = working();
    send(&mut app, "queued", Key::Tab, now);
    send(&mut app, "a", Key::Enter, now);
    send(&mut app, "b", Key::Enter, now);
    app.on_message(SessionMessage::Idle, now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("a\nb".into())]);
    assert!(app.links.steering.is_empty());
    app.on_message(SessionMessage::Idle, now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("queued".into())]);
}

#[test]
fn the_last_message_is_taken_back_unless_the_model_has_it() {
    let (mut app, now) = working();
    send(&mut app, "a", Key::Enter, now);
    send(&mut app, "b", Key::Tab, now);
    press(&mut app, Key::Up, now);
    assert_eq!(app.composer.text(), "b");
    app.on_key(&Input { key: Key::Up, alt: true, ..Input::default() }, now);
    assert_eq!(
        (app.composer.text(), app.pending.len(), app.links.steering.is_empty()),
        ("a".into(), 0, true)
    );
    press(&mut app, Key::Enter, now);
    // The turn takes it before the screen learns it.
    app.links.steering.take_all();
    press(&mut app, Key::Up, now);
    assert_eq!((app.composer.text(), app.pending.len()), (String::new(), 1));
}

#[test]
fn a_cancelled_turn_gives_all_messages_back() {
    let (mut app, now) = working();
    send(&mut app, "a", Key::Enter, now);
    send(&mut app, "b", Key::Tab, now);
    write(&mut app, "c", now);
    press(&mut app, Key::Esc, now);
    assert_eq!(app.take_actions(), [AppAction::Cancel]);
    assert_eq!((app.composer.text(), app.links.steering.is_empty()), ("a\nb\nc".into(), true));
}

#[test]
fn a_command_of_the_person_is_never_given_to_the_model() {
    let (mut app, now) = working();
    send(&mut app, "!ls", Key::Enter, now);
    assert!(app.links.steering.is_empty());
    app.on_message(SessionMessage::Idle, now);
    assert_eq!(app.take_actions(), [AppAction::Shell("ls".into())]);
    send(&mut app, "what is this", Key::Enter, now);
    assert!(app.links.steering.is_empty());
    app.on_message(SessionMessage::Idle, now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("what is this".into())]);
}

#[test]
fn a_failed_turn_gives_all_messages_back_instead_of_failing_again() {
    let (mut app, now) = working();
    send(&mut app, "a", Key::Enter, now);
    send(&mut app, "b", Key::Tab, now);
    app.on_event(Event::TurnStarted, now);
    let usage = windlass::Usage::default();
    app.on_event(
        Event::TurnFailed { message: "no server".into(), reason: String::new(), usage, refusals: Vec::new() },
        now,
    );
    app.on_message(SessionMessage::Idle, now);
    assert_eq!((app.take_actions(), app.composer.text()), (Vec::new(), "a\nb".into()));
}

#[test]
fn tokens_are_counted_while_the_turn_runs_and_only_once() {
    let (mut app, now) = working();
    app.on_event(Event::TurnStarted, now);
    for _ in 0..2 {
        app.on_event(
            Event::ContextUsed { tokens: 400, window: None, usage: None, parts: Box::default() },
            now,
        );
    }
    let status = |app: &mut App| app.status(200).to_string();
    assert!(status(&mut app).contains("800 tokens"), "{}", status(&mut app));
    let usage = windlass::Usage { input_tokens: 800, ..windlass::Usage::default() };
    app.on_event(Event::TurnCompleted { usage, declined: false, refusals: Vec::new() }, now);
    assert!(status(&mut app).contains("800 tokens"), "{}", status(&mut app));
}

#[test]
fn an_image_in_a_message_for_the_running_turn_is_sent_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shot.png"), PNG).unwrap();
    std::fs::write(folder.path().join("no.png"), "text").unwrap();
    let (mut app, _) = working();
    app.info.cwd = folder.path().to_owned();
    app.info.settings.model = "gpt-5".to_owned();
    app.steer("see @shot.png".into());
    let sent = app.links.steering.take_back().unwrap();
    let [Content::Text(text), Content::Image(url)] = &sent[..] else { panic!("{sent:?}") };
    assert!(text == "see @shot.png" && url.starts_with("data:image/png"), "{url}");
    app.steer("and @no.png".into());
    assert!(app.links.steering.is_empty());
    assert_eq!((app.composer.text().as_str(), app.pending.len()), ("and @no.png", 1));
    let shown = finished(&mut app);
    assert!(shown.iter().any(|line| line.starts_with("! `no.png` cannot be sent")), "{shown:?}");
}
