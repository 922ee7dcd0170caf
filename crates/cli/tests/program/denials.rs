//! What the sandbox refuses: told by its path or address, and asked about where a person is there.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Ended, Running, User};

fn call(mode: &str, command: &str) -> Vec<String> {
    let input = json!({"command": command}).to_string();
    ["call", "-s", mode, "--json", "shell_command", &input].map(str::to_owned).to_vec()
}

/// The result of a command that nobody is asked about.
fn result(user: &User, mode: &str, command: &str) -> Value {
    let arguments = call(mode, command);
    let ended = user.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    ended.assert_code(1);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A call on a terminal, answered once the question is there.
fn answered(user: &User, command: &str, answer: &str) -> Ended {
    let input = json!({"command": command});
    let line = format!("call -a on-failure -s read-only shell_command '{input}'");
    let mut program = user.program_on_a_terminal(&line);
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("  q  no, and stop");
    running.feed(answer.as_bytes()).end()
}

#[test]
fn a_write_that_a_read_only_sandbox_refuses_is_asked_about() {
    for command in ["touch made", "echo x > made", "make"] {
        let user = User::new();
        user.file("Makefile", "all:\n\ttouch made\n");
        for (answer, code, is_made) in [("n\n", 1, false), ("y\n", 0, true)] {
            let ended = answered(&user, command, answer);
            ended.assert_code(code);
            let wider = "in the sandbox, with `~/work` writable as well";
            assert!(ended.stdout.contains(wider), "{}", ended.stdout);
            assert_eq!(user.work().join("made").exists(), is_made, "{command} {answer}");
        }
    }
}

#[test]
fn every_command_that_a_read_only_sandbox_stops_ends_in_a_typed_denial_and_a_question() {
    let user = User::new();
    user.file("Makefile", "all:\n\ttouch made\n");
    for (command, layer, what, wider) in [
        ("touch m2", "files", "/work/m2", "with `~/work` writable as well"),
        ("echo x > f", "files", "/work/f", "with `~/work` writable as well"),
        ("make", "files", "/work/made", "with `~/work` writable as well"),
        ("git clone http://192.0.2.1/x", "files", "/work/x", "with `~/work` writable as well"),
        ("curl -m 5 http://1.1.1.1", "network", "1.1.1.1:80", "with the network as well"),
    ] {
        let told = result(&user, "read-only", command);
        let denial = &told["receipt"]["denials"][0];
        assert_eq!(denial["layer"], layer, "{command}: {told:#}");
        assert!(denial["what"].as_str().is_some_and(|found| found.ends_with(what)), "{command}: {told:#}");
        let asked = answered(&user, command, "n\n");
        asked.assert_code(1);
        assert!(asked.stdout.contains(wider), "{command}: {}", asked.stdout);
    }
}

#[test]
fn a_connection_without_a_network_is_asked_about() {
    let user = User::new();
    let connect = "python3 -c \"import socket; socket.create_connection((\\\"192.0.2.1\\\", 80), 1)\"";
    let ended = answered(&user, connect, "n\n");
    ended.assert_code(1);
    assert!(ended.stdout.contains("in the sandbox, with the network as well"), "{}", ended.stdout);
    assert!(ended.stdout.contains("192.0.2.1:80"), "{}", ended.stdout);
}

#[test]
fn what_a_program_prints_is_told_as_such_and_offers_no_place_of_the_system_nor_two_places() {
    let user = User::new();
    let places = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let places = places.path().canonicalize().unwrap();
    for name in ["one", "two"] {
        fs::create_dir(places.join(name)).unwrap();
    }
    let places = places.display();
    let claims: String =
        ["/usr/bin/git", "/etc/cron.d/x", &format!("{places}/one/x"), &format!("{places}/two/x")]
            .map(|path| {
                format!("echo \"touch: cannot touch \u{2018}{path}\u{2019}: Read-only file system\"; ")
            })
            .concat();
    let ended = answered(&user, &format!("{claims}exit 1"), "n\n");
    let text = ended.stdout.replace("\r\n", "\n").replace("\n      | ", "");
    assert!(text.contains("because: its output says that `"), "{text}");
    assert!(text.contains("/one` writable as well"), "{text}");
    let asked = &text[text.find("because").unwrap()..text.find("  q  no, and stop").unwrap()];
    for unasked in ["/usr/bin", "cron.d", "/two", "the sandbox blocked"] {
        assert!(!asked.contains(unasked), "{unasked}: {asked}");
    }
}

#[test]
fn a_failed_result_begins_with_what_was_refused_and_how_to_allow_it() {
    let user = User::new();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let connect = "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 1)\"";
    let cases = [
        (
            "read-only",
            "touch made".to_owned(),
            "`-s workspace-write`, or `/sandbox workspace-write` in a session".to_owned(),
        ),
        (
            "workspace-write",
            format!("touch {}/made", outside.display()),
            format!(
                "start windlass with `-c 'sandbox_workspace_write.writable_roots=[\"{}\"]'`",
                outside.display()
            ),
        ),
        (
            "workspace-write",
            connect.to_owned(),
            "start windlass with `-c sandbox_workspace_write.network_access=true`".to_owned(),
        ),
    ];
    for (mode, command, remedy) in cases {
        let told = result(&user, mode, &command);
        let text = told["content"][0]["text"].as_str().unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("sandbox: ") && first.ends_with(&remedy), "{first}");
        assert_eq!(told["receipt"]["denials"][0]["remedy"], remedy);
        assert_eq!(told["insight"]["class"], "denied", "{told:#}");
    }
}

