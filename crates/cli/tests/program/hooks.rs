//! Hooks of the user and of a project: what they are told, what their answers do, and what happens
//! when they misbehave.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::support::{Ended, Server, User, Wire, command};

/// Writes an executable script outside the workspace, and returns its path.
fn script(user: &User, name: &str, text: &str) -> String {
    let directory = user.home().parent().unwrap().join("scripts");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Configures one hook.
fn hook(user: &User, event: &str, matcher: &str, fields: &str) {
    user.configure(&format!(
        "[[hooks.{event}]]\nmatcher = \"{matcher}\"\n[[hooks.{event}.hooks]]\n{fields}\n"
    ));
}

fn shell(command: &str) -> Value {
    json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]})
}

/// Runs one command of a model.
fn run_command(user: &User, command: &str, options: &[&str]) -> Ended {
    let script = user.script(&json!([shell(command), {"text": "The end."}]));
    user.run(&[&["exec", "--script", &script, "go", "--json"], options].concat())
}

const FREE: [&str; 4] = ["-s", "workspace-write", "-a", "never"];

/// Returns the runs of hooks in the events.
fn hook_runs(ended: &Ended) -> Vec<Value> {
    let events = ended.events().into_iter().filter(|event| event["type"] == "hook.ended");
    events.map(|event| event["hook"].clone()).collect()
}

fn outcome(user: &User) -> Value {
    let records = user.records();
    records.iter().find(|record| record["type"] == "outcome").unwrap()["payload"]["outcome"].clone()
}

#[test]
fn a_hook_blocks_a_call_and_everything_is_on_record() {
    let user = User::new();
    let path = script(
        &user,
        "guard",
        "#!/bin/sh\nread -r input\ncase $input in *'\"command\":\"touch made\"'*) echo 'not here' >&2; exit 2;; esac\n",
    );
    hook(&user, "PreToolUse", "Bash", &format!("name = \"guard\"\ncommand = \"{path}\""));
    let ended = run_command(&user, "touch made", &FREE);
    ended.assert_code(3);
    assert!(!user.work().join("made").exists());
    let runs = hook_runs(&ended);
    assert_eq!((&runs[0]["verdict"], &runs[0]["reason"]), (&json!("deny"), &json!("not here")), "{ended:#?}");
    let text = outcome(&user)["content"][0]["text"].clone();
    assert_eq!(text, "Command blocked by PreToolUse hook `guard`: not here. Command: touch made");
    let records = user.records();
    assert!(records.iter().any(|record| record["payload"]["event"] == "hook_ended"), "{records:#?}");
    let ended = records.iter().find(|record| record["type"] == "outcome").unwrap();
    let shown = user.run(&["show", ended["payload"]["call"].as_str().unwrap()]);
    assert!(shown.stdout.contains("PreToolUse hook `guard`: deny: not here"), "{shown:#?}");
    let other = run_command(&user, "echo fine", &FREE);
    other.assert_code(0);
    assert_eq!(hook_runs(&other)[0]["verdict"], "pass");
}

#[test]
fn a_matcher_fits_our_names_and_those_of_other_agents() {
    for (matcher, is_told) in [
        ("Bash", true),
        ("shell_.*", true),
        ("shell", false),
        ("Edit|Bash", true),
        ("*", true),
        ("mcp__.*", false),
    ] {
        let user = User::new();
        hook(&user, "PreToolUse", matcher, "command = \"exit 2\"");
        let ended = run_command(&user, "true", &FREE);
        ended.assert_code(if is_told { 3 } else { 0 });
        assert_eq!(hook_runs(&ended).len(), usize::from(is_told), "{matcher}");
    }
}

#[test]
fn a_hook_that_misbehaves_denies_or_is_ignored_and_leaves_nothing_behind() {
    let cases = [
        ("hang", "sleep 98761", "did not end within 1 s"),
        ("silent", "while :; do :; done", "did not end within 1 s"),
        ("garbage", "echo yes please", "not JSON"),
        ("half", "printf '{\"decision\":'", "not understood"),
        ("binary", "printf '\\377\\376'", "not UTF-8"),
        ("flood", "head -c 100000000 /dev/zero", "printed more than"),
        ("signal", "kill -9 $$", "signal 9"),
        ("code", "echo oops >&2; exit 7", "exited with 7: oops"),
        ("missing", "/no/such/program", "exited with 127"),
    ];
    for (name, command, expected) in cases {
        for (on_failure, code) in [("deny", 3), ("ignore", 0)] {
            let user = User::new();
            let fields = format!(
                "name = \"{name}\"\ncommand = '''{command}'''\ntimeout = 1\non_failure = \"{on_failure}\"",
            );
            hook(&user, "PreToolUse", "", &fields);
            let ended = run_command(&user, "echo ran > ran", &FREE);
            ended.assert_code(code);
            let run = &hook_runs(&ended)[0];
            assert!(run["reason"].as_str().unwrap().contains(expected), "{name}: {run}");
            assert_eq!(user.work().join("ran").exists(), on_failure == "ignore", "{name}");
            let outcomes = user.records().into_iter().filter(|record| record["type"] == "outcome").count();
            assert_eq!(outcomes, 1, "every call has its output: {name}");
        }
    }
    assert!(!is_running("98761"));
}

