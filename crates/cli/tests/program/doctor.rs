//! The checks of `windlass doctor`.

use std::fs;

use serde_json::Value;

use crate::support::{Emulator, Reply, Server, User};

/// The checks of a user, and the exit code.
fn checks(user: &User, options: &[&str]) -> (Vec<Value>, Option<i32>) {
    let ended = user.run(&[&["doctor", "--json"], options].concat());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().clone();
    for check in &checks {
        assert_eq!(check["status"] == "ok", check["fix"].is_null(), "{check}");
    }
    (checks, ended.code)
}

fn check(user: &User, options: &[&str], name: &str) -> (String, String) {
    let (checks, code) = checks(user, options);
    let found = checks.into_iter().find(|check| check["name"] == name).unwrap();
    let status = found["status"].as_str().unwrap().to_owned();
    assert_eq!(code, Some(i32::from(status == "failed")), "{found}");
    (status, found["detail"].as_str().unwrap().to_owned())
}

fn use_server(user: &User, url: &str, model: &str) {
    user.configure(&format!(
        "model_provider = \"test\"\nmodel = \"{model}\"\n[model_providers.test]\nbase_url = \"{url}\"\n"
    ));
}

fn list() -> Reply {
    Reply::plain("200 OK", "", r#"{"data":[{"id":"small:latest"},{"id":"large"}]}"#)
}

#[test]
fn a_new_user_has_no_failed_check() {
    let user = User::new();
    let (checks, code) = checks(&user, &[]);
    let names: Vec<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sandbox", "config", "keys", "model", "index", "disk", "shell", "git", "terminal"]);
    assert_eq!(code, Some(0), "{checks:#?}");
}

#[test]
fn a_broken_configuration_fails_with_its_place() {
    let user = User::new();
    user.configure("modle = \"x\"\n");
    let (status, detail) = check(&user, &[], "config");
    assert!(status == "failed" && detail.contains("config.toml:1:1: unknown key `modle`"), "{detail}");
    let text = user.run(&["doctor"]).assert_code(1).stdout.clone();
    assert!(text.contains("failed   config ") && text.contains("fix: windlass config edit\n"), "{text}");
    assert!(text.contains("warning  model     not checked, because the configuration is wrong\n"), "{text}");
}

#[test]
fn a_fault_on_the_command_line_is_not_one_of_the_file() {
    let user = User::new();
    let text = user.run(&["-c", "foo=1", "doctor"]).assert_code(1).stdout.clone();
    assert!(text.contains("fix: correct the option `-c`, or leave it out\n"), "{text}");
    assert!(!text.contains("config edit") && text.contains("model     not checked"), "{text}");
    user.configure("modle = \"x\"\n");
    let text = user.run(&["-c", "foo=1", "doctor"]).assert_code(1).stdout.clone();
    assert!(text.contains("fix: windlass config edit\n"), "both are wrong: {text}");
}

#[test]
fn a_missing_key_fails_and_a_kept_one_does_not() {
    let user = User::new();
    user.configure("model_provider = \"openrouter\"\nmodel = \"x\"\n");
    let (status, detail) = check(&user, &[], "model");
    assert!(status == "failed" && detail.contains("OPENROUTER_API_KEY is not set"), "{detail}");
    user.run_with_input(&["login", "openrouter"], b"sk-or-1234567890").assert_code(0);
    assert_eq!(check(&user, &[], "model").0, "ok");
}

#[test]
fn the_server_is_asked_only_on_request() {
    let user = User::new();
    let server = Server::start([
        list(),
        list(),
        Reply::plain("401 Unauthorized", "", r#"{"error":{"message":"no such key"}}"#),
    ]);
    use_server(&user, server.url(), "small");
    assert_eq!(check(&user, &[], "model").0, "ok");
    assert_eq!(server.connections(), 0);
    assert_eq!(check(&user, &["--network"], "model").0, "ok");
    use_server(&user, server.url(), "lagre");
    let (status, detail) = check(&user, &["--network"], "model");
    assert!(status == "warning" && detail.ends_with("did you mean `large`?"), "{detail}");
    let (status, detail) = check(&user, &["--network"], "model");
    assert!(status == "failed" && detail.contains("(HTTP 401): no such key"), "{detail}");
    use_server(&user, "http://127.0.0.1:9/v1", "small");
    let (status, detail) = check(&user, &["--network"], "model");
    assert!(status == "failed" && detail.contains("cannot reach http://127.0.0.1:9/v1/models"), "{detail}");
}

#[test]
fn a_damaged_index_fails_until_it_is_rebuilt() {
    let user = User::new();
    user.run(&["exec", "what is here?"]);
    user.run(&["history"]).assert_code(0);
    assert_eq!(check(&user, &[], "index").0, "ok");
    fs::write(user.home().join("calls.sqlite"), [b'x'; 4096]).unwrap();
    // The log would replace the damaged page.
    let _absent = fs::remove_file(user.home().join("calls.sqlite-wal"));
    let (status, detail) = check(&user, &[], "index");
    assert!(status == "failed" && detail.contains("is damaged"), "{detail}");
    user.run(&["stats", "--rebuild"]).assert_code(0);
    assert_eq!(check(&user, &[], "index").0, "ok");
}

#[test]
fn a_terminal_is_described() {
    let user = User::new();
    let mut terminal = Emulator::start(&user.program(&["doctor"]), (50, 72));
    let screen = terminal.until("ok       terminal  TERM=xterm-256color, 72x50, 256 colours");
    assert!(screen.contains("ok       shell     /bin/sh"), "{screen}");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}
