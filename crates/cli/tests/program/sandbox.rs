//! `windlass sandbox` and `windlass doctor`, as a person runs them.

use std::fs;

use serde_json::Value;

use crate::support::User;

/// Arguments for a shell command in the sandbox.
fn sandboxed<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&["sandbox"], options, &["--", "sh", "-c", script]].concat()
}

#[test]
fn input_outputs_and_exit_code_are_the_commands_own() {
    let user = User::new();
    let ended = user.run_with_input(&sandboxed(&[], "cat; echo err >&2; exit 42"), b"hello");
    ended.assert_code(42);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("hello", "err\n"));
    user.run(&sandboxed(&[], "kill -9 $$")).assert_code(137);
    user.run(&["sandbox", "--", "no-such-program"]).assert_code(127);
}

#[test]
fn the_policy_decides_what_is_written() {
    let user = User::new();
    user.run(&sandboxed(&["--policy", "read-only"], "touch here")).assert_code(1);
    assert!(!user.work().join("here").exists());
    user.run(&sandboxed(&["--policy", "workspace-write"], "touch here")).assert_code(0);
    assert!(user.work().join("here").exists());
}

#[test]
fn the_receipt_goes_where_it_is_wanted() {
    let user = User::new();
    let file = user.work().join("receipt.json");
    let option = format!("--json={}", file.display());
    user.run(&sandboxed(&["--policy", "workspace-write", &option], "echo x > .envrc; sleep 60 & exit 3"))
        .assert_code(3);
    let receipt: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((&receipt["exit_code"], &receipt["killed"]), (&3.into(), &vec!["sleep"].into()));
    assert_eq!(receipt["denials"][0]["proof"], "observed");
    assert!(receipt["held"]["rung"].is_string(), "{receipt}");
}

#[test]
fn where_something_outside_holds_the_command_the_receipt_says_so() {
    let user = User::new();
    for name in ["external", "external-sandbox"] {
        let file = user.work().join(name);
        let option = format!("--json={}", file.display());
        user.run(&sandboxed(&["--policy", name, &option], "touch here")).assert_code(0);
        let receipt: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(
            (&receipt["held"]["rung"], &receipt["held"]["network"]),
            (&"external".into(), &"none".into())
        );
    }
}

#[test]
fn limits_end_the_command() {
    let user = User::new();
    user.run(&sandboxed(&["--limit", "wall_s=1"], "trap '' TERM; sleep 60; sleep 60")).assert_code(124);
    let ended = user.run(&sandboxed(&["--limit", "out_kb=1"], "yes"));
    assert_eq!(ended.stdout.len(), 1024);
    assert!(ended.stderr.contains("the limit on output was reached"), "{ended:#?}");
    user.run(&sandboxed(&["--limit", "ram=1"], "true")).assert_code(2);
}

#[test]
fn what_is_denied_cannot_be_read() {
    let user = User::new();
    fs::write(user.work().join(".env"), "SECRET").unwrap();
    let ended = user.run(&sandboxed(
        &["--policy", "workspace-write", "--deny-read", ".env"],
        "cat .env; mv .env e; cat e",
    ));
    assert!(!ended.stdout.contains("SECRET"), "{ended:#?}");
}

#[test]
fn the_doctor_says_what_holds_commands_here() {
    let ended = User::new().run(&["doctor", "--json"]);
    ended.assert_code(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(report["rung"].is_string() && report["layers"]["seccomp"].is_string(), "{report}");
}
