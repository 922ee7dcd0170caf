//! Questions to a person: when there is one, what it shows, what an answer allows, and what is
//! written down of it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Ended, Running, Server, User, Wire, lines};

/// A call on a terminal at which this is typed once the question is there.
fn answered(user: &User, input: &Value, options: &str, answer: &str) -> Ended {
    let mut program = user.program_on_a_terminal(&format!("call shell_command '{input}' {options}"));
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("  q  no, and stop");
    running.feed(answer.as_bytes()).end()
}

fn call(user: &User, command: &str, options: &[&str]) -> Ended {
    let input = json!({ "command": command }).to_string();
    user.run(&[&["call", "shell_command", &input], options].concat())
}

/// Everything that is written down below a directory.
fn texts(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| {
        if path.is_dir() { texts(&path) } else { fs::read_to_string(path).unwrap_or_default() }
    };
    entries.map(text).collect()
}

#[test]
fn always_outside_the_sandbox_is_exactly_what_was_approved() {
    let user = User::new();
    let leave = |command: &str| json!({"command": command, "sandbox_permissions": "require_escalated"});
    let ended = answered(&user, &leave("df -h"), "-s read-only -a on-request", "a\n");
    ended.assert_code(0);
    let shown = ended.stdout.replace("\r\n      | ", "");
    assert!(shown.contains("exactly `df -h`, run by `"), "{shown}");
    let rules = fs::read_to_string(user.home().join("rules/answers.toml")).unwrap();
    assert!(rules.contains("/df\", \"-h\"]") && rules.contains("answered = \"20"), "{rules}");
    let left = |command: &str| {
        let ended = call(&user, command, &["-s", "read-only", "-a", "never", "--json"]);
        ended.stdout.contains("started directly, without a shell")
    };
    // Nobody is there to ask, and nobody needs to be.
    assert!(left("df -h"));
    for other in ["df -h /srv", "df -h --output=source", "timeout 5 df -h", "df -h > there", "df -h | cat"] {
        assert!(!left(other), "{other}");
    }
}

#[test]
fn a_person_sees_the_text_of_an_edit_before_it_is_written() {
    let user = User::new();
    let input = json!({ "path": "notes.txt", "content": "first\nse\u{202e}cond\n" });
    let mut program =
        user.program_on_a_terminal(&format!("call write_file '{input}' -s read-only -a on-request"));
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("  q  no, and stop");
    let ended = running.feed(b"y\n").end();
    ended.assert_code(0);
    let shown = ended.stdout.replace("\r\n", "\n");
    assert!(shown.contains("the change:\n  | +first\n  | +se\\u{202e}cond\nin "), "{shown}");
    assert!(shown.contains("\nwould create: ") && !shown.contains("would read"), "{shown}");
    assert_eq!(fs::read_to_string(user.work().join("notes.txt")).unwrap(), "first\nse\u{202e}cond\n");
}

#[test]
fn a_program_planted_in_front_of_the_approved_one_stays_in_the_sandbox() {
    let user = User::new();
    let rule = "[[rule]]\nargv = [\"/usr/bin/touch\", \"x\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    fs::create_dir_all(user.home().join("rules")).unwrap();
    fs::write(user.home().join("rules/a.toml"), rule).unwrap();
    let explain = |user: &User| {
        let mut program = user.shell("PATH=$PWD/venv/bin:/usr/bin:/bin $windlass policy explain 'touch x'");
        program.stdin(Stdio::null());
        Running::start(program).end().stdout
    };
    assert!(explain(&user).contains("a rule lets this command run outside it"));
    let planted = user.work().join("venv/bin/touch");
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!explain(&user).contains("run outside it"));
}

#[test]
fn an_earlier_rule_with_any_words_behind_it_is_told_and_not_obeyed() {
    let user = User::new();
    let rule = "[[rule]]\nprefix = [\"touch\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    fs::create_dir_all(user.home().join("rules")).unwrap();
    fs::write(user.home().join("rules/answers.toml"), rule).unwrap();
    let listed = user.run(&["policy", "rules"]);
    listed.assert_code(0);
    assert!(listed.stdout.contains("asked again"), "{}", listed.stdout);
    assert!(listed.stderr.contains("would let any words follow outside the sandbox"), "{}", listed.stderr);
    let ended = call(&user, "touch here", &["-s", "read-only", "-a", "never"]);
    ended.assert_code(3);
    assert!(ended.stdout.contains("asked about again") && !user.work().join("here").exists(), "{ended:#?}");
}

