//! Conversations that go well, however the server paces them.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_contract::{
    Content, Input, Item,
    call::InputKind,
    id::ThreadId,
    item::{Body, Cached, Role},
    model::{ModelEvent, Prompt},
};
use windlass_model::{Options, WireApi, connect};

use crate::{
    ask::{ask, client, provider, show},
    server::{Reply, Server, Step, chunk},
};

pub(crate) const RESPONSES_OK: &[&str] = &[
    r#"{"type":"response.output_text.delta","delta":"ok"}"#,
    r#"{"type":"response.output_item.done","item":{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"ok"}]}}"#,
    r#"{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":2,"output_tokens":1}}}"#,
];

pub(crate) const CHAT_OK: &[&str] = &[
    r#"{"choices":[{"delta":{"content":"ok"}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}"#,
    "[DONE]",
];

pub(crate) const MESSAGES_OK: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":2,"output_tokens":0}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
    r#"{"type":"message_stop"}"#,
];

pub(crate) const OK: [&str; 3] = ["text ok", "message ok", "completed 3"];

#[tokio::test]
async fn each_wire_sends_what_its_servers_expect() {
    for (wire, reply, path, key) in [
        (WireApi::Responses, RESPONSES_OK, "/v1/responses", "authorization: Bearer sk-1"),
        (WireApi::Chat, CHAT_OK, "/v1/chat/completions", "authorization: Bearer sk-1"),
        (WireApi::Messages, MESSAGES_OK, "/v1/messages", "x-api-key: sk-1"),
    ] {
        let server = Server::start([Reply::events(reply)]).await;
        let mut provider = provider(&server.url, wire);
        provider.env_key = Some("KEY".to_owned());
        provider.query_params = [("v".to_owned(), "1".into())].into();
        provider.http_headers = [("X-Team".to_owned(), "blue".into())].into();
        let env = |name: &str| (name == "KEY").then(|| "sk-1".to_owned());
        let client = connect("test", &provider, Options::default(), &env).unwrap();
        assert_eq!(ask(client.as_ref()).await, OK);
        let request = server.requests().remove(0);
        assert!(request.head.starts_with(&format!("POST {path}?v=1 HTTP/1.1\r\n")), "{}", request.head);
        for line in [
            key,
            "accept: text/event-stream",
            "content-type: application/json",
            "session_id: thread-1",
            "x-team: blue",
        ] {
            assert!(request.head.lines().any(|each| each == line), "{line} in {}", request.head);
        }
        let is_messages = wire == WireApi::Messages;
        assert_eq!(request.head.contains("\r\nanthropic-version: 2023-06-01\r\n"), is_messages);
        assert_eq!(request.head.contains("authorization"), !is_messages);
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body["stream"], json!(true));
    }
}

#[tokio::test]
async fn deltas_and_calls_arrive_while_the_server_is_still_sending() {
    let cases = [
        (
            WireApi::Responses,
            vec![
                RESPONSES_OK[0],
                r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}}"#,
            ],
            RESPONSES_OK[2],
            vec!["text ok", "call c1 {}"],
        ),
        (
            WireApi::Chat,
            vec![
                CHAT_OK[0],
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            ],
            "[DONE]",
            vec!["text ok", "message ok", "arguments {}", "call c1 {}"],
        ),
    ];
    for (wire, early, last, expected) in cases {
        let go_on = Arc::new(Notify::new());
        let reply = Reply::begun(&early)
            .then(Step::Wait(Arc::clone(&go_on)))
            .then(chunk(format!("data: {last}\n\n").as_bytes()))
            .then(Step::Send(b"0\r\n\r\n".to_vec()));
        let server = Server::start([reply]).await;
        let client = client(&provider(&server.url, wire));
        let (thread, tools) = (ThreadId::from("t"), Cached::new(vec![]));
        let prompt = Prompt {
            thread: &thread,
            instructions: "",
            history: &[],
            tools: &tools,
            parallel_calls: false,
            output_schema: None,
        };
        let mut answer = client.open(prompt).await.unwrap();
        for line in expected {
            assert_eq!(show(answer.next().await.unwrap().unwrap()), line);
        }
        go_on.notify_one();
        assert!(show(answer.next().await.unwrap().unwrap()).starts_with("completed"));
        assert!(answer.next().await.is_none());
    }
}

