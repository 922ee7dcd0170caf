//! `windlass redact`: a filter for secrets.

use std::{fs, process::Stdio};

use serde_json::json;

use crate::support::{Running, User, lines};

/// Assembled here, so that this file holds nothing in the form of a live key.
fn token() -> String {
    ["gh", "p_", "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2"].concat()
}

#[test]
fn secrets_become_labels_and_everything_else_stays() {
    let user = User::new();
    let input = format!("a {t}\nb {t}\ncommit 1f0c3a\n", t = token());
    let ended = user.run_with_input(&["redact"], input.as_bytes());
    ended.assert_code(0);
    let cleaned = "a [REDACTED:github-token#1]\nb [REDACTED:github-token#1]\ncommit 1f0c3a\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (cleaned, ""));
}

#[test]
fn the_report_says_where_and_why_but_not_what() {
    let user = User::new();
    let input = format!("\nuse {}\n", token());
    let ended = user.run_with_input(&["redact", "--report"], input.as_bytes());
    assert_eq!(ended.stderr, "2:5: [REDACTED:github-token#1]: GitHub token\n");
    let ended = user.run_with_input(&["redact", "--report", "--json"], input.as_bytes());
    let found = json!({
        "line": 2, "column": 5, "label": "[REDACTED:github-token#1]", "rule": "github-token",
        "why": "GitHub token"
    });
    assert_eq!(lines(&ended.stderr), [found]);
    user.run_with_input(&["redact", "--json"], b"").assert_code(2);
}

#[test]
fn values_of_env_files_are_hidden_wherever_they_appear() {
    let user = User::new();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".env"), "MODE=production\nAPP_SECRET='plum-Tree-42x'\n").unwrap();
    let cd = directory.path().to_str().unwrap();
    let ended = user.run_with_input(&["redact", "-C", cd], b"production said plum-Tree-42x twice");
    assert_eq!(ended.stdout, "production said [REDACTED:APP_SECRET#1] twice");
    let ended = user.run_with_input(&["redact", "-C", cd, "--shapes-only"], b"it said plum-Tree-42x");
    assert_eq!(ended.stdout, "it said plum-Tree-42x");
}

#[test]
fn on_a_terminal_it_says_that_it_reads_stdin() {
    let user = User::new();
    let mut program = user.program_on_a_terminal("redact");
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("reading the text from stdin; press Ctrl-D to end");
    running.feed(b"password=hunter2\n\x04").end().assert_code(0);
}

#[test]
fn what_people_try_first_is_hidden() {
    let user = User::new();
    let text = "ghp_abcdefghijklmnopqrstuvwxyz0123456789\nBearer abcdefghijklmnop1234567890\nAKIAIOSFODNN7EXAMPLE\n\
                wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\nsk-1234567890abcdef\npassword=hunter2\nBearer <token>\n";
    let ended = user.run_with_input(&["redact"], text.as_bytes());
    ended.assert_code(0);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[..6].iter().all(|line| line.contains("[REDACTED:")), "{ended:#?}");
    assert_eq!(lines[6], "Bearer <token>");
}
