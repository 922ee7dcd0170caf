//! Commands that go on from call to call, through the whole program.

use serde_json::{Value, json};

use crate::support::User;

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn args(script: &str) -> Vec<&str> {
    vec!["exec", "--json", "--sandbox", "workspace-write", "--script", script, "go"]
}

#[test]
fn a_program_is_talked_to_from_call_to_call_and_ended_at_the_end() {
    let user = User::new();
    user.file("talk.py", "while True: print('heard', input().upper())\n");
    let script = user.script(&json!([
        call("exec_command", &json!({"cmd": "python3 talk.py", "tty": true})),
        call("write_stdin", &json!({"session_id": 1000, "chars": "hello\n"})),
        {"text": "done"},
    ]));
    let ended = user.run(&args(&script));
    ended.assert_code(0);
    let events = ended.events();
    let items: Vec<_> =
        events.iter().filter(|event| event["type"] == "item.completed").map(|event| &event["item"]).collect();
    let [started, typed, said, warned] = items[..] else { panic!("{items:#?}") };
    let fields = ["type", "status", "session_id", "exit_code", "waits_for_input"];
    assert_eq!(
        fields.map(|name| &started[name]),
        [&json!("command_execution"), &json!("in_progress"), &json!(1000), &Value::Null, &json!(true)]
    );
    assert_eq!(typed["aggregated_output"], "hello\nheard HELLO\n", "{typed:#}");
    assert_ne!(typed["outcome"]["receipt"]["held"]["rung"], "in-process");
    assert_eq!(said["text"], "done");
    assert_eq!(warned["message"], "sessions that still ran at the end and were ended: 1 (/bin/sh)");
}

#[test]
fn what_goes_on_ends_with_exec_however_that_ends() {
    for signal in ["INT", "KILL"] {
        let user = User::new();
        let gone = user.named_pipe("held").listen();
        let started = user.named_pipe("started");
        let hide = "exec 9>held; setsid sleep 1000 & echo up > started; sleep 1000";
        let script = user.script(&json!([
            call("exec_command", &json!({"cmd": hide, "yield_time_ms": 300})),
            call("exec_command", &json!({"cmd": "sleep 1000", "yield_time_ms": 30_000})),
        ]));
        let mut running = user.start(&args(&script));
        started.hear();
        running.until_stdout("item.completed");
        running.signal(signal);
        running.end();
        gone.wait();
    }
}
