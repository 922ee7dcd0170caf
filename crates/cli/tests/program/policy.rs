//! `windlass policy`: what would happen to a command, and why.

use std::{fs, path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Running, User, lines};

const CLASSIFY: [&str; 5] = ["policy", "classify", "--approval", "untrusted", "--jsonl"];

fn rule(directory: &Path, prefix: &str, decision: &str) {
    fs::create_dir_all(directory).unwrap();
    let name = format!("{decision}.toml");
    fs::write(directory.join(name), format!("[[rule]]\nprefix = {prefix}\ndecision = \"{decision}\"\n"))
        .unwrap();
}

fn decisions(user: &User, commands: &[&str]) -> Vec<Value> {
    let input: String = commands.iter().map(|cmd| format!("{}\n", json!({"id": cmd, "cmd": cmd}))).collect();
    let ended = user.run_with_input(&CLASSIFY, input.as_bytes());
    ended.assert_code(0);
    lines(&ended.stdout).iter().map(|answer| answer["decision"].clone()).collect()
}

#[test]
fn a_command_is_taken_apart() {
    let user = User::new();
    let ended = user.run(&["policy", "explain", "cd src && sudo cargo test $x > out", "-a", "untrusted"]);
    ended.assert_code(0);
    insta::assert_snapshot!(ended.stdout);
    let ended = user.run(&["policy", "explain", "--json", "git status"]);
    ended.assert_code(0);
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&value["decision"], &value["judgement"]["class"]), (&json!("run"), &json!("safe")));
}

#[test]
fn many_commands_are_decided_one_line_each() {
    let user = User::new();
    assert_eq!(
        decisions(&user, &["ls", "make", "rm -rf /", "git reset --hard"]),
        ["safe", "prompt", "forbidden", "prompt"]
    );
    let ended = user.run_with_input(&CLASSIFY, b"nonsense\n{\"id\": 2, \"cmd\": \"ls\"}\n");
    ended.assert_code(1);
    assert_eq!(lines(&ended.stdout).len(), 2);
    assert!(ended.stderr.starts_with("line 1: "), "{}", ended.stderr);
}