#[test]
fn processes_that_a_hook_starts_end_with_it() {
    let user = User::new();
    let command = "for i in 1 2 3 4; do (sleep 98763 &) ; sleep 98763 & done; exit 0";
    hook(&user, "PreToolUse", "", &format!("command = '''{command}'''\ntimeout = 5"));
    run_command(&user, "true", &FREE).assert_code(0);
    assert!(!is_running("98763"));
}

/// Returns true if a process has this argument.
fn is_running(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut commands = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    commands.any(|command| command.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
}

#[test]
fn a_hook_that_deletes_its_own_file_denies_from_then_on() {
    let user = User::new();
    let path = script(&user, "once", "#!/bin/sh\nrm \"$0\"\n");
    let directory = path.strip_suffix("/once").unwrap();
    hook(&user, "PreToolUse", "", &format!("command = [\"{path}\"]\nwritable = [\"{directory}\"]"));
    let turns = json!([shell("echo one > one"), shell("echo two > two"), {"text": "The end."}]);
    let model = user.script(&turns);
    let ended = user.run(&[&["exec", "--script", &model, "go", "--json"], &FREE[..]].concat());
    ended.assert_code(3);
    assert!(user.work().join("one").exists() && !user.work().join("two").exists(), "{ended:#?}");
    assert_eq!(hook_runs(&ended)[1]["verdict"], "failed_denied");
}

#[test]
fn a_hook_has_no_network_writes_nothing_and_reads_no_secrets() {
    let user = User::new();
    let command = "touch w 2>/dev/null && echo '{\"systemMessage\": \"wrote\"}'; \
                   cat \"$WINDLASS_HOME/config.toml\" 2>/dev/null >&2; exit 0";
    hook(&user, "PreToolUse", "", &format!("command = '''{command}'''"));
    run_command(&user, "true", &FREE).assert_code(0);
    assert!(!user.work().join("w").exists());
    let user = User::new();
    hook(&user, "PreToolUse", "", "command = \"touch w\"\nsandbox = \"workspace-write\"");
    run_command(&user, "true", &FREE).assert_code(0);
    assert!(user.work().join("w").exists(), "the user's own configuration widens it");
}

#[test]
fn a_yes_of_a_hook_does_not_open_the_gate() {
    let user = User::new();
    let answer = r#"{"decision":"approve","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#;
    hook(&user, "PreToolUse", "", &format!("command = '''echo '{answer}' '''"));
    let ended = run_command(&user, "touch made", &["-s", "workspace-write", "-a", "untrusted"]);
    ended.assert_code(3);
    assert!(!user.work().join("made").exists());
    assert_eq!(hook_runs(&ended)[0]["verdict"], "pass");
}

#[test]
fn a_hook_that_wants_a_question_is_refused_where_nobody_can_be_asked() {
    let user = User::new();
    let answer = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"look first"}}"#;
    hook(&user, "PreToolUse", "", &format!("command = '''echo '{answer}' '''"));
    for command in ["true", "touch made"] {
        let ended = run_command(&user, command, &FREE);
        ended.assert_code(3);
        assert!(!user.work().join("made").exists());
        assert!(ended.stdout.contains("look first"), "{ended:#?}");
    }
}

