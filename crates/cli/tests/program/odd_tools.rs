//! Lists of tools and requests as nobody should write them: `windlass tools search` and `select`
//! still answer sensibly.

use std::fmt::Write;

use crate::support::{Ended, FULL_ACCESS, Server, User, Wire};

const LIST: &str = r#"{"name": "get_weather", "description": "The weather of a city.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
{"name": "send_email", "description": "Send an email message to someone."}
{"name": "bare"}
{"name": "天気予報", "description": "都市の天気予報を取得する"}
{"name": "tarjama", "description": "ترجمة النص من لغة إلى أخرى"}
{"name": "party_🎉", "description": "Throw a party 🎉"}
"#;

/// Searches and selects, with the request on stdin: an argument cannot be that long.
fn ask(list: &str, request: &str) -> [Ended; 2] {
    let user = User::new();
    let list = user.file("tools.jsonl", list);
    ["search", "select"]
        .map(|verb| user.run_with_input(&["tools", verb, "-", "--tools", &list], request.as_bytes()))
}

fn assert_found(list: &str, request: &str, tool: &str) {
    let [found, chosen] = ask(list, request);
    assert_eq!(found.assert_code(0).stdout.split_whitespace().nth(1), Some(tool), "{found:#?}");
    assert_eq!(chosen.assert_code(0).stdout.trim(), tool, "{chosen:#?}");
}

#[test]
fn an_empty_request_is_refused() {
    for request in ["", " \n\t"] {
        for ended in ask(LIST, request) {
            ended.assert_code(2);
            assert!(ended.stderr.contains("the request is empty; describe the task"), "{ended:#?}");
        }
    }
}

#[test]
fn a_request_of_nothing_known_finds_no_tool() {
    for request in ["🎉🎉🎉", "zzyzx", "?!…", &"x".repeat(1_000_000)] {
        for ended in ask(LIST, request) {
            ended.assert_code(1);
            assert!(ended.stdout.starts_with("no tool fits"), "{ended:#?}");
        }
    }
}

#[test]
fn a_request_of_a_megabyte_is_answered_by_its_beginning() {
    assert_found(LIST, &"how is the weather in the city of Oslo? ".repeat(27_000), "get_weather");
}

#[test]
fn other_scripts_and_tools_without_a_description_are_found() {
    assert_found(LIST, "東京の天気予報", "天気予報");
    assert_found(LIST, "أريد ترجمة هذا النص", "tarjama");
    assert_found(LIST, "throw a party 🎉", "party_🎉");
    assert_found(LIST, "bare", "bare");
}

