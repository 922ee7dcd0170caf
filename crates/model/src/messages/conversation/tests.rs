//! Tests of histories.

use proptest::prelude::*;
use serde_json::{Value, json, value::to_raw_value};
use windlass_contract::{Content, Input, ToolCall, call::InputKind, item::Raw};

use super::*;

fn user(text: &str) -> Item {
    Item::message(Role::User, text)
}

fn answer(text: &str) -> Item {
    Item::message(Role::Assistant, text)
}

fn call(id: &str) -> Item {
    Body::Call(ToolCall { id: id.into(), name: "f".into(), input: Input::Json(r#"{ "a": 1.0 }"#.into()) })
        .into()
}

fn output(id: &str) -> Item {
    let content = vec![Content::Text("done".to_owned())];
    Body::Output { call: id.into(), input: InputKind::Json, content, failed: false }.into()
}

fn own(body: Body, json: &Value) -> Item {
    Item { body, raw: Some(Raw { wire: "messages".into(), json: to_raw_value(json).unwrap() }) }
}

fn thought(signature: &str) -> Item {
    let json = json!({"signature": signature, "thinking": "hm", "type": "thinking"});
    own(Body::Reasoning { summary: vec![], text: vec!["hm".to_owned()] }, &json)
}

fn written(items: Vec<Item>, form: ThoughtForm) -> String {
    let history: Vec<_> = items.into_iter().map(Cached::new).collect();
    encode(&history, form)
}

/// Returns each message in short: `u:` or `a:`, and its blocks.
fn told(items: Vec<Item>) -> Vec<String> {
    brief(&written(items, ThoughtForm::Kept))
}

fn brief(messages: &str) -> Vec<String> {
    let messages: Vec<Value> = serde_json::from_str(messages).unwrap();
    let block = |block: &Value| {
        let text = |name: &str| block[name].as_str().unwrap_or("?").to_owned();
        let mark = if block.get("cache_control").is_some() { "*" } else { "" };
        let said = match text("type").as_str() {
            "text" => text("text"),
            "tool_use" => format!("call {}", text("id")),
            "tool_result" if text("content").starts_with("the call was interrupted") => {
                format!("no result {}", text("tool_use_id"))
            }
            "tool_result" if block["is_error"] == true => format!("failed {}", text("tool_use_id")),
            "tool_result" => format!("result {}", text("tool_use_id")),
            "thinking" => format!("thought {}", text("signature")),
            other => other.to_owned(),
        };
        said + mark
    };
    let line = |message: &Value| {
        let blocks: Vec<_> = message["content"].as_array().unwrap().iter().map(block).collect();
        format!("{}: {}", &message["role"].as_str().unwrap()[..1], blocks.join(", "))
    };
    messages.iter().map(line).collect()
}

#[test]
fn items_between_two_answers_are_one_message_with_results_first() {
    let items = vec![
        Item::message(Role::Developer, "rules"),
        user("go"),
        thought("S"),
        answer("I will. \n"),
        call("c1"),
        call("c2"),
        user("wait"),
        output("c2"),
        output("c1"),
        user("well?"),
        answer("done"),
        user("thanks"),
    ];
    assert_eq!(
        told(items),
        [
            "u: rules, go",
            "a: thought S, I will., call c1, call c2",
            "u: result c1, result c2, wait, well?*",
            "a: done",
            "u: thanks*"
        ]
    );
}

#[test]
fn every_call_has_one_result_and_every_result_a_call() {
    let items = vec![user("go"), output("lost"), call("c1"), call("c2"), output("c2"), output("c2")];
    assert_eq!(told(items), ["u: go*", "a: call c1, call c2", "u: no result c1, result c2*"]);
}

#[test]
fn a_call_that_failed_is_marked() {
    let content = vec![Content::Text("exit code 1".to_owned())];
    let failed = Body::Output { call: "c1".into(), input: InputKind::Json, content, failed: true };
    assert_eq!(told(vec![user("go"), call("c1"), failed.into()])[2], "u: failed c1*");
}

#[test]
fn the_user_comes_first_and_last() {
    assert_eq!(told(vec![]), ["u: Continue.*"]);
    assert_eq!(told(vec![answer("a")]), ["u: Continue.*", "a: a", "u: Continue.*"]);
    assert_eq!(told(vec![user("go"), call("c")]), ["u: go*", "a: call c", "u: no result c*"]);
}

#[test]
fn thoughts_that_led_to_nothing_and_blank_texts_are_left_out() {
    let items = vec![user("go"), user(" \n"), thought("S"), user("again"), answer(""), thought("T")];
    assert_eq!(told(items), ["u: go, again*"]);
    let items = vec![user("go"), answer("same"), answer("same"), thought("S")];
    assert_eq!(told(items), ["u: go*", "a: same", "u: Continue.*"]);
}

#[test]
fn a_paused_answer_is_sent_back_as_it_is() {
    let hosted = || own(Body::Other, &json!({"type": "server_tool_use", "id": "s"}));
    assert_eq!(told(vec![user("go"), hosted()]), ["u: go*", "a: server_tool_use"]);
    assert_eq!(told(vec![user("go"), hosted(), call("c")])[2..], ["u: no result c*"]);
}

#[test]
fn thoughts_go_back_unchanged_or_not_at_all() {
    let items = || {
        let foreign = Body::Reasoning { summary: vec!["s".to_owned()], text: vec!["t".to_owned()] };
        let hidden = own(Body::Other, &json!({"type": "redacted_thinking", "data": "D"}));
        vec![user("go"), thought("EqQ+/=="), hidden, foreign.into(), call("c"), output("c")]
    };
    let kept = written(items(), ThoughtForm::Kept);
    assert!(
        kept.contains(r#"[{"signature":"EqQ+/==","thinking":"hm","type":"thinking"},{"data":"D","#),
        "{kept}"
    );
    assert!(kept.contains(r#""input":{ "a": 1.0 }}"#), "the arguments are the model's own: {kept}");
    assert_eq!(brief(&kept)[1], "a: thought EqQ+/==, redacted_thinking, call c");
    assert_eq!(brief(&written(items(), ThoughtForm::LeftOut))[1], "a: call c");
}

#[test]
fn images_are_bytes_or_addresses() {
    let images = ["data:image/png;base64,AAAA", "https://x.example/a.png"];
    let content: Vec<_> = images.iter().map(|url| Content::Image((*url).to_owned())).collect();
    let output =
        Body::Output { call: "c".into(), input: InputKind::Json, content: content.clone(), failed: false };
    let message = Body::Message { role: Role::User, content };
    let text = written(vec![message.into(), call("c"), output.into()], ThoughtForm::Kept);
    let messages: Value = serde_json::from_str(&text).unwrap();
    let bytes = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let address = json!({"type": "url", "url": "https://x.example/a.png"});
    assert_eq!(messages[0]["content"][0]["source"], bytes);
    let inner = &messages[2]["content"][0]["content"];
    assert_eq!((&inner[0]["source"], &inner[1]["source"]), (&bytes, &address));
}

#[test]
fn ids_of_other_wires_are_sent_in_characters_the_api_accepts() {
    let items = vec![user("go"), call("functions.f:0"), output("functions.f:0")];
    let id = "functions_2e_f_3a_0";
    assert_eq!(told(items)[1..], [format!("a: call {id}"), format!("u: result {id}*")]);
}

fn any_item() -> impl Strategy<Value = Item> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        Just(user("u")),
        Just(user(" ")),
        Just(answer("t")),
        Just(thought("S")),
        Just(own(Body::Other, &json!({"type": "server_tool_use"}))),
        id.clone().prop_map(call),
        id.prop_map(output),
    ]
}

proptest! {
    #[test]
    fn any_history_alternates_and_answers_every_call(items in prop::collection::vec(any_item(), 0..24)) {
        let text = written(items, ThoughtForm::Kept);
        let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
        let ids = |message: &Value, kind: &str, name: &str| -> Vec<String> {
            let blocks = message["content"].as_array().unwrap().iter().filter(|block| block["type"] == kind);
            blocks.map(|block| block[name].as_str().unwrap().to_owned()).collect()
        };
        for (at, message) in messages.iter().enumerate() {
            prop_assert_eq!(&message["role"], if at % 2 == 0 { "user" } else { "assistant" });
            let blocks = message["content"].as_array().unwrap();
            prop_assert!(!blocks.is_empty());
            prop_assert!(at % 2 == 0 || blocks.last().unwrap()["type"] != "thinking");
            let calls = ids(message, "tool_use", "id");
            let results = messages.get(at + 1).map(|next| ids(next, "tool_result", "tool_use_id"));
            prop_assert_eq!(results.unwrap_or_default(), calls);
        }
        prop_assert!(text.matches("cache_control").count() <= CACHED_MESSAGES);
    }
}
