//! Tests of messages.

use proptest::prelude::*;
use serde_json::value::to_raw_value;
use windlass_contract::{call::InputKind, item::Raw};

use super::*;

fn say(role: Role, text: &str) -> Item {
    Item::message(role, text)
}

fn think(text: &str) -> Item {
    Body::Reasoning { summary: vec![], text: vec![text.to_owned()] }.into()
}

fn call(id: &str) -> Item {
    Body::Call(ToolCall { id: id.into(), name: "f".into(), input: Input::Json("{}".to_owned()) }).into()
}

fn output(id: &str) -> Item {
    let content = vec![Content::Text(format!("out {id}"))];
    Body::Output { call: id.into(), input: InputKind::Json, content, failed: false }.into()
}

fn raw(mut item: Item, json: &Value) -> Item {
    item.raw = Some(Raw { wire: "chat".into(), json: to_raw_value(json).unwrap() });
    item
}

fn cached(items: Vec<Item>) -> Vec<Cached<Item>> {
    items.into_iter().map(Cached::new).collect()
}

fn messages(items: Vec<Item>) -> Value {
    serde_json::from_str(&encode("", &cached(items), None)).unwrap()
}

fn wire_call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

#[test]
fn what_a_model_said_in_one_go_is_one_message() {
    assert_eq!(
        messages(vec![
            say(Role::User, "go"),
            say(Role::Assistant, "I \"will\"\n"),
            call("c1"),
            call("c2"),
            output("c1"),
            output("c2"),
            call("c3"),
            output("c3"),
            say(Role::Assistant, "done"),
        ]),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "I \"will\"\n", "tool_calls": [wire_call("c1"), wire_call("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": "out c1"},
            {"role": "tool", "tool_call_id": "c2", "content": "out c2"},
            {"role": "assistant", "content": null, "tool_calls": [wire_call("c3")]},
            {"role": "tool", "tool_call_id": "c3", "content": "out c3"},
            {"role": "assistant", "content": "done"}
        ])
    );
}

#[test]
fn text_after_a_call_never_comes_between_the_call_and_its_output() {
    assert_eq!(
        messages(vec![say(Role::Assistant, "a"), call("c1"), say(Role::Assistant, "b"), output("c1")]),
        json!([
            {"role": "assistant", "content": "a\nb", "tool_calls": [wire_call("c1")]},
            {"role": "tool", "tool_call_id": "c1", "content": "out c1"}
        ])
    );
}

#[test]
fn a_text_said_twice_in_a_row_is_sent_once() {
    let twice = vec![say(Role::Assistant, "a"), say(Role::Assistant, "a"), say(Role::Assistant, "b")];
    assert_eq!(messages(twice), json!([{"role": "assistant", "content": "a\nb"}]));
}

#[test]
fn instructions_come_first_and_developers_speak_as_the_system() {
    let text = encode("be brief", &cached(vec![say(Role::Developer, "d"), say(Role::System, "s")]), None);
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "system", "content": "d"},
            {"role": "system", "content": "s"}
        ])
    );
}

#[test]
fn thoughts_go_along_until_the_user_speaks_again() {
    let first = || {
        vec![
            say(Role::User, "go"),
            think("hm"),
            raw(think("so"), &json!({"reasoning_content": "so"})),
            call("c1"),
            output("c1"),
            raw(think("well"), &json!({"reasoning_content": "well"})),
            say(Role::Assistant, "ok"),
        ]
    };
    let with = messages(first());
    assert_eq!(with[1]["reasoning"], "hm\nso");
    assert_eq!(with[3]["reasoning_content"], "well");
    let mut later = first();
    later.push(say(Role::User, "more"));
    assert_eq!(
        messages(later),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [wire_call("c1")]},
            {"role": "tool", "tool_call_id": "c1", "content": "out c1"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "more"}
        ])
    );
    let blank = vec![think("  "), think(""), say(Role::Assistant, "x")];
    assert_eq!(messages(blank), json!([{"role": "assistant", "content": "x"}]));
    assert_eq!(messages(vec![think("alone")]), json!([]));
}

#[test]
fn images_make_parts_and_texts_alone_do_not() {
    let content = vec![Content::Text("a".into()), Content::Text("b".into())];
    let both = vec![Content::Text("a".into()), Content::Image("data:x".into())];
    let parts = json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:x"}}]);
    let tool =
        Body::Output { call: "c".into(), input: InputKind::Text, content: both.clone(), failed: false };
    assert_eq!(
        messages(vec![
            Body::Message { role: Role::User, content }.into(),
            Body::Message { role: Role::User, content: both.clone() }.into(),
            tool.into(),
            Body::Message { role: Role::Assistant, content: both }.into(),
        ]),
        json!([
            {"role": "user", "content": "a\nb"},
            {"role": "user", "content": parts},
            {"role": "tool", "tool_call_id": "c", "content": parts},
            {"role": "assistant", "content": "a"}
        ])
    );
}

