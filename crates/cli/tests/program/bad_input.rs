//! Commands that make no sense and machines that lack something: a clear word each, and nothing
//! left behind.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{FULL_ACCESS, Running, User};

const CONTAINED: [&str; 2] = ["--sandbox", "workspace-write"];

/// Calls the tool `shell`, and says with which code and words that ended.
fn shell(user: &User, input: &Value, options: &[&str]) -> (i32, String) {
    let ended =
        user.run_with_input(&[&["call", "shell", "-"], options].concat(), input.to_string().as_bytes());
    (ended.code.unwrap(), ended.stdout)
}

/// The program started by a shell, after what the shell is told first; in namespaces of its own,
/// with no rights outside. None where this machine does not let users have them.
pub(crate) fn elsewhere(user: &User, first: &str, args: &[&str]) -> Option<(i32, String)> {
    let alone = |script: &str| {
        let mut command = user.shell(r#"exec unshare -Urm --propagation private sh -c "$0" "$@""#);
        command.arg(script);
        command
    };
    if Running::start(alone("true")).end().code != Some(0) {
        eprintln!("skipped: users have no namespaces on this machine");
        return None;
    }
    let mut command = alone(&format!(r#"{{ {first}; }} || exit 99; exec "$windlass" "$@""#));
    command.arg("sh").args(args);
    let ended = Running::start(command).end();
    Some((ended.code.unwrap(), format!("{}{}", ended.stdout, ended.stderr)))
}

fn entries(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn a_command_that_cannot_run_is_explained_whether_it_is_held_or_not() {
    let user = User::new();
    user.file("plain", "echo hi\n");
    let cases = [
        (
            json!({"command": ["true"], "workdir": "no/such"}),
            "no/such` as the working directory: it does not exist",
        ),
        (
            json!({"command": ["true"], "workdir": "plain"}),
            "plain` as the working directory: it is not a directory",
        ),
        (json!({"command": ["./plain"]}), "`./plain` may not be executed"),
        (json!({"command": []}), "the command is empty"),
        (json!({"command": [""]}), "the command is empty"),
        (json!({"command": ["echo", "a\0b"]}), "NUL byte"),
        (json!({"command": ["true"], "workdir": "a\0b"}), "NUL byte"),
    ];
    for (input, expected) in cases {
        for options in [&CONTAINED, &FULL_ACCESS] {
            let (code, said) = shell(&user, &input, options);
            assert_eq!((code, said.lines().count()), (1, 1), "{input} {options:?}: {said}");
            assert!(said.contains(expected), "{input} {options:?}: {said}");
        }
    }
    let mut left = entries(&user.work());
    left.sort();
    assert_eq!(left, ["plain"], "nothing is left behind");
}

#[test]
fn outside_the_roots_a_command_may_begin_but_not_write() {
    let user = User::new();
    let input = json!({"command": ["sh", "-c", "pwd; touch here"], "workdir": "/"});
    let (code, said) = shell(&user, &input, &CONTAINED);
    let lines: Vec<_> = said.lines().take(2).collect();
    assert_eq!(
        (code, &lines[..]),
        (1, &["sandbox: it is outside of what may be written: /here", "/"][..]),
        "{said}"
    );
    assert!(!Path::new("/here").exists());
}

#[test]
fn any_time_limit_is_understood() {
    let user = User::new();
    for limit in [0, 1 << 40, u64::MAX] {
        let input = json!({"command": ["echo", "hi"], "timeout_ms": limit});
        assert_eq!(shell(&user, &input, &CONTAINED), (0, "hi\n".to_owned()), "{limit}");
    }
    let (code, said) = shell(&user, &json!({"command": ["echo"], "timeout_ms": -1}), &CONTAINED);
    assert!(code == 1 && said.contains("timeout_ms"), "{said}");
}

#[test]
fn a_command_of_two_megabytes_is_refused_in_a_few_words() {
    let user = User::new();
    let long = "x".repeat(2_000_000);
    let line = json!({"command": ["sh", "-c", format!("echo {long}")]});
    let words = json!({"command": ["echo", long]});
    for input in [line, words] {
        for options in [&CONTAINED, &FULL_ACCESS] {
            let (code, said) = shell(&user, &input, options);
            assert!(code != 0 && said.len() < 500, "{code}: {}", said.len());
            assert!(said.contains("long"), "{said}");
        }
    }
}

#[test]
fn with_too_few_open_files_nothing_runs_and_the_reason_is_told() {
    let user = User::new();
    let mut ran = 0;
    for most in [6, 10, 14, 18, 22, 26, 30, 40, 60] {
        let mut command = user.shell(&format!(r#"ulimit -n {most}; exec "$windlass" "$@""#));
        command.args(["sh", "call", "shell", r#"{"command": ["echo", "hi"]}"#]).args(CONTAINED);
        let ended = Running::start(command).end();
        let said = format!("{}{}", ended.stdout, ended.stderr);
        match ended.code {
            Some(0) => ran += 1,
            code => {
                assert_eq!(code, Some(1), "{most}: {said}");
                let told = |line: &str| line.to_lowercase().contains("too many");
                assert!(!said.is_empty() && said.lines().all(told), "{most}: {said}");
            }
        }
    }
    assert!(ran > 0, "with enough of them it runs");
}

#[test]
fn a_full_disk_costs_the_file_of_an_output_and_then_the_session_but_is_told() {
    let user = User::new();
    let call = json!({"calls": [{"name": "shell_command", "arguments": {"command": "seq 100000"}}]});
    let script = user.script(&json!([call, {"text": "done"}]));
    let args = ["exec", "--script", &script, "go"];
    let home = user.home();
    let disk = |size: &str| format!("mount -t tmpfs -o size={size} none '{}'", home.display());
    let Some((code, said)) = elsewhere(&user, &disk("64k"), &args) else { return };
    assert!(code == 0 && said.contains("100000") && said.contains("done"), "{code}: {said}");
    let Some((code, said)) = elsewhere(&user, &disk("4k"), &args) else { return };
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("cannot write the session file") && said.contains("no storage space"), "{said}");
    assert!(entries(&home).is_empty());
}

#[test]
fn without_proc_commands_run_held_or_are_refused() {
    let user = User::new();
    let input = r#"{"command": ["sh", "-c", "echo hi; echo x > /var/tmp/windlass-bad-input"]}"#;
    let args = [&["call", "shell", input], &CONTAINED[..]].concat();
    let Some((code, said)) = elsewhere(&user, "mount -t tmpfs none /proc", &args) else { return };
    assert!(!Path::new("/var/tmp/windlass-bad-input").exists());
    let refused = said.contains("cannot confine") && !said.contains("\nhi\n");
    assert!(code == 1 && (said.contains("\nhi\n") || refused), "{code}: {said}");
}

#[test]
fn in_a_container_without_user_namespaces_the_lower_rung_holds_and_says_what_it_cannot() {
    let user = User::new();
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let Some((code, report)) = elsewhere(&user, forbid, &["doctor", "--json"]) else { return };
    let report: Value = serde_json::from_str(&report).unwrap();
    if report["rung"] != "landlock" {
        eprintln!("skipped: this machine has no Landlock to fall back on");
        assert_ne!(code, 0, "{report}");
        return;
    }
    let input = r#"{"command": ["sh", "-c", "echo hi; echo x > /var/tmp/windlass-bad-input"]}"#;
    let args = [&["call", "shell", input], &CONTAINED[..]].concat();
    let (code, said) = elsewhere(&user, forbid, &args).unwrap();
    assert!(code == 1 && said.contains("\nhi\n") && said.contains("denied"), "{code}: {said}");
    let limited = ["sandbox", "--limit", "pids=5", "--", "true"];
    let (code, said) = elsewhere(&user, forbid, &limited).unwrap();
    // Only a cgroup of our own, which this machine may have, can do it there.
    let refused =
        code == 125 && said.contains("without namespaces or a cgroup to divide, processes cannot be limited");
    assert!(refused || report["accounting"] == "cgroup", "{code}: {said}");
}

#[test]
fn root_is_held_like_anyone() {
    let user = User::new();
    let script = "id -u; touch /var/tmp/windlass-bad-input /etc/windlass-bad-input; cat /proc/1/environ";
    let input = json!({"command": ["sh", "-c", script]}).to_string();
    let args = [&["call", "shell", &input], &CONTAINED[..]].concat();
    let Some((code, said)) = elsewhere(&user, "true", &args) else { return };
    assert!(code == 1 && said.contains("\n0\n"), "{code}: {said}");
    assert!(!Path::new("/var/tmp/windlass-bad-input").exists());
    assert!(!Path::new("/etc/windlass-bad-input").exists());
}

#[test]
fn a_parent_that_is_killed_takes_everything_along() {
    for options in [&CONTAINED, &FULL_ACCESS] {
        let user = User::new();
        let gone = user.named_pipe("held").listen();
        let started = user.named_pipe("started");
        let script = "exec 9>held; setsid sleep 1000 & echo up > started; sleep 1000";
        let input = json!({"command": ["sh", "-c", script], "timeout_ms": 600_000}).to_string();
        let running = user.start(&[&["call", "shell", &input], &options[..]].concat());
        started.hear();
        running.signal("KILL");
        running.end();
        gone.wait();
    }
}
