//! Screens of the session.

use ratatui::{Terminal, backend::TestBackend};
use tokio::sync::oneshot;
use windlass::Answer;
use windlass::{Beyond, CommandLine, Effects, Network, Question};

use super::{work::LONG_TURN, *};
use crate::{event_queue::PendingQuestion, file_index::FileIndex};

mod settings;
mod slash_commands;
mod steering;

pub(super) fn app() -> App {
    let status = SessionStatus {
        model: "m".to_owned(),
        provider: None,
        directory: "/w".to_owned(),
        branch: Some("main".to_owned()),
        sandbox: "read-only".to_owned(),
        mechanism: None,
        plan_mode: false,
        network: Network::None,
        approval: windlass::ApprovalPolicy::OnRequest,
        context_percent: None,
        tokens: 0,
        processes: 0,
    };
    let settings = SessionSettings {
        model: "m".to_owned(),
        provider: "p".to_owned(),
        approval: windlass::ApprovalPolicy::OnRequest,
        sandbox: windlass::SandboxMode::WorkspaceWrite,
        plan_mode: false,
    };
    let theme = crate::render::Theme::dark();
    let info = SessionInfo { cwd: "/w".into(), status, theme, settings, prompts: Vec::new(), vi_keys: false };
    let mut app = App::new(info, Composer::new(Vec::new(), FileIndex::new("/nowhere".into())));
    app.set_width(60);
    app
}

fn screen(app: &mut App, now: Instant) -> Vec<String> {
    let height = app.height(60, now).min(20);
    let mut terminal = Terminal::new(TestBackend::new(60, height)).unwrap();
    terminal.draw(|frame| app.view(frame, frame.area(), now)).unwrap();
    app.drawn(now);
    let cells = terminal.backend().buffer().content.chunks(60);
    cells
        .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned())
        .collect()
}

fn press(app: &mut App, key: Key, now: Instant) {
    app.on_key(&Input { key, ..Input::default() }, now);
}

fn write(app: &mut App, text: &str, now: Instant) {
    text.chars().for_each(|c| press(app, Key::Char(c), now));
}

fn control(app: &mut App, c: char, now: Instant) {
    app.on_key(&Input { key: Key::Char(c), ctrl: true, ..Input::default() }, now);
}

fn ask(app: &mut App, command: &str, now: Instant) -> oneshot::Receiver<Answer> {
    let argv = ["bash", "-c", command].map(str::to_owned).to_vec();
    let question = windlass_fakes::clean(Question {
        call: "c".into(),
        tool: "shell_command".into(),
        effects: Effects::command(CommandLine { argv, cwd: None }),
        cwd: "/w".into(),
        reason: "it is not known to be harmless".into(),
        unclear: Vec::new(),
        beyond: Beyond::Nothing,
        keys: Vec::new(),
        rule: None,
        details: windlass::QuestionDetails::default(),
    });
    let (answer, given) = oneshot::channel();
    app.on_message(SessionMessage::Question(Box::new(PendingQuestion { question, answer })), now);
    given
}

#[test]
fn an_idle_session_shows_the_input_and_the_status() {
    let (mut app, now) = (app(), Instant::now());
    write(&mut app, "hello", now);
    let status = "m · /w · on main · read-only (network off) · ask: on-request";
    assert_eq!(screen(&mut app, now), ["", "› hello", status]);
    assert_eq!(app.next_change(now), None);
}

#[test]
fn a_question_and_the_end_of_a_turn_are_notified_once() {
    let (mut app, now) = (app(), Instant::now());
    app.submit("work".into(), now);
    let _given = ask(&mut app, "make", now);
    let (tool, reason) = ("shell_command".to_owned(), "it is not known to be harmless".to_owned());
    let question = PersonNotice::Question { tool, reason };
    assert_eq!([app.take_notices(), app.take_notices()], [vec![question], Vec::new()]);
    let ended = |was_long, turn| {
        let (prompt, answer) = ("work".to_owned(), None);
        vec![PersonNotice::TurnEnded { was_long, turn, prompt, answer }]
    };
    app.on_message(SessionMessage::Idle, now + Duration::from_secs(1));
    assert_eq!(app.take_notices(), ended(false, 1));
    app.submit("work".into(), now);
    app.on_message(SessionMessage::Idle, now + LONG_TURN);
    assert_eq!(app.take_notices(), ended(true, 2));
}

#[test]
fn control_c_cancels_the_turn_and_twice_leaves() {
    let (mut app, now) = (app(), Instant::now());
    write(&mut app, "one", now);
    press(&mut app, Key::Enter, now);
    app.take_actions();
    control(&mut app, 'c', now);
    assert_eq!(app.take_actions(), [AppAction::Cancel]);
    control(&mut app, 'c', now + Duration::from_secs(1));
    assert_eq!(app.take_actions(), [AppAction::Quit]);
}

#[test]
fn while_a_question_is_open_the_session_waits_and_does_not_work() {
    let (mut app, now) = (app(), Instant::now());
    app.submit("work".into(), now);
    assert!(screen(&mut app, now)[0].starts_with("… working 0 s"));
    let _given = ask(&mut app, "make", now);
    assert_eq!(screen(&mut app, now)[0], "… waits for you");
}

