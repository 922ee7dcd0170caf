//! Ways of using an interactive session: in full screen, as plain lines, with an editor, resumed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Emulator, FULL_ACCESS, User};

/// Longer than the time in which a question takes no input.
const READING_TIME: Duration = Duration::from_millis(600);

const SIZE: (u16, u16) = (24, 80);

fn shell(command: &str) -> Value {
    json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]})
}

fn arguments(user: &User, turns: &Value, options: &[&str]) -> Vec<String> {
    let script = user.script(turns);
    let first = ["chat", "--script", &script];
    [&first, &FULL_ACCESS[..], options].concat().into_iter().map(str::to_owned).collect()
}

fn start(user: &User, turns: &Value, options: &[&str], variables: &[(&str, &str)]) -> Emulator {
    let arguments = arguments(user, turns, options);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut program = user.program(&arguments);
    program.envs(variables.iter().copied());
    Emulator::start(&program, SIZE)
}

fn leave(terminal: &mut Emulator) {
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

/// Writes a program of the user.
fn program(user: &User, name: &str, text: &str) -> PathBuf {
    let path = user.home().parent().unwrap().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[track_caller]
fn await_file(path: &Path) -> String {
    for _ in 0..300 {
        match fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ => thread::sleep(Duration::from_millis(50)),
        }
    }
    panic!("no {}", path.display());
}

#[test]
fn a_message_is_written_in_an_editor() {
    let user = User::new();
    let editor = program(&user, "editor", "#!/bin/sh\nsed -i 's/draft/whole message/' \"$1\"\necho edited\n");
    let variables = [("EDITOR", "false"), ("VISUAL", editor.to_str().unwrap())];
    let mut terminal = start(&user, &json!([{"text": "Got it."}]), &[], &variables);
    terminal.until("Ask, or / for commands");
    terminal.type_in("my draft\x07");
    terminal.until("my whole message");
    terminal.type_in("\r");
    terminal.until("Got it.");
    leave(&mut terminal);
    assert!(terminal.is_as_before() && terminal.is_plain());
    let mut terminal = start(&user, &json!([]), &[], &[("EDITOR", "false")]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("my draft\x07");
    terminal.until("the editor `false` failed");
    terminal.until("› my draft");
    terminal.type_in("\x03");
    terminal.until("Ask, or /");
    leave(&mut terminal);
}

#[test]
fn a_signal_ends_the_editor_too() {
    let user = User::new();
    let temporary = user.home().parent().unwrap().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let editor = program(&user, "editor", "#!/bin/sh\necho $$ > pid; sleep 60; echo\n");
    let variables = [("VISUAL", editor.to_str().unwrap()), ("TMPDIR", temporary.to_str().unwrap())];
    let mut terminal = start(&user, &json!([]), &[], &variables);
    terminal.until("Ask, or / for commands");
    terminal.type_in("my draft\x07");
    let pid = await_file(&user.work().join("pid"));
    terminal.signal("TERM");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
    assert!(terminal.is_as_before());
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("windlass-");
    let left = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(is_ours).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_new_session_begins_with_the_same_settings_and_its_answer_is_copied() {
    let user = User::new();
    // A script begins again with each conversation.
    let turns = json!([{"text": "The answer."}, {"text": "Not this one."}]);
    let mut terminal = start(&user, &turns, &[], &[]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("first question\r");
    terminal.until("The answer.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("/clear\r");
    terminal.until_screen("a clear screen", |screen| !screen.contains("The answer."));
    terminal.type_in("/new\r");
    terminal.until("a new session begins; the former one:");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("second question\r");
    terminal.until("The answer.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("/copy\r");
    terminal.until("the answer went to the clipboard");
    leave(&mut terminal);
    let records: Vec<_> = user.sessions().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(records.len(), 2);
    let having = |text: &str| records.iter().filter(|record| record.contains(text)).count();
    assert_eq!((having("first question"), having("second question"), having("Not this")), (1, 1, 0));
}

#[test]
fn a_program_is_told_about_questions_and_the_end_of_a_turn() {
    let user = User::new();
    let notify = program(&user, "notify", "#!/bin/sh\nprintf '%s\\n' \"$1 $2\" >> notices\nsleep 60\n");
    user.configure(&format!("notify = [{:?}, \"-x\"]\n", notify.to_str().unwrap()));
    let turns = json!([shell("echo one > first"), {"text": "All done."}]);
    let mut terminal = start(&user, &turns, &["-a", "untrusted"], &[]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("go on\r");
    terminal.until("Allow it?");
    let notices = user.work().join("notices");
    let question = await_file(&notices);
    assert!(question.starts_with("-x {") && question.contains("approval-requested"), "{question}");
    thread::sleep(Duration::from_millis(600));
    terminal.type_in("y");
    terminal.until("All done.");
    leave(&mut terminal);
    let told = fs::read_to_string(&notices).unwrap();
    let last: Value =
        serde_json::from_str(told.lines().last().unwrap().strip_prefix("-x ").unwrap()).unwrap();
    assert_eq!(last["type"], "agent-turn-complete", "{told}");
    assert_eq!(last["input-messages"], json!(["go on"]));
    assert_eq!(last["last-assistant-message"], "All done.");
    assert!(terminal.screen().contains("windlass undo --session"), "{}", terminal.screen());
}

#[test]
fn ctrl_c_at_a_question_of_a_command_ends_the_command_and_not_the_session() {
    let user = User::new();
    let turns = json!([shell("echo x > f"), {"text": "Done it."}, {"text": "Here again."}]);
    let mut terminal = start(&user, &turns, &["-a", "never", "write a file"], &[]);
    terminal.until("Done it.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("/undo\r");
    terminal.until("Undo this?");
    terminal.type_in("\x03");
    terminal.until("nothing was undone");
    terminal.until("Ask, or /");
    terminal.type_in("are you there\r");
    terminal.until("Here again.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.signal("TERM");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
    assert!(terminal.is_as_before() && terminal.is_plain());
    assert_eq!(user.read("f"), "x\n");
}

#[test]
fn full_screen_scrolls_back() {
    let user = User::new();
    let text: String = (1..=60).map(|number| format!("- line number {number}\n")).collect();
    let mut terminal = start(&user, &json!([{"text": text}]), &["--fullscreen", "count to sixty"], &[]);
    terminal.until("line number 60");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    assert!(!terminal.screen().contains("line number 20"));
    terminal.type_in("\x1b[5~\x1b[5~\x1b[5~");
    let screen = terminal.until("line number 20");
    assert!(screen.contains("more below") && !screen.contains("line number 60"), "{screen}");
    terminal.type_in("\x1b[F");
    terminal.until("line number 60");
    // The wheel of the mouse.
    terminal.type_in("\x1b[<64;1;1M");
    terminal.until("3 more below");
    terminal.resize(12, 40);
    terminal
        .until_screen("smaller", |screen| screen.contains("3 more below") && screen.contains("number 57"));
    leave(&mut terminal);
    assert!(terminal.is_as_before() && terminal.is_plain());
}

#[test]
fn a_resumed_session_shows_the_earlier_conversation() {
    let user = User::new();
    let turns = json!([shell("echo one"), {"text": "First **answer**."}]);
    let mut terminal = start(&user, &turns, &["-a", "never", "say something first"], &[]);
    terminal.until("First answer.");
    leave(&mut terminal);
    let script = user.work().join("script.json");
    let arguments = ["resume", "--last", "--script", script.to_str().unwrap()];
    let mut terminal = Emulator::start(&user.program(&arguments), SIZE);
    let screen = terminal.until("Ask, or / for commands");
    for part in ["› say something first", "• run echo one", "First answer.", "resumed"] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    assert!(!screen.contains("environment_context"), "{screen}");
    leave(&mut terminal);
}

#[test]
fn a_plain_session_asks_and_answers_in_lines_and_moves_no_cursor() {
    for (options, variables) in [(&["--plain"][..], &[][..]), (&[], &[("TERM", "dumb")])] {
        let user = User::new();
        let turns = json!([shell("echo one > first"), shell("echo two > second"), {"text": "All **done**."}]);
        let mut terminal = start(&user, &turns, &[options, &["-a", "untrusted"]].concat(), variables);
        terminal.until_screen("prompt", |screen| screen.starts_with('>'));
        assert!(terminal.is_as_before());
        terminal.type_in("go on\n");
        let screen = terminal.until("Your answer");
        assert!(screen.contains("echo one > first") && !user.work().join("first").exists(), "{screen}");
        thread::sleep(READING_TIME);
        terminal.type_in("perhaps\n");
        terminal.until("answer with one of");
        terminal.type_in("y\n");
        terminal.until("echo two > second");
        terminal.until_screen("a second question", |screen| screen.matches("Your answer").count() >= 3);
        thread::sleep(READING_TIME);
        terminal.type_in("n not now\n");
        terminal.until("All done.");
        terminal.type_in("!echo mine\n");
        terminal.until("│ mine");
        terminal.type_in("/sessions\n");
        terminal.until("DIRECTORY");
        terminal.type_in("\x04");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        let written = terminal.written();
        // Only colours: their parameters end with `m`.
        let is_colour =
            |part: &str| part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m');
        assert!(written.split("\x1b[").skip(1).all(is_colour) && !written.contains("\x1b]"), "{written:?}");
        assert!(written.contains("> \r\nto go on:"), "{written:?}");
        assert_eq!((user.read("first").as_str(), user.work().join("second").exists()), ("one\n", false));
        assert!(fs::read_to_string(&user.sessions()[0]).unwrap().contains("not now"));
    }
}

#[test]
fn wide_characters_have_no_gaps_and_rows_no_blanks_at_their_end() {
    let user = User::new();
    let text = "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c} and more";
    let mut terminal = start(&user, &json!([{"text": text}]), &["-a", "never", "greet the world"], &[]);
    terminal.until(text);
    leave(&mut terminal);
    assert!(!terminal.written().contains("world  "), "{:?}", terminal.written());
}

#[test]
fn a_plain_session_is_chosen_by_its_number() {
    let user = User::new();
    let script = user.script(&json!([{"text": "First answer."}, {"text": "Second answer."}]));
    user.run(&["exec", "--script", &script, "say something"]).assert_code(0);
    let mut terminal = Emulator::start(&user.program(&["resume", "--plain", "--script", &script]), SIZE);
    terminal.until("Resume which session?");
    terminal.type_in("7\n");
    terminal.until_screen("the question again", |screen| screen.matches("which session?").count() == 2);
    terminal.type_in("1\n");
    terminal.until("› say something");
    terminal.until("─ resumed");
    terminal.type_in("and more\n");
    terminal.until("Second answer.");
    terminal.type_in("/quit\n");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert_eq!(user.sessions().len(), 1);
}

#[test]
fn ctrl_c_cancels_a_turn_of_a_plain_session_and_a_signal_ends_it() {
    let user = User::new();
    let turns = json!([shell("echo > started; sleep 60"), {"text": "Here again."}]);
    let started = user.named_pipe("started");
    let mut terminal = start(&user, &turns, &["--plain", "-a", "never"], &[]);
    terminal.until_screen("prompt", |screen| screen.starts_with('>'));
    terminal.type_in("wait\n");
    started.hear();
    terminal.until("• run");
    terminal.type_in("\x03");
    terminal.until("⊘ run");
    terminal.until_screen("prompt", |screen| screen.trim_end().ends_with("\n>"));
    terminal.type_in("and now\n");
    terminal.until("Here again.");
    terminal.signal("TERM");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
}

#[test]
fn the_theme_follows_the_background_and_no_color_wins() {
    let user = User::new();
    let turns = json!([{"text": "# Some title"}]);
    let written = |options: &[&str], variables: &[(&str, &str)]| {
        let mut terminal = start(&user, &turns, &[options, &["show me a title"]].concat(), variables);
        terminal.until("Some title");
        leave(&mut terminal);
        terminal.written()
    };
    // The emulator has a light background. A title is blue there, and bright cyan on a dark one.
    let (blue, cyan) = ("\x1b[38;5;4", "\x1b[38;5;14");
    let light = written(&[], &[]);
    assert!(light.contains(blue) && !light.contains(cyan), "{light:?}");
    let dark = written(&["-c", "tui.theme=dark"], &[]);
    assert!(dark.contains(cyan) && !dark.contains("\x1b]11;?"), "{dark:?}");
    let none = written(&["-c", "tui.theme=light"], &[("NO_COLOR", "1")]);
    assert!(!none.contains("\x1b[38;5;"), "{none:?}");
}
