//! The exit codes of `windlass exec`: each of them, and what goes with it.

use serde_json::json;

use crate::support::{FULL_ACCESS, Reply, Server, Step, User, Wire, command};

#[test]
fn a_failed_turn_is_1() {
    let user = User::new();
    let script = user.script(&json!([{"error": "not today"}]));
    let ended = user.run(&["exec", "--script", &script, "hi"]);
    ended.assert_code(1);
    assert_eq!(ended.stdout, "");
    assert_eq!(
        ended.last_word(),
        "error: the server rejected the request (HTTP 400): not today; check the input and the provider's settings"
    );
}

#[test]
fn what_the_rules_did_not_do_is_1() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    for (request, code) in [
        ("fly to the moon", 1),
        ("飞到月球去", 1),
        ("show nowhere.txt", 1),
        ("replace foo with bar", 1),
        ("search for \"TODO\"", 0),
        ("find *.rs", 0),
        ("hello", 0),
        ("don't delete notes.txt", 0),
    ] {
        user.run(&["exec", request]).assert_code(code);
        let ended = user.run(&["exec", "--json", request]);
        ended.assert_code(code);
        let last: serde_json::Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        let declined = if code == 1 { json!(true) } else { json!(null) };
        assert_eq!((&last["type"], &last["declined"]), (&json!("turn.completed"), &declined), "{request}");
    }
    user.run(&["exec", "--experimental-json", "fly to the moon"]).assert_code(0);
}

#[test]
fn a_failed_command_is_the_models_business() {
    let user = User::new();
    let fail = json!({"name": "shell_command", "arguments": {"command": "false"}});
    let script = user.script(&json!([{"calls": [fail]}, {"text": "it failed"}]));
    user.run(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat()).assert_code(0);
}

#[test]
fn a_refused_call_is_3_and_says_why() {
    let user = User::new();
    let push = json!({"name": "shell_command", "arguments": {"command": "git push --force"}});
    let script = user.script(&json!([{"calls": [push]}, {"text": "I may not."}]));
    for mode in [&[][..], &["--sandbox", "workspace-write"]] {
        let ended = user.run(&[&["exec", "--script", &script, "hi"], mode].concat());
        ended.assert_code(3);
        assert_eq!(ended.stdout, "I may not.\n");
        let [.., reason, hint] = ended.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{ended:#?}") };
        assert_eq!(reason, "refused: run git push --force");
        let why = "overwrites or deletes what is on the server";
        assert_eq!(ended.stderr.matches(why).count(), 1, "{ended:#?}");
        assert!(ended.stderr.contains("\n  refused: "), "{ended:#?}");
        assert!(hint.contains("to allow it: run it where it can ask"), "{ended:#?}");
    }
}

#[test]
fn a_refused_call_stays_3_until_the_same_is_allowed() {
    let user = User::new();
    let run =
        |command: &str| json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]});
    let script = user.script(&json!([run("git push --force"), run("true"), {"text": "ok"}]));
    let ended = user.run(&["exec", "--script", &script, "hi", "--sandbox", "workspace-write"]);
    ended.assert_code(3);
    assert!(!ended.stderr.contains("replaced it"), "{ended:#?}");
}

#[test]
fn headless_means_nobody_is_asked_whatever_the_policy() {
    let user = User::new();
    let touch = json!({"name": "shell_command", "arguments": {"command": "touch here"}});
    let script = user.script(&json!([{"calls": [touch]}, {"text": "ok"}]));
    let args = ["exec", "--script", &script, "hi", "--ask-for-approval", "untrusted"];
    user.run(&[&args, &FULL_ACCESS[..]].concat()).assert_code(3);
    assert!(!user.work().join("here").exists());
}

#[test]
fn a_time_limit_is_4_and_every_call_has_its_output() {
    let wire = Wire::Responses;
    let server = Server::start([wire.asks(&[command("c1", "sleep 60")])]);
    let user = User::new();
    user.use_server(&server, wire);
    let ended = user.run(&[&["exec", "--time-limit", "3", "hi"], &FULL_ACCESS[..]].concat());
    ended.assert_code(4);
    assert_eq!(ended.last_word(), "error: aborted: the turn's time limit was reached");
    let outputs = user.records().into_iter().find(|record| record["type"] == "outputs").unwrap();
    assert_eq!(outputs["payload"], json!({"calls": ["c1"]}));
}

#[test]
fn a_time_limit_holds_against_a_server_that_hangs() {
    for answer in [Reply(vec![Step::Hang]), Reply::begun(&[]).then(Step::Hang)] {
        let server = Server::start([answer]);
        let user = User::new();
        user.use_server(&server, Wire::Responses);
        user.run(&["exec", "--time-limit", "1", "hi"]).assert_code(4);
    }
}

