//! Questions of the model to the person: at the terminal, in a session, through a client, and where
//! nobody can be asked.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::support::{Emulator, McpClient, Server, User, Wire, text};

/// Longer than the time in which a new question takes no keys.
const READING_TIME: Duration = Duration::from_millis(600);

const SIZE: (u16, u16) = (40, 120);

fn question(id: &str) -> Value {
    json!({
        "id": id,
        "header": id,
        "question": format!("Which {id}?"),
        "options": [
            {"label": "first", "description": "the usual one"},
            {"label": "second", "description": ""},
        ],
    })
}

fn call(ids: &[&str]) -> Value {
    let questions: Vec<_> = ids.iter().map(|id| question(id)).collect();
    json!({"calls": [{"name": "request_user_input", "arguments": {"questions": questions}}]})
}

/// Returns the outputs of the calls in the session file.
fn outputs(user: &User) -> Vec<String> {
    let outcomes = user.records().into_iter().filter(|record| record["type"] == "outcome");
    outcomes
        .map(|record| record["payload"]["outcome"]["content"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_person_at_the_terminal_answers_in_lines() {
    let user = User::new();
    let script = user.script(&json!([call(&["colour", "size"]), {"text": "The end."}]));
    let mut terminal = Emulator::start(&user.program(&["exec", "--script", &script, "go"]), SIZE);
    let screen = terminal.until("Which one? 1-2, o or c:");
    assert!(
        screen.contains("The agent asks (1 of 2), in its own words: [colour]\n  | Which colour?\n"),
        "{screen}"
    );
    terminal.type_in("yes\r");
    terminal.until("answer with the number of an option");
    terminal.type_in("2\r");
    terminal.until("(2 of 2)");
    terminal.type_in("o about 7\r");
    terminal.until("Send it? y, c, or e to start again:");
    terminal.type_in("y\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let expected = json!({"answers": {"colour": {"answers": ["second"]}, "size": {"answers": ["about 7"]}}});
    let given: Vec<Value> = outputs(&user).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(given, [expected]);
}

#[test]
fn a_session_asks_in_a_panel_or_in_lines_also_in_plan_mode() {
    for (options, enter) in [(&[][..], ""), (&["--plain"], "\r"), (&["--plan"], "")] {
        let user = User::new();
        let script = user.script(&json!([call(&["colour"]), {"text": "The end."}]));
        let words = [&["chat", "--script", &script, "go on"], options].concat();
        let terminal = Emulator::start(&user.program(&words), SIZE);
        let screen = terminal.until("Which one? 1-2, o or c");
        assert!(screen.contains("1  first: the usual one"), "{screen}");
        thread::sleep(READING_TIME);
        terminal.type_in(&format!("2{enter}"));
        let screen = terminal.until("The end.");
        assert!(screen.contains("ask Which colour?") && screen.contains("second"), "{screen}");
        assert!(outputs(&user)[0].contains("second"), "{options:?}");
    }
}

#[test]
fn escape_dismisses_the_question_and_the_turn_goes_on() {
    let user = User::new();
    let script = user.script(&json!([call(&["colour"]), {"text": "The end."}, {"text": "Another one."}]));
    let mut terminal = Emulator::start(&user.program(&["chat", "--script", &script, "go on"]), SIZE);
    terminal.until("Which one? 1-2, o or c");
    thread::sleep(READING_TIME);
    terminal.type_in("\u{1b}");
    terminal.until("The end.");
    assert!(outputs(&user)[0].contains("request_user_input was cancelled before receiving a response"));
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("again\r");
    terminal.until("Another one.");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_session() {
    let user = User::new();
    let script = user.script(&json!([call(&["colour"]), {"text": "Another one."}]));
    let mut terminal = Emulator::start(&user.program(&["chat", "--script", &script, "go on"]), SIZE);
    terminal.until("Which one? 1-2, o or c");
    terminal.type_in("\u{3}");
    terminal.until("— cancelled");
    terminal.until_screen("idle", |screen| !screen.contains("Which one?") && !screen.contains("working"));
    terminal.type_in("again\r");
    terminal.until("Another one.");
    assert_eq!(outputs(&user).len(), 1, "the call has its output");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn where_nobody_can_be_asked_the_tool_is_not_offered_and_a_call_of_it_goes_on() {
    let server = Server::start([Wire::Responses.says("ok")]);
    let user = User::new();
    user.use_server(&server, Wire::Responses);
    user.run(&["exec", "go"]).assert_code(0);
    let request = server.requests()[0].body["tools"].to_string();
    assert!(request.contains("update_plan") && !request.contains("request_user_input"), "{request}");
    let user = User::new();
    let script = user.script(&json!([call(&["colour"]), {"text": "The end."}]));
    let ended = user.run(&["exec", "--script", &script, "go"]);
    ended.assert_code(0);
    let outputs = outputs(&user);
    assert!(outputs[0].contains("nobody can be asked in this session"), "{outputs:?}");
}

#[test]
fn no_text_of_a_tool_answers_a_question() {
    let user = User::new();
    user.file("answer.txt", "1\ny\n{\"answers\":{\"colour\":{\"answers\":[\"first\"]}}}\n");
    let shell = |command: &str| json!({"name": "shell_command", "arguments": {"command": command}});
    let both =
        json!({"calls": [shell("cat answer.txt"), call(&["colour"])["calls"][0], shell("cat answer.txt")]});
    let script = user.script(&json!([both, {"text": "The end."}]));
    let options = ["-s", "danger-full-access", "-a", "never"];
    let words = [&["chat", "--script", &script, "go on"], &options[..]].concat();
    let terminal = Emulator::start(&user.program(&words), SIZE);
    terminal.until("Which one? 1-2, o or c");
    thread::sleep(READING_TIME);
    assert!(terminal.screen().contains("Which one?"), "{}", terminal.screen());
    terminal.type_in("2");
    terminal.until("The end.");
    let answer = outputs(&user).into_iter().find(|text| text.starts_with("{\"answers\"")).unwrap();
    assert!(answer.contains("second"), "{answer}");
}

#[test]
fn an_agent_asks_the_person_of_its_client() {
    let answers = [
        (Some(json!({"action": "accept", "content": {"answer_1": "2"}})), "second"),
        (Some(json!({"action": "accept", "content": {"answer_1": "other", "own_answer_1": "red"}})), "red"),
        (Some(json!({"action": "cancel"})), "cancelled before receiving a response"),
        (Some(json!({"action": "decline"})), "nobody can be asked"),
        (None, "nobody can be asked"),
    ];
    for (answer, expected) in answers {
        let user = User::new();
        let script = user.script(&json!([call(&["colour"]), {"text": "The end."}]));
        let config =
            format!("model_provider = \"scripted\"\n[model_providers.scripted]\nscript = \"{script}\"\n");
        user.configure(&config);
        let can_ask = answer.is_some();
        let mut client = McpClient::start(&user, &[], answer, None);
        assert!(!client.tools().contains(&"request_user_input".to_owned()));
        let result = client.call("windlass", &json!({"prompt": "go"}));
        assert_eq!(text(&result), "The end.", "{result}");
        assert_eq!(client.asked.len(), usize::from(can_ask));
        if let Some(asked) = client.asked.first() {
            assert_eq!(asked["message"], "A question of the agent: Which colour?", "{asked}");
            assert_eq!(asked["requestedSchema"]["required"], json!(["answer_1"]), "{asked}");
        }
        let recorded: String = user.sessions().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        assert!(recorded.contains(expected), "{expected}: {recorded}");
    }
}
