//! `windlass redact`: a filter for secrets.

use std::fs;

use serde_json::json;

use crate::support::{User, lines};

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
    assert_eq!(ended.stderr, "2:5: [REDACTED:github-token#1]: GitHub personal access token\n");
    let ended = user.run_with_input(&["redact", "--report", "--json"], input.as_bytes());
    let found = json!({
        "line": 2, "column": 5, "label": "[REDACTED:github-token#1]", "rule": "github-token",
        "why": "GitHub personal access token"
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
