//! `windlass trust`: the configuration of a project is used only after its user has agreed to it.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Emulator, Running, User};

const ONE: &str = r#"{"mcpServers": {"notes": {"command": "notes-server", "args": ["--fast"],
    "env": {"TOKEN": "${NOTES_TOKEN:-none}"}}}}"#;

fn states(user: &User) -> Vec<(String, String)> {
    let list = user.run(&["mcp", "list", "--json"]);
    list.assert_code(0);
    let list: Vec<Value> = serde_json::from_str(&list.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list.iter().map(|server| (text(&server["name"]), text(&server["state"]))).collect()
}

fn state(user: &User) -> String {
    let [(_, state)] = &states(user)[..] else { panic!("not one server") };
    state.clone()
}

#[test]
fn servers_of_a_project_are_used_once_it_is_trusted_until_they_change() {
    let user = User::new();
    user.file(".mcp.json", ONE);
    assert_eq!(state(&user), "untrusted");
    let note = user.run(&["mcp", "list"]).stderr;
    assert!(note.contains("(notes): it is not trusted; `windlass trust "), "{note}");
    let trusted = user.run(&["trust", "--yes"]);
    trusted.assert_code(0);
    assert!(trusted.stdout.contains("notes-server --fast") && trusted.stdout.contains("NOTES_TOKEN"));
    assert_eq!(state(&user), "known");
    let shown: Value = serde_json::from_str(&user.run(&["mcp", "get", "notes", "--json"]).stdout).unwrap();
    assert_eq!((&shown["reach"], &shown["config"]["cwd"]), (&json!("nothing"), &json!(user.work())));
    user.file(".mcp.json", ONE.replace("--fast", "--slow"));
    assert_eq!(state(&user), "untrusted");
    let note = user.run(&["mcp", "list"]).stderr;
    assert!(note.contains("it has changed since it was decided about"), "{note}");
    user.file(".mcp.json", ONE);
    assert_eq!(state(&user), "known");
    user.run(&["trust", "--revoke"]).assert_code(0);
    assert_eq!(state(&user), "untrusted");
    user.run(&["trust", "--revoke"]).assert_code(1);
}

#[test]
fn without_a_terminal_nothing_is_trusted_unless_it_is_said() {
    let user = User::new();
    user.run(&["trust"]).assert_code(1);
    user.file(".mcp.json", ONE);
    let refused = user.run(&["trust"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("pass `--yes`"), "{refused:#?}");
    let shown = user.run(&["trust", "--json"]);
    shown.assert_code(3);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["state"], &shown["variables"]), (&json!("untrusted"), &json!(["NOTES_TOKEN"])));
    assert_eq!(state(&user), "untrusted");
    user.run(&["trust", "--yes", "--json"]).assert_code(0);
    let list: Value = serde_json::from_str(&user.run(&["trust", "--list", "--json"]).stdout).unwrap();
    assert_eq!(list, json!([{"directory": user.work(), "state": "trusted"}]));
}

#[test]
fn a_person_is_asked_and_the_answer_counts() {
    let user = User::new();
    user.file(".mcp.json", ONE);
    let mut command = user.program_on_a_terminal("trust");
    command.stdin(Stdio::piped());
    let ended = Running::start(command).feed(b"y\n").end();
    ended.assert_code(0);
    assert!(ended.stdout.contains("Trust this configuration, until it changes? [y/N]"), "{ended:#?}");
    assert_eq!(state(&user), "known");
}

#[test]
fn a_person_who_agrees_can_have_the_servers_tested_at_once() {
    let user = User::new();
    user.file(".mcp.json", ONE);
    let mut command = user.program_on_a_terminal("trust");
    command.stdin(Stdio::piped());
    let ended = Running::start(command).feed(b"y\ny\n").end();
    ended.assert_code(0);
    assert!(ended.stdout.contains("notes: FAILED"), "{ended:#?}");
    assert_eq!(state(&user), "failed");
}

#[test]
fn a_session_asks_once_before_it_uses_the_servers_of_a_project() {
    let user = User::new();
    user.file(".mcp.json", ONE);
    let script = user.script(&json!([]));
    for (answer, mcp) in [("n\r", "no MCP server is configured"), ("y\r", "notes: ")] {
        user.file(".mcp.json", format!("{ONE}{}", " ".repeat(mcp.len())));
        let mut terminal = Emulator::start(&user.program(&["chat", "--script", &script]), (40, 120));
        let screen = terminal.until("Trust this configuration, until it changes? [y/N]");
        assert!(screen.contains("notes-server --fast"), "{screen}");
        terminal.type_in(answer);
        terminal.until("Ask, or / for commands");
        terminal.type_in("/mcp \r");
        terminal.until(mcp);
        terminal.type_in("/quit\r");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    }
    let again = Emulator::start(&user.program(&["chat", "--script", &script]), (40, 120));
    again.until("Ask, or / for commands");
    assert!(!again.screen().contains("Trust this"), "{}", again.screen());
}

#[test]
fn a_project_cannot_allow_its_servers_more_than_the_default() {
    let user = User::new();
    for key in ["sandbox", "network", "writable", "trusted", "default_tools_approval_mode", "tools"] {
        let file = json!({"mcpServers": {"a": {"command": "x", key: "none"}}}).to_string();
        user.file(".mcp.json", file);
        let refused = user.run(&["trust", "--yes"]);
        refused.assert_code(2);
        assert!(refused.stderr.contains(&format!("unknown key `mcpServers.a.{key}`")), "{refused:#?}");
    }
}

#[test]
fn a_server_of_the_user_wins_over_one_of_the_project() {
    let user = User::new();
    user.file(".mcp.json", ONE);
    user.run(&["mcp", "add", "notes", "--no-test", "--", "my-own"]).assert_code(0);
    assert_eq!(state(&user), "known");
    user.run(&["trust", "--yes"]).assert_code(0);
    let shown: Value = serde_json::from_str(&user.run(&["mcp", "get", "notes", "--json"]).stdout).unwrap();
    assert_eq!(shown["config"]["command"], "my-own");
}
