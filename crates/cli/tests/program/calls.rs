//! `windlass stats`, `history`, `show` and `audit`: what is on record, through the whole program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    bad_input::elsewhere,
    support::{Running, User, lines},
};

/// A user whose model has made these calls of a shell.
fn worked(commands: &[&str]) -> User {
    let user = User::new();
    work(&user, commands).assert_code(0);
    user
}

fn work(user: &User, commands: &[&str]) -> crate::support::Ended {
    let calls = commands
        .iter()
        .map(|command| json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]}));
    let turns: Vec<_> = calls.chain([json!({"text": "done"})]).collect();
    let script = user.script(&Value::Array(turns));
    user.run(&["exec", "--sandbox", "workspace-write", "--script", &script, "go"])
}

fn history(user: &User, more: &[&str]) -> Vec<Value> {
    let args: Vec<_> = ["history", "--json"].iter().chain(more).copied().collect();
    let ended = user.run(&args);
    ended.assert_code(0);
    lines(&ended.stdout)
}

fn index(user: &User) -> PathBuf {
    user.home().join("calls.sqlite")
}

#[test]
fn calls_of_sessions_and_outside_of_them_are_found_counted_and_shown() {
    let user = worked(&["echo one", "echo two; exit 3"]);
    user.run(&["call", "shell_command", r#"{"command":"echo three"}"#]).assert_code(0);
    let calls = history(&user, &[]);
    let told: Vec<_> = calls.iter().map(|call| (&call["status"], &call["error"])).collect();
    let success = (&json!("success"), &Value::Null);
    assert_eq!(told, [success, (&json!("error"), &json!("exit code 3")), success]);
    assert_eq!(history(&user, &["--status", "error"]).len(), 1);
    assert_eq!(history(&user, &["--grep", "TWO"]).len(), 1);
    assert_eq!(history(&user, &["--grep", "nowhere"]).len(), 0);
    assert_eq!(history(&user, &["--limit", "2"]).len(), 2);
    assert_eq!(history(&user, &["--since", "1h"]).len(), 3);
    assert_eq!(history(&user, &["--tool", "read_file"]).len(), 0);

    let stats = user.run(&["stats", "--json"]);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats[0]["tool"], "shell_command");
    assert_eq!(
        (&stats[0]["calls"], &stats[0]["succeeded"], &stats[0]["failed"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert!(stats[0]["schema_tokens"].as_u64().unwrap() > 20, "{stats:#}");
    let table = user.run(&["stats"]).stdout;
    assert!(table.starts_with("TOOL ") && table.contains("67%") && !table.contains('\x1b'), "{table}");
    assert!(user.run(&["stats", "--by", "error"]).stdout.contains("exit code 3"));
    assert_eq!(user.run(&["stats", "--by", "session"]).stdout.lines().count(), 2);

    let failed = calls[1]["call"].as_str().unwrap();
    let shown = user.run(&["show", &failed[..6]]);
    for part in ["shell_command", "exit code 3", "verdict", "failure", "echo two", "\noutput\n  two\n"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let full: Value = serde_json::from_str(&user.run(&["show", failed, "--json"]).stdout).unwrap();
    assert_eq!(full["outcome"]["facts"]["exit"], json!({"code": 3}));
    assert!(full["outcome"]["receipt"]["held"]["rung"].is_string());
}

#[test]
fn a_name_that_means_no_call_or_several_is_told() {
    let user = User::new();
    for _ in 0..2 {
        user.run(&["call", "shell_command", r#"{"command":"true"}"#]).assert_code(0);
    }
    let several = user.run(&["show", "call"]);
    several.assert_code(2);
    assert_eq!(several.stderr.matches("shell_command").count(), 2, "{}", several.stderr);
    user.run(&["show", "ffff"]).assert_code(2);
    user.run(&["stats", "--since", "soon"]).assert_code(2);
}

#[test]
fn what_a_person_says_of_a_call_is_kept_shown_counted_and_proved() {
    let user = worked(&["echo one", "echo two"]);
    let call = history(&user, &[])[0]["call"].as_str().unwrap().to_owned();
    let session = history(&user, &[])[0]["session"].as_str().unwrap().to_owned();
    let say = |more: &[&str]| user.run(&[&["feedback", &call[..5]], more].concat());
    let key = "AKIAQ3EGRFU5HJ2LTVXZ";
    let said = say(&["bad", &format!("it printed {key}")]);
    said.assert_code(0);
    assert_eq!(said.stdout, format!("{call} (shell_command): bad\n"));

    let shown = user.run(&["show", &call]).stdout;
    assert!(shown.contains("feedback  bad: it printed [REDACTED:"), "{shown}");
    assert!(shown.contains("verdict   success"), "{shown}");
    assert!(!fs::read_to_string(&user.sessions()[0]).unwrap().contains(&format!("printed {key}")));
    assert!(user.run(&["history"]).stdout.contains("success, rated bad"));
    assert_eq!(history(&user, &["--feedback", "bad"]).len(), 1);
    assert_eq!(history(&user, &["--feedback", "good"]).len(), 0);
    let stats: Value = serde_json::from_str(&user.run(&["stats", "--json"]).stdout).unwrap();
    assert_eq!(stats[0]["feedback"], json!({"good": 0, "bad": 1}));
    assert!((stats[0]["success_rate"].as_f64().unwrap() - 0.25).abs() < 0.01, "{stats:#}");
    assert!(user.run(&["stats"]).stdout.contains("+0 -1"));

    let changed: Value = serde_json::from_str(&say(&["good", "--json"]).stdout).unwrap();
    assert_eq!((&changed["feedback"], &changed["note"]), (&json!("good"), &json!("")));
    say(&["--clear"]).assert_code(0);
    assert_eq!(history(&user, &[])[0]["feedback"], Value::Null);
    user.run(&["audit", "verify", &session]).assert_code(0);
    let exported = user.run(&["audit", "export", "--redacted", &session]).stdout;
    assert!(exported.contains("feedback"), "{exported}");
    let script =
        user.script(&json!([{"text": "one"}, {"text": "two"}, {"text": "three"}, {"text": "again"}]));
    let resumed = user.run(&["exec", "resume", &session, "--script", &script, "go on"]);
    resumed.assert_code(0);
    assert!(!resumed.stderr.contains("left out"), "{}", resumed.stderr);

    for wrong in [&["fine"][..], &[], &["good", "--clear"], &["bad", &"x".repeat(5000)]] {
        say(wrong).assert_code(2);
    }
    user.run(&["feedback", "ffffffff", "good"]).assert_code(2);
}

#[test]
fn nothing_on_record_is_no_error_and_makes_nothing() {
    let user = User::new();
    fs::remove_dir_all(user.home()).ok();
    for command in [["stats"], ["history"]] {
        let ended = user.run(&command);
        ended.assert_code(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", "no matching calls are on record\n"));
    }
    assert!(!user.home().exists());
}

#[test]
fn secrets_in_arguments_are_not_shown() {
    let key = "AKIAQ3EGRFU5HJ2LTVXZ";
    let user = worked(&[&format!("echo {key} | wc -c")]);
    let call = history(&user, &[])[0]["call"].as_str().unwrap().to_owned();
    let session = history(&user, &[])[0]["session"].as_str().unwrap().to_owned();
    for args in [
        vec!["history"],
        vec!["history", "--json"],
        vec!["show", &call],
        vec!["show", &call, "--json"],
        vec!["audit", "export", "--redacted", &session],
    ] {
        let ended = user.run(&args);
        ended.assert_code(0);
        assert!(!ended.stdout.contains(key), "{args:?}: {}", ended.stdout);
        assert!(ended.stdout.contains("wc -c"), "{args:?}: {}", ended.stdout);
    }
    assert_eq!(history(&user, &["--grep", key]).len(), 0);
}

#[test]
fn an_index_that_cannot_be_used_costs_a_warning_and_nothing_else() {
    let user = worked(&["echo one"]);
    assert_eq!(history(&user, &[]).len(), 1);
    let index = index(&user);
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", index.display())).ok();
    }
    let garbage = "not a database at all".repeat(500);
    fs::write(&index, &garbage).unwrap();

    let ended = work(&user, &["echo two"]);
    ended.assert_code(0);
    assert_eq!(ended.stderr.matches("is damaged and left as it is").count(), 1, "{}", ended.stderr);
    let ended = user.run(&["history", "--json"]);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.matches("--rebuild").count()), (2, 1));
    assert_eq!(fs::read_to_string(&index).unwrap(), garbage);

    let rebuilt = user.run(&["stats", "--rebuild"]);
    rebuilt.assert_code(0);
    assert!(rebuilt.stderr.contains(".damaged-"), "{}", rebuilt.stderr);
    let after = user.run(&["history", "--json"]);
    assert_eq!((after.stdout.lines().count(), after.stderr.as_str()), (2, ""));
}

#[test]
fn a_session_file_nobody_touched_is_proved_whole_and_every_change_is_seen() {
    let user = worked(&["echo one", "echo two"]);
    let session = history(&user, &[])[0]["session"].as_str().unwrap().to_owned();
    let verify = |more: &[&str]| {
        let args: Vec<_> = ["audit", "verify", session.as_str()].iter().chain(more).copied().collect();
        user.run(&args)
    };
    let whole = verify(&[]);
    whole.assert_code(0);
    let head = whole.stdout.lines().find_map(|line| line.strip_prefix("head ")).unwrap().to_owned();
    verify(&["--head", &head]).assert_code(0);
    verify(&["--head", &head.replace(|_| true, "0")]).assert_code(1);
    verify(&["--head", "short"]).assert_code(2);

    let path = &user.sessions()[0];
    let before = fs::read_to_string(path).unwrap();
    let count = before.lines().count();
    fs::write(path, before.replacen("echo one", "echo ONE", 1)).unwrap();
    let changed = verify(&["--json"]);
    changed.assert_code(1);
    let changed: Value = serde_json::from_str(&changed.stdout).unwrap();
    let line = before.lines().position(|line| line.contains("echo one")).unwrap() + 1;
    assert_eq!(changed["first_bad_line"], json!(line), "{changed:#}");

    let cut: String = before.split_inclusive('\n').take(count - 1).collect();
    fs::write(path, cut).unwrap();
    let missing = verify(&[]);
    missing.assert_code(1);
    assert!(missing.stdout.contains(&format!("expected {count}, found {}", count - 1)), "{}", missing.stdout);
    // Whoever asks about the calls meanwhile does not make the index forget.
    history(&user, &[]);
    user.run(&["stats", "--rebuild"]).assert_code(0);
    verify(&[]).assert_code(1);
    fs::write(path, before).unwrap();
    verify(&[]).assert_code(0);
}

#[test]
fn half_a_line_at_the_end_is_told_for_what_a_crash_leaves() {
    let user = worked(&["echo one"]);
    let session = history(&user, &[])[0]["session"].as_str().unwrap().to_owned();
    let path = &user.sessions()[0];
    let whole = fs::read(path).unwrap();
    fs::write(path, [&whole[..], b"{\"timestamp\":\"2026-"].concat()).unwrap();
    let told = user.run(&["audit", "verify", &session]);
    told.assert_code(0);
    assert!(told.stdout.contains("the last line is incomplete, as after a crash"), "{}", told.stdout);
    let told: Value =
        serde_json::from_str(&user.run(&["audit", "verify", &session, "--json"]).stdout).unwrap();
    assert_eq!((&told["ok"], &told["torn"]), (&json!(true), &json!(true)));
    // Half of a line that was whole before is missing, and that is another matter.
    fs::write(path, &whole[..whole.len() - 9]).unwrap();
    user.run(&["audit", "verify", &session]).assert_code(1);
}

#[test]
fn a_pipe_that_is_named_like_a_session_keeps_nobody_waiting() {
    let user = worked(&["echo one"]);
    let call = history(&user, &[]).remove(0);
    let (name, session) = (call["call"].as_str().unwrap(), call["session"].as_str().unwrap());
    let path = user.sessions().remove(0);
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    pipe(&path.with_file_name("7fff0000-0000-7000-8000-000000000000.jsonl"));
    assert_eq!(history(&user, &[]).len(), 1);
    let script = user.script(&json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]));
    user.run(&["exec", "resume", "--last", "--script", &script, "go on"]).assert_code(0);

    fs::remove_file(&path).unwrap();
    pipe(&path);
    assert_eq!(history(&user, &[])[0]["input"], "(not in the session file)");
    user.run(&["stats", "--rebuild"]).assert_code(0);
    for args in [
        &["audit", "verify", session][..],
        &["audit", "export", "--redacted", session],
        &["exec", "resume", session, "--script", &script, "go on"],
    ] {
        let ended = user.run(args);
        assert!(ended.code != Some(0) && ended.stderr.contains("is no regular file"), "{args:?}: {ended:?}");
    }
    user.run(&["show", name]).assert_code(2);
}

#[test]
fn an_index_that_cannot_be_written_is_told_once_and_costs_nothing() {
    let user = worked(&["echo one"]);
    let script = user.script(&json!([
        {"calls": [{"name": "shell_command", "arguments": {"command": "echo two"}}]},
        {"text": "done"}
    ]));
    let home = user.home();
    // A disk that is full once the session is written: the index does not fit any more.
    let full = format!("mount -t tmpfs -o size=48k none '{}'", home.display());
    let exec = ["exec", "--sandbox", "danger-full-access", "--script", &script, "go"];
    let Some((code, said)) = elsewhere(&user, &full, &exec) else { return };
    assert_eq!((code, said.matches("index of calls").count()), (0, 1), "{said}");

    // A disk that is read-only.
    let frozen = format!("mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}'", home.display());
    for (args, expected) in [(&["history"][..], "echo one"), (&["stats"], "shell_command")] {
        let Some((code, said)) = elsewhere(&user, &frozen, args) else { return };
        assert_eq!((code, said.matches("index of calls").count()), (0, 1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_index_of_someone_else_is_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let user = worked(&["echo one"]);
    let everyone = "chmod -R a+rX .. && exec setpriv --reuid=12001 --regid=12001 --clear-groups";
    if Running::start(user.shell(&format!("{everyone} test -x \"$windlass\""))).end().code != Some(0) {
        eprintln!("skipped: only root can be someone else, and the program must be readable for all");
        return;
    }
    let before = fs::read(index(&user)).unwrap();
    let ended = Running::start(user.shell(&format!("{everyone} \"$windlass\" history"))).end();
    ended.assert_code(0);
    assert!(ended.stdout.contains("echo one"), "{ended:?}");
    assert_eq!(ended.stderr.matches("index of calls").count(), 1, "{ended:?}");
    assert_eq!(fs::read(index(&user)).unwrap(), before);
    assert_eq!(fs::metadata(index(&user)).unwrap().permissions().mode() & 0o222, 0o200);
}

#[test]
fn a_report_holds_the_session_the_machine_and_the_configuration() {
    let user = worked(&["echo one"]);
    let session = history(&user, &[])[0]["session"].as_str().unwrap().to_owned();
    user.run(&["audit", "export", &session]).assert_code(2);
    let file = user.work().join("report.json");
    let to_file = ["audit", "export", "--redacted", &session, "-o", file.to_str().unwrap()];
    user.run(&to_file).assert_code(0);
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["session"][0]["type"], "session_meta");
    assert_eq!(report["audit"]["ok"], true);
    assert!(report["doctor"].is_object() && report["config"].is_object() && report["windlass"].is_string());
    // Nothing is overwritten.
    user.run(&to_file).assert_code(2);
}

#[test]
fn an_end_that_no_call_can_have_is_told_with_those_there_are() {
    let ended = User::new().run(&["history", "--status", "nonsense"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("permission_denied") && ended.stderr.contains("running"), "{ended:#?}");
}
