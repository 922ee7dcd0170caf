//! What the sandbox refuses: told by its path or address, and asked about where a person is there.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ended, Running, User};

fn call(mode: &str, command: &str) -> Vec<String> {
    let input = json!({"command": command}).to_string();
    ["call", "-s", mode, "--json", "shell_command", &input].map(str::to_owned).to_vec()
}

/// The result of a command that nobody is asked about.
fn result(user: &User, mode: &str, command: &str) -> Value {
    let arguments = call(mode, command);
    let ended = user.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    ended.assert_code(1);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A call on a terminal, answered once the question is there.
fn answered(user: &User, command: &str, answer: &str) -> Ended {
    let input = json!({"command": command});
    let line = format!("call -a on-failure -s read-only shell_command '{input}'");
    let mut program = user.program_on_a_terminal(&line);
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("  q  no, and stop");
    running.feed(answer.as_bytes()).end()
}

#[test]
fn a_write_that_a_read_only_sandbox_refuses_is_asked_about() {
    for command in ["touch made", "echo x > made", "make"] {
        let user = User::new();
        user.file("Makefile", "all:\n\ttouch made\n");
        for (answer, code, is_made) in [("n\n", 1, false), ("y\n", 0, true)] {
            let ended = answered(&user, command, answer);
            ended.assert_code(code);
            let wider = "in the sandbox, with `~/work` writable as well";
            assert!(ended.stdout.contains(wider), "{}", ended.stdout);
            assert_eq!(user.work().join("made").exists(), is_made, "{command} {answer}");
        }
    }
}

#[test]
fn a_connection_without_a_network_is_asked_about() {
    let user = User::new();
    let connect = "python3 -c \"import socket; socket.create_connection((\\\"192.0.2.1\\\", 80), 1)\"";
    let ended = answered(&user, connect, "n\n");
    ended.assert_code(1);
    assert!(ended.stdout.contains("in the sandbox, with the network as well"), "{}", ended.stdout);
    assert!(ended.stdout.contains("192.0.2.1:80"), "{}", ended.stdout);
}

#[test]
fn a_failed_result_begins_with_what_was_refused_and_how_to_allow_it() {
    let user = User::new();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let connect = "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 1)\"";
    let cases = [
        ("read-only", "touch made".to_owned(), "`-s workspace-write`".to_owned()),
        (
            "workspace-write",
            format!("touch {}/made", outside.display()),
            format!("`-c 'sandbox_workspace_write.writable_roots=[\"{}\"]'`", outside.display()),
        ),
        (
            "workspace-write",
            connect.to_owned(),
            "`-c sandbox_workspace_write.network_access=true`".to_owned(),
        ),
    ];
    for (mode, command, remedy) in cases {
        let told = result(&user, mode, &command);
        let text = told["content"][0]["text"].as_str().unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("sandbox: ") && first.ends_with(&remedy), "{first}");
        assert_eq!(told["receipt"]["denials"][0]["remedy"], remedy);
        assert_eq!(told["insight"]["class"], "denied", "{told:#}");
    }
}

#[test]
fn a_program_that_asks_until_its_time_is_up_is_said_to_wait_for_input() {
    let user = User::new();
    let command = "while :; do printf 'Continue? [y/N] '; read -r answer; sleep 0.1; done";
    let input = json!({"command": command, "timeout_ms": 500}).to_string();
    let ended = user.run(&["call", "-s", "workspace-write", "--json", "shell_command", &input]);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = told["content"][0]["text"].as_str().unwrap();
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("it seemed to wait for input after `"), "{text}");
    assert!(second.contains("write_stdin"), "{text}");
    assert_eq!(told["facts"]["waits_for_input"], true, "{told:#}");
}

#[test]
fn a_program_that_waits_on_a_terminal_is_told_as_an_event_before_its_result() {
    let user = User::new();
    let start = json!({"cmd": "read -p 'name? ' name", "tty": true});
    let script = user.script(&json!([
        {"calls": [{"name": "exec_command", "arguments": start}]},
        {"text": "done"},
    ]));
    let ended = user.run(&["exec", "--json", "--sandbox", "workspace-write", "--script", &script, "go"]);
    ended.assert_code(0);
    let events = ended.events();
    let at = |kind: &str| {
        events
            .iter()
            .position(|event| event["type"] == kind && event["item"]["waits_for_input"] == true)
            .unwrap()
    };
    let (updated, completed) = (at("item.updated"), at("item.completed"));
    assert!(updated < completed);
    assert_eq!(events[updated]["item"]["id"], events[completed]["item"]["id"]);
}