#[test]
fn changed_arguments_are_checked_decided_and_shown() {
    let changed = |input: &str| {
        let answer = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": serde_json::from_str::<Value>(input).unwrap()}});
        format!("command = '''echo '{answer}' '''")
    };
    let user = User::new();
    hook(&user, "PreToolUse", "Bash", &changed(r#"{"command": "touch changed"}"#));
    let ended = run_command(&user, "touch original", &FREE);
    ended.assert_code(0);
    assert!(user.work().join("changed").exists() && !user.work().join("original").exists());
    let repairs = outcome(&user)["receipt"]["repairs"].to_string();
    assert!(repairs.contains("touch changed"), "{repairs}");
    // Decided like any other: the new command may not run here.
    let user = User::new();
    hook(&user, "PreToolUse", "Bash", &changed(r#"{"command": "touch changed"}"#));
    run_command(&user, "touch original", &["-s", "read-only", "-a", "untrusted"]).assert_code(3);
    assert!(!user.work().join("changed").exists());
    // Checked like any other.
    for input in [r#"{"command": 5}"#, r#"{"cmd": "true"}"#, "[]", r#""true""#] {
        let user = User::new();
        hook(&user, "PreToolUse", "Bash", &changed(input));
        let ended = run_command(&user, "touch original", &FREE);
        ended.assert_code(3);
        assert!(!user.work().join("original").exists(), "{input}: {ended:#?}");
    }
    // A call that reads does not become one that writes beside others.
    let user = User::new();
    hook(&user, "PreToolUse", "Bash", &changed(r#"{"command": "touch changed"}"#));
    run_command(&user, "true", &FREE).assert_code(3);
    assert!(!user.work().join("changed").exists());
}

#[test]
fn hooks_that_keep_changing_a_call_refuse_it() {
    let user = User::new();
    let answer = r#"{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":{\"command\":\"touch $(date +%N)\"}}}"#;
    hook(&user, "PreToolUse", "Bash", &format!("command = '''echo \"{answer}\" '''"));
    let ended = run_command(&user, "touch original", &FREE);
    ended.assert_code(3);
    assert!(outcome(&user)["content"].to_string().contains("again and again"), "{ended:#?}");
}

#[test]
fn what_a_hook_adds_reaches_the_model_without_secrets() {
    let secret = ["ghp_q8Zk2mPv0L", "r7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2"].concat();
    let answer = |event: &str| {
        let text = format!("remember the {event} {secret}");
        json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
    };
    let server =
        Server::start([Wire::Responses.asks(&[command("call_1", "echo hi")]), Wire::Responses.says("ok")]);
    let user = User::new();
    user.use_server(&server, Wire::Responses);
    let config = fs::read_to_string(user.home().join("config.toml")).unwrap();
    let hooks: String = ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"]
        .iter()
        .map(|event| {
            format!("[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ncommand = '''echo '{}' '''\n", answer(event))
        })
        .collect();
    user.configure(&format!("{config}\n{hooks}"));
    user.run(&[&["exec", "go"], &FREE[..]].concat()).assert_code(0);
    let requests = server.requests();
    let sent = requests[1].body["input"].to_string();
    for event in ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"] {
        assert!(sent.contains(&format!("remember the {event}")), "{event}: {sent}");
    }
    assert!(!sent.contains(&secret));
    let recorded = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert!(!recorded.contains(&secret));
}

#[test]
fn a_blocked_message_does_not_reach_the_model() {
    let user = User::new();
    hook(&user, "UserPromptSubmit", "", "name = \"words\"\ncommand = \"echo no such words >&2; exit 2\"");
    let script = user.script(&json!([{"text": "The end."}]));
    let ended = user.run(&["exec", "--script", &script, "a bad word"]);
    ended.assert_code(3);
    assert!(ended.stderr.contains("blocked by a UserPromptSubmit hook `words`: no such words"), "{ended:#?}");
    let recorded = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert!(!recorded.contains("a bad word"), "{recorded}");
}

#[test]
fn a_stop_hook_makes_the_agent_go_on_a_limited_number_of_times() {
    let user = User::new();
    let command = "read -r i; case $i in *'\"stop_hook_active\":true'*) exit 0;; esac; echo more >&2; exit 2";
    hook(&user, "Stop", "", &format!("command = '''{command}'''"));
    let script = user.script(&json!([{"text": "First."}, {"text": "Second."}, {"text": "Third."}]));
    let ended = user.run(&["exec", "--script", &script, "go"]);
    assert_eq!(ended.assert_code(0).stdout.trim(), "Second.", "{ended:#?}");
    let user = User::new();
    hook(&user, "Stop", "", "command = \"exit 2\"");
    let turns: Vec<_> = (0..20).map(|turn| json!({"text": format!("Answer {turn}.")})).collect();
    let script = user.script(&json!(turns));
    let ended = user.run(&["exec", "--script", &script, "go"]);
    assert_eq!(ended.assert_code(0).stdout.trim(), "Answer 5.", "{ended:#?}");
}

#[test]
fn the_start_and_the_end_of_a_session_are_told_with_their_reasons() {
    let user = User::new();
    let log = "command = \"cat >> log\"\nsandbox = \"workspace-write\"\n";
    let hooks: String = ["SessionStart", "SessionEnd"]
        .map(|event| format!("[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n{log}"))
        .concat();
    user.configure(&hooks);
    let script = user.script(&json!([{"text": "The end."}, {"text": "Again."}]));
    user.run(&["exec", "--script", &script, "go"]).assert_code(0);
    user.run(&["exec", "--script", &script, "resume", "--last", "go"]).assert_code(0);
    let told: Vec<Value> = user.read("log").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = told
        .iter()
        .map(|input| {
            let reason = input["source"].as_str().or(input["reason"].as_str()).unwrap();
            format!("{} {reason}", input["hook_event_name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(told, ["SessionStart startup", "SessionEnd other", "SessionStart resume", "SessionEnd other"]);
}

#[test]
fn a_hook_ends_the_turn() {
    let user = User::new();
    hook(&user, "PostToolUse", "", r#"command = '''echo '{"continue":false,"stopReason":"enough"}' '''"#);
    let ended = run_command(&user, "echo hi", &FREE);
    ended.assert_code(3);
    assert!(ended.stdout.contains("a hook of the user has ended the turn"), "{ended:#?}");
}

#[test]
fn hooks_of_a_project_run_only_after_trust_and_until_they_change() {
    let user = User::new();
    fs::create_dir_all(user.work().join(".windlass/hooks")).unwrap();
    fs::create_dir_all(user.work().join(".git")).unwrap();
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "sh .windlass/hooks/guard"}]}]}});
    user.file(".windlass/hooks.json", hooks.to_string());
    user.file(".windlass/hooks/guard", "exit 2\n");
    let ended = run_command(&user, "true", &FREE);
    ended.assert_code(0);
    assert!(ended.stderr.contains("ignored the hooks of"), "{ended:#?}");
    let trusted = user.run(&["trust", "--yes"]);
    assert!(trusted.assert_code(0).stdout.contains("PreToolUse *: sh .windlass/hooks/guard"), "{trusted:#?}");
    run_command(&user, "true", &FREE).assert_code(3);
    user.file(".windlass/hooks/guard", "exit 0\n");
    let ended = run_command(&user, "true", &FREE);
    assert!(ended.assert_code(0).stderr.contains("has changed"), "{ended:#?}");
    assert!(hook_runs(&ended).is_empty());
    let wide = json!({"hooks": {"Stop": [{"hooks": [{"command": "true", "sandbox": "none"}]}]}});
    user.file(".windlass/hooks.json", wide.to_string());
    let refused = user.run(&["trust", "--yes"]);
    assert!(refused.assert_code(2).stderr.contains("only your own configuration"), "{refused:#?}");
}

#[test]
fn hooks_are_listed_and_tested() {
    let user = User::new();
    let none = user.run(&["hooks", "list"]);
    assert!(none.assert_code(0).stdout.contains("there are no hooks"));
    hook(&user, "PreToolUse", "Bash", "name = \"guard\"\ncommand = \"cat > /dev/null\"");
    let listed = user.run(&["hooks", "list"]);
    assert!(listed.assert_code(0).stdout.contains("PreToolUse  Bash"), "{listed:#?}");
    let listed: Value = serde_json::from_str(&user.run(&["hooks", "list", "--json"]).stdout).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["on_failure"]), (&json!("guard"), &json!("deny")), "{listed}");
    let tested = user.run(&["hooks", "test"]);
    assert!(tested.assert_code(0).stdout.contains("ok"), "{tested:#?}");
    assert_eq!(user.run(&["hooks", "test", "nope"]).code, Some(2));
    let user = User::new();
    hook(&user, "PreToolUse", "", "name = \"gone\"\ncommand = \"/no/such/hook\"");
    let tested = user.run(&["hooks", "test", "--json"]);
    let runs: Value = serde_json::from_str(&tested.assert_code(1).stdout).unwrap();
    assert_eq!(runs[0]["verdict"], "failed_denied", "{runs}");
    let ended = run_command(&user, "true", &FREE);
    assert!(ended.assert_code(3).stderr.contains("`gone` cannot run: there is no file"), "{ended:#?}");
    let doctor = user.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("/no/such/hook"), "{doctor:#?}");
}

#[test]
fn a_wrong_configuration_of_hooks_is_an_error_with_its_place() {
    for (toml, expected) in [
        ("[[hooks.PreToolUs]]\n", "PreToolUs"),
        ("[[hooks.PreToolUse]]\nmatcher = \"(\"\n", "not a regular expression"),
        ("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = \"\"\n", "`command` is empty"),
        ("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = \"x\"\non_failure = \"allow\"\n", "allow"),
        ("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncomand = \"x\"\n", "comand"),
    ] {
        let user = User::new();
        user.configure(toml);
        let ended = user.run(&["hooks", "list"]);
        assert!(ended.assert_code(2).stderr.contains(expected), "{toml}: {ended:#?}");
    }
}
