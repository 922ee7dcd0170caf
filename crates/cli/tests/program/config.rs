//! `windlass config`, and what every command says about a configuration it cannot use.

use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::support::{Running, User};

#[test]
fn each_value_says_where_it_comes_from_and_the_nearest_source_counts() {
    let user = User::new();
    user.configure("model = \"from-file\"\nsandbox_mode = \"workspace-write\"\nweb_search = \"live\"\n");
    let mut program = user.program(&[
        "config",
        "show",
        "--origin",
        "-c",
        "model=from-option",
        "-c",
        "model_verbosity=\"low\"",
        "--sandbox",
        "read-only",
    ]);
    program.env("WINDLASS_MODEL", "from-variable");
    let ended = Running::start(program).end();
    ended.assert_code(0);
    let file = user.home().join("config.toml");
    let file = file.to_str().unwrap();
    let line = |key: &str| {
        let found = ended.stdout.lines().find(|line| line.starts_with(&format!("{key} = ")));
        found.unwrap_or_else(|| panic!("{key}: {ended:#?}")).replace(file, "FILE")
    };
    assert_eq!(line("approval_policy"), "approval_policy = \"on-request\"  # default");
    assert_eq!(line("web_search"), "web_search = \"live\"  # FILE:3");
    assert_eq!(line("model"), "model = \"from-option\"  # -c");
    assert_eq!(line("model_verbosity"), "model_verbosity = \"low\"  # -c");
    assert_eq!(line("sandbox_mode"), "sandbox_mode = \"read-only\"  # --sandbox");
}

#[test]
fn what_is_shown_can_be_used_as_a_configuration() {
    let user = User::new();
    user.configure("model = \"m\"\n[shell_environment_policy]\nset = { \"a.b\" = \"c\\\"d\" }\n");
    let shown = user.run(&["config", "show"]);
    shown.assert_code(0);
    user.configure(&shown.stdout);
    assert_eq!(user.run(&["config", "show"]), shown);
}

#[test]
fn secrets_are_not_shown() {
    let user = User::new();
    user.configure(
        "[model_providers.x]\nbase_url = \"https://me:hush-1@host/v1\"\nexperimental_bearer_token = \"hush-2\"\n\
         http_headers = { api-key = \"hush-3\" }\n[shell_environment_policy.set]\nMY_TOKEN = \"hush-4\"\n",
    );
    for format in [&[][..], &["--origin"], &["--json"]] {
        let ended = user.run(&[&["config", "show"], format].concat());
        ended.assert_code(0);
        assert!(ended.stdout.contains("api-key") && !ended.stdout.contains("hush"), "{ended:#?}");
    }
}

#[test]
fn a_mistake_is_shown_where_it_is_with_what_was_meant() {
    let user = User::new();
    let cases = [
        ("modell = \"x\"\n", ":1:1: ", "`model`"),
        ("a = 1\nb = 2\n", ":1:1: ", "config.toml:2:1: "),
        ("sandbox_mode = \"danger\"\n", ":1:", "danger-full-access"),
        ("[model_providers.x]\nbase_ulr = \"y\"\n", ":2:1: ", ".base_url`"),
        ("turn_time_limit_sec = 0\n", ":1:", "turn_time_limit_sec"),
        ("model = \n", ":1:", ""),
        ("model = \"a\"\nmodel = \"b\"\n", ":2:", "duplicate"),
    ];
    for (toml, place, meant) in cases {
        user.configure(toml);
        for command in [&["config", "show"][..], &["tools", "list"], &["exec", "hi"], &["call", "x", "{}"]] {
            let ended = user.run(command);
            ended.assert_code(2);
            assert_eq!(ended.stdout, "", "{toml}");
            let file = user.home().join("config.toml");
            let begin = format!("error: {}{place}", file.display());
            assert!(ended.stderr.starts_with(&begin) && ended.stderr.contains(meant), "{toml}: {ended:#?}");
        }
    }
}