#[test]
fn a_program_that_asks_until_its_time_is_up_is_said_to_wait_for_input() {
    let user = User::new();
    let command = "while :; do printf 'Continue? [y/N] '; read -r answer; sleep 0.1; done";
    let input = json!({"command": command, "timeout_ms": 500}).to_string();
    let ended = user.run(&["call", "-s", "workspace-write", "--json", "shell_command", &input]);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = told["content"][0]["text"].as_str().unwrap();
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("it seemed to wait for input after `"), "{text}");
    assert!(second.contains("write_stdin"), "{text}");
    assert_eq!(told["facts"]["waits_for_input"], true, "{told:#}");
}

/// Puts an editor on the search path that waits, as one does that nobody types to.
fn with_editor(user: &User, arguments: &[&str]) -> Ended {
    let editor = user.file("vi", "#!/bin/sh\nsleep 30\n");
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = user.program(arguments);
    let path = format!("{}:{}", user.work().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    Running::start(command).end()
}

#[test]
fn a_command_whose_time_is_up_in_an_editor_says_so_and_what_to_do() {
    let user = User::new();
    let input = json!({"command": "echo begun; vi a", "timeout_ms": 700}).to_string();
    let ended = with_editor(&user, &["call", "-s", "workspace-write", "--json", "shell_command", &input]);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = told["content"][0]["text"].as_str().unwrap();
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("it seemed to wait for a person in `vi`, an editor: "), "{text}");
    assert!(second.contains("GIT_EDITOR=true"), "{text}");
    assert_eq!(told["facts"]["waits_for_input"], true, "{told:#}");
}

#[test]
fn a_session_in_an_editor_is_said_to_wait_for_input() {
    let user = User::new();
    let input = json!({"cmd": "vi a", "yield_time_ms": 700}).to_string();
    let ended = with_editor(&user, &["call", "-s", "workspace-write", "exec_command", &input]);
    assert!(ended.stdout.starts_with("it waits for a person in `vi`, an editor: "), "{}", ended.stdout);
    assert!(ended.stdout.contains("[waiting for input after "), "{}", ended.stdout);
}

