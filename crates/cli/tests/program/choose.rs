//! `windlass tools search`, `select` and `bench`: which tools fit.

use serde_json::{Value, json};

use crate::support::{FULL_ACCESS, User, lines};

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

/// Written before the requests that the tools say they are the answer to, and not looked at while
/// those were written.
const HELD_OUT: [(&str, &str); 40] = [
    ("what does crates/host/src/lib.rs say", "read_file"),
    ("open README.md for me", "read_file"),
    ("let me see lines 40 to 80 of server.py", "read_file"),
    ("print the contents of the config file settings.toml", "read_file"),
    ("what is inside the docs folder", "list_dir"),
    ("show the directory tree", "list_dir"),
    ("which subdirectories does packages have", "list_dir"),
    ("where is the function parse_header used", "grep_files"),
    ("find every mention of deprecated in the code", "grep_files"),
    ("search the sources for the text connection refused", "grep_files"),
    ("change the port from 8080 to 9090 in config.yaml", "edit_file"),
    ("rename the variable count to total in utils.py", "edit_file"),
    ("create a new file hello.txt that says hi", "write_file"),
    ("save these notes to notes.md", "write_file"),
    ("execute cargo build --release", "shell_command"),
    ("run git status", "shell_command"),
    ("do the unit tests pass", "run_tests"),
    ("rerun only the tests that failed", "run_tests"),
    ("what does the picture logo.png look like", "view_image"),
    ("mark the second step of the plan as done", "update_plan"),
    ("看看 Cargo.toml 的内容", "read_file"),
    ("打开 src/main.rs 第 10 到 30 行", "read_file"),
    ("把 package.json 显示给我", "read_file"),
    ("这个文件夹里有哪些文件", "list_dir"),
    ("显示项目的目录结构", "list_dir"),
    ("src 下面有什么", "list_dir"),
    ("在代码里搜索 TODO", "grep_files"),
    ("哪些文件用到了 HashMap", "grep_files"),
    ("查找所有出现 timeout 的地方", "grep_files"),
    ("把 config.yaml 里的 debug 改成 release", "edit_file"),
    ("将函数名 foo 替换为 bar", "edit_file"),
    ("新建一个文件 todo.txt，内容是买牛奶", "write_file"),
    ("把结果写入 report.md", "write_file"),
    ("运行命令 make install", "shell_command"),
    ("执行 git log", "shell_command"),
    ("测试都通过了吗", "run_tests"),
    ("跑一下单元测试", "run_tests"),
    ("看看截图 error.png", "view_image"),
    ("更新计划，第一步已完成", "update_plan"),
    ("继续看被截断的输出 5", "read_output"),
];

#[test]
fn requests_nobody_wrote_the_tools_for_find_them() {
    let user = User::new();
    let wrong: Vec<_> = HELD_OUT
        .iter()
        .map(|(request, tool)| (request, tool, user.run(&["tools", "select", request]).stdout))
        .filter(|(_, tool, chosen)| chosen.trim() != **tool)
        .collect();
    assert!(wrong.len() <= 8, "{wrong:#?}");
}

