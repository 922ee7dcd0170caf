//! Commands that begin with `/`.

use super::*;

fn notes(app: &mut App) -> Vec<String> {
    app.take_finished().iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

#[test]
fn the_help_has_one_line_for_each_command_and_key_at_60_columns() {
    let (mut app, now) = (app(), Instant::now());
    app.submit("/help".into(), now);
    let lines = notes(&mut app);
    let groups = commands::COMMAND_GROUPS.len();
    let expected = commands::all().count() + commands::KEYS.len() + 2 * groups + 1;
    assert_eq!(lines.len(), expected, "{lines:#?}");
    for entry in commands::all() {
        let line = format!("  /{:<9} {}", entry.name, entry.help);
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    let names = "help model approvals sandbox diff undo tools policy stats plan ps sessions export mcp context compact quit";
    assert!(names.split(' ').all(|name| commands::parse(&format!("/{name}")).is_some()));
}

#[test]
fn a_rewind_names_the_session_and_waits_for_the_end_of_the_turn() {
    let (mut app, now) = (app(), Instant::now());
    app.on_thread(&"t".into());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    app.submit("/rewind".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Program(words(&["rewind", "--session", "t"]))]);
    app.submit("/rewind 2 --keep-files".into(), now);
    let arguments = words(&["rewind", "--session", "t", "2", "--keep-files"]);
    assert_eq!(app.take_actions(), [AppAction::Rewind(arguments)]);
    notes(&mut app);
    app.submit("/rewind 2".into(), now);
    assert_eq!(app.take_actions(), []);
    assert!(notes(&mut app).concat().contains("wait for the end of the turn"));
}

#[test]
fn the_last_answer_is_copied_up_to_a_limit() {
    let (mut app, now) = (app(), Instant::now());
    app.submit("/copy".into(), now);
    assert_eq!((notes(&mut app), app.take_actions()), (vec!["  there is no answer yet".to_owned()], vec![]));
    app.on_event(Event::Message { text: "first".into() }, now);
    app.on_event(Event::Message { text: "**last**".into() }, now);
    app.submit("/copy".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Copy("**last**".into())]);
    // The limit is within a character.
    app.on_event(Event::Message { text: "汉".repeat(40_000) }, now);
    notes(&mut app);
    app.submit("/copy".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Copy("汉".repeat(33_333))]);
    assert!(notes(&mut app)[0].starts_with("  the first 100 KB"));
}

#[test]
fn a_new_session_forgets_the_former_one_and_says_how_to_go_back() {
    let (mut app, now) = (app(), Instant::now());
    app.on_event(Event::ThreadStarted { thread: "old".into() }, now);
    app.on_event(Event::Message { text: "answer".into() }, now);
    let usage = windlass::Usage { input_tokens: 7, ..windlass::Usage::default() };
    app.on_event(Event::TurnCompleted { usage, declined: false, refusals: Vec::new() }, now);
    app.submit("/new".into(), now);
    app.submit("/new".into(), now);
    assert_eq!(app.take_actions(), [AppAction::NewSession]);
    notes(&mut app);
    app.on_event(Event::ThreadStarted { thread: "new".into() }, now);
    assert_eq!(notes(&mut app).join(" "), "  a new session begins; the former one: windlass resume old");
    assert_eq!((app.transcript.usage().total(), app.transcript.last_answer()), (0, None));
    // Other settings resume the same session.
    app.on_event(Event::ThreadStarted { thread: "new".into() }, now);
    assert_eq!(notes(&mut app), Vec::<String>::new());
}

#[test]
fn the_screen_is_cleared_by_a_key_and_a_command_while_the_model_works() {
    let (mut app, now) = (app(), Instant::now());
    app.submit("work".into(), now);
    app.take_actions();
    write(&mut app, "draft", now);
    control(&mut app, 'l', now);
    app.submit("/clear".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Clear, AppAction::Clear]);
    assert_eq!(app.composer.text(), "draft");
}
