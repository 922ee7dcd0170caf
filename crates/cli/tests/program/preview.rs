//! `--preview`: what commands would change is shown, and applied only after a yes.

use std::{fs, path::PathBuf, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Ended, Running, User};

/// A user on a machine with layers; none, and a word about it, where there are none.
fn user() -> Option<User> {
    let user = User::new();
    let ended = user.run(&["sandbox", "--policy", "workspace-write", "--preview", "--", "true"]);
    if ended.code == Some(125) {
        println!("skipped: this machine has no layers: {}", ended.stderr);
        return None;
    }
    ended.assert_code(0);
    user.file("a", "one\n");
    user.file("b", "two\n");
    Some(user)
}

const CHANGE: &str = "sed -i s/one/uno/ a; rm b; mkdir d; echo new > d/f; echo said";

fn sandbox<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&["sandbox", "--policy", "workspace-write", "--preview"], options, &["--", "sh", "-c", script]].concat()
}

fn layers(user: &User) -> Vec<PathBuf> {
    let all = fs::read_dir(user.work()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_string_lossy().contains("windlass-layer")).collect()
}

fn assert_unchanged(user: &User) {
    assert_eq!((user.read("a"), user.read("b")), ("one\n".to_owned(), "two\n".to_owned()));
    assert!(!user.work().join("d").exists() && layers(user).is_empty());
}

fn assert_changed(user: &User) {
    assert_eq!((user.read("a"), user.read("d/f")), ("uno\n".to_owned(), "new\n".to_owned()));
    assert!(!user.work().join("b").exists() && layers(user).is_empty());
}

fn assert_shown(ended: &Ended) {
    for line in
        ["-one\n+uno\n", "-two\n", "new file mode 100644", "3 files: 1 created, 1 modified, 1 deleted"]
    {
        assert!(ended.stderr.contains(line), "{line}: {ended:#?}");
    }
}

#[test]
fn without_a_yes_nothing_is_applied_and_the_exit_code_says_so() {
    let Some(user) = user() else { return };
    let ended = user.run(&sandbox(&[], CHANGE));
    ended.assert_code(3);
    assert_eq!(ended.stdout, "said\n");
    assert_shown(&ended);
    assert_unchanged(&user);
    // A code of the command's own says more.
    user.run(&sandbox(&[], "rm a; exit 7")).assert_code(7);
    assert_unchanged(&user);
    user.run(&sandbox(&[], "cat a")).assert_code(0);
}

#[test]
fn with_a_yes_beforehand_it_is_applied_and_can_be_undone() {
    let Some(user) = user() else { return };
    let receipt = user.work().join("../receipt.json");
    let to = format!("--json={}", receipt.display());
    let ended = user.run(&sandbox(&["--yes", &to], CHANGE));
    ended.assert_code(0);
    assert_shown(&ended);
    assert_changed(&user);
    let receipt: Value = serde_json::from_str(&fs::read_to_string(receipt).unwrap()).unwrap();
    let changes = receipt["preview"]["changes"].as_array().unwrap();
    let listed: Vec<_> = changes
        .iter()
        .map(|change| {
            let path = change["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            (path, change["change"].as_str().unwrap().to_owned(), change["type"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [
        ("a", "modified", "file"),
        ("b", "deleted", "file"),
        ("d", "created", "directory"),
        ("f", "created", "file"),
    ];
    assert_eq!(listed, expected.map(|(path, change, kind)| (path.into(), change.into(), kind.into())));
    assert_eq!(
        (&receipt["preview"]["end"], &receipt["preview"]["kept_for_undo"]),
        (&json!("applied"), &json!(3))
    );
    user.run(&["undo"]).assert_code(0);
    assert_unchanged(&user);
}

#[test]
fn a_person_at_the_terminal_is_shown_the_changes_and_asked() {
    let Some(user) = user() else { return };
    for (keys, is_applied) in [("n\n", false), ("\n", false), ("y\n", true)] {
        let line = format!("sandbox --policy workspace-write --preview -- sh -c '{CHANGE}'");
        let mut program = user.program_on_a_terminal(&line);
        program.stdin(Stdio::piped());
        let mut running = Running::start(program);
        running.until_stdout("+uno");
        running.until_stdout("3 files: 1 created");
        running.feed(keys.as_bytes()).end().assert_code(if is_applied { 0 } else { 3 });
        if is_applied { assert_changed(&user) } else { assert_unchanged(&user) }
    }
}

#[test]
fn one_call_and_a_whole_turn_can_be_previewed() {
    let Some(user) = user() else { return };
    let input = json!({"command": CHANGE}).to_string();
    let call = ["call", "--sandbox", "workspace-write", "--preview"];
    let ended = user.run(&[&call[..], &["shell_command", &input]].concat());
    ended.assert_code(3);
    assert_shown(&ended);
    assert_unchanged(&user);
    let ended = user.run(&[&call[..], &["--json", "shell_command", &input]].concat());
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&result["preview"]["end"], &result["success"]), (&json!("declined"), &json!(true)));
    // What sees or changes files around the layer is refused.
    let write = json!({"path": "a", "content": "around"}).to_string();
    let ended = user.run(&[&call[..], &["--yes", "write_file", &write]].concat());
    assert!(ended.stdout.contains("nothing in a preview"), "{ended:#?}");
    assert_unchanged(&user);
    let command = |line: &str| json!({"calls": [{"name": "shell_command", "arguments": {"command": line}}]});
    let turns = json!([command("sed -i s/one/uno/ a"), command("grep uno a && rm b"), command("mkdir d; echo new > d/f"), {"text": "done"}]);
    let script = user.script(&turns);
    let exec = ["exec", "--sandbox", "workspace-write", "--script", &script, "--preview"];
    let ended = user.run(&[&exec[..], &["--json", "go"]].concat());
    ended.assert_code(3);
    let last = ended.events().last().unwrap().clone();
    assert_eq!(
        (&last["type"], &last["preview"]["end"]),
        (&json!("preview"), &json!("declined")),
        "{ended:#?}"
    );
    fs::remove_file(user.work().join("script.json")).ok();
    assert_unchanged(&user);
    let script = user.script(&turns);
    let exec = ["exec", "--sandbox", "workspace-write", "--script", &script, "--preview"];
    user.run(&[&exec[..], &["--yes", "go"]].concat()).assert_code(0);
    assert_changed(&user);
}

