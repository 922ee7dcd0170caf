//! `windlass mcp serve` as a client sees it.

use serde_json::json;

use crate::support::{McpClient, User, accept, text};

fn patch(file: &str) -> serde_json::Value {
    json!({"input": format!("*** Begin Patch\n*** Add File: {file}\n+made\n*** End Patch")})
}

#[test]
fn a_client_reads_and_is_refused_what_it_cannot_ask_about() {
    let user = User::new();
    user.file("notes.txt", "42 stones\n");
    let mut client = McpClient::start(&user, &["-s", "read-only"], None, None);
    let read = client.call("read_file", &json!({"file_path": user.work().join("notes.txt")}));
    assert_eq!((text(&read), &read["isError"]), ("L1: 42 stones", &json!(false)), "{read}");
    assert_eq!(read["structuredContent"]["output"], "L1: 42 stones");
    let refused = client.call("apply_patch", &patch("new.txt"));
    assert!(text(&refused).contains("nobody is there to approve it"), "{refused}");
    assert_eq!(refused["structuredContent"]["status"], "rejected");
    assert!(!user.work().join("new.txt").exists());
    assert_eq!(client.end(), 0);
}

#[test]
fn an_approved_change_is_recorded_and_can_be_undone() {
    let user = User::new();
    let mut client = McpClient::start(&user, &["-s", "read-only"], Some(accept(&json!("once"))), None);
    let made = client.call("apply_patch", &patch("new.txt"));
    assert_eq!(made["isError"], json!(false), "{made}");
    assert_eq!(user.read("new.txt"), "made\n");
    let [question] = client.asked.as_slice() else { panic!("{:?}", client.asked) };
    assert!(question["message"].as_str().unwrap().contains("new.txt"), "{question}");
    assert_eq!(question["requestedSchema"]["properties"]["answer"]["enum"][0], "once");
    assert_eq!(client.end(), 0);
    let sessions = user.run(&["sessions", "list"]);
    assert!(sessions.stdout.contains("calls of the MCP client a test"), "{sessions:#?}");
    user.run(&["undo"]).assert_code(0);
    assert!(!user.work().join("new.txt").exists());
}

#[test]
fn answers_of_the_wrong_shape_allow_nothing() {
    let wrong = [
        accept(&json!("always")),
        accept(&json!(["once"])),
        json!({"action": "accept", "content": "once"}),
        json!({"action": "yes"}),
        json!({"action": "decline", "content": {"answer": "once"}}),
    ];
    let user = User::new();
    for answer in wrong {
        let shown = answer.to_string();
        let mut client = McpClient::start(&user, &["-s", "read-only"], Some(answer), None);
        let refused = client.call("apply_patch", &patch("new.txt"));
        assert_eq!(refused["isError"], json!(true), "{shown}: {refused}");
        assert!(!user.work().join("new.txt").exists(), "{shown}");
    }
}

#[test]
fn only_allowed_tools_are_on_offer() {
    let user = User::new();
    let mut client = McpClient::start(&user, &["--allow-tools", "read_*,list_dir"], None, None);
    assert_eq!(client.tools(), ["read_file", "list_dir", "read_output"]);
    let params = json!({"name": "shell_command", "arguments": {"command": "date"}});
    let refused = client.request("tools/call", &params, None);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let ended = user.run(&["mcp", "serve", "--allow-tools", "nothing"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("no tool fits `nothing`"), "{ended:#?}");
}

#[test]
fn roots_narrow_what_a_client_writes() {
    let user = User::new();
    std::fs::create_dir(user.work().join("inner")).unwrap();
    let inner = [format!("file://{}/inner", user.work().display()), "file:///etc".to_owned()];
    let mut client = McpClient::start(&user, &["-s", "workspace-write", "-a", "never"], None, Some(&inner));
    let made = client.call_with_roots("apply_patch", &patch("a.txt"), Some(&inner));
    assert_eq!(made["isError"], json!(false), "{made}");
    assert!(user.work().join("inner/a.txt").exists());
    let outside = client.call("apply_patch", &patch("../b.txt"));
    assert_eq!(outside["isError"], json!(true), "{outside}");
    assert!(!user.work().join("b.txt").exists());
}

#[test]
fn an_agent_answers_a_client_within_the_ceiling() {
    let user = User::new();
    let script = user.script(&json!([{"text": "Nine."}, {"text": "Ten."}]));
    user.configure(&format!(
        "model_provider = \"scripted\"\n[model_providers.scripted]\nscript = \"{script}\"\n"
    ));
    let mut client = McpClient::start(&user, &["-s", "read-only", "-a", "on-request"], None, None);
    assert!(client.tools().ends_with(&["windlass".to_owned(), "windlass-reply".to_owned()]));
    for (key, value) in [("sandbox", "workspace-write"), ("cwd", "/etc"), ("cwd", "..")] {
        let refused = client.call("windlass", &json!({"prompt": "How many?", key: value}));
        assert_eq!(refused["isError"], json!(true), "{key} {value}: {refused}");
    }
    let answer = client.call("windlass", &json!({"prompt": "How many?"}));
    assert_eq!(text(&answer), "Nine.", "{answer}");
    assert!(client.progress.iter().any(|step| step["message"] == "Nine."), "{:?}", client.progress);
    let thread = answer["structuredContent"]["threadId"].clone();
    assert!(thread.is_string(), "{answer}");
    let more = client.call("windlass-reply", &json!({"threadId": thread, "prompt": "And now?"}));
    assert_eq!(more["structuredContent"]["threadId"], thread, "{more}");
    let other = client.call("windlass-reply", &json!({"threadId": "0", "prompt": "x"}));
    assert!(text(&other).contains("none of the conversations"), "{other}");
}
