//! `windlass sandbox` and `windlass doctor`, as a person runs them.

use std::{
    fs,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio,
};

use serde_json::Value;

use crate::support::{Running, User};

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
fn names_of_files_cannot_give_the_terminal_orders_or_pose_as_lines_of_ours() {
    let user = User::new();
    let script = "d=$(printf 'a\\ndenied: nothing else\\nb\\033[31mc'); mkdir \"$d\"; echo x > \"$d/.envrc\"";
    let ended = user.run(&sandboxed(&["--policy", "workspace-write"], script));
    ended.assert_code(0);
    let lines: Vec<_> = ended.stderr.lines().collect();
    let [line] = lines[..] else { panic!("{lines:?}") };
    assert!(
        line.starts_with("denied: ") && line.contains(r"a\ndenied: nothing else\nb\u{1b}[31mc"),
        "{line}"
    );
    let ended = user.run(&sandboxed(&["--json=no\n\u{1b}[31mdirectory/x"], "true"));
    assert_eq!(ended.stderr.lines().count(), 1, "{:?}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
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
fn a_receipt_follows_what_others_write_to_its_descriptor_and_may_go_to_a_socket() {
    let user = User::new();
    let line = "{ echo before; $windlass sandbox --json -- true; echo after; } > log 2>&1";
    Running::start(user.shell(line)).end().assert_code(0);
    let log = user.read("log");
    let [before, receipt, after] = log.lines().collect::<Vec<_>>()[..] else { panic!("{log}") };
    assert_eq!((before, after), ("before", "after"));
    let receipt: Value = serde_json::from_str(receipt).unwrap();
    assert_eq!(receipt["exit_code"], 0);

    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut command = user.program(&["sandbox", "--json", "--", "true"]);
    let status = command.stdout(Stdio::null()).stderr(OwnedFd::from(theirs)).status().unwrap();
    drop(command);
    assert_eq!(status.code(), Some(0));
    let receipt: Value = serde_json::from_reader(&mut ours).unwrap();
    assert_eq!(receipt["exit_code"], 0);
}

#[test]
fn nothing_runs_if_the_receipt_cannot_be_written() {
    let user = User::new();
    for to in ["/nonexistent/x", "/dev/full", "99", "99999999999", "0", ""] {
        let ended =
            user.run(&sandboxed(&["--policy", "workspace-write", &format!("--json={to}")], "echo ran"));
        ended.assert_code(2);
        assert_eq!(ended.stdout, "", "{to}");
        assert!(ended.last_word().starts_with("error: cannot write the receipt to"), "{ended:#?}");
    }
}

#[test]
fn a_command_cannot_lead_the_receipt_elsewhere() {
    let user = User::new();
    user.file("other", "mine");
    let options = ["--policy", "workspace-write", "--json=receipt"];
    user.run(&sandboxed(&options, "echo forged > receipt; ln receipt kept; ln -sf other receipt"))
        .assert_code(0);
    assert_eq!((user.read("other"), user.read("kept")), ("mine".to_owned(), "forged\n".to_owned()));
    let receipt: Value = serde_json::from_str(&user.read("receipt")).unwrap();
    assert_eq!(receipt["exit_code"], 0);
}

#[test]
fn what_an_earlier_command_left_at_the_name_of_the_receipt_is_neither_followed_nor_waited_for() {
    let user = User::new();
    user.file("other", "mine");
    let plants = ["ln -s other receipt", "mkfifo receipt", "mkdir d; ln -s d out; ln -s ../other d/receipt"];
    for (plant, to) in plants.into_iter().zip(["receipt", "receipt", "out/receipt"]) {
        user.run(&sandboxed(&["--policy", "workspace-write"], &format!("rm -rf receipt; {plant}")))
            .assert_code(0);
        let option = format!("--json={to}");
        let ended = user.run(&sandboxed(&["--policy", "workspace-write", &option], "echo ran"));
        ended.assert_code(2);
        assert_eq!(ended.stdout, "", "{plant}");
        assert!(ended.last_word().contains("cannot write the receipt to"), "{ended:#?}");
        assert_eq!(user.read("other"), "mine", "{plant}");
    }
}

#[test]
fn characters_that_do_not_show_are_escaped_in_denials_and_receipts() {
    let user = User::new();
    let names = "for c in '\\302\\240' '\\342\\200\\213' '\\363\\240\\201\\201' '\\343\\205\\244' '\\342\\240\\200' '\\342\\200\\250'; do \
                 d=$(printf \"a${c}b\"); mkdir -p \"$d/.vscode\"; done";
    let ended = user.run(&sandboxed(&["--policy", "workspace-write", "--json=receipt"], names));
    ended.assert_code(0);
    assert_eq!(ended.stderr.lines().count(), 6, "{}", ended.stderr);
    assert!(ended.stderr.is_ascii(), "{}", ended.stderr);
    let receipt = user.read("receipt");
    assert!(receipt.is_ascii(), "{receipt}");
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    let what = receipt["denials"].as_array().unwrap().iter().map(|denial| denial["what"].as_str().unwrap());
    assert_eq!(what.filter(|what| what.contains('\u{e0041}')).count(), 1, "it says the same to a program");
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

/// A limit, what exceeds it, the code that tells of it and how the receipt does.
const EXCEEDED: [(&str, &str, i32, &str); 8] = [
    ("mem_mb=50", "python3 -c 'b = bytearray(200 << 20); input()'", 137, r#"{"signal":9}"#),
    ("pids=5", "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait; false", 137, r#"{"signal":9}"#),
    ("disk_mb=2", "head -c 8M /dev/zero > f; sleep 60", 137, r#"{"signal":9}"#),
    ("out_kb=1", "yes", 137, r#"{"signal":9}"#),
    ("out_kb=1", "head -c 1025 /dev/zero", 137, r#"{"signal":9}"#),
    ("cpu_s=1", "while :; do :; done", 152, r#"{"signal":24}"#),
    ("fsize_mb=1", "exec head -c 2M /dev/zero > f", 153, r#"{"signal":25}"#),
    ("wall_s=1", "trap '' TERM; sleep 60; sleep 60", 124, r#""timed_out""#),
];

#[test]
fn a_command_that_a_limit_ended_has_not_succeeded() {
    let report: Value = serde_json::from_str(&User::new().run(&["doctor", "--json"]).stdout).unwrap();
    let limits = report["layers"]["limits"].as_str().unwrap_or_default();
    // Without namespaces some of them are refused, and in a cgroup no process is started beyond its
    // limit.
    if report["rung"] != "namespaces" || limits.starts_with("memory and processes by a cgroup") {
        eprintln!("skipped: {} with {limits}", report["rung"]);
        return;
    }
    for (limit, script, code, exit) in EXCEEDED {
        let user = User::new();
        let options = ["--policy", "workspace-write", "--json=receipt", "--limit", limit];
        let mut command = user.program(&sandboxed(&options, script));
        // Something to wait for.
        command.stdin(Stdio::piped());
        Running::start(command).end().assert_code(code);
        let receipt: Value = serde_json::from_str(&user.read("receipt")).unwrap();
        assert_eq!((&receipt["exit_code"], receipt["exit"].to_string()), (&code.into(), exit.to_owned()));
        let denied =
            receipt["denials"].as_array().unwrap().iter().filter(|denial| denial["layer"] == "limit");
        assert_eq!(denied.count(), usize::from(!limit.starts_with("wall_s")), "{limit}: {receipt}");
    }
    User::new().run(&sandboxed(&["--limit", "ram=1"], "true")).assert_code(2);
}

#[test]
fn output_is_limited_to_the_byte_and_what_fits_is_no_denial() {
    let user = User::new();
    for (script, length, said) in [
        ("yes", 1024, "denied: output: the limit on output was reached, and the command was ended\n"),
        ("yes | head -c 1024", 1024, ""),
    ] {
        let ended = user.run(&sandboxed(&["--limit", "out_kb=1"], script));
        assert_eq!((ended.stdout.len(), ended.stderr.as_str()), (length, said), "{ended:#?}");
    }
    // Whoever stops reading is noticed by the command, as without a limit, and nobody has cancelled
    // anything.
    let line = "($windlass sandbox --limit out_kb=1000 -- yes; echo $? > code) | head -n 1";
    let ended = Running::start(user.shell(line)).end();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("y\n", ""));
    assert_eq!(user.read("code"), "141\n");
}

#[test]
fn ctrl_z_stops_the_command_and_everything_below_it_until_it_is_continued() {
    for policy in ["workspace-write", "danger-full-access"] {
        let user = User::new();
        let line = format!(
            "set -m; $windlass sandbox --policy {policy} -- sh -c 'echo ready; sed -u s/^/command:/; exit 7'; \
             echo stopped: $?; for i in 1 2 3; do read line; echo shell:$line; done; fg; echo ended: $?"
        );
        let mut command = user.shell_on_a_terminal(&line);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command);
        running.until_stdout("ready");
        running.type_in("one\n");
        running.until_stdout("command:one");
        running.type_in("\x1a");
        // 128 and the number of SIGTSTP.
        running.until_stdout("stopped: 148");
        for word in ["two", "three", "four"] {
            running.type_in(&format!("{word}\n"));
            running.until_stdout(&format!("shell:{word}"));
        }
        // The name of the job, before it is continued.
        running.until_stdout("sandbox --policy");
        running.type_in("five\n");
        running.until_stdout("command:five");
        running.type_in("\x04");
        running.until_stdout("ended: 7");
        running.end().assert_code(0);
    }
}

#[test]
fn a_command_in_the_background_that_reads_is_stopped_until_it_is_in_the_foreground() {
    for policy in ["workspace-write", "danger-full-access"] {
        let user = User::new();
        let line = format!(
            "set -m; stops() {{ until jobs > jobs; grep -q Stopped jobs; do sleep 0.05; done; }}; \
             $windlass sandbox --policy {policy} -- sh -c 'echo > begun; sed -u s/^/command:/; exit 7' & \
             stops; echo stopped; read line; echo shell:$line; \
             bg; stops; echo again; read line; echo shell:$line; \
             fg; echo ended: $?"
        );
        let mut command = user.shell_on_a_terminal(&line);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command);
        running.until_stdout("stopped");
        assert!(user.work().join("begun").exists(), "what does not read goes on");
        running.type_in("one\n");
        running.until_stdout("shell:one");
        running.until_stdout("again");
        running.type_in("two\n");
        running.until_stdout("shell:two");
        running.type_in("three\n");
        running.until_stdout("command:three");
        running.type_in("\x04");
        running.until_stdout("ended: 7");
        running.end().assert_code(0);
    }
}

#[test]
fn a_command_that_others_put_into_the_background_is_stopped_too() {
    let user = User::new();
    // The inner shell has no job control at first, so that what it starts is in the foreground with
    // it.
    let inner = "$windlass sandbox --policy workspace-write -- sh -c 'echo > begun; exec cat' < /dev/tty & job=$!; \
                 until [ -e begun ]; do sleep 0.01; done; set -m; \
                 sh -c \"until grep -q 'State:.T' /proc/$job/status; do sleep 0.05; done\"; \
                 echo stopped; kill $job; kill -CONT $job; wait $job";
    let mut command = user.shell_on_a_terminal("set -m; sh -c \"$inner\"; true");
    // It stays open, so that there is something to wait for.
    command.env("inner", inner).stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.until_stdout("stopped");
    running.end();
}

#[test]
fn a_command_in_the_background_that_no_shell_could_continue_can_still_be_ended() {
    let user = User::new();
    // Whoever started it is gone, so nobody is left who could.
    let orphan = "{ $windlass sandbox --limit wall_s=1 -- cat; echo ended: $?; } < /dev/tty &";
    let mut command = user.shell_on_a_terminal("set -m; sh -c \"$orphan\" & read line; echo shell:$line");
    command.env("orphan", orphan).stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.until_stdout("ended: 124");
    running.type_in("one\n");
    running.until_stdout("shell:one");
    running.end().assert_code(0);
}

#[test]
fn ctrl_z_stops_nothing_that_no_shell_could_continue() {
    let user = User::new();
    let mut command = user.program_on_a_terminal("sandbox -- sh -c 'echo ready; sed -u s/^/command:/'");
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.until_stdout("ready");
    running.type_in("\x1aone\n");
    running.until_stdout("command:");
    running.type_in("two\n");
    running.until_stdout("command:two");
    running.type_in("\x04");
    running.end().assert_code(0);
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

#[test]
fn a_denied_path_cannot_write_to_the_screen() {
    let user = User::new();
    let script =
        "d=$(printf 'x\\033[2J\\302\\233'); mkdir -p \"$d/.vscode\"; echo x > \"$d/.vscode/settings.json\"";
    let ended = user.run(&["sandbox", "--policy", "workspace-write", "--", "sh", "-c", script]);
    if ended.stderr.contains("denied") {
        assert!(ended.stderr.contains("x\\u{1b}[2J\\u{9b}/.vscode"), "{}", ended.stderr);
    }
    assert!(!ended.stderr.contains(['\u{1b}', '\u{9b}']), "{}", ended.stderr);
}