#[test]
fn a_mistake_in_an_option_names_the_option() {
    let user = User::new();
    let cases = [
        ("modle=x", "`model`"),
        ("model_providers.openai.wire_apy=\"chat\"", ".wire_api`"),
        ("sandbox_mode=none", "read-only"),
        ("model", "model"),
        ("=x", ""),
    ];
    for (option, meant) in cases {
        let ended = user.run(&["config", "show", "-c", option]);
        ended.assert_code(2);
        assert!(ended.stderr.contains("-c") && ended.stderr.contains(meant), "{option}: {ended:#?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_none_is_fine() {
    let user = User::new();
    user.run(&["config", "show"]).assert_code(0);
    std::fs::write(user.home().join("config.toml"), b"model = \"\xff\"\n").unwrap();
    let ended = user.run(&["config", "show"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("config.toml"), "{ended:#?}");
    std::fs::remove_file(user.home().join("config.toml")).unwrap();
    std::fs::create_dir(user.home().join("config.toml")).unwrap();
    user.run(&["config", "show"]).assert_code(2);
}

#[test]
fn the_schema_and_the_path_are_for_programs() {
    let user = User::new();
    let schema: Value = serde_json::from_str(&user.run(&["config", "schema"]).stdout).unwrap();
    assert_eq!(schema["title"], "Configuration of Windlass");
    let path = user.run(&["config", "path"]);
    assert_eq!(path.stdout, format!("{}\n", user.home().join("config.toml").display()));
}

#[test]
fn nothing_in_the_working_directory_is_configuration() {
    let user = User::new();
    user.file("config.toml", "sandbox_mode = \"danger-full-access\"\n");
    std::fs::create_dir(user.work().join(".windlass")).unwrap();
    user.file(".windlass/config.toml", "sandbox_mode = \"danger-full-access\"\n");
    let ended = user.run(&["config", "show", "--origin"]);
    assert!(ended.stdout.contains("sandbox_mode = \"read-only\"  # default\n"), "{ended:#?}");
}

#[test]
fn a_home_that_cannot_be_used_is_not_exchanged_for_another() {
    let user = User::new();
    let mut program = user.program(&["config", "path"]);
    program.env("WINDLASS_HOME", std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
    let ended = Running::start(program).end();
    ended.assert_code(2);
    assert!(ended.stderr.starts_with("error: WINDLASS_HOME is not UTF-8"), "{ended:#?}");
}

#[test]
fn a_provider_that_is_not_there_is_an_error_of_the_configuration() {
    let user = User::new();
    user.configure("model = \"m\"\nmodel_provider = \"nope\"\n");
    for args in [&["config", "show"][..], &["exec", "hello"], &["tools", "list"]] {
        let ended = user.run(args);
        ended.assert_code(2);
        let said = "config.toml:2: `model_provider`: there is no provider `nope`; the providers are rules, ";
        assert!(ended.stderr.contains(said), "{ended:#?}");
    }
    user.configure("model_provider = \"olama\"\n");
    let near = user.run(&["config", "show"]);
    assert!(near.stderr.ends_with("there is no provider `olama`; did you mean `ollama`?\n"), "{near:#?}");
    user.configure("model_provider = \"mine\"\n[model_providers.mine]\nbase_url = \"http://x/v1\"\n");
    user.run(&["config", "show"]).assert_code(0);
}

#[test]
fn only_what_is_near_is_suggested() {
    let user = User::new();
    let said = |args: &[&str]| user.run(args).assert_code(2).stderr.clone();
    assert_eq!(said(&["-c", "foo=1", "config", "show"]), "error: -c: unknown key `foo`\n");
    assert!(!said(&["frobnicate"]).contains("similar"));
    assert!(said(&["fix"]).contains("tip: a prompt of one word needs `windlass chat fix`\n"));
    for (word, tip) in [("logni", "'login'"), ("probe", "'models probe'"), ("sesions", "'sessions'\n")] {
        let said = said(&[word]);
        assert!(said.contains("tip:") && said.contains(tip), "{said}");
        assert!(!said.contains("'e'"), "{said}");
    }
}
