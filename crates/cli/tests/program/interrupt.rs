//! Ctrl-C and requests to end, at bad moments.

use std::{process::Stdio, time::Instant};

use serde_json::{Value, json};

use crate::support::{FOREVER, FULL_ACCESS, Reply, Running, Server, Step, User, Wire, signal};

/// A turn with two commands; the first says that it runs and then takes too long.
fn user_with_a_long_command() -> (User, String) {
    let user = User::new();
    let command =
        |line: &str| json!({"name": "shell_command", "arguments": {"command": line, "timeout_ms": 60_000}});
    let calls = [command("exec 3> held; echo so far; echo > started; sleep 60"), command("touch second")];
    let script = user.script(&json!([{"calls": calls}, {"text": "going on"}]));
    (user, script)
}

#[test]
fn a_signal_ends_the_turn_in_order_and_every_call_has_its_output() {
    for (name, code) in [("INT", 130), ("TERM", 130), ("HUP", 129), ("QUIT", 131)] {
        let (user, script) = user_with_a_long_command();
        let gone = user.named_pipe("held").listen();
        let started = user.named_pipe("started");
        let running = user.start(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
        started.hear();
        running.signal(name);
        let ended = running.end();
        ended.assert_code(code);
        assert_eq!((ended.stdout.as_str(), ended.last_word()), ("", "error: aborted by user"));
        gone.wait();
        assert!(!user.work().join("second").exists());
        let outputs: Vec<Value> =
            user.records().into_iter().filter(|record| record["type"] == "outputs").collect();
        assert_eq!(outputs.len(), 1);
        assert_eq!(outputs[0]["payload"], json!({"calls": ["call_0_0", "call_0_1"]}));
        let cut = user.records().into_iter().find(|record| record["type"] == "outcome").unwrap();
        let text = cut["payload"]["outcome"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("\naborted by user\nOutput until then:\nso far\n"), "{cut}");
        let ended = user.run(&["exec", "--script", &script, "resume", "--last", "go on"]);
        ended.assert_code(0);
        assert_eq!(ended.stdout, "going on\n");
    }
}

/// Leaves a file that others would run, says so, and takes too long.
const PLANT: &str = "echo evil > .envrc; echo ready; sleep 60";

#[test]
fn what_a_command_planted_does_not_stay_whichever_signal_ends_it() {
    for (name, code) in [("INT", 130), ("TERM", 130), ("HUP", 129), ("QUIT", 131)] {
        let user = User::new();
        let mut running =
            user.start(&["sandbox", "--policy", "workspace-write", "--json", "--", "sh", "-c", PLANT]);
        running.until_stdout("ready");
        running.signal(name);
        let ended = running.end();
        ended.assert_code(code);
        assert!(!user.work().join(".envrc").exists(), "{name}");
        assert!(ended.stderr.contains("denied: ") && ended.stderr.contains(".envrc"), "{ended:#?}");
        let receipt: Value = serde_json::from_str(ended.last_word()).unwrap();
        assert_eq!((&receipt["exit"], &receipt["exit_code"]), (&json!("cancelled"), &json!(code)));
    }
}

#[test]
fn a_terminal_that_is_closed_is_no_reason_to_leave_what_a_command_planted() {
    let user = User::new();
    let receipt = user.named_pipe("receipt").listen();
    let line =
        format!("exec $windlass sandbox --policy workspace-write --json=3 -- sh -c '{PLANT}' 3> receipt");
    let mut running = Running::start(user.shell_on_a_terminal(&line));
    running.until_stdout("ready");
    // The terminal goes with the program that made it.
    running.signal("KILL");
    let receipt: Value = serde_json::from_str(&receipt.wait()).unwrap();
    assert_eq!(receipt["exit_code"], 129);
    assert!(!user.work().join(".envrc").exists());
}

#[test]
fn a_closed_terminal_ends_nothing_under_nohup() {
    let user = User::new();
    let line = "trap '' HUP; exec $windlass sandbox -- sh -c 'echo ready; read line; exit 7'";
    let mut command = user.shell(line);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.until_stdout("ready");
    running.signal("HUP");
    running.type_in("go on\n");
    running.end().assert_code(7);
}

#[test]
fn an_interrupted_turn_is_a_failed_one_to_programs() {
    let (user, script) = user_with_a_long_command();
    let _gone = user.named_pipe("held").listen();
    let started = user.named_pipe("started");
    let running = user.start(&[&["exec", "--json", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
    started.hear();
    running.signal("INT");
    let ended = running.end();
    ended.assert_code(130);
    let events = ended.events();
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]["message"]),
        (&json!("turn.failed"), &json!("aborted by user"))
    );
    let failed = events.iter().filter(|event| event["item"]["status"] == "failed").count();
    assert_eq!(failed, 2, "{events:#?}");
}

#[test]
fn a_server_that_hangs_can_be_interrupted() {
    for reply in [Reply(vec![Step::Hang]), Reply::begun(&[]).then(Step::Hang)] {
        let server = Server::start([reply]);
        let user = User::new();
        user.use_server(&server, Wire::Responses);
        let mut running = user.start(&["exec", "hi"]);
        running.until_stderr("model: m (test)");
        running.signal("INT");
        running.end().assert_code(130);
    }
}

#[test]
fn a_second_signal_ends_at_once_even_when_nobody_reads_the_output() {
    let user = User::new();
    // More than a pipe holds, in pieces: the program waits for a reader that never comes.
    let flood =
        json!({"name": "shell_command", "arguments": {"command": "echo > started; yes | head -c 1000000"}});
    let script = user.script(&json!([{"calls": [flood]}, {"text": "ok"}]));
    let started = user.named_pipe("started");
    let (_reader, writer) = std::io::pipe().unwrap();
    let mut program = user
        .program(&[&["exec", "--json", "--deltas", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
    let mut child = program.stdout(writer).spawn().unwrap();
    drop(program);
    started.hear();
    let begun = Instant::now();
    let status = loop {
        assert!(begun.elapsed() < FOREVER, "it cannot be interrupted");
        signal(&child, "INT");
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
}
