//! Tests of items.

use proptest::prelude::*;
use serde_json::json;

use windlass_contract::{Schema, SpecKind, ToolSpec};

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn parse(value: &Value) -> Received {
    Received::parse(raw(value))
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
            json!({"type": "function_call", "name": "f", "arguments": {"a": 1}, "call_id": "c1", "namespace": "n"}),
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
        (json!({"type": "web_search_call"}), search("")),
        (json!({"type": "compaction", "encrypted_content": "e"}), Body::Other),
        (
            json!({"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "q"}}),
            call("tool_search", Input::Search(r#"{"query":"q"}"#.to_owned())),
        ),
        (
            json!({"type": "tool_search_call", "call_id": "c1", "execution": "server", "arguments": {}}),
            Body::Other,
        ),
        (json!({"type": "message", "role": "ghost", "content": 5}), Body::Other),
        (json!({"type": 5}), Body::Other),
        (json!(["not", "an", "object"]), Body::Other),
    ]
}

/// What goes back where ids are left out: the same without its id, and with arguments that can be read.
fn expected_back(value: &Value, body: &Body) -> Value {
    let mut expected = value.clone();
    if let Some(object) = expected.as_object_mut() {
        object.remove("id");
        if let (Body::Call(ToolCall { input: Input::Json(text), .. }), Some("function_call")) =
            (body, value["type"].as_str())
            && !is_object(text)
        {
            object.insert("arguments".to_owned(), readable(text).into());
        }
    }
    expected
}

#[test]
fn every_kind_of_item_is_understood_and_goes_back_as_it_came() {
    for (value, body) in rows() {
        let received = parse(&value);
        assert_eq!(received.item.body, body, "{value}");
        let back: Value =
            serde_json::from_str(&encode(&received.item, ItemIds::LeftOut, Profile::Faithful)).unwrap();
        assert_eq!(back, expected_back(&value, &received.item.body));
        assert_eq!(encode(&received.item, ItemIds::Sent, Profile::Faithful), value.to_string());
    }
}

#[test]
fn numbers_and_spaces_survive_to_the_letter() {
    let text =
        r#"{"type":"from_the_future","id":"x","big":12345678901234567890123,"small":1.10 , "u":"\u00e9"}"#;
    let received = Received::parse(RawValue::from_string(text.to_owned()).unwrap());
    assert_eq!(
        encode(&received.item, ItemIds::LeftOut, Profile::Faithful),
        r#"{"type":"from_the_future","big":12345678901234567890123,"small":1.10,"u":"\u00e9"}"#
    );
}

#[test]
fn a_call_without_its_own_id_gets_one_that_its_output_can_name() {
    let shell = json!({"type": "local_shell_call", "id": "ls1", "action": {"command": ["ls"]}});
    let item = parse(&shell).into_item(|given| given.into());
    let expected = json!({"type": "function_call", "name": "local_shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "ls1"});
    assert_eq!(
        serde_json::from_str::<Value>(&encode(&item, ItemIds::LeftOut, Profile::Faithful)).unwrap(),
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
    assert_eq!(encode(&item, ItemIds::LeftOut, Profile::Faithful), "");
    assert!(!encode(&item, ItemIds::Sent, Profile::Faithful).is_empty());
}

#[test]
fn our_own_items_are_written_in_the_words_of_the_wire() {
    let text = |text: &str| Content::Text(text.to_owned());
    let output = |input, content| Body::Output { call: "c1".into(), input, content };
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
        let text = encode(&body.into(), ItemIds::LeftOut, Profile::Faithful);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }
}

#[test]
fn what_came_over_another_wire_is_written_from_its_body_or_left_out() {
    let foreign = |body| Item { body, raw: Some(Raw { wire: "chat".into(), json: raw(&json!({"x": 1})) }) };
    let text = encode(&foreign(call("f", Input::Json("{}".to_owned()))), ItemIds::LeftOut, Profile::Faithful);
    assert!(text.starts_with(r#"{"type":"function_call""#), "{text}");
    assert_eq!(encode(&foreign(Body::Other), ItemIds::LeftOut, Profile::Faithful), "");
    assert_eq!(
        encode(
            &foreign(Body::Reasoning { summary: vec![], text: vec!["t".into()] }),
            ItemIds::LeftOut,
            Profile::Faithful
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
        input(&items(3), ItemIds::LeftOut, Profile::Faithful),
        input(&items(5), ItemIds::LeftOut, Profile::Faithful),
    );
    assert!(longer.starts_with(shorter.strip_suffix(']').unwrap()));
    let skipped = [
        Item::from(Body::Other).into(),
        Item::message(Role::User, "a").into(),
        Item::from(Body::Other).into(),
    ];
    assert!(
        serde_json::from_str::<Vec<Value>>(&input(&skipped, ItemIds::LeftOut, Profile::Faithful))
            .unwrap()
            .len()
            == 1
    );
    assert_eq!(input(&[], ItemIds::LeftOut, Profile::Faithful), "[]");
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

/// Items of known and unknown types, with known and unknown members that fit and do not fit.
fn any_item() -> impl Strategy<Value = Value> {
    let (rows, known) = (rows().len(), rows());
    let member = prop::sample::select(vec![
        "id",
        "call_id",
        "name",
        "arguments",
        "input",
        "content",
        "summary",
        "action",
        "role",
        "status",
        "type",
        "new",
    ]);
    (0..rows, prop::collection::vec((member, any_json()), 0..4)).prop_map(move |(row, changes)| {
        let mut item = known[row].0.clone();
        if let Some(object) = item.as_object_mut() {
            object.extend(changes.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        item
    })
}

proptest! {
    #[test]
    fn whatever_a_server_sends_goes_back_but_for_its_id_and_unreadable_arguments(value in any_item()) {
        let received = parse(&value);
        prop_assert_eq!(encode(&received.item, ItemIds::Sent, Profile::Faithful), value.to_string());
        let sent = encode(&received.item, ItemIds::LeftOut, Profile::Faithful);
        if sent.is_empty() {
            let is_reasoning = matches!(received.item.body, Body::Reasoning { .. });
            prop_assert!(is_reasoning);
        } else {
            let sent: Value = serde_json::from_str(&sent).unwrap();
            prop_assert_eq!(sent, expected_back(&value, &received.item.body));
        }
    }

    #[test]
    fn a_call_always_has_an_id_and_its_wire_form_names_it(value in any_item()) {
        let item = parse(&value).into_item(|given| if given.is_empty() { "new".into() } else { given.into() });
        if let Body::Call(call) = &item.body {
            prop_assert!(!call.id.as_str().is_empty());
            let sent: Value = serde_json::from_str(&encode(&item, ItemIds::LeftOut, Profile::Faithful)).unwrap();
            prop_assert_eq!(sent["call_id"].as_str(), Some(call.id.as_str()));
        }
    }
}