#[test]
fn a_key_or_a_paste_between_two_control_c_keeps_the_session() {
    let (mut app, now) = (app(), Instant::now());
    for between in ["key", "paste"] {
        write(&mut app, "one", now);
        control(&mut app, 'c', now);
        if between == "key" {
            write(&mut app, "t", now)
        } else {
            app.on_paste("two")
        }
        control(&mut app, 'c', now);
        assert_eq!((app.take_actions(), app.input()), (Vec::new(), String::new()), "{between}");
        press(&mut app, Key::Left, now);
    }
}

#[test]
fn what_was_typed_before_a_question_appeared_does_not_answer_it() {
    let (mut app, now) = (app(), Instant::now());
    let mut given = ask(&mut app, "make", now);
    write(&mut app, "yyy", now);
    assert!(given.try_recv().is_err());
    let shown = screen(&mut app, now);
    assert_eq!(shown[1], "shell_command wants to run with `bash -c`:", "{shown:#?}");
    assert_eq!(shown[2], "  │ make");
    write(&mut app, "y", now + Duration::from_millis(200));
    assert!(given.try_recv().is_err());
    write(&mut app, "y", now + Duration::from_millis(600));
    assert_eq!(given.try_recv(), Ok(Answer::Once));
    assert_eq!(screen(&mut app, now)[1], "›  Ask, or / for commands");
}

#[test]
fn a_burst_that_begins_with_no_answer_is_no_answer() {
    // The report of a background colour, and a word.
    for burst in ["]11;rgb:1a1a/1b1b/yyyy", "maybe yes"] {
        let (mut app, mut now) = (app(), Instant::now());
        app.submit("work".into(), now);
        let mut given = ask(&mut app, "make", now);
        app.drawn(now);
        now += Duration::from_secs(1);
        write(&mut app, burst, now);
        assert!(given.try_recv().is_err(), "{burst}");
        now += Duration::from_secs(1);
        write(&mut app, "y", now);
        assert_eq!(given.try_recv(), Ok(Answer::Once), "{burst}");
    }
}

#[test]
fn a_question_longer_than_the_screen_is_printed_whole_and_once() {
    let (mut app, now) = (app(), Instant::now());
    let command = (0..40).map(|number| format!("echo {number}\n")).collect::<String>();
    let _given = ask(&mut app, &command, now);
    let shown = screen(&mut app, now);
    assert!(shown.iter().any(|line| line.contains("no, and stop the turn")), "{shown:#?}");
    let printed: Vec<_> = app.take_finished().iter().map(ToString::to_string).collect();
    assert!((0..40).all(|number| printed.contains(&format!("  │ echo {number}"))), "{printed:#?}");
    screen(&mut app, now);
    assert_eq!(app.take_finished(), []);
}

#[test]
fn commands_of_the_program_get_the_session_and_wait_for_the_turn() {
    let (mut app, now) = (app(), Instant::now());
    app.on_event(Event::ThreadStarted { thread: "t1".into() }, now);
    app.submit("/undo --list".into(), now);
    let words = ["undo", "--session", "t1", "--list"].map(str::to_owned).to_vec();
    assert_eq!(app.take_actions(), [AppAction::Program(words)]);
    app.submit("work".into(), now);
    app.take_actions();
    app.submit("/undo".into(), now);
    assert_eq!(app.take_actions(), []);
}

#[test]
fn a_command_is_shown_above_its_output_and_one_alone_has_a_default() {
    let (mut app, now) = (app(), Instant::now());
    app.on_event(Event::ThreadStarted { thread: "t1".into() }, now);
    let program = |words: &[&str]| AppAction::Program(words.iter().map(|&word| word.to_owned()).collect());
    let export = ["audit", "export", "t1", "--redacted", "--output", "/w/windlass-t1.json"];
    for (line, expected, shown) in [
        ("/policy", vec![program(&["policy", "rules"])], &["", "› /policy"][..]),
        ("/policy ls -l", vec![program(&["policy", "explain", "ls", "-l"])], &["", "› /policy ls -l"]),
        (
            "/export",
            vec![program(&export)],
            &["", "› /export", "  writing this session to /w/windlass-t1.json"],
        ),
        ("/what", vec![], &["", "› /what", "! there is no command `/what`; /help lists them"]),
        ("/quit", vec![AppAction::Quit], &[]),
    ] {
        app.set_input(line);
        press(&mut app, Key::Enter, now);
        let lines: Vec<_> = app.take_finished().iter().map(ToString::to_string).collect();
        assert_eq!(
            (app.take_actions(), lines),
            (expected, shown.iter().map(|&line| line.to_owned()).collect())
        );
    }
}

#[test]
fn the_list_of_commands_tells_that_there_are_more() {
    let (mut app, now) = (app(), Instant::now());
    write(&mut app, "/", now);
    let more = format!("  … {} more (Up, Down)", commands::all().count() - 8);
    assert_eq!(screen(&mut app, now).iter().rev().nth(1), Some(&more));
    write(&mut app, "ex", now);
    assert!(!screen(&mut app, now).iter().any(|line| line.contains("more")));
}

#[test]
fn a_command_of_the_person_is_run_and_a_path_is_a_message() {
    let (mut app, now) = (app(), Instant::now());
    app.submit("!ls -l".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Shell("ls -l".into())]);
    app.on_message(SessionMessage::Idle, now);
    app.submit("/etc/hosts has what?".into(), now);
    assert_eq!(app.take_actions(), [AppAction::Prompt("/etc/hosts has what?".into())]);
    app.on_message(SessionMessage::Idle, now);
    app.submit("/hepl".into(), now);
    assert_eq!(app.take_actions(), []);
}
