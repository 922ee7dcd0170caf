//! Settings that change during a session, and plan mode.

use windlass::{ApprovalPolicy, SandboxMode, Usage};

use super::*;

fn changed(app: &mut App, settings: SessionSettings, now: Instant) {
    app.on_message(SessionMessage::Changed(Box::new(Ok(settings))), now);
    app.on_message(SessionMessage::Idle, now);
}

fn answered(app: &mut App, now: Instant) {
    app.on_event(Event::TurnStarted, now);
    let usage = Usage::default();
    app.on_event(Event::TurnCompleted { usage, declined: false, refusals: Vec::new() }, now);
    app.on_message(SessionMessage::Idle, now);
}

fn notes(app: &mut App) -> String {
    app.take_finished().iter().map(|line| format!("{}\n", line.to_string().trim())).collect()
}

#[test]
fn a_setting_is_changed_between_turns_and_shown() {
    let (mut app, now) = (app(), Instant::now());
    let former = app.settings().clone();
    app.submit("/model other openai".into(), now);
    let wanted = SessionSettings { model: "other".into(), provider: "openai".into(), ..former.clone() };
    assert_eq!(app.take_actions(), [AppAction::Change(wanted.clone())]);
    changed(&mut app, wanted.clone(), now);
    assert_eq!(notes(&mut app), "model: other (openai)\n");
    assert!(screen(&mut app, now).last().unwrap().starts_with("other · "));
    app.submit("/sandbox read-only".into(), now);
    let wanted = SessionSettings { sandbox: SandboxMode::ReadOnly, ..wanted };
    assert_eq!(app.take_actions(), [AppAction::Change(wanted.clone())]);
    app.on_message(SessionMessage::Changed(Box::new(Err("no".into()))), now);
    app.on_message(SessionMessage::Idle, now);
    assert_eq!(
        (app.settings().sandbox, notes(&mut app).contains("stay as they were: no")),
        (former.sandbox, true)
    );
    app.submit("/approvals never".into(), now);
    let wanted = SessionSettings { sandbox: former.sandbox, approval: ApprovalPolicy::Never, ..wanted };
    assert_eq!(app.take_actions(), [AppAction::Change(wanted)]);
    app.submit("/approvals on-request".into(), now);
    assert_eq!((app.take_actions(), notes(&mut app).contains("wait for the end")), (Vec::new(), true));
}

#[test]
fn lists_and_wrong_words_change_nothing() {
    let (mut app, now) = (app(), Instant::now());
    for command in ["/model", "/approvals", "/approvals revoke 1a2b"] {
        app.submit(command.into(), now);
    }
    let lists = [SessionList::Models, SessionList::Approvals].map(AppAction::List);
    assert_eq!(
        app.take_actions(),
        lists.into_iter().chain([AppAction::RevokeRule("1a2b".into())]).collect::<Vec<_>>()
    );
    app.on_message(SessionMessage::Idle, now);
    for command in ["/sandbox off", "/approvals maybe", "/approvals revoke s1", "/model a b c", "/ps kill 1"]
    {
        app.submit(command.into(), now);
        assert!(notes(&mut app).starts_with('!'), "{command}");
    }
    app.submit("/ps".into(), now);
    assert_eq!((app.take_actions(), notes(&mut app)), (Vec::new(), "no command runs across calls\n".into()));
}

#[test]
fn an_approved_plan_brings_the_settings_back_and_begins() {
    let (mut app, now) = (app(), Instant::now());
    let former = app.settings().clone();
    app.submit("/plan add a test".into(), now);
    let planning = SessionSettings { plan_mode: true, ..former.clone() };
    assert_eq!(app.take_actions(), [AppAction::Change(planning.clone())]);
    changed(&mut app, planning, now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("add a test".into())]);
    let shown = screen(&mut app, now);
    assert!(shown.last().unwrap().starts_with("PLAN MODE · m · "), "{shown:#?}");
    assert!(shown.last().unwrap().contains("read-only"), "{shown:#?}");
    answered(&mut app, now);
    // What was typed before the question appeared does not answer it.
    write(&mut app, "y", now);
    let shown = screen(&mut app, now);
    assert!(shown.iter().any(|line| line.starts_with("  y  approve the plan")), "{shown:#?}");
    write(&mut app, "y", now);
    assert_eq!(app.take_actions(), []);
    write(&mut app, "y", now + Duration::from_millis(400));
    assert_eq!(app.take_actions(), [AppAction::Change(former.clone())]);
    changed(&mut app, former, now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("The plan is approved. Begin.".into())]);
    answered(&mut app, now);
    assert!(app.plan_question.is_none());
}

#[test]
fn a_plan_can_be_worked_on_or_left() {
    let (mut app, now) = (app(), Instant::now());
    let former = app.settings().clone();
    changed(&mut app, SessionSettings { plan_mode: true, ..former.clone() }, now);
    for (key, actions) in [('k', Vec::new()), ('l', vec![AppAction::Change(former)])] {
        answered(&mut app, now);
        screen(&mut app, now);
        write(&mut app, &key.to_string(), now + Duration::from_millis(400));
        assert_eq!((app.take_actions(), app.plan_question.is_none()), (actions, true));
    }
}

#[test]
fn the_context_in_use_is_shown_in_percent_if_the_window_is_known() {
    let (mut app, now) = (app(), Instant::now());
    app.on_event(
        Event::ContextUsed { tokens: 340, window: Some(1000), usage: None, parts: Box::default() },
        now,
    );
    assert!(screen(&mut app, now).last().unwrap().contains("ctx 34 %"));
    app.on_event(Event::ContextUsed { tokens: 340, window: None, usage: None, parts: Box::default() }, now);
    assert!(!screen(&mut app, now).last().unwrap().contains("34 %"));
}