#[test]
fn rules_are_listed_with_where_they_come_from_and_taken_back_one_by_one() {
    let user = User::new();
    fs::create_dir_all(user.home().join("rules")).unwrap();
    let file = user.home().join("rules/mine.toml");
    let text = "# Mine.\n[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n\n[[rule]]\neffect = \"publish\"\ndecision = \"forbid\"\n";
    fs::write(&file, text).unwrap();
    let ended = user.run(&["policy", "rules", "--json"]);
    ended.assert_code(0);
    let rules: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&rules[0]["prefix"], &rules[0]["line"], &rules[0]["source"]),
        (&json!([["make"]]), &json!(2), &json!("user"))
    );
    assert_eq!(rules[1]["effect"], "publish");
    let id = rules[0]["id"].as_str().unwrap();
    let nobody = user.run(&["policy", "revoke", id]);
    nobody.assert_code(2);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let ended = user.run(&["policy", "revoke", id, "--yes"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("a file that you wrote yourself"), "{}", ended.stderr);
    assert!(ended.stdout.contains("lines 2 to 4"), "{}", ended.stdout);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "# Mine.\n\n[[rule]]\neffect = \"publish\"\ndecision = \"forbid\"\n"
    );
    user.run(&["policy", "revoke", id, "--yes"]).assert_code(2);
}

