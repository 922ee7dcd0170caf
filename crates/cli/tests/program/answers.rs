//! Answers that must have a shape, calls that a server leaves in the text, and conversations that
//! fill the window.

use serde_json::{Value, json};

use crate::support::{Ended, Server, User, Wire};

fn schema(user: &User) -> String {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    user.file("schema.json", schema.to_string())
}

fn answered(answers: &[&str]) -> Ended {
    let user = User::new();
    let turns: Vec<_> = answers.iter().map(|text| json!({"text": text})).collect();
    let script = user.script(&Value::from(turns));
    user.run(&["exec", "--json", "--script", &script, "--output-schema", &schema(&user), "go"])
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_asked_for_once_more() {
    answered(&["{\"n\": 1}"]).assert_code(0);
    let ended = answered(&["one", "{\"n\": 1}"]);
    ended.assert_code(0);
    assert!(ended.stdout.contains("asking once more"), "{ended:#?}");
    let ended = answered(&["one", "{\"n\": \"1\"}"]);
    ended.assert_code(1);
    let last = ended.events().pop().unwrap();
    assert_eq!(last["type"], "turn.failed");
    let message = last["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not fit the output schema") && message.contains('n'), "{message}");
    assert!(ended.stdout.contains(r#"{\"n\": \"1\"}"#), "the answer is among the events: {ended:#?}");
}

#[test]
fn a_schema_that_is_none_is_wrong_usage_before_any_request() {
    let server = Server::start([]);
    let user = User::new();
    user.use_server(&server, Wire::Chat);
    for (schema, said) in [
        ("{", "is not JSON"),
        ("[]", "must be a JSON Schema of type `object`"),
        (r#"{"type": "array"}"#, "must be a JSON Schema of type `object`"),
        (r#"{"type": "object", "properties": 7}"#, "`properties`"),
        (r##"{"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}"##, "#/nowhere"),
    ] {
        let path = user.file("schema.json", schema);
        let ended = user.run(&["exec", "--output-schema", &path, "go"]);
        ended.assert_code(2);
        assert!(
            ended.stderr.contains("the output schema") && ended.stderr.contains(said),
            "{schema}: {ended:#?}"
        );
    }
    assert!(server.requests().is_empty() && user.sessions().is_empty());
    let builtin = user.run(&["exec", "-p", "builtin", "--output-schema", &schema(&user), "go"]);
    builtin.assert_code(2);
}

const WRITTEN: &str = r#"{"name": "shell_command", "arguments": {"command": "echo from-the-text"}}"#;

#[test]
fn a_call_that_a_local_server_leaves_in_the_text_is_run() {
    for text in
        [WRITTEN.to_owned(), format!("```json\n{WRITTEN}\n```"), format!("<tool_call>{WRITTEN}</tool_call>")]
    {
        let server = Server::start([Wire::Chat.says(&text), Wire::Chat.says("done")]);
        let user = User::new();
        user.use_server(&server, Wire::Chat);
        let ended = user.run(&["exec", "go"]);
        ended.assert_code(0);
        assert_eq!(ended.stdout, "done\n");
        let requests = server.requests();
        let outputs = Wire::Chat.outputs(&requests[1]);
        assert!(outputs[0].1.contains("from-the-text"), "{outputs:?}");
    }
}

#[test]
fn a_text_that_only_shows_a_call_is_the_answer() {
    let unfit = r#"{"name": "shell_command", "arguments": {"cmd": ["echo", "x"]}}"#;
    for (text, is_hinted) in [
        (format!("Call it like this:\n```json\n{WRITTEN}\n```\nand wait."), false),
        (format!("For example {WRITTEN}"), false),
        (r#"{"name": "left-pad", "arguments": {}}"#.to_owned(), false),
        (unfit.to_owned(), true),
    ] {
        let server = Server::start([Wire::Chat.says(&text)]);
        let user = User::new();
        user.use_server(&server, Wire::Chat);
        let ended = user.run(&["exec", "go"]);
        ended.assert_code(0);
        assert_eq!(ended.stdout, format!("{text}\n"));
        assert_eq!(ended.stderr.contains("windlass models probe"), is_hinted, "{ended:#?}");
    }
    let server = Server::start([Wire::Chat.says(WRITTEN)]);
    let user = User::new();
    user.use_server(&server, Wire::Chat);
    let native = user.run(&["exec", "-c", "model_providers.test.tool_dialect=native", "go"]);
    assert_eq!(native.stdout, format!("{WRITTEN}\n"), "whoever says native gets it");
}

#[test]
fn a_context_window_that_fills_is_warned_of() {
    let user = User::new();
    let call = || json!({"calls": [{"name": "shell_command", "arguments": {"command": "seq 1 5000"}}]});
    let turns: Vec<_> = (0..8).map(|_| call()).chain([json!({"text": "done"})]).collect();
    let script = user.script(&json!(turns));
    let off = ["-c", "model_context_window=20000", "--compact-at", "0"];
    let ended = user.run(&[&["exec", "--script", &script], &off[..], &["go"]].concat());
    ended.assert_code(0);
    let warnings = ended.stderr.matches("(`model_context_window`)").count();
    assert_eq!(warnings, 2, "once when nearly full, once when full: {ended:#?}");
    assert!(
        ended.stderr.contains("% of the 20000") && ended.stderr.contains("more than the 20000"),
        "{ended:#?}"
    );
}
