//! `--limit` of `exec` and `call`: the same limits as those of `windlass sandbox`, for every
//! command.

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, User};

const CONTAINED: [&str; 2] = ["--sandbox", "workspace-write"];

/// A limit, what exceeds it, the code it ends with and what is said about it.
const EXCEEDED: [(&str, &str, i32, &str); 5] = [
    ("mem_mb=50", "python3 -c 'b = bytearray(200 << 20); __import__(\"time\").sleep(60)'", 137, "memory"),
    ("pids=5", "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait; false", 137, "processes"),
    ("out_kb=1", "yes", 137, "output"),
    ("out_kb=1", "head -c 1025 /dev/zero | tr '\\0' x", 137, "output"),
    ("fsize_mb=1", "exec head -c 2M /dev/zero > f", 153, "file size"),
];

/// Has a model run a line for longer than any limit, and gives what was said of how it went.
fn exec(user: &User, options: &[&str], line: &str) -> Ended {
    let call = json!({"name": "shell_command", "arguments": {"command": line, "timeout_ms": 50_000}});
    let script = user.script(&json!([{"calls": [call]}, {"text": "done"}]));
    user.run(&[&["exec", "--json", "--script", &script, "hi"], options].concat())
}

fn call(user: &User, options: &[&str], line: &str) -> Ended {
    let input = json!({"command": line, "timeout_ms": 50_000}).to_string();
    user.run(&[&["call", "shell_command", &input], options].concat())
}

#[test]
fn each_command_of_an_agent_is_ended_at_its_limits() {
    let report: Value = serde_json::from_str(&User::new().run(&["doctor", "--json"]).stdout).unwrap();
    let limits = report["layers"]["limits"].as_str().unwrap_or_default();
    // Without namespaces some of them are refused, and in a cgroup no process is started beyond its
    // limit.
    if report["rung"] != "namespaces" || limits.starts_with("memory and processes by a cgroup") {
        eprintln!("skipped: {} with {limits}", report["rung"]);
        return;
    }
    for (limit, line, code, what) in EXCEEDED {
        let user = User::new();
        let options = [&CONTAINED[..], &["--limit", limit]].concat();
        let told = exec(&user, &options, line);
        told.assert_code(0);
        assert!(told.stdout.contains(&format!("\"exit_code\":{code}")), "{limit}: {told:#?}");
        let told = call(&user, &options, line);
        told.assert_code(1);
        let said = format!("execution error: the limit on {what} was reached, and the command was ended\n");
        assert!(told.stdout.starts_with(&said), "{limit}: {told:#?}");
    }
}

#[test]
fn time_and_output_are_limited_without_walls_too_and_nothing_else_is() {
    let user = User::new();
    let limited = |limit| [&FULL_ACCESS[..], &["--limit", limit]].concat();
    call(&user, &limited("wall_s=1"), "sleep 40").assert_code(4);
    call(&user, &limited("out_kb=1"), "yes | head -c 1025").assert_code(1);
    call(&user, &limited("out_kb=1"), "yes | head -c 1024").assert_code(0);
    for refused in [call(&user, &limited("pids=5"), "true"), exec(&user, &limited("pids=5"), "true")] {
        refused.assert_code(2);
        assert!(refused.last_word().ends_with("enforces only `wall_s` and `out_kb`"), "{refused:#?}");
    }
}

#[test]
fn what_makes_no_sense_is_said_in_the_same_words_everywhere() {
    let user = User::new();
    let said = |arguments: &[&str]| {
        let ended = user.run(&[arguments, &["--limit", "ram=1"]].concat());
        ended.assert_code(2);
        ended.stderr
    };
    let of_sandbox = user.run(&["sandbox", "--limit", "ram=1", "--", "true"]);
    assert_eq!(said(&["exec", "hi"]), of_sandbox.stderr);
    assert_eq!(said(&["call", "shell_command", "{}"]), of_sandbox.stderr);
}

#[test]
fn of_several_limits_on_time_the_tightest_counts() {
    let user = User::new();
    let configured = ["-c", "command_time_limit_sec=1", "--limit", "wall_s=50"];
    let given_twice = ["--limit", "wall_s=1", "--limit", "wall_s=50"];
    for options in [&configured[..], &given_twice] {
        call(&user, &[&FULL_ACCESS[..], options].concat(), "sleep 40; echo done").assert_code(4);
    }
}

#[test]
fn limits_hold_without_being_asked_for_and_can_be_switched_off() {
    let user = User::new();
    let report: Value = serde_json::from_str(&user.run(&["doctor", "--json"]).stdout).unwrap();
    if report["rung"] != "namespaces" {
        eprintln!("skipped: {}", report["rung"]);
        return;
    }
    assert_eq!(report["limits"]["command"]["processes"], 2048);
    let line = "ulimit -Hn; for i in 1 2 3 4 5 6 7 8; do sleep 0.5 & done; wait; echo done";
    let contained = |options: &[&str]| call(&user, &[&CONTAINED[..], options].concat(), line);
    let usual = contained(&[]);
    usual.assert_code(0);
    assert!(usual.stdout.contains("done"), "{usual:#?}");
    let few = contained(&["-c", "limits.processes=5"]);
    few.assert_code(1);
    assert!(few.stdout.contains("the limit on processes was reached"), "{few:#?}");
    let option = contained(&["-c", "limits.processes=5", "--limit", "pids=50"]);
    assert!(option.stdout.contains("done"), "an option says otherwise: {option:#?}");
    let off = contained(&["-c", "limits.processes=0", "-c", "limits.memory_percent=0"]);
    assert!(off.stdout.contains("done"), "{off:#?}");
    let files = contained(&["-c", "limits.open_files=77"]);
    assert!(files.stdout.contains("77\n"), "{files:#?}");
}