#[test]
fn all_mistakes_of_the_rules_are_told() {
    let user = User::new();
    fs::create_dir_all(user.home().join("rules")).unwrap();
    let text = "[[rule]]\nprefix = \"git\"\ndecision = \"alow\"\n";
    fs::write(user.home().join("rules/a.toml"), text).unwrap();
    let ended = user.run(&["policy", "explain", "ls"]);
    ended.assert_code(2);
    for told in [
        "line 2: `prefix` must be a list of words in quotes, or of lists of alternatives; found string \"git\"",
        "line 3: `decision` must be one of \"allow\", \"ask\", \"forbid\"; found string \"alow\"",
    ] {
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
}

#[test]
fn a_program_that_is_not_there_is_named_and_nobody_is_asked() {
    let user = User::new();
    let line =
        r#"call shell_command '{"command":"frobnicate --x"}' -a untrusted --sandbox workspace-write --json"#;
    let ended = Running::start(user.program_on_a_terminal(line)).end();
    assert!(ended.stdout.contains("not_found") && ended.stdout.contains("no such program"), "{ended:#?}");
    assert!(!ended.stdout.contains("Allow it?"), "{ended:#?}");
}

#[test]
fn what_goes_beyond_the_machine_is_asked_about_without_a_sandbox() {
    let user = User::new();
    let options = ["-s", "danger-full-access", "-a", "on-request"];
    let refused = call(&user, "git push", &options);
    refused.assert_code(3);
    assert!(refused.stdout.contains("it pushes to a repository that others share"), "{refused:#?}");
    let less = [&options[..], &["-c", "ask_before=[\"deploy\"]"]].concat();
    assert_ne!(call(&user, "git push", &less).code, Some(3));
    assert_ne!(call(&user, "git push", &["-s", "danger-full-access", "-a", "never"]).code, Some(3));
    let wrong = call(&user, "true", &["-c", "ask_before=[\"x\"]"]);
    wrong.assert_code(2);
    assert!(wrong.stderr.contains("ask_before"), "{}", wrong.stderr);
}

#[test]
fn a_secret_in_the_arguments_is_asked_about_and_not_written_down() {
    let user = User::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let input = json!({"command": format!("echo {token} > t")});
    let ended = answered(&user, &input, "-s workspace-write -a on-request", "n\n");
    assert!(ended.stdout.contains("its arguments hold a secret (github-token)"), "{}", ended.stdout);
    assert!(!ended.stdout.contains(&token), "{}", ended.stdout);
    call(&user, input["command"].as_str().unwrap(), &["-s", "workspace-write", "-a", "never"]).assert_code(0);
    let kept = texts(&user.home().join("calls"));
    assert!(kept.contains("[REDACTED:github-token#1]") && !kept.contains(&token), "{kept}");
}

#[test]
fn a_question_and_its_answer_are_on_record_and_in_the_log() {
    let user = User::new();
    let input = json!({"command": "touch here"});
    let mut program = user.program_on_a_terminal(&format!(
        "call shell_command '{input}' -a untrusted --sandbox workspace-write 2> log"
    ));
    program.stdin(Stdio::piped()).env("WINDLASS_LOG", "info");
    // Without a terminal for the question nobody is there.
    Running::start(program).end().assert_code(3);
    let log = user.read("log");
    assert!(log.contains("approval asked") && log.contains("approval answered"), "{log}");
    assert!(log.contains("waited_ms") && log.contains("nobody"), "{log}");
    let kept = texts(&user.home().join("calls"));
    let events: Vec<_> = kept.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
    let answered = events.iter().find(|record| record["payload"]["event"] == "approval_answered").unwrap();
    assert_eq!(answered["payload"]["by"], "nobody");
    assert!(answered["payload"]["waited_ms"].is_u64() && kept.contains("approval_asked"), "{kept}");
}

#[test]
fn exec_says_which_policy_holds_when_it_refuses_to_leave_the_sandbox() {
    let user = User::new();
    let arguments = json!({"command": "make", "sandbox_permissions": "require_escalated"});
    let server =
        Server::start([Wire::Chat.asks(&[("c1", "shell_command", arguments)]), Wire::Chat.says("Done.")]);
    user.use_server(&server, Wire::Chat);
    let ended = user.run(&["exec", "-a", "on-failure", "-s", "workspace-write", "--json", "go"]);
    let told =
        "the approval policy is `on-failure`, but nobody can be asked in this run, so that `never` holds";
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
    let events = lines(&ended.stdout);
    assert!(events.iter().all(|event| event["type"] != "approval.asked"), "nobody may be asked");
}

#[test]
fn equal_rules_are_revoked_together() {
    let user = User::new();
    fs::create_dir_all(user.home().join("rules")).unwrap();
    let file = user.home().join("rules/answers.toml");
    let rule = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n";
    fs::write(&file, format!("{rule}# Between.\n{rule}")).unwrap();
    let rules: Value = serde_json::from_str(&user.run(&["policy", "rules", "--json"]).stdout).unwrap();
    let ended = user.run(&["policy", "revoke", rules[0]["id"].as_str().unwrap(), "--yes"]);
    ended.assert_code(0);
    assert!(ended.stdout.starts_with("removed 2 equal rules "), "{}", ended.stdout);
    assert_eq!(fs::read_to_string(&file).unwrap(), "# Between.\n");
}

#[test]
fn a_damaged_file_of_rules_is_listed_as_far_as_it_can_be_read_and_not_edited() {
    let user = User::new();
    fs::create_dir_all(user.home().join("rules")).unwrap();
    let file = user.home().join("rules/answers.toml");
    let rule = |program: &str| format!("[[rule]]\nprefix = [\"{program}\"]\ndecision = \"allow\"\n");
    let damaged = format!("{}[[rule]]\ngarbage ===\n", rule("make"));
    fs::write(&file, &damaged).unwrap();
    fs::write(user.home().join("rules/other.toml"), rule("ninja")).unwrap();
    let listed = user.run(&["policy", "rules", "--json"]);
    listed.assert_code(2);
    assert!(listed.stderr.contains("answers.toml`, line 5: "), "{}", listed.stderr);
    let rules: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&rules[0]["prefix"], &rules[0]["is_obeyed"]), (&json!([["make"]]), &json!(false)));
    let id = |at: usize| rules[at]["id"].as_str().unwrap();
    let ended = user.run(&["policy", "revoke", id(0), "--yes"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("line 5: ") && ended.stderr.contains("corrected or removed"), "{ended:#?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), damaged);
    user.run(&["policy", "revoke", id(1), "--yes"]).assert_code(0);
}

#[test]
fn times_that_are_not_taken_as_they_are_named_are_told() {
    let user = User::new();
    for (tool, input, note) in [
        ("shell_command", json!({"command": "true", "timeout_ms": 0}), "`timeout_ms` of 0 is no time at all"),
        ("exec_command", json!({"cmd": "true", "yield_time_ms": 99_999_999}), "was cut to 30000"),
    ] {
        let ended = user.run(&["call", "-s", "workspace-write", "--json", tool, &input.to_string()]);
        ended.assert_code(0);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(told["receipt"]["repairs"][0].as_str().unwrap().contains(note), "{told:#}");
    }
}

#[test]
fn the_cap_cuts_the_default_time_limit_as_well() {
    let user = User::new();
    let input = json!({"command": "sleep 30"}).to_string();
    let options = ["-s", "danger-full-access", "-a", "never", "--json", "-c", "max_timeout_sec=1"];
    let ended = user.run(&[&["call", "shell_command", &input], &options[..]].concat());
    ended.assert_code(4);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(told["facts"]["duration_ms"].as_u64().unwrap() < 5000, "{told:#}");
}

#[test]
fn a_time_limit_beyond_the_cap_is_cut_and_told() {
    let user = User::new();
    let input = json!({"command": "sleep 30", "timeout_ms": 9_000_000}).to_string();
    let options = ["-s", "danger-full-access", "-a", "never", "--json", "-c", "max_timeout_sec=1"];
    let ended = user.run(&[&["call", "shell_command", &input], &options[..]].concat());
    ended.assert_code(4);
    assert!(ended.stdout.contains("was cut to 1000 ms"), "{}", ended.stdout);
}
