//! The first contact with an MCP server: `windlass mcp add` tests it, and the first request of a
//! session has its tools.

use serde_json::{Value, json};

use crate::support::{Server, User, Wire};

/// A user whose model says hello.
fn user_with_model() -> (User, Server) {
    let (user, server) = (User::new(), Server::start([Wire::Responses.says("hello")]));
    user.use_server(&server, Wire::Responses);
    (user, server)
}

/// Runs a session. Returns the names of the tools in its first request, and its warnings.
fn exec(user: &User, server: &Server) -> (Vec<String>, String) {
    let ended = user.run(&["exec", "hello"]);
    ended.assert_code(0);
    let requests = server.requests();
    let tools = requests[0].body["tools"].as_array();
    let names =
        tools.into_iter().flatten().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect();
    (names, ended.stderr)
}

#[test]
fn a_server_is_tested_when_it_is_added_and_the_next_session_knows_its_tools() {
    let (user, server) = user_with_model();
    let added = user.add_and_test_mcp_server("fake", &[]);
    added.assert_code(0);
    for expected in ["fake: answers", "2 tools", "greet  Greets."] {
        assert!(added.stdout.contains(expected), "{expected}: {added:#?}");
    }
    let pins: Value = serde_json::from_str(&user.run(&["mcp", "pins", "--json"]).stdout).unwrap();
    assert_eq!(pins[0]["tools"].as_array().unwrap().len(), 2, "{pins}");
    // It cannot list them any more, so they are known from the test.
    user.file("server.sh", "exit 1");
    let (tools, _) = exec(&user, &server);
    assert!(tools.iter().any(|tool| tool == "mcp__fake__greet"), "{tools:?}");
}

#[test]
fn a_test_that_fails_keeps_the_server_and_says_what_would_let_it_run() {
    let user = User::new();
    let target = user.work().join("notes");
    let write = format!("echo x > {}; exit 7", target.display());
    let added = user.run(&["mcp", "add", "writer", "--", "sh", "-c", &write]);
    added.assert_code(0);
    for expected in ["writer: FAILED", "notes", "allow with", "warning: `writer` was added"] {
        assert!(added.stderr.contains(expected), "{expected}: {added:#?}");
    }
    assert_eq!(added.stdout, "");
    assert!(!target.exists());
    user.run(&["mcp", "get", "writer"]).assert_code(0);
    let added = user.run(&["mcp", "add", "absent", "--json", "--", "no-such-program"]);
    added.assert_code(0);
    let added: Value = serde_json::from_str(&added.stdout).unwrap();
    assert_eq!((&added["server"], &added["test"]["ok"]), (&json!("absent"), &json!(false)), "{added}");
}

#[test]
fn the_list_shows_the_state_in_which_the_last_start_left_a_server() {
    let user = User::new();
    let state = |name: &str| -> Value {
        serde_json::from_str(&user.run(&["mcp", "get", name, "--json"]).stdout).unwrap()
    };
    user.run(&["mcp", "add", "new", "--no-test", "--", "sh", "-c", "exit 1"]).assert_code(0);
    assert_eq!((&state("new")["state"], &state("new")["tools"]), (&json!("known"), &Value::Null));
    let broken = "echo cannot find \"$0\" >&2; exit 7";
    user.run(&["mcp", "add", "broken", "--", "sh", "-c", broken, "the-module"]).assert_code(0);
    let shown = state("broken");
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(shown["error"].as_str().unwrap().contains("exited with code 7"), "{shown}");
    assert!(shown["stderr"].as_str().unwrap().contains("cannot find the-module"), "{shown}");
    user.add_and_test_mcp_server("fake", &[]).assert_code(0);
    assert_eq!((&state("fake")["state"], &state("fake")["tools"]), (&json!("known"), &json!(2)));
    let list = user.run(&["mcp", "list"]);
    for row in ["new     not started", "broken  failed", "fake    known, 2 tools"] {
        assert!(list.stdout.contains(row), "{row}: {list:#?}");
    }
    let warning = list.stderr.lines().find(|line| line.contains("`broken` failed at its last start: "));
    assert!(warning.is_some_and(|warning| warning.contains("it exited with code 7")), "{list:#?}");
    // Another configuration has no last start.
    user.run(&[
        "mcp",
        "add",
        "broken",
        "--replace",
        "--no-test",
        "--network",
        "--",
        "sh",
        "-c",
        broken,
        "the-module",
    ])
    .assert_code(0);
    assert_eq!(state("broken")["state"], "known");
}

#[test]
fn a_call_of_a_known_tool_does_not_wait_for_other_servers() {
    let user = User::new();
    user.add_and_test_mcp_server("fake", &["--approval-mode", "approve"]).assert_code(0);
    let hangs = ["mcp", "add", "hangs", "--no-test", "--startup-timeout", "2.9", "--", "sleep", "1000"];
    user.run(&hangs).assert_code(0);
    let called = user.run(&["call", "mcp__fake__greet", r#"{"who": "all"}"#]);
    called.assert_code(0);
    // It would have failed at its limit.
    assert!(!called.stderr.contains("hangs` failed"), "{called:#?}");
}

#[test]
fn a_server_that_must_not_be_tested_is_not_started() {
    let user = User::new();
    let mark = user.work().join("started");
    for option in ["--no-test", "--disabled"] {
        let command = ["--", "touch", mark.to_str().unwrap()];
        let words = [&["mcp", "add", "marker", "--replace", "--sandbox", "none", option][..], &command];
        user.run(&words.concat()).assert_code(0);
        assert!(!mark.exists(), "{option}");
    }
}

#[test]
fn a_server_that_never_ran_has_its_tools_in_the_first_request() {
    let (user, server) = user_with_model();
    let [program, script, description] = user.mcp_server("Greets.");
    let servers = json!({"mcpServers": {"fake": {"command": program, "args": [script, description]}}});
    user.file(".mcp.json", servers.to_string());
    user.run(&["trust", "--yes"]).assert_code(0);
    let (tools, _) = exec(&user, &server);
    assert!(tools.iter().any(|tool| tool == "mcp__fake__greet"), "{tools:?}");
}

#[test]
fn a_server_that_hangs_does_not_keep_the_first_request() {
    let (user, server) = user_with_model();
    user.run(&["mcp", "add", "hangs", "--no-test", "--", "sleep", "1000"]).assert_code(0);
    let (tools, said) = exec(&user, &server);
    assert!(!tools.is_empty());
    // It would have failed at its own limit.
    assert!(!said.contains("hangs` failed"), "{said}");
}