#[tokio::test]
async fn any_chunking_and_line_end_gives_the_same_answer() {
    let stream: String =
        RESPONSES_OK.iter().map(|data| format!(": ping\r\nevent: x\r\ndata: {data}\r\n\r\n")).collect();
    for size in [1, 7, 100, stream.len()] {
        let mut reply = Reply::begun(&[]);
        reply.0.extend(stream.as_bytes().chunks(size).map(chunk));
        let server = Server::start([reply.then(Step::Send(b"0\r\n\r\n".to_vec()))]).await;
        assert_eq!(ask(client(&provider(&server.url, WireApi::Responses)).as_ref()).await, OK, "{size}");
    }
}

#[tokio::test]
async fn a_stream_under_another_content_type_is_a_stream() {
    let body: String = CHAT_OK.iter().map(|data| format!("data: {data}\n\n")).collect();
    let server = Server::start([Reply::plain("200 OK", "content-type: text/plain\r\n", &body)]).await;
    assert_eq!(ask(client(&provider(&server.url, WireApi::Chat)).as_ref()).await, OK);
}

/// A call goes out and comes back over both wires, and each request begins with the bytes of the
/// one before.
#[tokio::test]
async fn a_tool_round_trip_only_adds_to_what_was_sent_before() {
    let cases = [
        (
            WireApi::Responses,
            vec![
                r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"}}"#,
                r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{\"a\": 1}","new_field":[1.0]}}"#,
                RESPONSES_OK[2],
            ],
            r#",{"type":"reasoning","summary":[],"encrypted_content":"e"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\": 1}","new_field":[1.0]},{"type":"function_call_output","call_id":"c1","output":"done"}]"#,
        ),
        (
            WireApi::Chat,
            vec![
                r#"{"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{"index":0,"id":"c1","extra_content":{"s":1},"function":{"name":"f","arguments":"{\"a\": 1}"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
                "[DONE]",
            ],
            r#",{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"extra_content":{"s":1},"function":{"arguments":"{\"a\": 1}","name":"f"},"id":"c1","type":"function"}]},{"role":"tool","tool_call_id":"c1","content":"done"}]"#,
        ),
    ];
    for (wire, first, added) in cases {
        let server = Server::start([Reply::events(&first), Reply::events(&first)]).await;
        let client = client(&provider(&server.url, wire));
        let (thread, tools) = (ThreadId::from("t"), Cached::new(vec![]));
        let mut history = vec![Cached::new(Item::message(Role::User, "go"))];
        for _ in 0..2 {
            let prompt = Prompt {
                thread: &thread,
                instructions: "i",
                history: &history,
                tools: &tools,
                parallel_calls: false,
                output_schema: None,
            };
            let mut answer = client.open(prompt).await.unwrap();
            let mut items = Vec::new();
            while let Some(event) = answer.next().await {
                if let ModelEvent::Item(item) = event.unwrap() {
                    items.push(item);
                }
            }
            let output = Body::Output {
                call: "c1".into(),
                input: InputKind::Json,
                content: vec![Content::Text("done".to_owned())],
                failed: false,
            };
            assert!(items.iter().any(|item| matches!(&item.body, Body::Call(call) if call.input == Input::Json("{\"a\": 1}".into()))));
            history.extend(items.into_iter().chain([output.into()]).map(Cached::new));
        }
        let sent = |at: usize| {
            let body = server.requests()[at].body.clone();
            let begin =
                body.find(if wire == WireApi::Chat { "\"messages\":" } else { "\"input\":" }).unwrap();
            let end = body.find(if wire == WireApi::Chat { ",\"stream\"" } else { ",\"store\"" }).unwrap();
            body[begin..end].to_owned()
        };
        let (before, after) = (sent(0), sent(1));
        assert_eq!(after.strip_prefix(before.strip_suffix(']').unwrap()), Some(added));
    }
}

#[tokio::test]
async fn dropping_an_answer_ends_the_request() {
    let server =
        Server::start([Reply::begun(&RESPONSES_OK[..1]).then(Step::Hang), Reply::events(RESPONSES_OK)]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    let (thread, tools) = (ThreadId::from("t"), Cached::new(vec![]));
    let prompt = Prompt {
        thread: &thread,
        instructions: "",
        history: &[],
        tools: &tools,
        parallel_calls: false,
        output_schema: None,
    };
    let mut answer = client.open(prompt).await.unwrap();
    assert_eq!(show(answer.next().await.unwrap().unwrap()), "text ok");
    drop(answer);
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!(server.connections(), 2, "the first connection is of no more use");
}
