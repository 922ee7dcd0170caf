//! A secret that a tool meets comes out nowhere: not to the model, not in events, on the screen, in
//! logs or on record.

use std::fs;

use serde_json::json;

use crate::support::{FULL_ACCESS, Server, User, Wire, command};

/// Known by value, because the environment file of the workspace holds it.
const KNOWN: &str = "plum-Tree-42x";
/// A name that no tool has.
const NO_TOOL: &str = "tool-plum-Tree-42x";
/// Known by where it stands; in two colours, and put together by the command, so that no call holds
/// it.
const PRINTED: &str = "q8Zk2mPv0Lr7";
/// Said by the model itself.
const SAID: &str = "Tb4Xc9Wd1Ye6Uf";

fn user() -> User {
    let user = User::new();
    user.file(".env", format!("MODE=production\nAPP_SECRET={KNOWN}\nDEBUG=1\n"));
    user
}

/// What the model asks for: a long output, its parts, a file beside the secret changed, and a
/// command with one.
fn server() -> Server {
    let print = "cat .env; seq 3000; printf 'https://bob:q8Zk2m\\033[31m'; printf 'Pv0Lr7\\033[0m@host/\\n'";
    let parts = [
        ("c2", "read_output", json!({"id": 1, "limit": 3})),
        ("c3", "read_output", json!({"id": 1, "pattern": "SECRET|https"})),
        ("c4", "edit_file", json!({"path": ".env", "old_string": "DEBUG=1", "new_string": "DEBUG=2"})),
        ("c5", "read_output", json!({"id": 7})),
    ];
    let wire = Wire::Responses;
    let said = command("c6", &format!("false --password={SAID} https://bob:{SAID}@host/"));
    Server::start([
        wire.asks(&[command("c1", print)]),
        wire.asks(&parts),
        wire.asks(&[said]),
        wire.says("Done."),
    ])
}

fn assert_hidden(place: &str, text: &str, secrets: &[&str]) {
    for secret in secrets {
        assert!(!text.contains(secret), "{place} holds {secret}:\n{text}");
    }
}

#[test]
fn a_secret_comes_out_nowhere() {
    for mode in [&["--json", "--deltas"][..], &[]] {
        let (user, server) = (user(), server());
        user.use_server(&server, Wire::Responses);
        let mut program = user.program(&[&["exec"], mode, &FULL_ACCESS[..], &["look around"]].concat());
        program.env("WINDLASS_LOG", "trace");
        let ended = crate::support::Running::start(program).end();
        ended.assert_code(0);
        assert_hidden("stdout", &ended.stdout, &[KNOWN, PRINTED, SAID]);
        assert_hidden("stderr", &ended.stderr, &[KNOWN, PRINTED, SAID]);
        // What the model said goes back to it as it was: that is what it said.
        let requests = server.requests();
        let sent: String = requests.iter().map(|request| request.body.to_string()).collect();
        assert_hidden("what the model is told", &sent, &[KNOWN, PRINTED]);
        assert!(sent.contains("[REDACTED:APP_SECRET#"), "{sent}");
        assert!(sent.contains("L2: APP_SECRET=[REDACTED:APP_SECRET#"), "{sent}");
        assert!(sent.contains("there is no output 7"), "{sent}");
        let record = fs::read_to_string(&user.sessions()[0]).unwrap();
        assert_hidden("the session file", &record, &[KNOWN, PRINTED]);
    }
}

#[test]
fn a_question_does_not_show_a_secret() {
    let user = user();
    let line = format!(
        r#"--ask-for-approval untrusted call shell_command '{{"command": "curl https://bob:{SAID}@host/{KNOWN}"}}'"#
    );
    let mut program = user.program_on_a_terminal(&line);
    program.stdin(std::process::Stdio::piped());
    let ended = crate::support::Running::start(program).feed(b"n\n").end();
    assert!(ended.stdout.contains("Allow it?"), "{}", ended.stdout);
    assert_hidden("the question", &ended.stdout, &[SAID, KNOWN]);
}

#[test]
fn a_secret_in_a_name_comes_out_nowhere() {
    let user = user();
    let name = format!("notes-{KNOWN}.txt");
    let patch = format!("*** Begin Patch\n*** Add File: {name}\n+hello\n*** End Patch\n");
    let wire = Wire::Responses;
    let server = Server::start([
        wire.asks(&[
            ("c1", "write_file", json!({"path": name, "content": "hello\n"})),
            ("c2", NO_TOOL, json!({"path": name})),
            ("c3", "shell_command", json!({"command": format!("apply_patch <<'E'\n{patch}E")})),
        ]),
        wire.says("Done."),
    ]);
    user.use_server(&server, wire);
    let shown = user.run(&[&["exec", "--json"], &FULL_ACCESS[..], &["write it"]].concat());
    assert!(shown.stdout.contains("[REDACTED:APP_SECRET#"), "{}", shown.stdout);
    assert_hidden("stdout", &shown.stdout, &[KNOWN]);
    assert_hidden("stderr", &shown.stderr, &[KNOWN]);
    let record = fs::read_to_string(&user.sessions()[0]).unwrap();
    // What the model said is kept as it was, because it is sent back to the model.
    let events: String = record.lines().filter(|line| !line.contains("\"item\"")).collect();
    assert_hidden("the events of the session file", &events, &[KNOWN]);
    for list in [&["history"][..], &["history", "--json"]] {
        let listed = user.run(list);
        assert!(listed.stdout.contains("[REDACTED:APP_SECRET#"), "{}", listed.stdout);
        assert_hidden("the history", &listed.stdout, &[KNOWN]);
    }
}
