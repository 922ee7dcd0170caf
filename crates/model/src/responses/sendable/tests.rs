//! Whatever becomes of an item on its way to us, a strict server takes back what we send.

use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};
use windlass_contract::{
    Content, Item,
    item::{Body, Cached},
};

use crate::{
    SchemaProfile,
    responses::wire::{self, ItemForm, ItemIds, ReceivedItem},
    sse::ServerSentEvent,
};

/// Valid items of all kinds that a server sends.
fn valid_items() -> Vec<Value> {
    vec![
        json!({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "no"}]}),
        json!({"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "e", "status": "completed"}),
        json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}",
            "status": "completed", "namespace": "n"}),
        json!({"type": "custom_tool_call", "id": "t1", "call_id": "c1", "name": "p", "input": "x"}),
        json!({"type": "local_shell_call", "id": "l1", "call_id": "c1", "status": "completed", "action":
            {"type": "exec", "command": ["ls"], "timeout_ms": 5, "working_directory": "/w", "env": {"A": "b"}}}),
        json!({"type": "tool_search_call", "id": "s1", "call_id": "c1", "execution": "client",
            "status": "completed", "arguments": {"query": "q"}}),
        json!({"type": "web_search_call", "id": "w1", "status": "completed",
            "action": {"type": "search", "query": "q"}}),
        json!({"type": "compaction", "encrypted_content": "e"}),
        json!({"type": "from_the_future", "id": "x1", "deep": {"er": [1, "two", null]}}),
    ]
}

/// Says what a strict server would say of an item, if anything. Written from the API's reference,
/// not from our rules.
fn complaint(item: &Value) -> Option<String> {
    let Some(object) = item.as_object() else { return Some("not an object".to_owned()) };
    let Some(kind) = item["type"].as_str().filter(|kind| !kind.is_empty()) else {
        return Some("no type".to_owned());
    };
    if let Some((name, _)) = object.iter().find(|(name, value)| {
        matches!(name.as_str(), "id" | "status" | "call_id") && value.as_str().is_none_or(str::is_empty)
    }) {
        return Some(format!("`{name}` is no text"));
    }
    let text = |name: &str| item[name].is_string();
    let name = || {
        let name = item["name"].as_str().unwrap_or_default();
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let parts = |list: &Value, fits: &dyn Fn(&str, &Value) -> bool| {
        list.as_array().is_some_and(|list| {
            list.iter().all(|part| part["type"].as_str().is_some_and(|kind| fits(kind, part)))
        })
    };
    let said = |kind: &str, part: &Value| match kind {
        "output_text" => part["text"].is_string() && item["role"] == "assistant",
        "refusal" => part["refusal"].is_string() && item["role"] == "assistant",
        "input_text" => part["text"].is_string() && item["role"] != "assistant",
        _ => true,
    };
    let is_valid = match kind {
        "message" => {
            ["user", "assistant", "system", "developer"].iter().any(|role| item["role"] == **role)
                && (text("content") || parts(&item["content"], &said))
        }
        "reasoning" => {
            parts(&item["summary"], &|kind, part| kind == "summary_text" && part["text"].is_string())
                && (item["content"].is_null()
                    || parts(&item["content"], &|kind, part| {
                        ["reasoning_text", "text"].contains(&kind) && part["text"].is_string()
                    }))
                && (item["encrypted_content"].is_null() || text("encrypted_content"))
        }
        "function_call" => {
            let arguments = item["arguments"].as_str().unwrap_or_default();
            name()
                && text("call_id")
                && serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object())
        }
        "custom_tool_call" => name() && text("call_id") && text("input"),
        "function_call_output" | "custom_tool_call_output" => text("call_id") && text("output"),
        "local_shell_call" => {
            let command = item["action"]["command"].as_array();
            text("call_id")
                && text("status")
                && item["action"]["type"] == "exec"
                && command.is_some_and(|words| words.iter().all(Value::is_string))
                && (item["action"]["timeout_ms"].is_null() || item["action"]["timeout_ms"].is_u64())
        }
        "tool_search_call" => text("execution") && item["arguments"].is_object(),
        "web_search_call" => item["action"]["type"].is_string(),
        "compaction" => text("encrypted_content"),
        _ => true,
    };
    (!is_valid).then(|| format!("invalid `{kind}`"))
}