#[test]
fn a_program_that_waits_on_a_terminal_is_told_as_an_event_before_its_result() {
    let user = User::new();
    let start = json!({"cmd": "read -p 'name? ' name", "tty": true});
    let script = user.script(&json!([
        {"calls": [{"name": "exec_command", "arguments": start}]},
        {"text": "done"},
    ]));
    let ended = user.run(&["exec", "--json", "--sandbox", "workspace-write", "--script", &script, "go"]);
    ended.assert_code(0);
    let events = ended.events();
    let at = |kind: &str| {
        events
            .iter()
            .position(|event| event["type"] == kind && event["item"]["waits_for_input"] == true)
            .unwrap()
    };
    let (updated, completed) = (at("item.updated"), at("item.completed"));
    assert!(updated < completed);
    assert_eq!(events[updated]["item"]["id"], events[completed]["item"]["id"]);
}

/// Runs a program of this name that is a script, with another home directory than `/tmp` has:
/// commands have their own `/tmp`.
fn run_script(user: &User, home: &Path, (name, script): (&str, &str), line: &str) -> Value {
    let program = user.file(name, format!("#!/bin/sh\n{script}"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let input = json!({"command": line}).to_string();
    let options = ["call", "-s", "workspace-write", "-a", "never", "--json", "shell_command", &input];
    let mut command = user.program(&options);
    let path = format!("{}:{}", user.work().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("HOME", home);
    let ended = Running::start(command).end();
    ended.assert_code(1);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn first_line(told: &Value) -> &str {
    told["content"][0]["text"].as_str().unwrap().lines().next().unwrap()
}

#[test]
fn a_package_manager_that_cannot_write_its_directory_is_told_which_and_how_to_allow_it() {
    let user = User::new();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home.path().canonicalize().unwrap();
    fs::create_dir(home.join(".cargo")).unwrap();
    // As cargo says it.
    let script = "( : > ~/.cargo/.package-cache ) 2> /dev/null && exit 0\n\
                  printf 'error: failed to open `%s`\\n\\nCaused by:\\n  Read-only file system (os error 30)\\n' \
                  ~/.cargo/.package-cache\nexit 101\n";
    let told = run_script(&user, &home, ("cargo", script), "cargo build");
    let cargo = home.join(".cargo").display().to_string();
    let expected = format!(
        "sandbox: it is outside of what may be written: {cargo}/.package-cache; to allow it: \
         start windlass with `-c 'sandbox_workspace_write.writable_roots=[\"{cargo}\"]'`"
    );
    assert_eq!(first_line(&told), expected, "{told:#}");
    assert!(!told.to_string().contains("-s workspace-write"), "it holds already: {told:#}");
}

/// Looks up a name, whatever name server this machine has.
const LOOKUP: &str = "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b\"x\", (\"192.0.2.53\", 53))' \
    2> /dev/null\n";

#[test]
fn a_package_manager_without_a_network_gives_up_at_once_and_says_how_to_grant_it() {
    let user = User::new();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (name, line, retries, complaint, host) in [
        (
            "cargo",
            "cargo build",
            "$CARGO_NET_RETRY",
            "  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
            "index.crates.io",
        ),
        (
            "npm",
            "npm install",
            "$npm_config_fetch_retries",
            "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
            "registry.npmjs.org",
        ),
    ] {
        let script = format!("{LOOKUP}echo \"tries again: {retries}\"\necho '{complaint}'\nexit 101\n");
        let told = run_script(&user, home.path(), (name, &script), line);
        let expected = format!(
            "sandbox: the network is off: its output names `{host}`; to allow it: \
             start windlass with `-c sandbox_workspace_write.network_access=true`"
        );
        assert_eq!(first_line(&told), expected, "{told:#}");
        let text = told["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("tries again: 0\n"), "{text}");
    }
}

#[test]
fn a_script_of_npm_that_fails_was_not_stopped_by_the_sandbox() {
    let user = User::new();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // As npm does it, which looks for a newer version of itself.
    let script = format!("[ \"$npm_config_update_notifier\" = false ] || {LOOKUP}echo failed\nexit 1\n");
    let told = run_script(&user, home.path(), ("npm", &script), "npm test");
    assert_eq!(told["receipt"]["denials"], Value::Null, "{told:#}");
    assert_eq!(first_line(&told), "failed");
}