#[test]
fn a_call_goes_back_as_it_came_and_one_of_another_wire_from_its_body() {
    let signed = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"sig": "s"}});
    let mut foreign = raw(call("c2"), &json!({"type": "function_call"}));
    foreign.raw.as_mut().unwrap().wire = "responses".into();
    let text = Input::Text("line\n\"q\"".to_owned());
    let freeform = Body::Call(ToolCall { id: "c3".into(), name: "p".into(), input: text });
    let sent = messages(vec![raw(call("c1"), &signed), foreign, freeform.into()]);
    let patch = json!({"id": "c3", "type": "function", "function": {"name": "p", "arguments": "{\"input\":\"line\\n\\\"q\\\"\"}"}});
    assert_eq!(sent[0]["tool_calls"], json!([signed, wire_call("c2"), patch]));
}

#[test]
fn arguments_no_server_could_read_are_shown_in_an_object() {
    let broken = |text: &str| {
        let input = Input::Json(text.to_owned());
        let call = Body::Call(ToolCall { id: "c".into(), name: "f".into(), input });
        messages(vec![call.into()])[0]["tool_calls"][0]["function"]["arguments"].clone()
    };
    assert_eq!(broken(""), "{}");
    assert_eq!(broken("{\"a"), r#"{"invalid_arguments":"{\"a"}"#);
}

#[test]
fn what_this_wire_cannot_express_is_left_out() {
    let search = Body::WebSearch { query: "q".to_owned() };
    assert_eq!(messages(vec![search.into(), Body::Other.into()]), json!([]));
}

fn any_item() -> impl Strategy<Value = Item> {
    prop_oneof![
        "[a\"\\\\\n é]{0,4}".prop_map(|text| say(Role::Assistant, &text)),
        "[a\"\n ]{0,4}".prop_map(|text| think(&text)),
        "[a-c]".prop_map(|id| call(&id)),
        "[a-c]".prop_map(|id| output(&id)),
        Just(Item::from(Body::Other)),
    ]
}

proptest! {
    #[test]
    fn messages_are_always_json_and_only_the_last_may_change_while_a_turn_goes_on(
        items in prop::collection::vec(any_item(), 0..12),
        more in prop::collection::vec(any_item(), 0..4),
    ) {
        let mut history = cached(items);
        let before: Vec<Value> = serde_json::from_str(&encode("i", &history, None)).unwrap();
        history.extend(cached(more));
        let after: Vec<Value> = serde_json::from_str(&encode("i", &history, None)).unwrap();
        prop_assert!(after.len() >= before.len());
        let settled = before.len().saturating_sub(1);
        prop_assert_eq!(&after[..settled], &before[..settled]);
        let again: Vec<Value> = serde_json::from_str(&encode("i", &history, None)).unwrap();
        prop_assert_eq!(after, again);
    }

    #[test]
    fn a_request_after_outputs_begins_with_the_bytes_of_the_one_before(
        items in prop::collection::vec(any_item(), 0..12),
        more in prop::collection::vec(any_item(), 0..6),
    ) {
        let mut history = cached(items);
        history.push(output("z").into());
        let before = encode("i", &history, None);
        history.extend(cached(more));
        let after = encode("i", &history, None);
        prop_assert!(after.starts_with(before.strip_suffix(']').unwrap()));
    }
}

#[test]
fn what_is_told_in_a_dialect_goes_in_turns_and_without_members_of_its_own() {
    let call = |id: &str, arguments: &str| {
        Item::from(Body::Call(ToolCall {
            id: id.into(),
            name: "f".into(),
            input: Input::Json(arguments.to_owned()),
        }))
    };
    let output = |id: &str, content: Vec<Content>| {
        Item::from(Body::Output {
            call: id.into(),
            input: windlass_contract::call::InputKind::Json,
            content,
            failed: false,
        })
    };
    let text = |text: &str| vec![Content::Text(text.to_owned())];
    let items = vec![
        say(Role::User, "go"),
        say(Role::Assistant, "Well:"),
        call("1", r#"{"a": "\n"}"#),
        call("2", r#"{"a": "\n"}"#),
        output("1", text("one \"1\"")),
        output("2", text("two")),
        call("3", "{\"a"),
        output("3", vec![Content::Image("data:x".to_owned())]),
        say(Role::Assistant, "Done."),
    ];
    let told = encode("", &cached(items), Some(Dialect::Hermes));
    let image = json!([{"type": "image_url", "image_url": {"url": "data:x"}}]);
    assert_eq!(
        serde_json::from_str::<Value>(&told).unwrap(),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "Well:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"\\n\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"\\n\"}}\n</tool_call>"},
            {"role": "user", "content": "<tool_response>\none \"1\"\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"},
            {"role": "assistant", "content": "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"invalid_arguments\":\"{\\\"a\"}}\n</tool_call>"},
            {"role": "user", "content": image},
            {"role": "assistant", "content": "Done."}
        ])
    );
}
