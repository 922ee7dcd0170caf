//! `kill -9` at any moment: nothing is lost, and nothing runs twice.

use std::fs;

use serde_json::{Value, json};

use crate::support::{FULL_ACCESS, User, lines};

/// Three turns of two commands each, every command leaving a line of its own.
fn script(user: &User) -> String {
    let command = |name: String| json!({"name": "shell_command", "arguments": {"command": format!("echo {name} >> log")}});
    let turn = |turn: usize| json!({"calls": [command(format!("a{turn}")), command(format!("b{turn}"))]});
    user.script(&json!([turn(0), turn(1), turn(2), {"text": "done"}, {"text": "done again"}]))
}

fn args<'a>(script: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["exec", "--json", "--script", script], &FULL_ACCESS[..], rest].concat()
}

/// Every call in a session file, with how many outputs it has.
fn answered(records: &[Value]) -> Vec<(String, usize)> {
    let calls = records.iter().filter(|record| record["payload"]["body"]["kind"] == "call");
    let outputs: Vec<_> = records
        .iter()
        .filter(|record| record["type"] == "outputs")
        .flat_map(|record| record["payload"]["calls"].as_array().unwrap())
        .collect();
    calls
        .map(|record| record["payload"]["body"]["id"].as_str().unwrap().to_owned())
        .map(|id| (id.clone(), outputs.iter().filter(|output| ***output == id).count()))
        .collect()
}

#[test]
fn whenever_it_is_killed_the_session_goes_on_and_no_command_runs_twice() {
    let whole = {
        let user = User::new();
        user.run(&args(&script(&user), &["hi"])).events().len()
    };
    for events_seen in 1..=whole {
        let user = User::new();
        let script = script(&user);
        let mut running = user.start(&args(&script, &["hi"]));
        for _ in 0..events_seen {
            running.next_stdout();
        }
        running.signal("KILL");
        let killed = running.end();
        let ended = user.run(&args(&script, &["resume", "--last", "go on"]));
        ended.assert_code(0);
        let last = &ended.events()[ended.events().len() - 2]["item"]["text"];
        assert!(last.as_str().unwrap().starts_with("done"), "{killed:#?} {ended:#?}");
        let ran = user.read("log");
        let mut names: Vec<_> = ran.lines().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ran.lines().count(), "after event {events_seen}: {ran}");
        let records = lines(&fs::read_to_string(&user.sessions()[0]).unwrap());
        let answered = answered(&records);
        assert!(answered.iter().all(|(_, outputs)| *outputs == 1), "{answered:?}");
    }
}

#[test]
fn a_call_that_was_running_has_an_output_that_says_its_outcome_is_unknown() {
    let user = User::new();
    let command =
        |line: &str| json!({"name": "shell_command", "arguments": {"command": line, "timeout_ms": 60_000}});
    let calls = [
        command("echo a >> log"),
        command("echo b >> log; echo > started; sleep 60"),
        command("echo c >> log"),
    ];
    let script = user.script(&json!([{"calls": calls}, {"text": "done"}]));
    let started = user.named_pipe("started");
    let running = user.start(&args(&script, &["hi"]));
    started.hear();
    running.signal("KILL");
    assert_eq!(running.end().signal, Some(9));
    let ended = user.run(&args(&script, &["resume", "--last", "go on"]));
    ended.assert_code(0);
    assert_eq!(user.read("log"), "a\nb\n");
    let outcomes: Vec<_> = user
        .records()
        .into_iter()
        .filter(|record| record["type"] == "outcome")
        .map(|record| record["payload"]["outcome"]["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes.len(), 3, "{outcomes:#?}");
    assert_eq!(outcomes[0], "");
    assert!(outcomes[1].contains("its outcome is unknown"), "{outcomes:#?}");
    assert!(outcomes[2].contains("before this call was started"), "{outcomes:#?}");
    let warnings = ended.events().iter().filter(|event| event["item"]["type"] == "error").count();
    assert_eq!(warnings, 3, "one for each call: {ended:#?}");
}

#[test]
fn the_command_dies_with_the_program() {
    let user = User::new();
    let call = json!({"name": "shell_command", "arguments": {"command": "exec 3> held; echo > started; exec sleep 60", "timeout_ms": 60_000}});
    let script = user.script(&json!([{"calls": [call]}, {"text": "done"}]));
    let gone = user.named_pipe("held").listen();
    let started = user.named_pipe("started");
    let running = user.start(&args(&script, &["hi"]));
    started.hear();
    running.signal("KILL");
    running.end();
    gone.wait();
}

#[test]
fn what_a_command_planted_before_the_kill_is_moved_aside_by_the_next() {
    let user = User::new();
    let git = |line: &str| {
        let line = format!("cd '{}' && {line}", user.work().display());
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git("git init -q . && git config alias.mine status && mkdir .vscode && echo mine > .vscode/a && \
         git init -q node_modules/old && echo mine > node_modules/old/.git/hooks/pre-commit; sleep 0.1");
    let script = "mkdir sub; echo evil > sub/.envrc; git init -q new; echo evil > new/.git/hooks/pre-commit; \
                  printf '[core]\\n\\tfsmonitor = evil\\n' >> new/.git/config; ln -s /etc/passwd .git/MERGE_MSG; \
                  git init -q node_modules/new; echo evil > node_modules/new/.git/hooks/pre-push; mkfifo .gitignore; \
                  echo fine > plain; echo ready; sleep 60";
    let sandboxed = |script| ["sandbox", "--policy", "workspace-write", "--json=2", "--", "sh", "-c", script];
    let mut running = user.start(&sandboxed(script));
    assert_eq!(running.next_stdout().unwrap().trim(), "ready");
    running.signal("KILL");
    running.end();
    assert!(user.work().join("sub/.envrc").exists(), "nobody was left to move it");
    let ended = user.run(&sandboxed("cat sub/.envrc; cat plain"));
    assert_eq!(ended.stdout, "fine\n");
    for name in [
        "sub/.envrc",
        "new/.git/hooks/pre-commit",
        ".git/MERGE_MSG",
        "node_modules/new/.git/hooks/pre-push",
        ".gitignore",
    ] {
        assert!(user.work().join(name).symlink_metadata().is_err(), "{name}");
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
    }
    assert_eq!(
        git(
            "git -C new config core.fsmonitor; git config alias.mine; cat .vscode/a node_modules/old/.git/hooks/pre-commit"
        ),
        "status\nmine\nmine\n"
    );
    let again = user.run(&sandboxed("true"));
    assert!(!again.stderr.contains("envrc"), "{}", again.stderr);
}

#[test]
fn whatever_runs_next_checks_what_a_killed_session_left() {
    let script = "mkdir -p sub; echo evil > .envrc; echo ready; sleep 60";
    for next in [
        &["sandbox", "--policy", "read-only", "--", "true"][..],
        &["sandbox", "--policy", "workspace-write", "-C", "sub", "--", "true"],
        &["call", "list_dir", r#"{"dir_path":"."}"#],
        &["call", "--sandbox", "danger-full-access", "shell_command", r#"{"command":"true"}"#],
    ] {
        let user = User::new();
        let mut running = user.start(&["sandbox", "--policy", "workspace-write", "--", "sh", "-c", script]);
        assert_eq!(running.next_stdout().unwrap().trim(), "ready");
        running.signal("KILL");
        running.end();
        let ended = user.run(next);
        assert!(!user.work().join(".envrc").exists(), "{next:?} {ended:#?}");
    }
}
