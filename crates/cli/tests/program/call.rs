//! `windlass call`: one tool without a model.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, Running, User};

fn call(user: &User, args: &[&str]) -> Ended {
    user.run(&[&["call"], args].concat())
}

fn call_freely(user: &User, args: &[&str]) -> Ended {
    call(user, &[args, &FULL_ACCESS].concat())
}

#[test]
fn the_exit_code_tells_how_a_call_ended() {
    let user = User::new();
    let cases = [
        (r#"{"command":"echo hi"}"#, 0, "hi\n"),
        (r#"{"command":"echo no; exit 7"}"#, 1, "no\n"),
        (r#"{"command":"no-such-program-anywhere"}"#, 1, "no-such-program-anywhere"),
        (r#"{"command":"sleep 60","timeout_ms":1}"#, 4, "command timed out after"),
        (r#"{"command":"kill -9 $$"}"#, 1, "SIGKILL"),
        (
            r#"{"command":["a"]}"#,
            1,
            "failed to parse function arguments: `arguments.command` must be string, found array",
        ),
        (r#"{"command":"echo hi","timeout_ms":"9000"}"#, 0, "hi\n"),
        (r"{}", 1, "failed to parse function arguments: `arguments.command` is missing\nexpected: {"),
        (r#"{"command":"echo "#, 1, "failed to parse function arguments"),
        (r#"{"command":""} trailing"#, 1, "failed to parse function arguments: trailing characters"),
        (r#"{"command":"a\u0000b"}"#, 1, "the command contains a NUL byte"),
        (r#"{"command":"true","workdir":"/no/such/place"}"#, 1, "/no/such/place"),
    ];
    for (input, code, said) in cases {
        let ended = call_freely(&user, &["shell_command", input]);
        ended.assert_code(code);
        assert!(ended.stdout.contains(said), "{input}: {ended:#?}");
        let told = if input.contains("\"9000\"") { "note: the call was repaired: " } else { "" };
        assert!(ended.stderr.starts_with(told) && ended.stderr.is_empty() == told.is_empty(), "{ended:#?}");
    }
}

#[test]
fn an_unknown_tool_is_wrong_usage() {
    let ended = call(&User::new(), &["shell_comand", "{}"]);
    ended.assert_code(2);
    assert!(ended.stdout.contains("unsupported call: shell_comand"), "{ended:#?}");
}

#[test]
fn a_command_writes_only_where_its_sandbox_mode_lets_it() {
    let user = User::new();
    for (mode, code) in [("read-only", 1), ("workspace-write", 0)] {
        let ended = call(&user, &["shell_command", r#"{"command":"touch here"}"#, "--sandbox", mode]);
        ended.assert_code(code);
        assert_eq!(user.work().join("here").exists(), code == 0, "{ended:#?}");
    }
}

#[test]
fn what_cannot_be_undone_is_refused_where_nobody_can_be_asked() {
    let ended = call(&User::new(), &["shell_command", r#"{"command":"git push --force origin main"}"#]);
    ended.assert_code(3);
    assert!(ended.stdout.starts_with("refused: nobody is there to approve it"), "{ended:#?}");
}

#[test]
fn a_question_nobody_can_answer_is_a_no() {
    let user = User::new();
    let ended = call_freely(
        &user,
        &["shell_command", r#"{"command":"touch here"}"#, "--ask-for-approval", "untrusted"],
    );
    ended.assert_code(3);
    assert!(ended.stdout.contains("nobody is there to approve it"), "{ended:#?}");
    assert!(!user.work().join("here").exists());
}

#[test]
fn a_person_at_the_terminal_is_asked_and_obeyed() {
    let line = "call shell_command '{\"command\":\"touch here\"}' --sandbox danger-full-access -a untrusted";
    // The last is Ctrl-C.
    let answers = [
        ("y\n", 0, true),
        ("what?\ns\n", 0, true),
        ("n\n", 3, false),
        ("\n", 3, false),
        ("q\n", 130, false),
        ("\u{3}", 130, false),
    ];
    for (answer, code, ran) in answers {
        let user = User::new();
        let mut program = user.program_on_a_terminal(line);
        program.stdin(Stdio::piped());
        let mut running = Running::start(program);
        running.until_stdout("  touch here");
        running.until_stdout("  y  yes: this command, once, with the current sandbox mode");
        running.until_stdout("  q  no, and stop");
        running.feed(answer.as_bytes()).end().assert_code(code);
        assert_eq!(user.work().join("here").exists(), ran, "{answer:?}");
    }
}

/// A call on a terminal at which this is typed once the question is there.
fn answered(user: &User, line: &str, answer: &str) -> Ended {
    let mut program = user.program_on_a_terminal(line);
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("  q  no, and stop");
    running.feed(answer.as_bytes()).end()
}

#[test]
fn an_answer_for_good_is_a_rule_from_then_on() {
    let line = "call shell_command '{\"command\":\"touch here\"}' -a untrusted --sandbox workspace-write";
    for (answer, file) in [("a\n", "rules/answers.toml"), ("p\n", "projects")] {
        let user = User::new();
        answered(&user, line, answer).assert_code(0);
        assert!(user.home().join(file).exists(), "{file}");
        // Nobody is there to ask, and nobody needs to be.
        let again = ["call", "shell_command", r#"{"command":"touch here again"}"#, "-a", "untrusted"];
        user.run(&[&again[..], &["--sandbox", "workspace-write"]].concat()).assert_code(0);
        let other = ["call", "shell_command", r#"{"command":"touch there"}"#, "-a", "untrusted"];
        user.run(&[&other[..], &["--sandbox", "workspace-write"]].concat()).assert_code(3);
        fs::create_dir(user.work().join("elsewhere")).unwrap();
        fs::create_dir(user.work().join("elsewhere/.git")).unwrap();
        let code = if answer == "a\n" { 0 } else { 3 };
        user.run(&[&again[..], &["--sandbox", "workspace-write", "-C", "elsewhere"]].concat())
            .assert_code(code);
    }
}

#[test]
fn what_the_sandbox_stopped_may_go_further_if_a_person_says_so() {
    // Not in `/tmp` or `/var/tmp`, which are others in the sandbox.
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = outside.path().join("made");
    let input = json!({"command": format!("touch {}", file.display())});
    let line = format!("call shell_command '{input}' -a on-failure --sandbox workspace-write");
    for (answer, code, made) in [("n\n", 1, false), ("y\n", 0, true)] {
        let ended = answered(&User::new(), &line, answer);
        ended.assert_code(code);
        let wider = format!("in the sandbox, with `{}` writable as well", outside.path().display());
        // Long lines are broken, with a mark before the rest.
        let joined = |text: &str| text.replace("      | ", "").split_whitespace().collect::<String>();
        assert!(joined(&ended.stdout).contains(&joined(&wider)), "{}", ended.stdout);
        assert_eq!(file.exists(), made);
    }
}

#[test]
fn the_input_comes_from_stdin_if_it_is_not_an_argument() {
    let user = User::new();
    for args in [&["call", "update_plan"][..], &["call", "update_plan", "-"]] {
        let ended = user.run_with_input(args, br#"{"plan":[{"step":"look","status":"pending"}]}"#);
        ended.assert_code(0);
        assert_eq!(ended.stdout, "Plan updated\n");
    }
    let ended = user.run_with_input(&["call", "update_plan"], b"\xff\xfe");
    ended.assert_code(2);
    assert_eq!(ended.stderr, "error: the input on stdin is not UTF-8 text (byte 0)\n");
}

#[test]
fn aliases_are_callable() {
    let ended = call_freely(&User::new(), &["container.exec", r#"{"command":["echo","hi"]}"#]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "hi\n");
}

#[test]
fn json_holds_the_whole_result() {
    let ended = call_freely(&User::new(), &["shell_command", r#"{"command":"echo no; exit 3"}"#, "--json"]);
    ended.assert_code(1);
    let mut result: Value = serde_json::from_str(&ended.stdout).unwrap();
    result["duration_ms"] = json!(0);
    result["facts"]["duration_ms"] = json!(0);
    result["receipt"]["duration_ms"] = json!(0);
    let reason = "the command ended with exit code 3";
    let expected = json!({
        "tool": "shell_command",
        "parameters": {"command": "echo no; exit 3"},
        "status": "error",
        "success": false,
        "content": [{"text": "no\n"}],
        "data": {"stdout": "no\n", "stderr": "", "return_code": 3},
        "error": reason,
        "duration_ms": 0,
        "facts": {"kind": "command", "exit": {"code": 3}, "duration_ms": 0, "output_bytes": 3},
        "insight": {"kind": "command", "class": "failed", "summary": "failed"},
        "verdict": {"success": false, "confidence": 100, "reasons": [reason]},
        "receipt": {
            "held": {"rung": "unconfined", "network": "any", "writable": ["/"]},
            "decision": "the sandbox mode is `danger-full-access`", "duration_ms": 0
        },
    });
    assert_eq!(result, expected);
}

#[test]
fn markdown_is_a_report() {
    let ended =
        call_freely(&User::new(), &["shell_command", r#"{"command":"echo '```'; exit 3"}"#, "--markdown"]);
    ended.assert_code(1);
    let text = ended.stdout.split("- **Time**").next().unwrap();
    assert_eq!(
        text,
        "## `shell_command`: error\n\n- **Success**: no\n- **Error**: the command ended with exit code 3\n\
         - **Exit**: code 3\n- **Output**: 4 bytes\n"
    );
    assert!(ended.stdout.ends_with("\n````\n```\n````\n"), "{ended:#?}");
}

#[test]
fn text_json_and_markdown_cannot_be_mixed() {
    call(&User::new(), &["update_plan", "{}", "--json", "--markdown"]).assert_code(2);
}

#[test]
fn a_secret_of_the_caller_stays_with_the_caller() {
    let user = User::new();
    let input = r#"{"command":"env"}"#;
    let mut program = user.program(&["call", "shell_command", input, "--sandbox", "danger-full-access"]);
    program.env("OPENAI_API_KEY", "sk-1").env("MY_TOKEN", "sk-2").env("CODEX_API_KEY", "sk-3");
    program.env("EDITOR", "shown").env("DB_PASS", "sk-4").env("HTTP_PROXY", "http://u:sk-5@proxy");
    let ended = Running::start(program).end();
    ended.assert_code(0);
    assert!(ended.stdout.contains("EDITOR=shown") && !ended.stdout.contains("sk-"), "{ended:#?}");
}

#[test]
fn an_interrupted_call_ends_with_130_and_leaves_nothing_running() {
    let user = User::new();
    let (started, held) = (user.named_pipe("started"), user.named_pipe("held"));
    let gone = held.listen();
    let input = r#"{"command":"exec 3> held; echo > started; sleep 60","timeout_ms":60000}"#;
    let running = user.start(&[&["call", "shell_command", input], &FULL_ACCESS[..]].concat());
    started.hear();
    running.signal("INT");
    let ended = running.end();
    ended.assert_code(130);
    assert!(ended.stdout.contains("aborted by user"), "{ended:#?}");
    gone.wait();
}

#[test]
fn login_files_are_read_once_and_only_if_the_user_wants_it() {
    let user = User::new();
    let read = user.work().join("read");
    let profile = format!("echo hello; echo x >> {}; export EDITOR=yes MY_TOKEN=1\n", read.display());
    fs::write(user.home().join(".profile"), profile).unwrap();
    let call = r#"{"command":"echo [$EDITOR$MY_TOKEN]"}"#;
    let say = || {
        let mut program = user.program(&["call", "shell_command", call, "--sandbox", "read-only"]);
        let ended = Running::start({
            program.env("HOME", user.home()).env("SHELL", "/bin/sh").env_remove("EDITOR");
            program
        });
        ended.end().stdout
    };
    assert_eq!((say().as_str(), user.read("read").as_str()), ("[]\n", ""));
    user.configure("[shell_environment_policy]\nexperimental_use_profile = true\n");
    assert_eq!((say().as_str(), user.read("read").as_str()), ("[yes]\n", "x\n"));
    fs::write(user.home().join(".profile"), "exit 3\n").unwrap();
    assert_eq!(say(), "");
}
