//! The ends of turns and sessions, and the way back into a session.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Emulator, User};

const SIZE: (u16, u16) = (30, 90);

const FREE: [&str; 4] = ["-s", "danger-full-access", "-a", "never"];

fn start(user: &User, turns: &Value, options: &[&str]) -> Emulator {
    let script = user.script(turns);
    let terminal = Emulator::start(&user.program(&[&["chat", "--script", &script], options].concat()), SIZE);
    terminal.until("Ask, or / for commands");
    terminal
}

fn resume(user: &User, options: &[&str]) -> Emulator {
    let script = user.work().join("script.json");
    let script = ["resume", "--script", script.to_str().unwrap()];
    Emulator::start(&user.program(&[&script, options].concat()), SIZE)
}

fn waits() -> Value {
    let call = json!({"name": "shell_command", "arguments": {"command": "touch ran; echo so far; sleep 60"}});
    json!([{"calls": [call]}, {"text": "Never said."}])
}

/// Begins a turn and waits until its command runs.
fn begin(user: &User, terminal: &Emulator) {
    terminal.type_in("begin\r");
    terminal.until("└ so far");
    assert!(user.work().join("ran").exists());
}

fn leave(mut terminal: Emulator) -> String {
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    terminal.screen()
}

#[test]
fn a_cancelled_turn_is_told_once_then_and_when_it_is_resumed() {
    let user = User::new();
    let terminal = start(&user, &waits(), &FREE);
    begin(&user, &terminal);
    terminal.type_in("\x1b");
    let screen = terminal.until("— cancelled");
    assert!(!screen.contains("aborted") && !screen.contains("Wall time"), "{screen}");
    terminal.until_screen("idle", |screen| !screen.contains("stopping"));
    leave(terminal);
    let terminal = resume(&user, &["--last"]);
    let screen = terminal.until("resumed");
    assert!(screen.contains("— cancelled") && !screen.contains("turn_aborted"), "{screen}");
    terminal.until("Ask, or / for commands");
    leave(terminal);
}

#[test]
fn a_signal_is_not_the_person() {
    let user = User::new();
    let mut terminal = start(&user, &waits(), &FREE);
    begin(&user, &terminal);
    terminal.signal("TERM");
    terminal.end();
    let records = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert!(records.contains("the program was ended") && !records.contains("aborted by user"), "{records}");
    let terminal = resume(&user, &["--last"]);
    terminal.until("— the program was ended");
    terminal.until("Ask, or / for commands");
    leave(terminal);
}

#[test]
fn empty_sessions_are_not_offered_and_typing_searches_the_others() {
    let user = User::new();
    for message in ["fix the parser", "write a page"] {
        let terminal = start(&user, &json!([{"text": "Done."}]), &FREE);
        terminal.type_in(&format!("{message}\r"));
        terminal.until("Done.");
        terminal.until_screen("idle", |screen| !screen.contains("working"));
        assert!(leave(terminal).contains("windlass resume"));
    }
    let screen = leave(start(&user, &json!([]), &FREE));
    assert!(!screen.contains("windlass resume"), "{screen}");
    assert_eq!(user.sessions().len(), 3);
    let terminal = resume(&user, &[]);
    let screen = terminal.until("fix the parser");
    let listed = screen.lines().filter(|line| line.starts_with("  ")).count();
    assert!(listed == 2 && screen.contains("write a page"), "{screen}");
    terminal.type_in("PARS");
    terminal.until_screen("the other one", |screen| {
        screen.contains("› PARS") && !screen.contains("write a page")
    });
    terminal.type_in("\r");
    terminal.until("› fix the parser");
    terminal.until("Ask, or / for commands");
    leave(terminal);
}

#[test]
fn commands_have_defaults_and_the_status_names_what_answers() {
    let user = User::new();
    let terminal = start(&user, &json!([{"text": "Done."}]), &["-c", "model=qwen3:8b"]);
    let screen = terminal.screen();
    assert!(screen.contains("scripted") && !screen.contains("qwen3"), "{screen}");
    terminal.type_in("/policy\r");
    terminal.until_screen("rules", |screen| screen.contains("› /policy") && screen.contains("Ask, or /"));
    terminal.type_in("/export\r");
    let screen = terminal.until("writing this session to");
    assert!(!screen.contains("Usage") && !screen.contains("error"), "{screen}");
    terminal.until("Ask, or / for commands");
    let session = user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let report = fs::read_to_string(user.work().join(format!("windlass-{session}.json"))).unwrap();
    assert!(report.contains(&session), "{report}");
    leave(terminal);
}