#[test]
fn a_token_limit_is_4_once_it_is_reached_and_not_before() {
    for (limit, code) in [("7", 4), ("8", 0)] {
        let wire = Wire::Responses;
        let server =
            Server::start([wire.asks(&[("c1", "update_plan", json!({"plan": []}))]), wire.says("ok")]);
        let user = User::new();
        user.use_server(&server, wire);
        let ended = user.run(&["exec", "--token-limit", limit, "hi"]);
        ended.assert_code(code);
    }
}

#[test]
fn a_budget_ends_the_turn_with_4_and_its_name() {
    let priced = r#"models."*".prices={input=1000.0,output=1000.0}"#;
    for (options, reason) in [
        (&["--max-requests", "1"][..], "request_budget"),
        (&["--max-calls", "1"], "call_budget"),
        (&["-c", "budget.max_tokens=7"], "token_budget"),
        (&["-c", "budget.tools.update_plan.max_calls=1"], "tool_budget"),
        (&["--max-cost", "0.007", "-c", priced], "cost_budget"),
    ] {
        let (user, wire) = (User::new(), Wire::Responses);
        let asks = |id| wire.asks(&[(id, "update_plan", json!({"plan": []}))]);
        let server = Server::start([asks("c1"), asks("c2"), wire.says("ok")]);
        user.use_server(&server, wire);
        let ended = user.run(&[&["exec", "--json"], options, &["hi"]].concat());
        ended.assert_code(4);
        let last: serde_json::Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&last["type"], &last["reason"]), (&json!("turn.failed"), &json!(reason)), "{ended:#?}");
    }
}

#[test]
fn money_is_not_limited_where_prices_are_unknown() {
    let (user, wire) = (User::new(), Wire::Responses);
    let server = Server::start([wire.says("ok")]);
    user.use_server(&server, wire);
    let ended = user.run(&["exec", "--max-cost", "1", "-m", "mine", "hi"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("the prices of `mine` are not set"), "{ended:#?}");
}

#[test]
fn a_token_limit_ends_a_call_whose_arguments_never_end() {
    let piece = "x".repeat(1000);
    for (wire, begin, next) in [
        (
            Wire::Responses,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"f","call_id":"c1","name":"shell_command","arguments":""}}"#,
            json!({"type": "response.function_call_arguments.delta", "item_id": "f", "delta": piece}),
        ),
        (
            Wire::Chat,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"shell_command","arguments":""}}]}}]}"#,
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}]}),
        ),
    ] {
        let next = next.to_string();
        let events = [vec![begin], vec![next.as_str(); 20]].concat();
        let server = Server::start([Reply::begun(&events).then(Step::Hang)]);
        let user = User::new();
        user.use_server(&server, wire);
        user.run(&["exec", "--token-limit", "2000", "hi"]).assert_code(4);
    }
}

#[test]
fn a_model_that_goes_in_circles_is_4_and_says_so() {
    let user = User::new();
    let asks = json!({"calls": [{"name": "browser_open", "arguments": {"url": "x"}}]});
    let script = user.script(&json!(vec![asks; 20]));
    let ended = user.run(&["exec", "--script", &script, "hi"]);
    ended.assert_code(4);
    assert!(ended.stderr.contains("`browser_open` was called again and failed again, 8 times"), "{ended:#?}");
    assert!(ended.stderr.contains("went in circles"), "{ended:#?}");
}

#[test]
fn a_token_limit_holds_where_no_usage_is_reported() {
    let user = User::new();
    let turns: Vec<_> = (0..20)
        .map(|at| json!({"calls": [{"name": "shell_command", "arguments": {"command": format!("echo {at}")}}]}))
        .collect();
    let script = user.script(&json!(turns));
    let ended = user.run(&["exec", "--script", &script, "--token-limit", "20000", "hi"]);
    ended.assert_code(4);
    assert!(ended.stderr.contains("token limit"), "{ended:#?}");
}

#[test]
fn what_cannot_be_written_down_does_not_happen() {
    let user = User::new();
    std::fs::write(user.home().join("sessions"), "in the way").unwrap();
    let touch = json!({"name": "shell_command", "arguments": {"command": "touch here"}});
    let script = user.script(&json!([{"calls": [touch]}, {"text": "ok"}]));
    let ended = user.run(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
    ended.assert_code(1);
    assert!(ended.stderr.contains("sessions"), "{ended:#?}");
    assert!(!user.work().join("here").exists());
}
