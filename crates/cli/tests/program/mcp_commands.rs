//! `windlass mcp list|get|add|remove`: the servers in the configuration file.

use serde_json::{Value, json};

use crate::support::User;

const FILE: &str = "# mine\nmodel = \"m\" # the model\n";

fn file(user: &User) -> String {
    std::fs::read_to_string(user.home().join("config.toml")).unwrap_or_default()
}

#[test]
fn a_server_is_added_shown_and_removed_and_the_rest_of_the_file_stays() {
    let user = User::new();
    user.configure(FILE);
    let words = [
        "mcp",
        "add",
        "notes",
        "--env",
        "A=b c",
        "--env-var",
        "HOME",
        "--sandbox",
        "workspace-write",
        "--network",
        "--writable",
        "/data",
        "--no-test",
        "--approval-mode",
        "writes",
        "--tool",
        "read",
        "--",
        "notes-server",
        "--port",
        "0",
    ];
    user.run(&words).assert_code(0);
    let expected = format!(
        "{FILE}\n[mcp_servers.notes]\ncommand = \"notes-server\"\nargs = [\"--port\", \"0\"]\n\
         env_vars = [\"HOME\"]\ndefault_tools_approval_mode = \"writes\"\nenabled_tools = [\"read\"]\n\
         network = true\nsandbox = \"workspace-write\"\nwritable = [\"/data\"]\n\
         \n[mcp_servers.notes.env]\nA = \"b c\"\n"
    );
    assert_eq!(file(&user), expected);
    let shown = user.run(&["mcp", "get", "notes", "--json"]);
    shown.assert_code(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["config"]["env"], json!({"A": "b c"}));
    assert_eq!((&shown["reach"], &shown["transport"]), (&json!("outside"), &json!("stdio")));
    let list = user.run(&["mcp", "list"]);
    assert!(list.stdout.contains("notes-server --port 0"), "{list:#?}");
    user.run(&["mcp", "remove", "notes"]).assert_code(0);
    assert_eq!(file(&user), FILE);
    user.run(&["mcp", "remove", "notes"]).assert_code(1);
}

#[test]
fn a_server_of_the_same_name_is_replaced_only_on_request() {
    let user = User::new();
    user.run(&["mcp", "add", "a", "--no-test", "--env", "X=1", "--", "one"]).assert_code(0);
    let refused = user.run(&["mcp", "add", "a", "--url", "http://localhost/mcp"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("pass `--replace`"), "{refused:#?}");
    user.run(&["mcp", "add", "a", "--no-test", "--replace", "--url", "http://localhost/mcp"]).assert_code(0);
    assert!(file(&user).ends_with("[mcp_servers.a]\nurl = \"http://localhost/mcp\"\n"), "{}", file(&user));
}

#[test]
fn secrets_of_a_server_are_not_shown() {
    let user = User::new();
    let url = "https://host.example/mcp";
    user.run(&["mcp", "add", "a", "--url", url, "--header", "X-Api-Key=hush-1", "--no-test"]).assert_code(0);
    user.run(&["mcp", "add", "b", "--env", "MY_TOKEN=hush-2", "--no-test", "--", "server"]).assert_code(0);
    for words in [
        &["mcp", "list"][..],
        &["mcp", "list", "--json"],
        &["mcp", "get", "a"],
        &["mcp", "get", "b", "--json"],
        &["config", "show"],
    ] {
        let ended = user.run(words);
        ended.assert_code(0);
        assert!(!ended.stdout.contains("hush"), "{ended:#?}");
    }
}

#[test]
fn a_faulty_server_is_an_error_that_says_what_is_wrong() {
    let user = User::new();
    for (words, said) in [
        (&["a b", "--", "x"][..], "only letters, digits"),
        (&["a"], "<COMMAND>"),
        (&["a", "--url", "http://h", "--network"], "excludes `network`"),
        (&["a", "--url", "http://h", "--", "x"], "--url"),
        (&["a", "--env", "X", "--", "x"], "write NAME=VALUE"),
        (&["a", "--tool-timeout", "0", "--", "x"], "`tool_timeout_sec` must be a positive number"),
    ] {
        let ended = user.run(&[&["mcp", "add"], words].concat());
        ended.assert_code(2);
        assert!(ended.stderr.contains(said), "{words:?}: {ended:#?}");
        assert_eq!(file(&user), "");
    }
    user.configure("[mcp_servers.a]\ncomand = 'x'\n");
    let ended = user.run(&["mcp", "list"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("did you mean `mcp_servers.NAME.command`?"), "{ended:#?}");
    user.configure("[mcp_servers.a]\ncommand = 'x'\nurl = 'http://h'\n");
    let ended = user.run(&["mcp", "list"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("config.toml:2: MCP server `a` has `command`, which excludes `url`"));
    let ended = user.run(&["mcp", "get", "notse"]);
    ended.assert_code(2);
}

#[test]
fn a_name_that_no_server_has_is_answered_with_the_nearest_one() {
    let user = User::new();
    user.run(&["mcp", "add", "notes", "--no-test", "--", "x"]).assert_code(0);
    let ended = user.run(&["mcp", "get", "notse"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("did you mean `notes`?"), "{ended:#?}");
}

#[test]
fn a_server_that_runs_the_newest_version_is_warned_about_with_the_line_that_pins_it() {
    let user = User::new();
    user.run(&["mcp", "add", "clock", "--no-test", "--", "uvx", "clock-server"]).assert_code(0);
    let listed = user.run(&["mcp", "list"]);
    listed.assert_code(0);
    assert!(listed.stderr.contains("`clock` runs the newest `clock-server` at each start"), "{listed:#?}");
    user.run(&["mcp", "add", "clock", "--replace", "--no-test", "--", "uvx", "clock-server@1.2.3"])
        .assert_code(0);
    assert!(!user.run(&["mcp", "list"]).stderr.contains("newest"));
}
