//! Readers that go away early.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::json;

use crate::support::{FULL_ACCESS, User};

#[test]
fn a_run_whose_events_nobody_reads_any_more_ends_and_runs_nothing_more() {
    let user = User::new();
    let command =
        |line: &str| json!({"name": "shell_command", "arguments": {"command": line, "timeout_ms": 60_000}});
    let script =
        user.script(&json!([{"calls": [command("read x < go"), command("touch second")]}, {"text": "ok"}]));
    let go = user.named_pipe("go");
    let mut child = user
        .program(&[&["exec", "--json", "--script", &script, "hi"], &FULL_ACCESS[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    while !stdout.next().unwrap().unwrap().contains("item.started") {}
    drop(stdout);
    go.say("go\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(!user.work().join("second").exists());
    user.run(&["exec", "--script", &script, "resume", "--last", "go on"]).assert_code(0);
}

#[test]
fn a_reader_that_has_seen_enough_ends_every_command_quietly() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    let commands: [&[&str]; 7] = [
        &["--help"],
        &["tools", "list"],
        &["tools", "manifest"],
        &["config", "show"],
        &["config", "schema"],
        &["call", "update_plan", r#"{"plan":[]}"#],
        &["exec", "--script", &script, "hi"],
    ];
    for command in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = user.program(command).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {output:?}");
        assert!(!stderr.contains("panicked") && !stderr.contains("error:"), "{command:?}: {stderr}");
    }
}

#[test]
fn a_closed_stderr_stops_nothing() {
    let user = User::new();
    let script = user
        .script(&json!([{"calls": [{"name": "update_plan", "arguments": {"plan": []}}]}, {"text": "ok"}]));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = user
        .program(&["exec", "--script", &script, "hi"])
        .stderr(writer)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"ok\n"[..]));
}

#[test]
fn a_program_without_a_stdout_fails_before_it_does_anything() {
    let user = User::new();
    let touch = json!({"name": "shell_command", "arguments": {"command": "touch here"}});
    let script = user.script(&json!([{"calls": [touch]}, {"text": "ok"}]));
    let exec = format!("exec --script '{script}' -s danger-full-access hi");
    for command in ["redact", &exec, "--version", "history"] {
        let output = user.shell(&format!("\"$windlass\" {command} >&-")).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {stderr}");
        assert!(stderr.contains("error: stdout is closed"), "{command:?}: {stderr}");
    }
    assert!(!user.work().join("here").exists());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = user.program(&["--help"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
