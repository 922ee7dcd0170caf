//! `windlass sessions`, and what is removed in the background.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::support::{FULL_ACCESS, User, lines};

const DAY: Duration = Duration::from_hours(24);

fn set_age(path: &Path, age: Duration) {
    fs::File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

/// Runs one session with a command.
fn run_session(user: &User, command: &str) -> String {
    let call = json!({"name": "shell_command", "arguments": {"command": command}});
    let script = user.script(&json!([{"calls": [call]}, {"text": "done"}]));
    user.run(&[&["exec", "--script", &script, "say it"], &FULL_ACCESS[..]].concat()).assert_code(0);
    let newest = user.sessions().into_iter().max().unwrap();
    newest.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// An output of a session that is this old.
fn output(user: &User, session: &str, age: Duration) -> PathBuf {
    let path = user.home().join("outputs").join(session).join("1.txt");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "0123456789").unwrap();
    set_age(&path, age);
    path
}

/// Makes the next run enforce the limits.
fn make_due(user: &User) {
    let lock = user.home().join("retention.lock");
    if lock.exists() {
        set_age(&lock, DAY);
    }
}

const ELSEWHERE: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

#[test]
fn old_outputs_are_removed_in_the_background() {
    let user = User::new();
    let old = output(&user, ELSEWHERE, DAY * 31);
    let call = |options: &[&str]| {
        make_due(&user);
        user.run(
            &[&["call", "shell_command", "{\"command\":\"sleep 0.3\"}"], &FULL_ACCESS[..], options].concat(),
        )
    };
    call(&["-c", "retention.outputs_days=0"]).assert_code(0);
    assert!(old.exists(), "kept for ever");
    // On a busy machine the program may end before its thread has begun.
    let removed = (0..50).any(|_| {
        call(&[]).assert_code(0);
        !old.parent().unwrap().exists()
    });
    assert!(removed);
}

#[test]
fn sessions_are_listed_and_shown_by_the_beginning_of_their_id() {
    let user = User::new();
    assert_eq!(user.run(&["sessions", "list"]).stderr, "there are no sessions yet\n");
    let id = run_session(&user, "true");
    let listed = user.run(&["sessions", "list"]);
    let words: Vec<_> = listed.stdout.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((words[0], words[2]), (id.as_str(), "1"), "{listed:#?}");
    assert_eq!(words[5..], [user.work().to_str().unwrap(), "say", "it"], "{listed:#?}");
    let json: Vec<Value> = lines(&user.run(&["sessions", "list", "--json"]).stdout);
    assert_eq!((&json[0]["id"], &json[0]["turns"], &json[0]["calls"]), (&json!(id), &json!(1), &json!(1)));

    let shown = user.run(&["sessions", "show", &id[..13]]);
    shown.assert_code(0);
    assert!(shown.stdout.starts_with(&format!("session    {id}\n")), "{shown:#?}");
    assert!(shown.stdout.ends_with("asked      say it\n"), "{shown:#?}");
    let json: Value = serde_json::from_str(&user.run(&["sessions", "show", &id, "--json"]).stdout).unwrap();
    assert_eq!((&json["asked"], &json["problems"]), (&json!(["say it"]), &json!([])));

    run_session(&user, "true");
    let unclear = user.run(&["sessions", "show", &id[..6]]);
    unclear.assert_code(2);
    assert!(unclear.stderr.contains("is ambiguous; choose one of these sessions"), "{unclear:#?}");
    user.run(&["sessions", "show", "ffff"]).assert_code(2);
}

#[test]
fn usage_is_shown_by_kind_and_by_doctor_with_the_limits() {
    let user = User::new();
    let id = run_session(&user, "true");
    output(&user, &id, Duration::ZERO);
    let json: Value = serde_json::from_str(&user.run(&["sessions", "du", "--json"]).stdout).unwrap();
    assert_eq!(json["kinds"]["outputs"], json!({"count": 1, "bytes": 10}));
    assert_eq!(json["largest"][0]["session"], json!(id));
    let text = user.run(&["sessions", "du"]).stdout;
    assert!(text.starts_with("KIND") && text.contains("\ntotal "), "{text}");
    let doctor = user.run(&["doctor"]).stdout;
    assert!(doctor.contains("  outputs: 10 B, at most 1.0 GiB and 30 days\n"), "{doctor}");
    assert!(doctor.contains("2.0 GiB and 90 days\n"), "{doctor}");
    let doctor: Value = serde_json::from_str(&user.run(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(doctor["retention"]["limits"]["edits_days"], 90);
}

#[test]
fn garbage_is_shown_first_and_then_removed_and_sessions_only_when_asked() {
    let user = User::new();
    let id = run_session(&user, "true");
    let path = user.sessions()[0].clone();
    let kept = output(&user, &id, DAY * 10);
    set_age(&path, DAY * 10);
    assert_eq!(user.run(&["sessions", "gc"]).stdout, "0 removed, 0 B freed\n");
    let dry = user.run(&["sessions", "gc", "--dry-run", "--older-than", "5d"]);
    assert_eq!(
        dry.stdout,
        format!("outputs  10 B  {}\n1 would be removed, 10 B would be freed\n", kept.display())
    );
    assert!(kept.exists());
    let json = user.run(&["sessions", "gc", "--older-than", "5d", "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["bytes"], &json["removed"][0]["session"]), (&json!(10), &json!(id)));
    assert!(!kept.exists() && path.exists());

    user.run(&["sessions", "gc", "--sessions"]).assert_code(2);
    user.run(&["sessions", "gc", "--older-than", "tomorrow"]).assert_code(2);
    user.run(&["sessions", "gc", "--sessions", "--older-than", "20d"]).assert_code(0);
    assert!(path.exists());
    user.run(&["sessions", "gc", "--sessions", "--older-than", "5d"]).assert_code(0);
    assert!(!path.exists());
}

#[test]
fn nothing_of_a_running_session_is_removed() {
    let user = User::new();
    let (started, go) = (user.named_pipe("started"), user.named_pipe("go"));
    let wait = json!({"name": "shell_command", "arguments": {"command": "echo > started; read x < go", "timeout_ms": 60_000}});
    let script = user.script(&json!([{"calls": [wait]}, {"text": "one"}]));
    let running = user.start(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
    started.hear();
    let path = user.sessions()[0].clone();
    let kept = output(&user, path.file_stem().unwrap().to_str().unwrap(), DAY * 100);
    let other = output(&user, ELSEWHERE, DAY * 100);
    user.run(&["sessions", "gc", "--sessions", "--older-than", "0m"]).assert_code(0);
    assert!(path.exists() && kept.exists() && !other.exists());
    go.say("go\n");
    running.end().assert_code(0);
}
