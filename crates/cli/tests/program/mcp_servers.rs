//! MCP servers that run: `windlass mcp test` and `windlass mcp pins`.

use serde_json::{Value, json};

use crate::support::User;

fn json_of(user: &User, words: &[&str], code: i32) -> Value {
    let ended = user.run(words);
    ended.assert_code(code);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:#?}"))
}

#[test]
fn a_server_is_started_in_its_sandbox_and_shows_what_it_offers() {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    let tested = user.run(&["mcp", "test", "fake"]);
    tested.assert_code(0);
    for expected in
        ["fake: answers", "server: fake 1.2.3", "protocol: 2025-06-18", "2 tools", "greet  Greets."]
    {
        assert!(tested.stdout.contains(expected), "{expected}: {tested:#?}");
    }
    let tested = json_of(&user, &["mcp", "test", "fake", "--json"], 0);
    let names: Vec<_> = tested["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["greet", "break"]);
    assert_eq!(tested["ok"], json!(true));
}

#[test]
fn a_server_that_cannot_run_says_what_would_let_it() {
    let user = User::new();
    let target = user.work().join("notes");
    let write = format!("echo starting >&2; echo x > {}; exit 7", target.display());
    user.run(&["mcp", "add", "writer", "--no-test", "--", "sh", "-c", &write]).assert_code(0);
    user.run(&["mcp", "add", "absent", "--no-test", "--", "no-such-program"]).assert_code(0);
    let failed = json_of(&user, &["mcp", "test", "writer", "--json"], 1);
    assert_eq!(failed["ok"], json!(false));
    assert!(failed["stderr"].as_str().unwrap().contains("starting"), "{failed}");
    let denials = failed["denials"].to_string();
    assert!(denials.contains("notes") && denials.contains("allow with"), "{failed}");
    assert!(!target.exists());
    let failed = user.run(&["mcp", "test", "absent"]);
    failed.assert_code(1);
    assert!(failed.stdout.contains("cannot start `no-such-program`"), "{failed:#?}");
    // One that fails does not keep the others from being tested.
    user.add_mcp_server("well", &[]);
    let all = json_of(&user, &["mcp", "test", "--json"], 1);
    let ok: Vec<_> = all.as_array().unwrap().iter().map(|each| (&each["server"], &each["ok"])).collect();
    let expected = [("absent", false), ("well", true), ("writer", false)];
    assert_eq!(
        ok,
        expected.map(|(name, ok)| (json!(name), json!(ok))).iter().map(|(a, b)| (a, b)).collect::<Vec<_>>()
    );
}

#[test]
fn a_tool_that_changes_is_held_back_until_it_is_approved() {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    user.run(&["mcp", "test", "fake"]).assert_code(0);
    let pins = json_of(&user, &["mcp", "pins", "--json"], 0);
    assert_eq!(pins[0]["tools"].as_array().unwrap().len(), 2, "{pins}");
    let script = user.read("server.sh");
    user.file("server.sh", script.replace("Fails.", "Fails, and sends your files away."));
    let tested = user.run(&["mcp", "test", "fake"]);
    assert!(tested.stdout.contains("1 tool held back; `windlass mcp pins approve fake`"), "{tested:#?}");
    assert!(tested.stdout.contains("sends your files away"), "{tested:#?}");
    let pins = user.run(&["mcp", "pins", "fake"]);
    assert!(pins.stdout.contains("changed, waits for approval"), "{pins:#?}");
    let called = user.run(&["call", "mcp__fake__break", "{}"]);
    called.assert_code(2);
    assert!(called.stderr.contains("is held back") && called.stderr.contains("mcp pins fake"), "{called:#?}");
    let approved = json_of(&user, &["mcp", "pins", "approve", "fake", "--json"], 0);
    assert_eq!(approved["approved"], json!(["break"]));
    let tested = json_of(&user, &["mcp", "test", "fake", "--json"], 0);
    assert_eq!(tested["held"], json!([]));
    user.run(&["mcp", "pins", "forget", "fake"]).assert_code(0);
    user.run(&["mcp", "pins", "forget", "fake"]).assert_code(1);
}

#[test]
fn an_approval_is_for_what_was_shown_and_not_for_what_the_server_says_by_then() {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    user.run(&["mcp", "test", "fake"]).assert_code(0);
    let script = user.read("server.sh");
    user.file("server.sh", script.replace("Fails.", "Fails often."));
    user.run(&["mcp", "test", "fake"]).assert_code(0);
    user.file("server.sh", script.replace("Fails.", "Sends your files away."));
    let approved = user.run(&["mcp", "pins", "approve", "fake"]);
    assert!(approved.stdout.contains("\"Fails.\" → \"Fails often.\""), "{approved:#?}");
    let tested = json_of(&user, &["mcp", "test", "fake", "--json"], 0);
    assert_eq!(tested["held"][0]["changes"][0]["new"], "Sends your files away.", "{tested}");
    user.run(&["mcp", "pins", "approve", "fake", "greet"]).assert_code(1);
    user.run(&["mcp", "pins", "approve", "fake"]).assert_code(0);
    let nothing = user.run(&["mcp", "pins", "approve", "fake"]);
    assert!(nothing.stderr.contains("nothing waited for approval"), "{nothing:#?}");
}

#[test]
fn servers_of_an_untrusted_project_are_not_started() {
    let user = User::new();
    user.file(
        ".mcp.json",
        json!({"mcpServers": {"a": {"command": "touch", "args": ["started"]}}}).to_string(),
    );
    let refused = user.run(&["mcp", "test", "a"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("not trusted"), "{refused:#?}");
    user.run(&["mcp", "test"]).assert_code(0);
    assert!(!user.work().join("started").exists());
}

#[test]
fn prompts_are_listed_shown_and_used_as_requests() {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    let listed = user.run(&["mcp", "prompts"]);
    listed.assert_code(0);
    assert_eq!(listed.stdout, "fake/review file=…  Reviews a file.\n");
    let shown = user.run(&["mcp", "prompts", "fake", "review", "file=a.rs"]);
    assert_eq!(shown.stdout, "user: Please review the file.\n");
    let script = user.script(&json!([{"text": "Done."}]));
    let words =
        ["exec", "--script", &script, "--mcp-prompt", "fake/review", "--prompt-arg", "file=a.rs", "Be kind."];
    user.run(&words).assert_code(0);
    let records = user.records();
    let request =
        records.iter().map(Value::to_string).find(|record| record.contains("Please review")).unwrap();
    assert!(request.contains("Be kind."), "{request}");
}

#[test]
fn a_login_of_a_program_or_with_a_token_is_refused_with_the_reason() {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    let refused = user.run(&["mcp", "login", "fake"]);
    refused.assert_code(1);
    assert!(refused.stderr.contains("it has no `url`"), "{refused:#?}");
    let refused = user.run(&["mcp", "logout", "fake"]);
    refused.assert_code(1);
}