/// One thing that goes wrong on the way.
#[derive(Debug, Clone)]
enum Mutation {
    /// A member or entry gets lost.
    Remove(usize),
    /// A value becomes another.
    Replace(usize, Value),
    /// A member gets another name.
    Rename(usize, &'static str),
    /// A part of the text becomes another.
    Text(usize, &'static str),
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("")),
        Just(json!(7)),
        Just(json!(-0.5)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, {"type": "output_text"}, {"type": 5}])),
        Just(json!({"type": "search"})),
        Just(json!("user")),
        Just(json!("server")),
        Just(json!("a name with spaces")),
        Just(json!("function_call")),
        Just(json!("custom_tool_call")),
        Just(json!("message")),
        Just(json!("reasoning")),
        "\\PC{0,90}".prop_map(Value::from),
    ]
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let names =
        vec!["type", "id", "call_id", "name", "arguments", "input", "content", "role", "status", "action"];
    let texts = vec!["\\ud800", "1e999", "\"name\":1,\"name\":2,", "[[[[", "\u{0}"];
    prop_oneof![
        any::<usize>().prop_map(Mutation::Remove),
        (any::<usize>(), any_value()).prop_map(|(at, value)| Mutation::Replace(at, value)),
        (any::<usize>(), prop::sample::select(names)).prop_map(|(at, name)| Mutation::Rename(at, name)),
        (any::<usize>(), prop::sample::select(texts)).prop_map(|(at, text)| Mutation::Text(at, text)),
    ]
}

impl Mutation {
    fn apply(&self, text: String) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return text };
        let places = paths(&value, String::new());
        let at = |at: &usize| &places[at % places.len()];
        match self {
            Self::Text(at, new) => {
                let cuts: Vec<_> = text.char_indices().map(|(cut, _)| cut).collect();
                let cut = cuts.get(at % cuts.len().max(1)).copied().unwrap_or(0);
                return format!("{}{new}{}", &text[..cut], &text[cut..]);
            }
            Self::Replace(place, new) => *value.pointer_mut(at(place)).unwrap() = new.clone(),
            Self::Remove(place) => drop(take(&mut value, at(place))),
            Self::Rename(place, name) => {
                let path = at(place).clone();
                let taken = take(&mut value, &path);
                let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                if let (Some(taken), Some(Value::Object(map))) = (taken, value.pointer_mut(parent)) {
                    map.insert((*name).to_owned(), taken);
                }
            }
        }
        value.to_string()
    }
}

/// The paths of all values, the whole among them.
fn paths(value: &Value, path: String) -> Vec<String> {
    let inner: Vec<_> = match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                paths(value, format!("{path}/{name}"))
            })
            .collect(),
        Value::Array(list) => {
            list.iter().enumerate().flat_map(|(at, value)| paths(value, format!("{path}/{at}"))).collect()
        }
        _ => Vec::new(),
    };
    [path].into_iter().chain(inner).collect()
}

fn take(value: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = path.rsplit_once('/')?;
    match value.pointer_mut(parent)? {
        Value::Object(map) => map.remove(name),
        Value::Array(list) => Some(list.remove(name.parse().ok()?)),
        _ => None,
    }
}

