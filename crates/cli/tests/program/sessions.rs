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
    assert_eq!(warned["message"], "sessions that still ran at the end and were ended: 1 (`python3 talk.py`)");
}

#[test]
fn a_long_output_of_a_session_is_told_by_its_path_and_can_be_read_there() {
    let user = User::new();
    let read = format!("tail -n 1 {}/outputs/*/1.txt", user.home().display());
    let script = user.script(&json!([
        call("exec_command", &json!({"cmd": "seq 1000", "max_output_tokens": 100})),
        call("exec_command", &json!({"cmd": read})),
        {"text": "done"},
    ]));
    let ended = user.run(&args(&script));
    ended.assert_code(0);
    let events = ended.events();
    let outputs: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "item.completed")
        .filter_map(|event| event["item"]["aggregated_output"].as_str())
        .collect();
    assert!(outputs[0].contains("truncated…\n[whole output: "), "{}", outputs[0]);
    assert_eq!(outputs[1], "1000\n");
}

#[test]
fn the_time_for_all_commands_ends_what_goes_on() {
    let user = User::new();
    let script = user.script(&json!([
        call("exec_command", &json!({"cmd": "echo up; sleep 1000", "yield_time_ms": 30_000})),
        call("exec_command", &json!({"cmd": "echo more"})),
        {"text": "done"},
    ]));
    let ended = user.run(&[&args(&script)[..], &["-c", "command_time_limit_sec=1"]].concat());
    let events = ended.events();
    let items: Vec<_> =
        events.iter().filter(|event| event["type"] == "item.completed").map(|event| &event["item"]).collect();
    assert_eq!(items[0]["exit_code"], 124, "{items:#?}");
    let told = items[0]["aggregated_output"].as_str().unwrap();
    assert!(told.ends_with("used up the time they may take together\nup\n"), "{told}");
    assert_eq!(items[1]["outcome"]["receipt"]["denials"][0]["layer"], "limit", "{items:#?}");
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
