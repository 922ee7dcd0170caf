//! `windlass models probe` against servers that do well, badly, or nothing.

use serde_json::{Value, json};

use crate::support::{Call, Reply, Server, Step, User, Wire};

/// The right calls of the tasks that take one, in order.
fn right_calls() -> [Vec<Call>; 5] {
    let weather = |id, city: &str| (id, "get_weather", json!({"city": city}));
    [
        vec![weather("a", "Paris")],
        vec![weather("b", "Rome"), weather("c", "Madrid")],
        vec![("d", "set_light", json!({"room": "kitchen", "color": "red"}))],
        vec![("e", "book_table", json!({"time": "19:30", "guest": {"name": "Kim", "people": 4}}))],
        vec![("f", "add_note", json!({"text": "明天下午三点开会"}))],
    ]
}

/// The right answers to all tasks, with the calls as the server or its model writes them.
fn right(call: impl Fn(&[Call]) -> Reply) -> Vec<Reply> {
    let mut replies: Vec<_> = right_calls().iter().map(|calls| call(calls)).collect();
    replies.extend([Wire::Chat.says("4"), Wire::Chat.says("It snows.")]);
    replies
}

fn as_hermes(calls: &[Call]) -> Reply {
    let text = |(_, name, arguments): &Call| {
        format!("<tool_call>{}</tool_call>", json!({"name": name, "arguments": arguments}))
    };
    Wire::Chat.says(&calls.iter().map(text).collect::<String>())
}

fn user_of(server: &Server) -> User {
    let user = User::new();
    user.use_server(server, Wire::Chat);
    user
}

#[test]
fn a_server_that_takes_calls_out_needs_no_change() {
    for wire in Wire::ALL {
        let mut replies: Vec<_> = right_calls().iter().map(|calls| wire.asks(calls)).collect();
        replies.extend([wire.says("4"), wire.says("It snows.")]);
        let server = Server::start(replies);
        let user = User::new();
        user.use_server(&server, wire);
        let ended = user.run(&["models", "probe"]);
        ended.assert_code(0);
        assert_eq!(
            ended.stdout,
            "m (test)\n\n        score  one call  two calls  enum  nested  Chinese  no tool  result\n\
             native    7/7        ok         ok    ok      ok       ok       ok      ok\n\n\
             nothing to change: the provider is already configured like this\n"
        );
        assert!(ended.stderr.contains("native: one call: right ("), "{ended:#?}");
        assert_eq!(server.requests().len(), 7);
    }
}

#[test]
fn calls_that_stay_in_the_text_are_read_and_the_dialect_is_named() {
    let unread = right_calls()[..2].iter().map(|calls| as_hermes(calls)).collect::<Vec<_>>();
    let server = Server::start(unread.into_iter().chain(right(as_hermes)));
    let user = user_of(&server);
    let ended = user.run(&["models", "probe", "--provider", "test", "--model", "other"]);
    ended.assert_code(0);
    let lines = "[model_providers.test]\ntool_dialect = \"hermes\"\ntool_prompt = false\n";
    assert!(ended.stdout.starts_with("other (test)\n") && ended.stdout.ends_with(lines), "{ended:#?}");
    let requests = server.requests();
    assert_eq!((requests.len(), &requests[0].body["model"]), (9, &json!("other")));
    assert!(requests.iter().all(|request| request.body.get("tools").is_some()));
}

