//! `windlass tools search`, `select` and `bench`: which tools fit.

use serde_json::{Value, json};

use crate::support::{User, lines};

const LIST: &str = r#"{"name": "get_weather", "description": "The weather of a city.", "def": "d0", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
{"name": "send_email", "description": "Send an email message to someone.", "def": "d1", "changes": "something"}
{"name": "old_mail", "description": "Send an email message to someone.", "def": "d2", "pool": false}
"#;

#[test]
fn our_own_tools_are_found_by_what_they_do() {
    let user = User::new();
    for (request, tool) in [
        ("which files contain a regular expression", "grep_files"),
        ("list what is in this directory", "list_dir"),
        ("看一下这张图片", "view_image"),
        ("readFile", "read_file"),
    ] {
        let found = user.run(&["tools", "search", request, "--limit", "3"]);
        found.assert_code(0);
        assert_eq!(found.stdout.lines().count(), 3);
        assert_eq!(found.stdout.split_whitespace().nth(1), Some(tool), "{request}: {found:#?}");
    }
}

#[test]
fn a_choice_is_explained() {
    let user = User::new();
    let request = "find TODO in src/main.rs, but do not change anything";
    let ended = user.run(&["tools", "select", request, "--explain"]);
    ended.assert_code(0);
    assert!(ended.stdout.starts_with("grep_files\n\noperation    search\n"), "{ended:#?}");
    for part in [
        "target       src/main.rs (path)\n",
        "constraint   change nothing\n",
        "complexity",
        "ruled out: the request says that nothing may change\n",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {ended:#?}");
    }
    let choice: Value =
        serde_json::from_str(&user.run(&["tools", "select", request, "--json"]).stdout).unwrap();
    assert_eq!(choice["candidates"][0]["name"], "grep_files");
    assert_eq!(choice["intent"]["constraints"], json!(["change_nothing"]));
    let parts: Vec<_> = choice["candidates"][0]["parts"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(parts.len(), 6);
}

#[test]
fn that_no_tool_fits_is_an_answer() {
    let user = User::new();
    let list = user.file("tools.jsonl", LIST);
    let ended = user.run(&["tools", "select", "Who painted the ceiling of that chapel?", "--tools", &list]);
    ended.assert_code(1);
    assert!(ended.stdout.starts_with("no tool fits ("), "{ended:#?}");
    let ended = user.run(&["tools", "select", "How is the weather in Rome?", "--tools", &list]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "get_weather\n");
}

#[test]
fn a_list_that_makes_no_sense_is_told_with_its_line() {
    let user = User::new();
    let list = user.file("tools.jsonl", "{\"name\": \"x\"}\n\n{\"description\": 3}\n");
    let ended = user.run(&["tools", "search", "x", "--tools", &list]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("tools.jsonl`, line 3: "), "{ended:#?}");
}

#[test]
fn sets_of_requests_are_answered_for_a_scorer() {
    let user = User::new();
    std::fs::create_dir(user.work().join("sets")).unwrap();
    user.file("sets/s.tools.jsonl", LIST);
    user.file("sets/s.queries.jsonl", "{\"id\": 1, \"query\": \"mail Ann\"}\n");
    user.file(
        "sets/s_select.jsonl",
        "{\"id\": \"a\", \"query\": \"weather\", \"tools\": [\"d0\", \"d2\"]}\n",
    );
    let ended = user.run(&["tools", "bench", "sets", "--out", "out"]);
    ended.assert_code(0);
    assert!(
        ended.stderr.contains("s: 2 tools in ") && ended.stderr.contains("s_select: 1 requests, p50 "),
        "{ended:#?}"
    );
    assert_eq!(
        lines(&user.read("out/s.pred.jsonl")),
        [json!({"id": 1, "ranked": ["send_email", "get_weather"]})]
    );
    let among = &lines(&user.read("out/s_select.pred.jsonl"))[0];
    assert_eq!(among["ranked"], json!(["get_weather", "old_mail"]));
    assert!(among["score"].as_f64().unwrap() > 0.0);
    let ended = user.run(&["tools", "bench", "out", "--out", "out"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("holds no set"), "{ended:#?}");
}
