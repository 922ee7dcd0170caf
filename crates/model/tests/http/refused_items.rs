//! Servers that do not take back what they have sent.

use serde_json::{Value, json};
use windlass_contract::{
    Item,
    id::ThreadId,
    item::{Cached, Role},
    model::{ModelClient, ModelError, ModelEvent, Prompt},
};
use windlass_model::WireApi;

use crate::{
    ask::{client, provider},
    server::{Reply, Server},
    talk::RESPONSES_OK,
};

const REASONING: &str = r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":[],"encrypted_content":"e"}}"#;
const NAMELESS: &str = r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","arguments":"{}","status":"completed"}}"#;

fn rejects() -> Reply {
    let body = r#"{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error"}}"#;
    Reply::plain("400 Bad Request", "content-type: application/json\r\n", body)
}

/// Asks, adds the items of the answer to the history, and returns the notices.
async fn go_on(client: &dyn ModelClient, history: &mut Vec<Cached<Item>>) -> Result<Vec<String>, ModelError> {
    let (thread, tools) = (ThreadId::from("t"), Cached::new(vec![]));
    let prompt = Prompt {
        thread: &thread,
        instructions: "",
        history,
        tools: &tools,
        parallel_calls: false,
        output_schema: None,
    };
    let mut answer = client.open(prompt).await?;
    let (mut items, mut notices) = (Vec::new(), Vec::new());
    while let Some(event) = answer.next().await {
        match event? {
            ModelEvent::Item(item) => items.push(Cached::new(item)),
            ModelEvent::Notice(notice) => notices.push(notice),
            _ => {}
        }
    }
    history.extend(items);
    Ok(notices)
}

fn inputs(server: &Server) -> Vec<Value> {
    let input = |body: &str| serde_json::from_str::<Value>(body).unwrap()["input"].clone();
    server.requests().iter().map(|request| input(&request.body)).collect()
}

fn user() -> Vec<Cached<Item>> {
    vec![Cached::new(Item::message(Role::User, "hi"))]
}

#[tokio::test]
async fn a_rejected_conversation_goes_on_without_what_only_the_server_understands() {
    let ok = || Reply::events(RESPONSES_OK);
    let first = Reply::events(&[REASONING, RESPONSES_OK[1], RESPONSES_OK[2]]);
    let server = Server::start([first, rejects(), ok(), ok()]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    let mut history = user();
    assert_eq!(go_on(client.as_ref(), &mut history).await.unwrap(), [""; 0]);
    let notices = go_on(client.as_ref(), &mut history).await.unwrap();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].starts_with("the server does not take back what it has sent"), "{notices:?}");
    // It is not asked the same again.
    assert_eq!(go_on(client.as_ref(), &mut history).await.unwrap(), [""; 0]);
    let has_reasoning: Vec<_> =
        inputs(&server).iter().map(|input| input.to_string().contains("encrypted_content")).collect();
    assert_eq!(has_reasoning, [false, true, false, false]);
}

#[tokio::test]
async fn a_rejection_of_the_plain_form_is_the_servers_first_word() {
    let first = Reply::events(&[REASONING, RESPONSES_OK[2]]);
    let other = Reply::plain("422 Unprocessable", "", r#"{"error":{"message":"nor this"}}"#);
    let server = Server::start([first, rejects(), other]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    let mut history = user();
    go_on(client.as_ref(), &mut history).await.unwrap();
    let error = go_on(client.as_ref(), &mut history).await.unwrap_err().to_string();
    assert!(error.contains("could not be verified"), "{error}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_rejection_of_our_own_words_is_not_sent_again() {
    let server = Server::start([rejects()]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    go_on(client.as_ref(), &mut user()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_call_without_a_name_goes_back_with_one_and_is_reported_once() {
    let server =
        Server::start([Reply::events(&[NAMELESS, RESPONSES_OK[2]]), Reply::events(RESPONSES_OK)]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    let mut history = user();
    let notices = go_on(client.as_ref(), &mut history).await.unwrap();
    assert_eq!(notices, ["the server sent a malformed item `function_call`; it is sent back in valid form"]);
    go_on(client.as_ref(), &mut history).await.unwrap();
    assert_eq!(
        inputs(&server)[1][1],
        json!({"type": "function_call", "call_id": "c1", "arguments": "{}", "status": "completed", "name": "unnamed"})
    );
}
