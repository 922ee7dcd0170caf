//! `exec --json`: one event per line, in the shapes clients know.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, Running, Server, User, Wire, command};

/// Events without what differs from run to run.
fn events(ended: &Ended) -> Vec<Value> {
    let mut events = ended.events();
    // Tests of the context look at these.
    events.retain(|event| event["type"] != "context.used");
    for event in &mut events {
        if let Some(outcome) = event.pointer_mut("/item/outcome/receipt") {
            outcome["duration_ms"] = json!(0);
        }
        if event["type"] == "thread.started" {
            event["thread_id"] = json!("THREAD");
        }
    }
    events
}

fn usage(input: u64, cached: u64, output: u64) -> Value {
    json!({
        "input_tokens": input, "cached_input_tokens": cached, "cache_write_input_tokens": 0,
        "output_tokens": output, "reasoning_output_tokens": 0
    })
}

#[test]
fn a_turn_is_told_from_its_beginning_to_its_end() {
    for wire in Wire::ALL {
        let calls = [command("c1", "echo hi; exit 3"), ("c2", "nope", json!({"a": 1}))];
        let server = Server::start([wire.asks(&calls), wire.says("Done.")]);
        let user = User::new();
        user.use_server(&server, wire);
        let ended = user.run(&[&["exec", "--json", "do it"], &FULL_ACCESS[..]].concat());
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
        let shell = |output: &str, code: Value, status: &str| {
            json!({
                "id": "item_0", "type": "command_execution", "command": "/bin/sh -c 'echo hi; exit 3'",
                "aggregated_output": output, "exit_code": code, "status": status, "tool": "shell_command"
            })
        };
        let mut failed = shell("hi\n", json!(3), "failed");
        failed["outcome"] = json!({
            "insight": {"kind": "command", "class": "failed", "summary": "failed"},
            "status": "error",
            "verdict": {"success": false, "confidence": 100, "reasons": ["the command ended with exit code 3"]},
            "receipt": {
                "held": {"rung": "unconfined", "network": "any", "writable": ["/"]}, "decision": "the sandbox mode is `danger-full-access`", "duration_ms": 0
            }
        });
        let events = events(&ended);
        let message = events[4]["item"]["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("unsupported call: nope\nthere is no tool `nope`; "), "{message}");
        let unknown = json!({
            "id": "item_1", "type": "mcp_tool_call", "server": "windlass", "tool": "nope", "arguments": {"a": 1},
            "result": null, "error": {"message": message}, "status": "failed",
            "outcome": {
                "status": "not_found",
                "verdict": {"success": false, "confidence": 100, "reasons": ["there is no such tool"]},
                "receipt": {"duration_ms": 0, "unknown_tool": true}
            }
        });
        let expected = [
            json!({"type": "thread.started", "thread_id": "THREAD"}),
            json!({"type": "turn.started"}),
            json!({"type": "item.started", "item": shell("", Value::Null, "in_progress")}),
            json!({"type": "item.completed", "item": failed}),
            json!({"type": "item.completed", "item": unknown}),
            json!({"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "Done."}}),
            json!({"type": "turn.completed", "usage": usage(10, 4, 4), "refusals": []}),
        ];
        assert_eq!(events, expected, "{wire:?}");
    }
}

#[test]
fn the_last_event_lists_what_was_refused() {
    let user = User::new();
    let push = json!({"name": "shell_command", "arguments": {"command": "git push --force"}});
    let script = user.script(&json!([{"calls": [push]}, {"text": "I may not."}]));
    let ended = user.run(&["exec", "--json", "--script", &script, "hi"]);
    ended.assert_code(3);
    let events = ended.events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "turn.completed");
    assert_eq!(last["refusals"].as_array().unwrap().len(), 1);
    let refusal = &last["refusals"][0];
    assert_eq!((&refusal["tool"], &refusal["made_up_for"]), (&json!("shell_command"), &json!(false)));
    let item = events.iter().find(|event| event["item"]["type"] == "command_execution").unwrap();
    assert_eq!((&item["item"]["status"], &item["item"]["exit_code"]), (&json!("declined"), &Value::Null));
}

#[test]
fn a_client_library_gets_0_for_a_completed_turn_and_1_for_a_failed_one() {
    let user = User::new();
    let push = json!({"name": "shell_command", "arguments": {"command": "git push --force"}});
    let refused = user.script(&json!([{"calls": [push]}, {"text": "I may not."}]));
    let ended = user.run_with_input(&["exec", "--experimental-json", "--script", &refused], b"hi");
    ended.assert_code(0);
    assert_eq!(ended.events().last().unwrap()["refusals"][0]["tool"], "shell_command");
    let failed = user.script(&json!([{"error": "no"}]));
    let ended = user.run_with_input(&["exec", "--experimental-json", "--script", &failed], b"hi");
    ended.assert_code(1);
    assert_eq!(ended.events().last().unwrap()["type"], "turn.failed");
}

#[test]
fn a_failed_turn_ends_with_an_event_that_says_why() {
    let user = User::new();
    let script = user.script(&json!([{"text": "half", "broken": "gone"}, {"error": "not today"}]));
    let ended = user.run(&["exec", "--json", "--script", &script, "hi"]);
    ended.assert_code(1);
    let expected = [
        json!({"type": "thread.started", "thread_id": "THREAD"}),
        json!({"type": "turn.started"}),
        json!({"type": "item.completed", "item": {
            "id": "item_0", "type": "error",
            "message": "Reconnecting... 1/5 (the answer broke off: gone; check the server and the connection to it)"
        }}),
        json!({
            "type": "turn.failed",
            "error": {"message": "the server rejected the request (HTTP 400): not today; check the input and the provider's settings"},
            "reason": "model_error", "usage": usage(0, 0, 0), "refusals": []
        }),
    ];
    assert_eq!(events(&ended), expected);
}

#[test]
fn a_plan_is_a_list_of_its_own_from_its_first_form_to_its_last() {
    let user = User::new();
    let plan =
        |status| json!({"name": "update_plan", "arguments": {"plan": [{"step": "look", "status": status}]}});
    let script = user.script(
        &json!([{"calls": [plan("in_progress")]}, {"calls": [plan("completed")]}, {"reasoning": "so", "text": "ok"}]),
    );
    let ended = user.run(&["exec", "--json", "--script", &script, "hi"]);
    ended.assert_code(0);
    let todo = |kind: &str, completed: bool| {
        let items = json!([{"text": "look", "completed": completed}]);
        json!({"type": kind, "item": {"id": "item_0", "type": "todo_list", "items": items}})
    };
    let events = events(&ended);
    let lists: Vec<_> = events.iter().filter(|event| event["item"]["type"] == "todo_list").collect();
    let expected = [todo("item.started", false), todo("item.updated", true), todo("item.completed", true)];
    assert_eq!(lists, expected.iter().collect::<Vec<_>>());
    let reasoning =
        json!({"type": "item.completed", "item": {"id": "item_1", "type": "reasoning", "text": "so"}});
    assert!(events.contains(&reasoning), "{events:#?}");
}

#[test]
fn pieces_are_told_only_to_those_who_ask() {
    let user = User::new();
    let echo = json!({"name": "shell_command", "arguments": {"command": "echo hi"}});
    let script = user.script(&json!([{"calls": [echo]}, {"text": "a whole sentence"}]));
    let run = |more: &[&str]| {
        let ended = user.run(&[&["exec", "--json", "--script", &script, "hi"], more, &FULL_ACCESS].concat());
        ended.assert_code(0);
        let deltas = ended.events().into_iter().filter(|event| event["type"] == "item.delta");
        deltas.map(|event| event["delta"].as_str().unwrap().to_owned()).collect::<String>()
    };
    assert_eq!(run(&[]), "");
    assert_eq!(run(&["--deltas"]), "hi\na whole sentence");
}

#[test]
fn the_command_line_of_the_client_library_is_accepted_as_it_is() {
    let wire = Wire::Responses;
    let server = Server::start([wire.says(r#"{"n":1}"#), wire.says(r#"{"n":2}"#)]);
    let user = User::new();
    let (base, schema, image) = (
        format!("openai_base_url=\"{}\"", server.url()),
        user.file("schema.json", r#"{"type":"object"}"#),
        user.file("dot.png", b"\x89PNG\r\n\x1a\n"),
    );
    let work = user.work();
    let options = [
        "exec",
        "--experimental-json",
        "--config",
        &base,
        "--config",
        "approval_policy=\"never\"",
        "--config",
        "model_reasoning_effort=\"high\"",
        "--config",
        "sandbox_workspace_write.network_access=true",
        "--model",
        "gpt-5.2-codex",
        "--sandbox",
        "workspace-write",
        "--cd",
        work.to_str().unwrap(),
        "--add-dir",
        "/tmp",
        "--skip-git-repo-check",
        "--output-schema",
        &schema,
    ];
    let run = |rest: &[&str]| {
        let mut program = user.program(&[&options, rest].concat());
        program.env("CODEX_API_KEY", "sk").stdin(Stdio::piped());
        let ended = Running::start(program).feed(b"hi").end();
        ended.assert_code(0);
        let mut events = ended.events();
        events.retain(|event| event["type"] != "context.used");
        events
    };
    let first = run(&["--image", &image]);
    let thread = first[0]["thread_id"].as_str().unwrap();
    let second = run(&["--image", &image, "resume", thread]);
    assert_eq!(second[0], first[0]);
    assert_eq!(second[2]["item"]["text"], r#"{"n":2}"#);
}
