//! `windlass undo` and its log: whose a change is, which call an undo takes back, and what a
//! damaged log means.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Running, User};

/// Runs a command outside of any session.
fn call(user: &User, line: &str) {
    let arguments = json!({"command": line}).to_string();
    user.run(&["call", "-s", "workspace-write", "shell_command", &arguments]).assert_code(0);
}

fn script(user: &User, lines: &[&str]) -> String {
    let mut turns: Vec<_> = lines
        .iter()
        .map(|line| json!({"calls": [{"name": "shell_command", "arguments": {"command": line}}]}))
        .collect();
    turns.push(json!({"text": "done"}));
    user.script(&Value::Array(turns))
}

#[test]
fn an_undo_marks_the_call_it_took_back_and_no_other_of_the_same_name() {
    let user = User::new();
    user.file("a", "1\n");
    user.file("b", "1\n");
    call(&user, "echo 2 > a");
    call(&user, "echo 2 > b");
    let listed: Value = serde_json::from_str(&user.run(&["undo", "--list", "--json"]).stdout).unwrap();
    let older = listed[0]["call"].as_str().unwrap();
    user.run(&["undo", older]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("1\n", "2\n"));
    user.run(&["undo"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("1\n", "1\n"));
    user.run(&["redo"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("1\n", "2\n"));
}

#[test]
fn the_work_of_another_session_is_not_a_command_s_that_ran_meanwhile() {
    let user = User::new();
    user.file("a", "1\n");
    user.file("b", "1\n");
    user.run(&["call", "-s", "workspace-write", "shell_command", r#"{"command":"true"}"#]).assert_code(0);
    let pipe = user.named_pipe("pipe");
    let long = script(&user, &["echo 2 > a; echo begun > pipe; cat pipe > /dev/null"]);
    let running = user.start(&["exec", "-s", "workspace-write", "--script", &long, "go"]);
    assert_eq!(pipe.hear().trim(), "begun");
    let short = script(&user, &["echo theirs > b"]);
    user.run(&["exec", "-s", "workspace-write", "--script", &short, "go"]).assert_code(0);
    pipe.say("end\n");
    running.end().assert_code(0);
    let undone = user.run(&["undo"]);
    undone.assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("1\n", "theirs\n"), "{undone:#?}");
    assert!(undone.stderr.contains("changed at the same time by `"), "{undone:#?}");
    user.run(&["undo"]).assert_code(0);
    assert_eq!(user.read("b"), "1\n");
}

#[test]
fn a_damaged_log_is_told() {
    let user = User::new();
    user.file("a", "1\n");
    call(&user, "echo 2 > a");
    let log = user.home().join("edits/outside/log.jsonl");
    let text = fs::read(&log).unwrap();
    fs::write(&log, &text[..text.len() - 20]).unwrap();
    let ended = user.run(&["undo"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("edit log of calls without a session is damaged: a line"), "{ended:#?}");
    call(&user, "echo 3 > a");
    user.run(&["undo"]).assert_code(0);
    assert_eq!(user.read("a"), "2\n");
}

#[test]
fn nothing_to_undo_says_what_was_not_kept() {
    let user = User::new();
    user.configure("[undo]\nmax_files = 1\n");
    user.file("a", "1\n");
    user.file("b", "1\n");
    call(&user, "echo 2 > a");
    let ended = user.run(&["undo"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("more than 1 files and directories"), "{ended:#?}");
}

#[test]
fn as_json_an_undo_prints_what_it_took_back() {
    let user = User::new();
    user.file("a", "1\n");
    call(&user, "echo 2 > a");
    let ended = user.run(&["undo", "--json"]);
    ended.assert_code(0);
    let undone: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(undone.as_array().map(Vec::len), Some(1), "{undone}");
    assert_eq!(user.read("a"), "1\n");
}

#[test]
fn undos_at_once_are_done_one_after_the_other() {
    let user = User::new();
    for name in ["a", "b", "c", "d", "e"] {
        user.file(name, "1\n");
    }
    call(&user, "for f in a b c d e; do echo 2 > $f; done");
    call(&user, "for f in a b c d e; do echo 3 > $f; done");
    let running: Vec<_> = (0..3).map(|_| user.start(&["undo", "--yes"])).collect();
    let mut codes: Vec<_> = running.into_iter().map(|undo| undo.end().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(0), Some(2)]);
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(user.read(name), "1\n");
    }
}

#[test]
fn removing_old_edits_leaves_the_counter_of_all_sessions() {
    let user = User::new();
    user.file("a", "1\n");
    let turn = script(&user, &["echo 2 > a"]);
    user.run(&["exec", "-s", "workspace-write", "--script", &turn, "go"]).assert_code(0);
    user.run(&["sessions", "gc", "--older-than", "0d"]).assert_code(0);
    user.run(&["sessions", "gc", "--older-than", "0d"]).assert_code(0);
    assert!(user.home().join("edits/sequence").exists());
    assert!(!user.run(&["sessions", "du"]).stdout.contains("sequence"));
}

#[test]
fn a_call_that_was_cut_short_is_told() {
    let user = User::new();
    let pipe = user.named_pipe("pipe");
    let turn = script(&user, &["echo begun > pipe; sleep 60"]);
    let running = user.start(&["exec", "-s", "workspace-write", "--script", &turn, "go"]);
    assert_eq!(pipe.hear().trim(), "begun");
    running.signal("KILL");
    running.end();
    let ended = user.run(&["undo"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("was interrupted when Windlass ended"), "{ended:#?}");
}

#[test]
fn an_undo_shows_and_takes_back_what_the_last_session_did_and_not_the_one_before() {
    let user = User::new();
    user.file("a.txt", "a\n");
    user.file("b.txt", "b\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+A\n*** End Patch";
    let first = user.script(&json!([
        {"calls": [{"name": "apply_patch", "arguments": {"input": patch}}]}, {"text": "done"}
    ]));
    user.run(&["exec", "-s", "workspace-write", "--script", &first, "go"]).assert_code(0);
    let second = script(&user, &["sed -i s/b/B/ b.txt"]);
    user.run(&["exec", "-s", "workspace-write", "--script", &second, "go"]).assert_code(0);
    assert_eq!((user.read("a.txt").as_str(), user.read("b.txt").as_str()), ("A\n", "B\n"));
    let mut program = user.program_on_a_terminal("undo");
    program.stdin(Stdio::piped());
    let undone = Running::start(program).feed(b"y\n").end();
    undone.assert_code(0);
    let (shown, _) = undone.stdout.split_once("Undo this?").unwrap_or_else(|| panic!("{undone:#?}"));
    for part in ["$ sed -i s/b/B/ b.txt", "M b.txt", "-B", "+b"] {
        assert!(shown.contains(part), "{part}: {undone:#?}");
    }
    assert!(!undone.stdout.contains("a.txt"), "{undone:#?}");
    assert_eq!((user.read("a.txt").as_str(), user.read("b.txt").as_str()), ("A\n", "b\n"));
}

#[test]
fn a_call_is_undone_by_the_id_that_history_prints() {
    let user = User::new();
    user.file("a", "1\n");
    user.file("b", "1\n");
    call(&user, "echo 2 > a");
    call(&user, "echo 2 > b");
    let history = user.run(&["history"]).stdout;
    let row = history.lines().find(|line| line.contains("echo 2 > a")).unwrap();
    user.run(&["undo", row.split_whitespace().next().unwrap()]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("1\n", "2\n"));
}