/// An answer that consists of an item, taken in as it would come over the wire.
fn receive(item: &str) -> Vec<Item> {
    use crate::answer::EventDecoder as _;
    use windlass_contract::model::ModelEvent;
    let mut decoder = super::super::ResponsesDecoder::new(crate::calls::CallIds::default(), None);
    let mut out = std::collections::VecDeque::new();
    let done = format!(r#"{{"type":"response.output_item.done","item":{item}}}"#);
    for data in [done, r#"{"type":"response.completed","response":{}}"#.to_owned()] {
        let _ = decoder.take(&ServerSentEvent { name: String::new(), data }, &mut out);
    }
    let items = out.into_iter().filter_map(|event| match event {
        ModelEvent::Item(item) => Some(item),
        _ => None,
    });
    items.collect()
}

/// Returns the input of the next request, with an output for every call.
fn sent(items: Vec<Item>, ids: ItemIds, form: ItemForm) -> Vec<Value> {
    let outputs: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.body {
            Body::Call(call) => Some(Item::from(Body::Output {
                call: call.id.clone(),
                input: call.input.kind(),
                content: vec![Content::Text("done".to_owned())],
                failed: false,
            })),
            _ => None,
        })
        .collect();
    let history: Vec<_> = items.into_iter().chain(outputs).map(Cached::new).collect();
    serde_json::from_str(&wire::input(&history, ids, form, SchemaProfile::Faithful)).unwrap()
}

fn check(items: &[Item]) -> Result<(), TestCaseError> {
    for (ids, form) in [
        (ItemIds::LeftOut, ItemForm::Kept),
        (ItemIds::Sent, ItemForm::Kept),
        (ItemIds::LeftOut, ItemForm::Plain),
    ] {
        let sent = sent(items.to_vec(), ids, form);
        for item in &sent {
            prop_assert_eq!(complaint(item), None, "{}", item);
        }
        let ids_of = |is_output: bool| -> Vec<_> {
            let of_kind = |item: &&Value| {
                let kind = item["type"].as_str().unwrap_or_default();
                kind.ends_with("_output") == is_output && item["call_id"].is_string()
            };
            sent.iter().filter(of_kind).map(|item| item["call_id"].clone()).collect()
        };
        let (calls, outputs) = (ids_of(false), ids_of(true));
        prop_assert!(outputs.iter().all(|output| calls.contains(output)), "{sent:?}");
    }
    Ok(())
}

#[test]
fn valid_items_are_taken_and_broken_ones_are_not() {
    for item in valid_items() {
        assert_eq!(complaint(&item), None, "{item}");
        let items = receive(&item.to_string());
        assert_eq!(sent(items, ItemIds::Sent, ItemForm::Kept)[0], item);
    }
    for broken in
        [json!(5), json!({"type": 5}), json!({"type": "function_call", "call_id": "c", "arguments": "{}"})]
    {
        assert!(complaint(&broken).is_some(), "{broken}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_strict_server_takes_back_whatever_became_of_its_items(
        which in prop::collection::vec((0..valid_items().len(), prop::collection::vec(any_mutation(), 0..4)), 1..3),
    ) {
        let mut items = Vec::new();
        for (at, mutations) in which {
            let text = mutations.iter().fold(valid_items()[at].to_string(), |text, mutation| mutation.apply(text));
            items.extend(receive(&text));
        }
        check(&items)?;
    }

    #[test]
    fn so_it_does_with_sessions_that_earlier_versions_wrote(
        at in 0..valid_items().len(),
        mutations in prop::collection::vec(any_mutation(), 1..4),
    ) {
        // Earlier versions kept every item to the letter; and a file may be damaged in one place
        // only.
        let valid = valid_items()[at].to_string();
        let text = mutations.iter().fold(valid.clone(), |text, mutation| mutation.apply(text));
        let Ok(json) = RawValue::from_string(text) else { return Ok(()) };
        let mut item = ReceivedItem::parse(RawValue::from_string(valid).unwrap()).into_item(|given| given.into());
        item.raw.as_mut().unwrap().json = json;
        let written = serde_json::to_string(&item).unwrap();
        if let Ok(item) = serde_json::from_str::<Item>(&written) {
            check(&[item])?;
        }
    }
}
