//! Tests of items.

use proptest::prelude::*;
use serde_json::json;

use windlass_contract::{ToolSpec, spec::SpecKind};
use windlass_schema::Schema;

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn parse(value: &Value) -> ReceivedItem {
    ReceivedItem::parse(raw(value))
}

fn call(name: &str, input: Input) -> Body {
    Body::Call(ToolCall { id: "c1".into(), name: name.into(), input })
}

/// Every row of the item table: what the server sends, and what it says in our words.
fn rows() -> Vec<(Value, Body)> {
    let text = |text: &str| Content::Text(text.to_owned());
    let search = |query: &str| Body::WebSearch { query: query.to_owned() };
    vec![
        (
            json!({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "hi", "annotations": []}, {"type": "refusal", "refusal": "no"},
                {"type": "from_the_future", "x": 1}]}),
            Body::Message { role: Role::Assistant, content: vec![text("hi"), text("no")] },
        ),
        (
            json!({"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:x"}]}),
            Body::Message {
                role: Role::User,
                content: vec![text("see"), Content::Image("data:x".to_owned())],
            },
        ),
        (
            json!({"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "s"}],
                "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "e"}),
            Body::Reasoning { summary: vec!["s".to_owned()], text: vec!["t".to_owned()] },
        ),
        (
            json!({"type": "reasoning", "summary": [], "content": null, "encrypted_content": "e"}),
            Body::Reasoning { summary: vec![], text: vec![] },
        ),
        (
            json!({"type": "local_shell_call", "call_id": "c1", "status": "completed", "action":
                {"type": "exec", "command": ["ls"], "timeout_ms": 5, "working_directory": "/w", "env": {}, "user": null}}),
            call(
                "local_shell",
                Input::Json(r#"{"command":["ls"],"timeout_ms":5,"workdir":"/w"}"#.to_owned()),
            ),
        ),
        (
            json!({"type": "function_call", "id": "f1", "name": "f", "arguments": "{\"a\": 1", "call_id": "c1"}),
            call("f", Input::Json("{\"a\": 1".to_owned())),
        ),
        (
            json!({"type": "function_call", "name": "f", "arguments": "{\"a\":1}", "call_id": "c1", "namespace": "n"}),
            call("f", Input::Json(r#"{"a":1}"#.to_owned())),
        ),
        (
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "p", "input": "*** x", "status": "completed"}),
            call("p", Input::Text("*** x".to_owned())),
        ),
        (
            json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}),
            search("q"),
        ),
        (
            json!({"type": "web_search_call", "action": {"type": "search", "queries": ["a", "b"]}}),
            search("a, b"),
        ),
        (json!({"type": "web_search_call", "action": {"type": "open_page", "url": "u"}}), search("u")),
        (
            json!({"type": "web_search_call", "action": {"type": "find_in_page", "url": "u", "pattern": "p"}}),
            search("p in u"),
        ),
        (json!({"type": "compaction", "encrypted_content": "e"}), Body::Other),
        (
            json!({"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "q"}}),
            call("tool_search", Input::Search(r#"{"query":"q"}"#.to_owned())),
        ),
        (
            json!({"type": "tool_search_call", "call_id": "c1", "execution": "server", "arguments": {}}),
            Body::Other,
        ),
    ]
}

/// Malformed items, with what they say in our words and what goes back; null for nothing.
fn malformed_rows() -> Vec<(Value, Body, Value)> {
    let text = |text: &str| Content::Text(text.to_owned());
    let message = |parts: Value| json!({"type": "message", "role": "assistant", "content": parts});
    let call_back = |name: &str, arguments: &str| json!({"type": "function_call", "call_id": "c1", "name": name, "arguments": arguments});
    let search = || Body::WebSearch { query: String::new() };
    let thought = || Body::Reasoning { summary: vec!["s".to_owned()], text: vec![] };
    vec![
        (
            json!({"type": "function_call", "call_id": "c1", "arguments": "{}", "status": "completed", "new": 1}),
            call("unnamed", Input::Json("{}".to_owned())),
            json!({"type": "function_call", "call_id": "c1", "name": "unnamed", "arguments": "{}",
                "status": "completed", "new": 1}),
        ),
        (
            json!({"type": "function_call", "call_id": "c1", "name": "functions.f x", "arguments": {"a": 1}}),
            call("functions.f x", Input::Json(r#"{"a":1}"#.to_owned())),
            call_back("functions_f_x", r#"{"a":1}"#),
        ),
        (
            json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "status": null}),
            call("f", Input::Json("{}".to_owned())),
            call_back("f", "{}"),
        ),
        (
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "p", "input": 5}),
            call("p", Input::Text(String::new())),
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "p", "input": ""}),
        ),
        (
            json!({"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": {"command": "ls"}}),
            call("local_shell", Input::Json(r#"{"command":"ls"}"#.to_owned())),
            call_back("local_shell", r#"{"command":"ls"}"#),
        ),
        (
            json!({"type": "tool_search_call", "call_id": "c1", "arguments": "{\"query\":\"q\"}"}),
            call("tool_search", Input::Search(r#"{"query":"q"}"#.to_owned())),
            json!({"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "q"}}),
        ),
        (
            message(json!([{"type": "output_text", "text": "hi"}, {"type": "output_text", "text": 5}, null])),
            Body::Message { role: Role::Assistant, content: vec![text("hi")] },
            message(json!([{"type": "output_text", "text": "hi"}])),
        ),
        (message(json!(null)), Body::Message { role: Role::Assistant, content: vec![] }, Value::Null),
        (json!({"type": "message", "role": "ghost", "content": 5}), Body::Other, Value::Null),
        (
            json!({"type": "reasoning", "summary": "s", "encrypted_content": "e"}),
            Body::Reasoning { summary: vec![], text: vec![] },
            json!({"type": "reasoning", "summary": [], "encrypted_content": "e"}),
        ),
        (
            json!({"type": "reasoning", "summary": [{"text": "s"}], "encrypted_content": "e", "content": "x"}),
            thought(),
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"}),
        ),
        (json!({"type": "web_search_call"}), search(), Value::Null),
        (json!({"type": "compaction", "encrypted_content": 7}), Body::Other, Value::Null),
        (json!({"type": 5}), Body::Other, Value::Null),
        (json!({"type": ""}), Body::Other, Value::Null),
        (json!(["not", "an", "object"]), Body::Other, Value::Null),
    ]
}

#[test]
fn a_malformed_item_goes_back_in_valid_form_or_not_at_all() {
    for (value, body, expected) in malformed_rows() {
        let item = parse(&value).item;
        assert_eq!(item.body, body, "{value}");
        let back = encode(&item, ItemIds::LeftOut, SchemaProfile::Faithful);
        let back = if back.is_empty() { Value::Null } else { serde_json::from_str(&back).unwrap() };
        assert_eq!(back, expected, "{value}");
        let optional_only = value["status"].is_null() && value["arguments"] == "{}" && value["name"] == "f";
        assert_eq!(malformed_item_notice(&item).is_some(), !optional_only, "{value}");
    }
    for (value, _) in rows() {
        assert_eq!(malformed_item_notice(&parse(&value).item), None, "{value}");
    }
}

#[test]
fn an_item_that_others_read_differently_is_not_sent_back() {
    for text in [
        r#"{"type":"function_call","name":"f","name":"g","arguments":"{}","call_id":"c1"}"#,
        r#"{"type":"from_the_future","text":"\ud800"}"#,
        r#"{"type":"from_the_future","number":1e999}"#,
    ] {
        let item = ReceivedItem::parse(RawValue::from_string(text.to_owned()).unwrap()).item;
        assert_eq!(encode(&item, ItemIds::LeftOut, SchemaProfile::Faithful), "", "{text}");
    }
}

#[test]
fn a_call_is_sent_back_as_it_was_run() {
    let mut item =
        parse(&json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c2"})).item;
    item.body = call("g", Input::Json("{}".to_owned()));
    let back: Value = serde_json::from_str(&encode(&item, ItemIds::Sent, SchemaProfile::Faithful)).unwrap();
    assert_eq!(back, json!({"type": "function_call", "name": "g", "arguments": "{}", "call_id": "c1"}));
}

#[test]
fn what_only_its_server_understands_is_left_out_of_the_plain_form() {
    let raws = [
        json!({"type": "reasoning", "summary": [], "encrypted_content": "e"}),
        json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1", "namespace": "n"}),
        json!({"type": "from_the_future", "x": 1}),
    ];
    let history: Vec<_> = raws.iter().map(|raw| Cached::new(parse(raw).item)).collect();
    let sent = |form| input(&history, ItemIds::LeftOut, form, SchemaProfile::Faithful);
    let expected = json!([{"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"}]);
    assert_eq!(serde_json::from_str::<Value>(&sent(ItemForm::Plain)).unwrap(), expected);
    assert_eq!(serde_json::from_str::<Value>(&sent(ItemForm::Kept)).unwrap(), Value::from(raws.to_vec()));
}

/// Returns the expected JSON: unchanged, except for valid arguments.
fn expected_back(value: &Value, body: &Body) -> Value {
    let mut expected = value.clone();
    if let (Body::Call(ToolCall { input: Input::Json(text), .. }), Some("function_call")) =
        (body, value["type"].as_str())
    {
        expected["arguments"] = valid_arguments(text).into();
    }
    expected
}

fn without_id(mut value: Value) -> Value {
    value.as_object_mut().unwrap().remove("id");
    value
}

#[test]
fn every_kind_of_item_is_understood_and_goes_back_as_it_came() {
    for (value, body) in rows() {
        let item = parse(&value).item;
        assert_eq!(item.body, body, "{value}");
        let back = |ids| serde_json::from_str::<Value>(&encode(&item, ids, SchemaProfile::Faithful)).unwrap();
        let expected = expected_back(&value, &body);
        assert_eq!(back(ItemIds::Sent), expected);
        assert_eq!(back(ItemIds::LeftOut), without_id(expected));
    }
}

#[test]
fn numbers_and_spaces_survive_to_the_letter() {
    let text =
        r#"{"type":"from_the_future","id":"x","big":12345678901234567890123,"small":1.10 , "u":"\u00e9"}"#;
    let received = ReceivedItem::parse(RawValue::from_string(text.to_owned()).unwrap());
    assert_eq!(
        encode(&received.item, ItemIds::LeftOut, SchemaProfile::Faithful),
        r#"{"type":"from_the_future","big":12345678901234567890123,"small":1.10,"u":"\u00e9"}"#
    );
}

#[test]
fn a_call_without_its_own_id_gets_one_that_its_output_can_name() {
    let shell = json!({"type": "local_shell_call", "id": "ls1", "action": {"command": ["ls"]}});
    let item = parse(&shell).into_item(|given| given.into());
    let expected = json!({"type": "function_call", "name": "local_shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "ls1"});
    assert_eq!(
        serde_json::from_str::<Value>(&encode(&item, ItemIds::LeftOut, SchemaProfile::Faithful)).unwrap(),
        expected
    );
    let nothing = json!({"type": "local_shell_call", "action": {"command": "not a list"}});
    let item = parse(&nothing).into_item(|given| format!("{given}new").into());
    let arguments = Input::Json(r#"{"command":"not a list"}"#.to_owned());
    assert_eq!(
        item.body,
        Body::Call(ToolCall { id: "new".into(), name: "local_shell".into(), input: arguments })
    );
}

#[test]
fn reasoning_that_its_server_could_not_read_again_is_left_out_unless_ids_are_sent() {
    let item = parse(&json!({"type": "reasoning", "id": "r1", "summary": [{"text": "s"}]})).item;
    assert_eq!(encode(&item, ItemIds::LeftOut, SchemaProfile::Faithful), "");
    assert!(!encode(&item, ItemIds::Sent, SchemaProfile::Faithful).is_empty());
}

#[test]
fn our_own_items_are_written_in_the_words_of_the_wire() {
    let text = |text: &str| Content::Text(text.to_owned());
    let output = |input, content| Body::Output { call: "c1".into(), input, content, failed: false };
    let image = || Content::Image("data:x".to_owned());
    let found = || {
        let kind = SpecKind::Function { parameters: Schema::default() };
        Content::Tool(Box::new(ToolSpec { name: "f".into(), description: "D".to_owned(), kind }))
    };
    let rows = [
        (
            Body::Message { role: Role::Developer, content: vec![text("a"), image()] },
            json!({"type": "message", "role": "developer", "content": [
                {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}]}),
        ),
        (
            Body::Message { role: Role::Assistant, content: vec![text("a"), image()] },
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}),
        ),
        (
            call("f", Input::Json("{}".to_owned())),
            json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"}),
        ),
        (
            call("p", Input::Text("x".to_owned())),
            json!({"type": "custom_tool_call", "name": "p", "input": "x", "call_id": "c1"}),
        ),
        (
            output(InputKind::Json, vec![text("done")]),
            json!({"type": "function_call_output", "call_id": "c1", "output": "done"}),
        ),
        (
            output(InputKind::Text, vec![]),
            json!({"type": "custom_tool_call_output", "call_id": "c1", "output": ""}),
        ),
        (
            call("tool_search", Input::Search(r#"{"query":"q"}"#.to_owned())),
            json!({"type": "tool_search_call", "call_id": "c1", "execution": "client", "status": "completed",
                "arguments": {"query": "q"}}),
        ),
        (
            output(InputKind::Search, vec![text("found"), found()]),
            json!({"type": "tool_search_output", "call_id": "c1", "execution": "client", "status": "completed",
                "tools": [{"type": "function", "name": "f", "description": "D", "strict": false, "parameters":
                    {"type": "object", "properties": {}, "additionalProperties": false}}]}),
        ),
        (
            output(InputKind::Search, vec![text("aborted")]),
            json!({"type": "tool_search_output", "call_id": "c1", "execution": "client", "status": "completed",
                "tools": []}),
        ),
        (
            output(InputKind::Json, vec![text("found"), found()]),
            json!({"type": "function_call_output", "call_id": "c1", "output": "found"}),
        ),
        (
            output(InputKind::Json, vec![text("see"), image()]),
            json!({"type": "function_call_output", "call_id": "c1", "output": [
                {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:x"}]}),
        ),
    ];
    for (body, expected) in rows {
        let text = encode(&body.into(), ItemIds::LeftOut, SchemaProfile::Faithful);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }
}

#[test]
fn what_came_over_another_wire_is_written_from_its_body_or_left_out() {
    let foreign = |body| Item { body, raw: Some(Raw { wire: "chat".into(), json: raw(&json!({"x": 1})) }) };
    let text =
        encode(&foreign(call("f", Input::Json("{}".to_owned()))), ItemIds::LeftOut, SchemaProfile::Faithful);
    assert!(text.starts_with(r#"{"type":"function_call""#), "{text}");
    assert_eq!(encode(&foreign(Body::Other), ItemIds::LeftOut, SchemaProfile::Faithful), "");
    assert_eq!(
        encode(
            &foreign(Body::Reasoning { summary: vec![], text: vec!["t".into()] }),
            ItemIds::LeftOut,
            SchemaProfile::Faithful
        ),
        ""
    );
}

#[test]
fn a_longer_history_begins_with_the_shorter_one() {
    let items = |count: usize| -> Vec<Cached<Item>> {
        (0..count).map(|number| Item::message(Role::User, number.to_string()).into()).collect()
    };
    let (shorter, longer) = (
        input(&items(3), ItemIds::LeftOut, ItemForm::Kept, SchemaProfile::Faithful),
        input(&items(5), ItemIds::LeftOut, ItemForm::Kept, SchemaProfile::Faithful),
    );
    assert!(longer.starts_with(shorter.strip_suffix(']').unwrap()));
    let skipped = [
        Item::from(Body::Other).into(),
        Item::message(Role::User, "a").into(),
        Item::from(Body::Other).into(),
    ];
    assert!(
        serde_json::from_str::<Vec<Value>>(&input(
            &skipped,
            ItemIds::LeftOut,
            ItemForm::Kept,
            SchemaProfile::Faithful
        ))
        .unwrap()
        .len()
            == 1
    );
    assert_eq!(input(&[], ItemIds::LeftOut, ItemForm::Kept, SchemaProfile::Faithful), "[]");
}

/// JSON of any shape.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\ é]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Items of known types, with members nobody knows.
fn any_item() -> impl Strategy<Value = Value> {
    let (count, known) = (rows().len(), rows());
    let members = prop::collection::btree_map("new[a-z\"\\\\ é]{0,4}", any_json(), 0..4);
    (0..count, members).prop_map(move |(row, members)| {
        let mut item = known[row].0.clone();
        item.as_object_mut().unwrap().extend(members);
        item
    })
}

proptest! {
    #[test]
    fn members_that_nobody_knows_go_back_to_the_letter(value in any_item()) {
        let item = parse(&value).item;
        let sent: Value = serde_json::from_str(&encode(&item, ItemIds::Sent, SchemaProfile::Faithful)).unwrap();
        prop_assert_eq!(sent, expected_back(&value, &item.body));
    }
}