#[test]
fn the_user_may_allow_and_the_project_only_tighten() {
    let user = User::new();
    rule(&user.home().join("rules"), r#"["make"]"#, "allow");
    let project = user.work().join(".windlass/rules");
    rule(&project, r#"["cargo"]"#, "allow");
    rule(&project, r#"["make", "deploy"]"#, "forbid");
    rule(&project, r#"["ls"]"#, "ask");
    let commands = ["make test", "make deploy", "cargo build", "ls", "pwd"];
    assert_eq!(decisions(&user, &commands), ["safe", "forbidden", "prompt", "prompt", "safe"]);
    let ended = user.run(&["policy", "explain", "pwd"]);
    assert!(ended.stderr.contains("only the user may allow"), "{}", ended.stderr);
}

#[test]
fn a_rule_that_makes_no_sense_is_named_and_nothing_is_decided() {
    let user = User::new();
    rule(&user.home().join("rules"), r#"["bash"]"#, "allow");
    let ended = user.run_with_input(&CLASSIFY, b"{\"id\": 1, \"cmd\": \"ls\"}\n");
    ended.assert_code(2);
    assert!(ended.stderr.contains("allow.toml`, line 1: `bash` may not be allowed"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_table_of_commands_is_checked() {
    let user = User::new();
    let good = user.file("good.toml", "[[case]]\ncommand = \"ls\"\ndecision = \"safe\"\n");
    let ended = user.run(&["policy", "test", &good]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "1 of 1 as expected\n");
    let bad = user.file("bad.jsonl", "{\"cmd\": \"rm -rf /\", \"decision\": \"safe\"}\n");
    let ended = user.run(&["policy", "test", &bad]);
    ended.assert_code(1);
    assert!(ended.stdout.starts_with("line 1: forbidden, expected safe: rm -rf /\n"), "{}", ended.stdout);
    user.run(&["policy", "test", "nowhere.toml"]).assert_code(2);
}

#[test]
fn what_is_approved_on_a_terminal_is_on_record() {
    let user = User::new();
    for (name, answer, code) in [("one", "y\n", 0), ("two", "s\n", 0), ("three", "n\n", 3)] {
        let input = json!({"command": format!("touch ./{name}")});
        let line = format!("call shell_command '{input}' -a untrusted --sandbox workspace-write");
        let mut program = user.program_on_a_terminal(&line);
        program.stdin(Stdio::piped());
        let mut running = Running::start(program);
        running.until_stdout("  q  no, and stop");
        running.feed(answer.as_bytes()).end().assert_code(code);
        assert_eq!(user.work().join(name).exists(), code == 0);
    }
    // A terminal may speak Latin-1.
    let line =
        "call shell_command '{\"command\":\"touch ./four\"}' -a untrusted --sandbox workspace-write --json";
    let mut program = user.program_on_a_terminal(line);
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("  q  no, and stop");
    let refused = running.feed(b"\xfc\nn f\xfcr sp\xe4ter\n").end();
    refused.assert_code(3);
    assert!(refused.stdout.contains("f\u{fffd}r sp\u{fffd}ter"), "{}", refused.stdout);
    let ended = user.run(&["policy", "suggest"]);
    ended.assert_code(0);
    assert!(ended.stdout.contains("#   touch ./one\n#   touch ./two\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("prefix = [\"touch\"]\n"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("three"), "{}", ended.stdout);
    assert!(user.sessions().is_empty());
}

/// A session as `exec` writes it, in which a person had approved these commands: `exec` itself asks
/// nobody.
fn approved(user: &User, commands: &[&str]) {
    let call = |command: &&str| json!({"name": "shell_command", "arguments": {"command": command}});
    let calls: Vec<_> = commands.iter().map(call).collect();
    let script = user.script(&json!([{"calls": calls}, {"text": "done"}]));
    user.run(&["exec", "--sandbox", "danger-full-access", "--script", &script, "hi"]).assert_code(0);
    let [session] = &user.sessions()[..] else { panic!("one session") };
    let decided = "the sandbox mode is `danger-full-access`";
    let text = fs::read_to_string(session).unwrap();
    assert!(text.contains(decided), "{text}");
    fs::write(session, text.replace(decided, "approved once")).unwrap();
}

#[test]
fn what_was_approved_becomes_a_rule_once_the_user_agrees() {
    let user = User::new();
    approved(&user, &["touch ./one", "touch ./two && echo done"]);
    let ended = user.run(&["policy", "suggest"]);
    ended.assert_code(0);
    assert!(ended.stdout.contains("prefix = [\"touch\"]\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("#   touch ./one\n#   touch ./two\n"), "{}", ended.stdout);
    let ended = user.run(&["policy", "suggest", "--json"]);
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(value[0]["covers"], json!(["touch ./one", "touch ./two"]));

    let rules = user.home().join("rules/answers.toml");
    user.run(&["policy", "suggest", "--write"]).assert_code(2);
    for (answer, code, written) in [("n\n", 3, false), ("y\n", 0, true)] {
        let mut program = user.program_on_a_terminal("policy suggest --write");
        program.stdin(Stdio::piped());
        let mut running = Running::start(program);
        running.until_stdout("decision = \"allow\"");
        running.feed(answer.as_bytes()).end().assert_code(code);
        assert_eq!(rules.exists(), written);
    }
    assert_eq!(decisions(&user, &["touch three", "make"]), ["safe", "prompt"]);
    let ended = user.run(&["policy", "suggest", "--write", "--yes"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "no rule would have avoided a question\n");
}

#[test]
fn without_approvals_on_record_nothing_is_suggested() {
    let user = User::new();
    let ended = user.run(&["policy", "suggest"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "no approvals are on record yet\n");
    user.run(&["policy", "suggest", "--session", "x"]).assert_code(2);
}
