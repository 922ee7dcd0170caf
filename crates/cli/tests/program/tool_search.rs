//! More tools than fit into a prompt: the model searches for them, and they work.

use serde_json::{Value, json};

use crate::support::{Call, FULL_ACCESS, Request, Server, User, Wire};

/// A list of 600 tools that are programs, of which one knows the weather.
fn many_tools(user: &User) -> String {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = |name: &str, about: &str| {
        let command = ["sh", "-c", "echo \"$0 said $1\"", name];
        json!({"name": name, "description": about, "parameters": parameters, "command": command}).to_string()
    };
    let mut rows: Vec<_> = (0..600)
        .map(|at| tool(&format!("ledger_{at}"), &format!("Book number {at} of the ledger.")))
        .collect();
    rows[400] = tool("get_weather", "The weather of a city, for today and tomorrow.");
    user.file("tools.jsonl", rows.join("\n"))
}

fn search(query: &str) -> Call {
    ("s1", "tool_search", json!({"query": query, "limit": 2}))
}

fn told(wire: Wire, request: &Request) -> Vec<String> {
    let name = |tool: &Value| match wire {
        Wire::Responses => tool["name"].as_str().or(tool["type"].as_str()).unwrap().to_owned(),
        Wire::Messages => tool["name"].as_str().unwrap().to_owned(),
        Wire::Chat => tool["function"]["name"].as_str().unwrap().to_owned(),
    };
    request.body["tools"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn what_is_found_joins_the_next_request_at_its_end_and_stays_after_a_resume() {
    for wire in Wire::ALL {
        let weather: Call = ("c1", "get_weather", json!({"city": "Oslo"}));
        let server = Server::start([
            wire.asks(&[search("weather tomorrow")]),
            wire.asks(&[weather]),
            wire.says("rain"),
            wire.says("again"),
        ]);
        let user = User::new();
        user.use_server(&server, wire);
        let list = many_tools(&user);
        let ended =
            user.run(&[&["exec", "how is the weather?", "--tools", &list], &FULL_ACCESS[..]].concat());
        ended.assert_code(0);
        user.run(&["exec", "resume", "--last", "once more", "--tools", &list]).assert_code(0);
        let requests = server.requests();
        let tools: Vec<_> = requests.iter().map(|request| told(wire, request)).collect();
        assert!(tools[0].len() < 20 && tools[0].last().unwrap() == "tool_search", "{:?}", tools[0]);
        assert_eq!(tools[1][..tools[0].len()], tools[0][..]);
        assert_eq!(tools[1][tools[0].len()], "get_weather");
        assert_eq!((&tools[2], &tools[3]), (&tools[1], &tools[1]));
        let outputs = wire.outputs(&requests[2]);
        assert!(
            outputs[0].1.starts_with("These tools can be called from now on:\n- get_weather: "),
            "{outputs:?}"
        );
        assert_eq!(outputs[1], ("c1", "get_weather said {\"city\":\"Oslo\"}".to_owned()));
    }
}

#[test]
fn a_tool_that_was_never_searched_for_works_by_its_name() {
    for wire in Wire::ALL {
        let server =
            Server::start([wire.asks(&[("c1", "ledger_7", json!({"city": "x"}))]), wire.says("booked")]);
        let user = User::new();
        user.use_server(&server, wire);
        let list = many_tools(&user);
        user.run(&[&["exec", "book it", "--tools", &list], &FULL_ACCESS[..]].concat()).assert_code(0);
        let request = &server.requests()[1];
        assert_eq!(wire.outputs(request), [("c1", "ledger_7 said {\"city\":\"x\"}".to_owned())]);
        assert_eq!(told(wire, request).last().unwrap(), "ledger_7");
    }
}

#[test]
fn models_that_know_how_are_answered_in_the_form_of_their_wire() {
    let wire = Wire::Responses;
    let call = json!({"type": "tool_search_call", "id": "ts_1", "call_id": "s1", "execution": "client",
        "status": "completed", "arguments": {"query": "weather", "limit": 1}});
    let asks = json!({"type": "response.output_item.done", "item": call}).to_string();
    let events = [vec![asks], wire.done()].concat();
    let server = Server::start([Wire::begins(&events), wire.says("found"), wire.says("again")]);
    let user = User::new();
    user.use_server(&server, wire);
    let list = many_tools(&user);
    user.run(&[
        "exec",
        "-m",
        "gpt-5.4",
        "-c",
        "tool_context_percent=5",
        "how is the weather?",
        "--tools",
        &list,
    ])
    .assert_code(0);
    user.run(&[
        "exec",
        "resume",
        "--last",
        "-m",
        "gpt-5.4",
        "-c",
        "tool_context_percent=5",
        "once more",
        "--tools",
        &list,
    ])
    .assert_code(0);
    let requests = server.requests();
    let told: Vec<_> = requests.iter().map(|request| &request.body["tools"]).collect();
    let search = told[0].as_array().unwrap().last().unwrap();
    assert_eq!((&search["type"], &search["execution"]), (&json!("tool_search"), &json!("client")));
    assert_eq!((told[0], told[0]), (told[1], told[2]));
    for request in &requests[1..] {
        let items = wire.conversation(request);
        let output = items.iter().find(|item| item["type"] == "tool_search_output").unwrap();
        assert_eq!((&output["call_id"], &output["status"]), (&json!("s1"), &json!("completed")));
        let found: Vec<_> = output["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(found, ["get_weather"]);
        assert!(items.iter().any(|item| item["type"] == "tool_search_call" && item.get("id").is_none()));
    }
}

#[test]
fn few_tools_are_told_and_there_is_nothing_to_search() {
    let user = User::new();
    let row = json!({"name": "greet", "description": "Greet.", "command": ["echo", "hello"]});
    let list = user.file("tools.jsonl", row.to_string());
    let server = Server::start([Wire::Chat.asks(&[("c1", "greet", json!({}))]), Wire::Chat.says("done")]);
    user.use_server(&server, Wire::Chat);
    user.run(&[&["exec", "greet", "--tools", &list], &FULL_ACCESS[..]].concat()).assert_code(0);
    let requests = server.requests();
    assert_eq!(told(Wire::Chat, &requests[0]).last().unwrap(), "greet");
    assert_eq!(Wire::Chat.outputs(&requests[1]), [("c1", "hello {}".to_owned())]);
    let called = user.run(&[&["call", "greet", "{}", "--tools", &list], &FULL_ACCESS[..]].concat());
    called.assert_code(0);
    assert_eq!(called.stdout, "hello {}\n");
}

#[test]
fn a_program_is_held_like_any_command() {
    let user = User::new();
    let row =
        json!({"name": "mark", "description": "Mark.", "command": ["touch", "/proc/windlass-was-here"]});
    let list = user.file("tools.jsonl", row.to_string());
    let script = user.script(&json!([{"calls": [{"name": "mark", "arguments": {}}]}, {"text": "done"}]));
    let ended = user.run(&["exec", "mark", "--script", &script, "--tools", &list, "-a", "untrusted"]);
    ended.assert_code(3);
}

#[test]
fn costs_say_what_is_told_and_what_must_be_found() {
    let user = User::new();
    let list = many_tools(&user);
    let cost = |more: &[&str]| {
        let ended = user.run(&[&["tools", "cost", "--tools", &list, "--json"], more].concat());
        ended.assert_code(0);
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let many = cost(&["-c", "model_context_window=100000"]);
    assert_eq!(many["context_window"], 100_000);
    let (told, deferred) = (many["told_tokens"].as_u64().unwrap(), many["deferred_tokens"].as_u64().unwrap());
    assert!(deferred > 10_000 && told < 10_000, "{told} {deferred}");
    let tools = many["tools"].as_array().unwrap();
    assert_eq!(tools.iter().filter(|tool| tool["exposure"] == "deferred").count(), 600);
    let sum = |list: &Value| {
        list.as_array().unwrap().iter().map(|row| row["tokens"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum(&many["tools"]), sum(&many["categories"])), (told + deferred, told + deferred));
    let roomy = cost(&["-c", "tool_context_percent=100"]);
    assert_eq!(roomy["deferred_tokens"], 0);
    let shown = user.run(&["tools", "cost"]);
    assert!(shown.stdout.contains("\noffered "), "{shown:#?}");
}

#[test]
fn a_list_that_never_ends_or_begins_is_not_read() {
    let user = User::new();
    let fifo = user.work().join("fifo").to_str().unwrap().to_owned();
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in ["/dev/zero", &fifo, "."] {
        for args in [["tools", "search", "x"], ["tools", "select", "x"], ["call", "x", "{}"]] {
            let ended = user.run(&[&args[..], &["--tools", path]].concat());
            ended.assert_code(2);
            assert!(ended.stderr.contains("is not a regular file; pass one, or `-`"), "{path}: {ended:#?}");
        }
    }
    let row = br#"{"name": "get_weather", "description": "The weather of a city."}"#;
    let ended = user.run_with_input(&["tools", "select", "weather in Rome", "--tools", "-"], row);
    assert_eq!(ended.stdout, "get_weather\n", "{ended:#?}");
    let list = user.file("tools.jsonl", row);
    let ended = user.run(&["call", "get_weather", "{}", "--tools", &list]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("tool `get_weather` has no `command`"), "{ended:#?}");
}
