//! Questions of MCP servers to the person at the terminal.

use std::{thread, time::Duration};

use serde_json::json;

use crate::support::{Emulator, User};

/// Longer than the time in which a new question takes no keys.
const READING_TIME: Duration = Duration::from_millis(600);

const SIZE: (u16, u16) = (40, 120);

fn user() -> User {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    user.run(&["config", "set", "mcp_servers.fake.tools.greet.approval_mode", "approve"]).assert_code(0);
    user.run(&["mcp", "test", "fake"]).assert_code(0);
    user
}

const CALL: [&str; 3] = ["call", "mcp__fake__greet", r#"{"who": "?"}"#];

#[test]
fn a_person_answers_the_form_of_a_server() {
    let user = user();
    let call = json!({"name": "mcp__fake__greet", "arguments": {"who": "?"}});
    let script = user.script(&json!([{"calls": [call]}, {"text": "The end."}]));
    for words in [&CALL[..], &["exec", "--script", &script, "go"]] {
        let mut terminal = Emulator::start(&user.program(words), SIZE);
        let screen = terminal.until("Answer it? y, n or c:");
        assert!(
            screen.contains("MCP server `fake` asks, in its own words:\n  | Whom to greet?\n"),
            "{screen}"
        );
        assert!(screen.contains("It wants: name (required)"), "{screen}");
        terminal.type_in("y\r");
        terminal.until("Value (/decline and /cancel end it):");
        terminal.type_in("A\r");
        terminal.until("expected: text, at least 2 characters");
        terminal.type_in("Ada\r");
        let screen = terminal.until("Send it? y, n, c, or e to start again:");
        assert!(screen.contains("This goes to MCP server `fake`:\n  name: Ada\n"), "{screen}");
        terminal.type_in("y\r");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        let screen = terminal.screen();
        if words == CALL {
            assert!(screen.contains("'action':'accept'") && screen.contains("{'name':'Ada'}"), "{screen}");
        }
        assert!(terminal.is_cooked() && terminal.is_plain());
    }
}

#[test]
fn a_person_declines_or_dismisses_the_question_of_a_server() {
    let user = user();
    for (key, action) in [("n\r", "decline"), ("c\r", "cancel"), ("\u{4}", "cancel")] {
        let mut terminal = Emulator::start(&user.program(&CALL), SIZE);
        terminal.until("Answer it? y, n or c:");
        terminal.type_in(key);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        let screen = terminal.screen();
        assert!(screen.contains(&format!("'action':'{action}'")), "{screen}");
    }
}

#[test]
fn a_session_shows_its_servers_and_takes_a_prompt_as_a_message() {
    let user = user();
    let script = user.script(&json!([{"text": "The end."}]));
    let mut terminal = Emulator::start(&user.program(&["chat", "--script", &script]), SIZE);
    terminal.until("Ask, or / for commands");
    terminal.type_in("/mcp \r");
    terminal.until("fake: not started, 2 tools");
    terminal.type_in("/mcp prompt fake/review file=a\r");
    terminal.until("Please review the file.");
    terminal.type_in("\r");
    let screen = terminal.until("The end.");
    assert!(screen.contains("› Prompt fake/review:\n  Please review the file."), "{screen}");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("/mcp \r");
    terminal.until("fake: ready, 2 tools");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_session_of_lines_sends_a_prompt_at_once() {
    let user = user();
    let script = user.script(&json!([{"text": "The end."}]));
    let mut terminal = Emulator::start(&user.program(&["chat", "--plain", "--script", &script]), SIZE);
    terminal.until(">");
    terminal.type_in("/mcp prompt fake/review file=a\r");
    let screen = terminal.until("The end.");
    assert!(screen.contains("Please review the file."), "{screen}");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn without_a_person_the_question_of_a_server_is_declined() {
    let user = user();
    let headless = user.run(&CALL);
    headless.assert_code(0);
    assert!(headless.stdout.contains("'action':'decline'"), "{headless:#?}");
    let words = [&CALL[..], &["--no-input"]].concat();
    let mut terminal = Emulator::start(&user.program(&words), SIZE);
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.screen().contains("'action':'decline'"), "{}", terminal.screen());
}

#[test]
fn an_interactive_session_asks_in_a_panel_or_in_lines() {
    for is_plain in [false, true] {
        let user = user();
        let call = json!({"name": "mcp__fake__greet", "arguments": {"who": "?"}});
        let script = user.script(&json!([{"calls": [call]}, {"text": "The end."}]));
        let mut words = vec!["chat", "--script", &script, "go on"];
        words.extend(is_plain.then_some("--plain"));
        let enter = if is_plain { "\r" } else { "" };
        let mut terminal = Emulator::start(&user.program(&words), SIZE);
        let screen = terminal.until("Answer it? y, n or c:");
        assert!(
            screen.contains("MCP server `fake` asks, in its own words:\n  | Whom to greet?\n"),
            "{screen}"
        );
        thread::sleep(READING_TIME);
        terminal.type_in(&format!("y{enter}"));
        terminal.until("end it):");
        thread::sleep(READING_TIME);
        terminal.type_in("Ada\r");
        let screen = terminal.until("Send it?");
        assert!(screen.contains("  name: Ada\n"), "{screen}");
        thread::sleep(READING_TIME);
        terminal.type_in(&format!("y{enter}"));
        let screen = terminal.until("The end.");
        assert!(screen.contains("{'name':'Ada'}"), "{screen}");
        terminal.until_screen("idle", |screen| !screen.contains("working"));
        terminal.type_in("/quit\r");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    }
}