#[test]
fn a_preview_needs_a_sandbox_in_which_something_may_be_written() {
    let Some(user) = user() else { return };
    for policy in ["read-only", "danger-full-access", "external-sandbox"] {
        let ended = user.run(&["sandbox", "--policy", policy, "--preview", "--", "rm", "a"]);
        ended.assert_code(2);
        assert!(ended.stderr.contains("workspace-write"), "{ended:#?}");
    }
    user.run(&["sandbox", "--yes", "--", "true"]).assert_code(2);
    assert_unchanged(&user);
}

#[test]
fn a_killed_preview_is_thrown_away_by_the_next() {
    let Some(user) = user() else { return };
    let mut running = user.start(&sandbox(&[], "rm a; echo begun; exec sleep 60"));
    running.until_stdout("begun");
    running.signal("KILL");
    running.end();
    assert_eq!(layers(&user).len(), 1);
    let ended = user.run(&sandbox(&["--yes"], "test -e a && rm b"));
    ended.assert_code(0);
    assert!(ended.stderr.contains("an earlier preview was thrown away"), "{ended:#?}");
    assert!(layers(&user).is_empty() && !user.work().join("b").exists());
    assert_eq!(user.read("a"), "one\n");
}

#[test]
fn an_interrupt_at_the_question_is_a_no() {
    let Some(user) = user() else { return };
    let input = json!({"command": CHANGE}).to_string();
    let script = user.script(
        &json!([{"calls": [{"name": "shell_command", "arguments": {"command": CHANGE}}]}, {"text": "done"}]),
    );
    for line in [
        format!("sandbox --policy workspace-write --preview -- sh -c '{CHANGE}'"),
        format!("call --sandbox workspace-write --preview shell_command '{input}'"),
        format!("exec --sandbox workspace-write --preview --script {script} go"),
    ] {
        let mut program = user.program_on_a_terminal(&line);
        program.stdin(Stdio::piped());
        let mut running = Running::start(program);
        running.until_stdout("3 files: 1 created");
        running.type_in("\u{3}");
        running.end().assert_code(130);
        assert_unchanged(&user);
    }
}

#[test]
fn a_name_that_is_not_utf8_is_shown_escaped_and_applied_like_any_other() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let Some(user) = user() else { return };
    let receipt = user.work().join("../receipt.json");
    let to = format!("--json={}", receipt.display());
    let ended = user.run(&sandbox(&["--yes", &to], "printf x > $(printf 'n\\377'); echo more >> a"));
    ended.assert_code(0);
    assert!(ended.stderr.contains(r"n\\xff") && ended.stderr.contains("not UTF-8"), "{}", ended.stderr);
    let receipt = fs::read_to_string(receipt).unwrap();
    assert!(receipt.contains(r"n\\xff"), "{receipt}");
    assert_eq!(fs::read(user.work().join(OsStr::from_bytes(b"n\xff"))).unwrap(), b"x");
    user.run(&["undo"]).assert_code(0);
    assert_eq!(user.read("a"), "one\n");
}

#[test]
fn a_turn_on_a_layer_says_nothing_of_the_layer() {
    let Some(user) = user() else { return };
    let call = |line: &str| json!({"calls": [{"name": "shell_command", "arguments": {"command": line}}]});
    let script = user.script(&json!([call("rm b; mkfifo p"), call("echo 2 > a"), {"text": "done"}]));
    let ended = user.run(&[
        "exec",
        "--sandbox",
        "workspace-write",
        "--preview",
        "--yes",
        "--json",
        "--script",
        &script,
        "go",
    ]);
    ended.assert_code(0);
    let list = user.run(&["undo", "--list"]);
    for text in [&ended.stdout, &ended.stderr, &list.stdout, &list.stderr] {
        assert!(!text.contains("windlass-layer"), "{text}");
    }
}