#[test]
fn a_server_that_refuses_tools_has_them_told() {
    let refused = || {
        Reply::plain(
            "400 Bad Request",
            "content-type: application/json\r\n",
            r#"{"error":{"message":"tools are not supported"}}"#,
        )
    };
    let server = Server::start([refused(), refused()].into_iter().chain(right(as_hermes)));
    let ended = user_of(&server).run(&["models", "probe", "--json"]);
    ended.assert_code(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let toml = "[model_providers.test]\ntool_dialect = \"hermes\"\ntool_prompt = true\n";
    assert_eq!(report["recommended"], json!({"tool_dialect": "hermes", "tool_prompt": true, "toml": toml}));
    let scores: Vec<_> = report["profiles"].as_array().unwrap().iter().map(|each| &each["score"]).collect();
    assert_eq!(scores, [&json!(0), &json!(7)]);
    assert!(report["profiles"][0]["tasks"][0]["wrong"].as_str().unwrap().contains("tools are not supported"));
    let requests = server.requests();
    assert!(requests[2..].iter().all(|request| request.body.get("tools").is_none()));
    // What is recommended is what the configuration takes.
    let user = User::new();
    user.configure(toml);
    user.run(&["config", "show"]).assert_code(0);
}

#[test]
fn a_model_that_only_talks_is_no_agent() {
    let server = Server::start((0..60).map(|_| Wire::Chat.says("I cannot do that.")));
    let ended = user_of(&server).run(&["models", "probe"]);
    ended.assert_code(1);
    assert!(
        ended.stdout.ends_with("no method of calling tools worked: this model cannot be an agent\n"),
        "{ended:#?}"
    );
    // Two tasks natively and in each of five dialects.
    assert_eq!(server.requests().len(), 12);
}

#[test]
fn a_server_that_cannot_be_asked_is_one_clear_line() {
    let json = "content-type: application/json\r\n";
    let rows = [
        ("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#, "refused the API key (HTTP 401)"),
        ("404 Not Found", r#"{"error":{"message":"model 'm' not found"}}"#, "model 'm' not found"),
    ];
    for (status, body, said) in rows {
        let server = Server::start([Reply::plain(status, json, body)]);
        let ended = user_of(&server).run(&["models", "probe"]);
        ended.assert_code(1);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{ended:#?}");
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(said), "{ended:#?}");
    }
    let nobody = "model_providers.ollama.base_url=http://127.0.0.1:1/v1";
    let ended = User::new().run(&["models", "probe", "-p", "ollama", "-m", "m", "-c", nobody]);
    ended.assert_code(1);
    assert!(ended.stderr.starts_with("error: cannot reach http://127.0.0.1:1/v1"), "{ended:#?}");
    let ended = User::new().run(&["models", "probe", "--provider", "ollama"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("no model is set for `ollama`"), "{ended:#?}");
}

#[test]
fn time_and_ctrl_c_end_it_with_what_is_known() {
    let slow = || {
        let known = right_calls().first().map(|calls| Wire::Chat.asks(calls));
        Server::start(known.into_iter().chain([Reply(vec![Step::Hang])]))
    };
    let known = "score  one call  two calls  enum  nested  Chinese  no tool  result\nnative    1/7        ok";
    let server = slow();
    let ended = user_of(&server).run(&["models", "probe", "--time-limit", "1"]);
    ended.assert_code(4);
    assert!(ended.stdout.contains(known), "{ended:#?}");
    assert_eq!(ended.last_word(), "the time limit was reached; raise it with `--time-limit`");
    let server = slow();
    let user = user_of(&server);
    let mut running = user.start(&["models", "probe"]);
    running.until_stderr("native: one call: right");
    running.signal("INT");
    let ended = running.end();
    ended.assert_code(130);
    assert!(ended.stdout.contains(known), "{ended:#?}");
    let server = Server::start([Wire::Chat.says("no"), Reply(vec![Step::Hang])]);
    let user = user_of(&server);
    let mut running = user.start(&["models", "probe"]);
    running.until_stderr("native: one call:");
    running.signal("INT");
    let ended = running.end();
    ended.assert_code(130);
    assert!(ended.stdout.contains("not enough results") && !ended.stdout.contains("cannot be"), "{ended:#?}");
}

#[test]
fn a_local_server_chosen_without_a_model_uses_its_only_one_or_lists_them() {
    let list = |models: &[&str]| {
        let data: Vec<_> = models.iter().map(|id| json!({"id": id})).collect();
        let json = "content-type: application/json\r\n";
        Reply::plain("200 OK", json, &json!({"object": "list", "data": data}).to_string())
    };
    let ask = |replies: Vec<Reply>| {
        let server = Server::start(replies);
        let user = User::new();
        let url = format!("model_providers.ollama.base_url={}", server.url());
        (user.run(&["exec", "-p", "ollama", "-c", &url, "hi"]), server.requests())
    };
    let (ended, requests) = ask(vec![list(&["qwen3:8b", "nomic-embed-text"]), Wire::Chat.says("hello")]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "hello\n");
    assert!(ended.stderr.contains("using `qwen3:8b`, the only model of `ollama`\n"), "{ended:#?}");
    assert_eq!(requests[1].body["model"], "qwen3:8b");
    let (ended, requests) = ask(vec![list(&["qwen3:8b", "llama3.2"])]);
    ended.assert_code(2);
    let listed = "error: `ollama` has 2 models; choose one with `--model`:\n  llama3.2\n  qwen3:8b\n";
    assert!(ended.stderr.starts_with(listed), "{ended:#?}");
    assert_eq!(requests.len(), 1);
    ask(vec![list(&[])]).0.assert_code(2);
}