#[test]
fn what_none_of_our_tools_is_for_is_not_given_to_one() {
    let user = User::new();
    for request in [
        "what is the weather in Oslo tomorrow",
        "book a table for two at eight",
        "convert 30 euros to dollars",
        "what is 12 times 9",
        "明天天气怎么样",
        "订一张去北京的机票",
        "给我讲个笑话",
    ] {
        let ended = user.run(&["tools", "select", request]);
        ended.assert_code(1);
        assert!(ended.stdout.starts_with("no tool fits"), "{request}: {ended:#?}");
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
    ended.assert_code(0);
    assert!(ended.stdout.contains("  x\n"), "{ended:#?}");
    assert!(ended.stderr.contains("tools.jsonl`, line 3: "), "{ended:#?}");
    let list = user.file("tools.jsonl", "\n\n{\"description\": 3}\n");
    user.run(&["tools", "search", "x", "--tools", &list]).assert_code(2);
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
        ended.stderr.contains("s: 2 tools in ") && ended.stderr.contains("s_select: 1 request, p50 "),
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

#[test]
fn a_tool_loses_a_near_tie_after_failures_and_wins_it_back() {
    let user = User::new();
    let list = |command: &str| {
        let row = |name: &str| {
            json!({"name": name, "description": "The weather of a city.", "command": ["sh", "-c", command]})
                .to_string()
        };
        user.file("tools.jsonl", ["weather_one", "weather_two"].map(row).join("\n"))
    };
    let call = |times: usize, command: &str| {
        let list = list(command);
        for _ in 0..times {
            user.run(&["call", "weather_one", "{}", "--tools", &list, "--sandbox", "danger-full-access"]);
        }
    };
    let first = || {
        let list = list("true");
        let found = user.run(&["tools", "search", "weather of Oslo", "--tools", &list]).stdout;
        let chosen = user.run(&["tools", "select", "weather of Oslo", "--tools", &list]).stdout;
        assert_eq!(found.split_whitespace().nth(1), Some(chosen.trim()));
        chosen.trim().to_owned()
    };
    assert_eq!(first(), "weather_one");
    call(6, "exit 1");
    assert_eq!(first(), "weather_two");
    call(12, "exit 0");
    assert_eq!(first(), "weather_one");
}

#[test]
fn a_tool_is_found_by_what_it_was_the_answer_to() {
    let user = User::new();
    let row = |name: &str, command: &str| {
        json!({"name": name, "description": "Look something up.", "command": ["sh", "-c", command]})
            .to_string()
    };
    let rows = [row("lookup_a", "true"), row("lookup_b", "true"), row("lookup_c", "exit 1")];
    let list = user.file("tools.jsonl", rows.join("\n"));
    for (request, tool) in [
        ("do I need my umbrella in Oslo", "lookup_b"),
        ("who won the football match yesterday", "lookup_a"),
        ("reserve a quiet hotel by the sea", "lookup_c"),
    ] {
        let turns = json!([{"calls": [{"name": tool, "arguments": {}}]}, {"text": "done"}]);
        let run = ["exec", request, "--script", &user.script(&turns), "--tools", &list];
        user.run(&[&run, &FULL_ACCESS[..]].concat()).assert_code(0);
    }
    let found = |request: &str| {
        let ended = user.run(&["tools", "search", request, "--tools", &list, "--json"]);
        serde_json::from_str::<Vec<Value>>(&ended.assert_code(0).stdout).unwrap()
    };
    let chosen = |request: &str| user.run(&["tools", "select", request, "--tools", &list]).stdout;
    for (request, tool) in
        [("look up if I want an umbrella today", "lookup_b"), ("look up the football match", "lookup_a")]
    {
        assert_eq!(found(request)[0]["name"], tool);
        assert_eq!(chosen(request).trim(), tool);
    }
    let tried = found("look up a quiet hotel");
    assert!(tried.iter().all(|row| row["likeness"] == 0.0), "what failed is no answer: {tried:#?}");
}

#[test]
fn the_tool_and_its_arguments_are_right_or_none_is_named() {
    let user = User::new();
    for (request, tool, arguments) in [
        ("search for \"fn main\" in src", "grep_files", json!({"pattern": "fn main", "path": "src"})),
        (
            "run ls -la with a timeout of 10 seconds",
            "shell_command",
            json!({"command": "ls -la", "timeout_ms": 10_000}),
        ),
        ("show the first 10 lines of a.rs", "read_file", json!({"file_path": "a.rs", "limit": 10})),
        (
            "replace foo with bar in a.rs",
            "edit_file",
            json!({"path": "a.rs", "old_string": "foo", "new_string": "bar", "replace_all": true}),
        ),
        ("delete the file", "shell_command", json!({})),
    ] {
        let ended = user.run(&["tools", "select", request, "--json"]);
        ended.assert_code(0);
        let choice: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let found = (&choice["candidates"][0]["name"], &choice["arguments"]);
        assert_eq!(found, (&json!(tool), &arguments), "{request}");
    }
    for request in ["xyzzy", "qqq zzz"] {
        let ended = user.run(&["tools", "search", request]);
        ended.assert_code(1);
        assert_eq!(ended.stdout, "no tool fits\n", "{request}");
    }
}
