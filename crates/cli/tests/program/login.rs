//! API keys that `windlass login` keeps.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::support::{Emulator, Running, Server, User, Wire};

const KEY: &str = "sk-proj-q8Zr2Lm5Xw9Tn3Vb7Hc4Jd6Fg1";

fn log_in(user: &User, provider: &str) {
    let ended = user.run_with_input(&["login", provider], format!("{KEY}\n").as_bytes());
    ended.assert_code(0);
    assert!(!ended.stderr.contains(KEY) && ended.stdout.is_empty(), "{ended:?}");
}

/// Makes a server the user's model that takes a key.
fn use_keyed_server(user: &User, server: &Server) {
    user.configure(&format!(
        "model_provider = \"test\"\nmodel = \"m\"\n[model_providers.test]\nbase_url = \"{}\"\nwire_api = \"chat\"\n\
         env_key = \"TEST_API_KEY\"\n",
        server.url()
    ));
}

#[test]
fn a_kept_key_is_sent_unless_the_variable_is_set() {
    let user = User::new();
    let server = Server::start([Wire::Chat.says("one"), Wire::Chat.says("two")]);
    use_keyed_server(&user, &server);
    let without = user.run(&["exec", "hi"]);
    assert!(without.assert_code(2).stderr.contains("or run `windlass login test`"), "{without:?}");
    log_in(&user, "test");
    user.run(&["exec", "hi"]).assert_code(0);
    let mut program = user.program(&["exec", "hi"]);
    program.env("TEST_API_KEY", "from-variable");
    Running::start(program).end().assert_code(0);
    let sent: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, [format!("Bearer {KEY}"), "Bearer from-variable".to_owned()]);
    user.run(&["logout", "test"]).assert_code(0);
    assert!(!user.home().join("credentials.toml").exists());
    user.run(&["logout", "test"]).assert_code(1);
    user.run(&["exec", "hi"]).assert_code(2);
}

#[test]
fn a_kept_key_is_private_and_never_shown() {
    let user = User::new();
    log_in(&user, "openai");
    let path = user.home().join("credentials.toml");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for command in [&["login", "--status"][..], &["config", "show"], &["doctor"], &["doctor", "--json"]] {
        let ended = user.run(command);
        assert!(!ended.stdout.contains(KEY) && !ended.stderr.contains(KEY), "{command:?}: {ended:?}");
    }
    let status = user.run(&["login", "--status"]).stdout;
    assert!(status.lines().any(|line| line == "openai      kept by login"), "{status}");
    let redacted = user.run_with_input(&["redact"], format!("the key {KEY} in a text\n").as_bytes());
    assert!(!redacted.assert_code(0).stdout.contains(KEY), "{redacted:?}");
}

#[test]
fn tools_cannot_read_a_kept_key() {
    let user = User::new();
    log_in(&user, "openai");
    let path = user.home().join("credentials.toml");
    let path = path.to_str().unwrap();
    let calls = [
        ("shell_command", json!({"command": format!("cat {path}")})),
        ("read_file", json!({"file_path": path})),
    ];
    for (tool, arguments) in calls {
        let ended = user.run(&["call", tool, &arguments.to_string()]);
        assert_ne!(ended.code, Some(0), "{tool}: {ended:?}");
        assert!(!ended.stdout.contains("sk-proj") && !ended.stdout.contains("api_key"), "{tool}: {ended:?}");
    }
    // Without the sandbox the file is readable, but the key is redacted.
    let ended = user.run(&["call", "-s", "danger-full-access", "shell_command", &calls_text(path)]);
    assert!(!ended.stdout.contains(KEY), "{ended:?}");
}

fn calls_text(path: &str) -> String {
    json!({"command": format!("cat {path} | tail -c 60")}).to_string()
}

#[test]
fn at_a_terminal_the_key_is_not_echoed_and_an_interrupt_restores_the_terminal() {
    let user = User::new();
    for end in ["\x03", "\x04", "TERM"] {
        let mut terminal = Emulator::start(&user.program(&["login", "openrouter"]), (24, 80));
        terminal.until("API key of OpenRouter (not shown):");
        assert!(!terminal.is_cooked());
        if end == "TERM" {
            terminal.signal(end);
        } else {
            terminal.type_in(end);
        }
        assert_ne!(terminal.end(), Some(0), "{end:?}: {}", terminal.screen());
        assert!(terminal.is_cooked() && !user.home().join("credentials.toml").exists(), "{end:?}");
    }
    let mut terminal = Emulator::start(&user.program(&["login", "openrouter"]), (24, 80));
    terminal.until("API key of OpenRouter (not shown):");
    terminal.type_in(&format!("{KEY}\r"));
    terminal.until("kept the API key of openrouter");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.is_cooked() && !terminal.screen().contains("sk-proj"), "{}", terminal.screen());
    assert!(fs::read_to_string(user.home().join("credentials.toml")).unwrap().contains(KEY));
}

#[test]
fn a_key_is_not_an_argument_and_nonsense_is_refused() {
    let user = User::new();
    for (arguments, said) in [
        (&["login", "openai", KEY][..], "unexpected argument"),
        (&["login", "opnai"], "did you mean `openai`?"),
        (&["login", "ollama"], "takes no API key"),
        (&["login"], "<PROVIDER>"),
    ] {
        let ended = user.run(arguments);
        assert!(ended.assert_code(2).stderr.contains(said), "{arguments:?}: {ended:?}");
    }
    for input in ["", "two words", "line\nline"] {
        user.run_with_input(&["login", "openai"], input.as_bytes()).assert_code(2);
    }
    assert!(!user.home().join("credentials.toml").exists());
}

#[test]
fn a_broken_file_stops_what_needs_a_key_and_nothing_else() {
    let user = User::new();
    let path = user.home().join("credentials.toml");
    fs::write(&path, "[openai]\napi_key = hush\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    for command in [&["exec", "hi"][..], &["login", "--status"], &["logout", "openai"]] {
        let ended = user.run(command);
        let is_clear = ended.stderr.contains("credentials.toml`, line 2: not a list of API keys");
        assert!(is_clear && !ended.stderr.contains("hush"), "{command:?}: {ended:?}");
        ended.assert_code(2);
    }
    user.run(&["tools", "list"]).assert_code(0);
}
