//! The first run: what is found on this machine, and `windlass init`.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{Emulator, Reply, Running, Server, User};

const SIZE: (u16, u16) = (40, 80);

/// A list of models, as local servers send it.
const MODELS: &str =
    r#"{"object":"list","data":[{"id":"qwen3:8b"},{"id":"bad\u001b[2J"},{"id":"llama3.2"}]}"#;

/// Servers that a user may really run must not matter.
const NOTHING_LOCAL: &str = "[model_providers.ollama]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
    [model_providers.lmstudio]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
    [model_providers.\"llama.cpp\"]\nbase_url = \"http://localhost:9/v1\"\n\
    [model_providers.vllm]\nbase_url = \"http://[::1]:9/v1\"\n";

fn list() -> Reply {
    Reply::plain("200 OK", "content-type: application/json\r\n", MODELS)
}

fn with_ollama(user: &User, server: &Server) {
    user.configure(&NOTHING_LOCAL.replacen("http://127.0.0.1:9/v1", server.url(), 1));
}

fn config(user: &User) -> String {
    fs::read_to_string(user.home().join("config.toml")).unwrap()
}

#[test]
fn a_session_without_a_model_says_what_works_and_how_to_connect_one() {
    let user = User::new();
    let server = Server::start([list()]);
    with_ollama(&user, &server);
    let mut program = user.program(&["chat"]);
    program.env("GROQ_API_KEY", "gsk-never-shown").env("HTTP_PROXY", "http://127.0.0.1:9");
    let mut terminal = Emulator::start(&program, SIZE);
    let screen = terminal.until("network off");
    for line in [
        "No model is configured. The offline rules answer now; try:",
        "around each\n\n  Found; one line connects it:\n",
        "Ollama on this machine: qwen3:8b, llama3.2\n",
        "windlass init -p ollama -m qwen3:8b",
        "Groq: GROQ_API_KEY is set",
        "windlass init -p groq -m MODEL",
        "windlass login openai",
    ] {
        assert!(screen.contains(line), "no `{line}`:\n{screen}");
    }
    assert!(!screen.contains("gsk-"), "{screen}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].path(), requests[0].header("authorization")), ("/v1/models", None));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_session_with_a_model_says_nothing_about_others() {
    let user = User::new();
    let script = user.script(&serde_json::json!([]));
    let mut terminal = Emulator::start(&user.program(&["chat", "--script", &script]), SIZE);
    let screen = terminal.until("network off");
    assert!(!screen.contains("No model") && !screen.contains("windlass init"), "{screen}");
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_person_chooses_a_model_and_it_is_written() {
    let user = User::new();
    let server = Server::start([list()]);
    with_ollama(&user, &server);
    let before = config(&user);
    let mut terminal = Emulator::start(&user.program(&["init"]), SIZE);
    let screen = terminal.until("Number");
    assert!(screen.contains("  1  Ollama on this machine: qwen3:8b"), "{screen}");
    assert!(screen.contains("  3  the offline rules, without a model"), "{screen}");
    terminal.type_in("9\r");
    terminal.type_in("2\r");
    let screen = terminal.until("next: `windlass` opens a session");
    assert_eq!(terminal.end(), Some(0), "{screen}");
    assert_eq!(config(&user), format!("model_provider = \"ollama\"\nmodel = \"llama3.2\"\n{before}"));
    let mode = fs::metadata(user.home().join("config.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_person_can_ask_a_provider_for_its_models() {
    let user = User::new();
    // Without a key as a server on this machine, then with the key.
    let server = Server::start([list(), list()]);
    user.configure(&format!(
        "{NOTHING_LOCAL}[model_providers.groq]\nbase_url = \"{}\"\nenv_key = \"GROQ_API_KEY\"\n",
        server.url()
    ));
    let mut program = user.program(&["init"]);
    program.env("GROQ_API_KEY", "gsk-1");
    let mut terminal = Emulator::start(&program, SIZE);
    terminal.until("  3  Groq (GROQ_API_KEY is set)");
    terminal.type_in("3\r");
    terminal.until("Model of groq");
    terminal.type_in("?\r");
    terminal.until("  llama3.2\n");
    let sent: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [None, Some("Bearer gsk-1".to_owned())]);
    terminal.type_in("llama3.2\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(config(&user).starts_with("model_provider = \"groq\"\nmodel = \"llama3.2\"\n"));
}

#[test]
fn another_choice_is_replaced_only_after_a_yes() {
    let user = User::new();
    let before = "# mine\nmodel_provider = \"openai\" # for now\nmodel = \"gpt-5\"\n";
    user.configure(before);
    let choice = ["init", "--provider", "ollama", "--model", "qwen3"];
    let refused = user.run(&choice);
    assert!(refused.assert_code(2).stderr.contains("already chooses openai gpt-5; --yes"), "{refused:?}");
    let mut terminal = Emulator::start(&user.program(&choice), SIZE);
    terminal.until("Replace it? [y/N]");
    terminal.type_in("\r");
    terminal.until("nothing was changed");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(config(&user), before);
    user.run(&[&choice[..], &["--yes"]].concat()).assert_code(0);
    assert_eq!(config(&user), before.replace("openai", "ollama").replace("gpt-5", "qwen3"));
}

#[test]
fn without_a_terminal_the_first_model_is_taken_only_if_that_was_asked_for() {
    let user = User::new();
    let server = Server::start([list(), list()]);
    with_ollama(&user, &server);
    let ended = user.run(&["init"]);
    assert!(ended.assert_code(2).stderr.contains("windlass init -p ollama -m qwen3:8b"), "{ended:?}");
    let ended = user.run(&["init", "--yes"]);
    assert!(ended.assert_code(0).stderr.contains("model = \"qwen3:8b\""), "{ended:?}");
    assert_eq!(user.run(&["config", "get", "model"]).stdout, "qwen3:8b\n");
}

#[test]
fn what_cannot_be_used_is_not_written() {
    let user = User::new();
    user.configure(NOTHING_LOCAL);
    for (options, said) in [
        (&["--yes"][..], "no model was found"),
        (&["-p", "olama", "-m", "x"], "did you mean `ollama`?"),
        (&["-p", "ollama"], "name a model with --model"),
        (&["-p", "rules", "-m", "x"], "have no model"),
    ] {
        let ended = user.run(&[&["init"], options].concat());
        assert!(ended.assert_code(2).stderr.contains(said), "{options:?}: {ended:?}");
    }
    assert_eq!(config(&user), NOTHING_LOCAL);
}

#[test]
fn another_program_on_the_port_of_a_server_is_not_a_model() {
    let user = User::new();
    let page = "content-type: text/html\r\n";
    for reply in [Reply::plain("200 OK", page, "<html>"), Reply::plain("404 Not Found", page, "no")] {
        let server = Server::start([reply]);
        with_ollama(&user, &server);
        let ended = user.run(&["init", "--yes"]);
        assert!(ended.assert_code(2).stderr.contains("no model was found"), "{ended:?}");
    }
}

#[test]
fn the_models_of_a_server_are_listed() {
    let user = User::new();
    let server =
        Server::start([list(), Reply::plain("401 Unauthorized", "", "{\"error\":\"bad key sk-hush\"}")]);
    with_ollama(&user, &server);
    let ended = user.run(&["models", "list", "-p", "ollama", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&ended.assert_code(0).stdout).unwrap();
    assert_eq!(listed["models"].as_array().unwrap().len(), 3);
    let mut program =
        user.program(&["models", "list", "-c", "model_providers.ollama.env_key=MY_KEY", "-p", "ollama"]);
    program.env("MY_KEY", "sk-hush-1234567890");
    let ended = Running::start(program).end();
    assert!(ended.assert_code(1).stderr.contains("refused the API key (HTTP 401)"), "{ended:?}");
    assert_eq!(server.requests()[1].header("authorization"), Some("Bearer sk-hush-1234567890"));
}