#[test]
fn one_tool_is_found_among_fifty_thousand() {
    let mut list = String::from(LIST);
    for at in 0..50_000 {
        writeln!(list, r#"{{"name": "ledger_{at}", "description": "Book number {at} of the ledger."}}"#)
            .unwrap();
    }
    assert_found(&list, "weather of a city", "get_weather");
}

#[test]
fn two_tools_of_one_name_are_told_with_their_lines() {
    let list = "{\"name\": \"a\"}\n\n{\"name\": \"b\"}\n{\"name\": \"a\", \"description\": \"Other.\"}\n";
    for ended in ask(list, "a") {
        assert_ne!(ended.code, Some(2), "{ended:#?}");
        assert!(
            ended.stderr.contains("tools.jsonl`, line 4: the tool `a` is already on line 1"),
            "{ended:#?}"
        );
    }
    // Of two servers, they are two tools.
    let list = "{\"name\": \"a\", \"server\": \"x\"}\n{\"name\": \"a\", \"server\": \"y\"}\n";
    assert_eq!(ask(list, "a")[0].assert_code(0).stdout.lines().count(), 2);
}

#[test]
fn an_array_is_a_list_and_anything_else_is_told_what_a_list_is() {
    let array = "[\n  {\"name\": \"get_weather\",\n   \"description\": \"The weather of a city.\"}\n]";
    assert_found(array, "weather in Rome", "get_weather");
    for (list, code, said) in [
        ("[{\"name\": \"a\"}, {}]", 0, "item 2: missing field `name`"),
        ("[{\"name\": \"a\"}, {\"name\": \"a\"}]", 0, "item 2: the tool `a` is already on item 1"),
        ("[{\"name\": \"a\"}", 2, "line 1: EOF while parsing a list"),
        ("{\n\"name\": \"a\"}", 2, "a list is one JSON object per line, or one array of them"),
        ("{\"name\": \" \"}", 2, "line 1: the tool has no name"),
    ] {
        for ended in ask(list, "a") {
            assert_eq!(ended.code == Some(2), code == 2, "{ended:#?}");
            assert!(ended.stderr.contains(said), "{said}: {ended:#?}");
        }
    }
}

#[test]
fn a_name_cannot_rewrite_the_screen_or_start_a_line() {
    let user = User::new();
    let list = user.file(
        "tools.jsonl",
        "{\"name\": \"b\\nc\\u001b[2J\", \"description\": \"The weather report.\"}\n{\"name\": \"other\"}\n",
    );
    for args in [&["search"][..], &["select"], &["select", "--explain"]] {
        let ended = user.run(&[&["tools"], args, &["the weather report", "--tools", &list]].concat());
        ended.assert_code(0);
        assert!(ended.stdout.contains("b\\nc\\u{1b}[2J"), "{ended:#?}");
        assert!(ended.stdout.lines().all(|line| !line.starts_with('c')), "{ended:#?}");
    }
}

#[test]
fn a_name_that_is_none_is_told_on_one_short_line() {
    let long = "x".repeat(100_000);
    for (name, shown) in [("evil\\nname\\u001b[31m", "`evil\\nname\\u{1b}[31m`"), (&long, "xxx…`")] {
        let user = User::new();
        let row = |more: &str| format!("{{\"name\": \"{name}\", \"description\": \"Does it.\"{more}}}\n");
        let run = row(", \"command\": [\"true\"]");
        for list in [run.clone(), row(""), run.repeat(2)] {
            let list = user.file("tools.jsonl", &list);
            let ended = user.run(&["tools", "cost", "--tools", &list]);
            ended.assert_code(2);
            assert!(ended.stderr.contains(shown) && ended.stderr.len() < 1000, "{ended:#?}");
        }
    }
}

#[test]
fn a_request_and_a_list_cannot_share_stdin() {
    let ended = User::new().run_with_input(&["tools", "search", "-", "--tools", "-"], b"{\"name\": \"a\"}");
    ended.assert_code(2);
    assert!(ended.stderr.contains("cannot both be on stdin"), "{ended:#?}");
}

#[test]
fn what_a_list_says_a_tool_is_asked_for_with_finds_it_in_a_session() {
    let wire = Wire::Chat;
    let server = Server::start([
        wire.asks(&[(
            "s1",
            "tool_search",
            serde_json::json!({"query": "do I need an umbrella", "limit": 1}),
        )]),
        wire.says("found"),
    ]);
    let user = User::new();
    user.use_server(&server, wire);
    let row = |name: &str, more: &str| {
        format!(
            "{{\"name\": \"{name}\", \"description\": \"Look something up.\", \"command\": [\"true\"]{more}}}\n"
        )
    };
    let list = row("lookup_a", "")
        + &row("lookup_b", ", \"examples\": [\"will I need my umbrella today\"]")
        + &row("lookup_c", "");
    let list = user.file("tools.jsonl", list);
    let run =
        ["exec", "go", "--tools", &list, "-c", "tool_context_percent=1", "-c", "model_context_window=100"];
    user.run(&[&run, &FULL_ACCESS[..]].concat()).assert_code(0);
    let outputs = wire.outputs(&server.requests()[1]).into_iter().map(|(_, text)| text).collect::<String>();
    assert!(outputs.contains("- lookup_b: ") && !outputs.contains("lookup_a"), "{outputs}");
}

/// What is kept of lists.
fn kept(user: &User) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(user.home().join("cache/tools"));
    entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_index_of_a_long_list_is_kept_and_never_gets_in_the_way() {
    let user = User::new();
    let list = |weather: &str| {
        let ledger = |at: usize| {
            format!("{{\"name\": \"ledger_{at}\", \"description\": \"Book number {at} of the ledger.\"}}\n")
        };
        let rows: String = (0..1000).map(ledger).collect();
        user.file(
            "tools.jsonl",
            format!("{rows}{{\"name\": \"{weather}\", \"description\": \"The weather of a city.\"}}\n"),
        )
    };
    let found = |path: &str| {
        let ended = user.run(&["tools", "search", "the weather of Oslo", "--limit", "3", "--tools", path]);
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
        ended.stdout
    };
    let path = list("get_weather");
    let first = found(&path);
    let [file] = &kept(&user)[..] else { panic!("one file: {:?}", kept(&user)) };
    let bytes = std::fs::read(file).unwrap();
    assert_eq!(found(&path), first);
    assert_eq!(std::fs::read(file).unwrap(), bytes);
    for damage in [&b"nonsense"[..], &bytes[..bytes.len() / 2], b""] {
        std::fs::write(file, damage).unwrap();
        assert_eq!(found(&path), first);
        assert_eq!(std::fs::read(file).unwrap(), bytes, "it is made anew");
    }
    let renamed = found(&list("tell_weather"));
    assert_eq!(renamed, first.replace("get_weather", "tell_weather"));
    // A file where the directory should be.
    std::fs::remove_dir_all(user.home().join("cache")).unwrap();
    std::fs::write(user.home().join("cache"), "").unwrap();
    assert_eq!(found(&list("get_weather")), first);
}
