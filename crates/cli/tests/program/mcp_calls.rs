//! Calls of tools on MCP servers: `windlass call` and `windlass exec`.

use serde_json::{Value, json};

use crate::support::{User, lines};

/// A user with the fake server, which notes its calls in `calls`.
fn user() -> User {
    let user = User::new();
    let [shell, script, description] = user.mcp_server("Greets.");
    let calls = user.work().join("calls");
    let words = ["mcp", "add", "fake", "--sandbox", "workspace-write", "--", &shell, &script, &description];
    user.run(&[&words[..], &[calls.to_str().unwrap()]].concat()).assert_code(0);
    user
}

fn greeting_script(user: &User) -> String {
    let call = json!({"name": "mcp__fake__greet", "arguments": {"who": "you"}});
    user.script(&json!([{"calls": [call]}, {"text": "Done."}]))
}

#[test]
fn a_tool_of_a_server_is_called_without_a_model() {
    let user = user();
    let words = ["call", "-s", "workspace-write", "mcp__fake__greet", r#"{"who": "you"}"#];
    let called = user.run(&words);
    called.assert_code(0);
    assert_eq!(called.stdout.trim(), "Hello, you.");
    assert_eq!(user.read("calls"), "called\n");
    // Arguments are checked before anything is sent.
    let refused = user.run(&["call", "-s", "workspace-write", "mcp__fake__greet", "{}"]);
    refused.assert_code(1);
    assert_eq!(user.read("calls"), "called\n");
    let broken = user.run(&["call", "--yolo", "mcp__fake__break", "{}"]);
    broken.assert_code(1);
    assert!(broken.stdout.contains("it broke"), "{broken:#?}");
}

#[test]
fn a_call_that_may_change_something_is_refused_without_a_person_and_says_how_to_allow_it() {
    let user = user();
    let refused = user.run(&["call", "mcp__fake__greet", r#"{"who": "you"}"#]);
    refused.assert_code(3);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("mcp_servers.fake.tools.greet.approval_mode"), "{refused:#?}");
    assert_eq!(user.read("calls"), "");
    user.run(&["config", "set", "mcp_servers.fake.tools.greet.approval_mode", "approve"]).assert_code(0);
    user.run(&["call", "mcp__fake__greet", r#"{"who": "you"}"#]).assert_code(0);
    assert_eq!(user.read("calls"), "called\n");
}

#[test]
fn exec_reports_calls_and_states_of_servers_as_events() {
    let user = user();
    let script = greeting_script(&user);
    let ended = user.run(&["exec", "--json", "-s", "workspace-write", "--script", &script, "go"]);
    ended.assert_code(0);
    let events = lines(&ended.stdout);
    let items: Vec<_> = events.iter().filter(|event| event["item"]["type"] == "mcp_tool_call").collect();
    let [started, completed] = &items[..] else { panic!("{ended:#?}") };
    assert_eq!(started["type"], "item.started");
    let item = &completed["item"];
    assert_eq!((&item["server"], &item["tool"]), (&json!("fake"), &json!("greet")));
    assert_eq!((&item["status"], &item["arguments"]), (&json!("completed"), &json!({"who": "you"})));
    assert!(item["result"]["content"][0]["text"].as_str().unwrap().contains("Hello"), "{item}");
    let states: Vec<&Value> = events.iter().filter(|event| event["type"] == "mcp_server.state").collect();
    assert_eq!(events.last().unwrap()["type"], "turn.completed");
    assert!(states.iter().any(|state| state["state"] == "ready" && state["server"] == "fake"), "{events:?}");
    let shown = user.run(&["exec", "-s", "workspace-write", "--script", &script, "go"]);
    assert!(shown.stderr.contains("• fake.greet who: you"), "{shown:#?}");
}

#[test]
fn servers_end_with_the_run() {
    let user = user();
    let script = greeting_script(&user);
    user.run(&["exec", "-s", "workspace-write", "--script", &script, "go"]).assert_code(0);
    let server = user.work().join("server.sh");
    let running = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let command = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&command).contains(server.to_str()?).then_some(())
    });
    assert_eq!(running.count(), 0);
}

#[test]
fn a_broken_server_is_a_warning_unless_it_is_required() {
    let user = user();
    user.run(&["mcp", "add", "absent", "--no-test", "--", "no-such-program"]).assert_code(0);
    let script = greeting_script(&user);
    let ended = user.run(&["exec", "-s", "workspace-write", "--script", &script, "go"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("warning: MCP server `absent` failed"), "{ended:#?}");
    user.run(&["config", "set", "mcp_servers.absent.required", "true"]).assert_code(0);
    let ended = user.run(&["exec", "--script", &script, "go"]);
    ended.assert_code(1);
    assert!(ended.stderr.contains("error: MCP server `absent` did not start"), "{ended:#?}");
}

#[test]
fn a_call_of_another_tool_starts_no_server() {
    let user = User::new();
    let mark = user.work().join("started");
    let words =
        ["mcp", "add", "marker", "--sandbox", "none", "--no-test", "--", "touch", mark.to_str().unwrap()];
    user.run(&words).assert_code(0);
    user.run(&["call", "--yolo", "shell_command", r#"{"command": "true"}"#]).assert_code(0);
    user.run(&["tools", "list"]).assert_code(0);
    user.run(&["mcp", "list"]).assert_code(0);
    assert!(!mark.exists());
}
