//! Tests of requests.

use windlass_contract::{
    Item,
    id::ThreadId,
    item::Role,
    spec::{Grammar, WebSearch},
};
use windlass_schema::Schema;

use super::*;

fn client(options: Options) -> MessagesClient {
    let info = ModelInfo {
        provider: "p".into(),
        model: "m".into(),
        wire: "messages",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    let provider = Provider { base_url: Some("http://x/v1".to_owned()), ..Provider::default() };
    MessagesClient::new(info, &provider, options, &|_| None).unwrap()
}

fn options(model: &str) -> Options {
    Options { model: model.to_owned(), ..Options::default() }
}

fn spec(name: &str, kind: SpecKind) -> ToolSpec {
    ToolSpec { name: name.into(), description: "D".to_owned(), kind }
}

fn body(
    client: &MessagesClient,
    tools: Vec<ToolSpec>,
    parallel_calls: bool,
    schema: Option<&Value>,
) -> Value {
    let prompt = Prompt {
        thread: &ThreadId::from("T"),
        instructions: "I",
        history: &[Item::message(Role::User, "hi").into()],
        tools: &Cached::new(tools),
        parallel_calls,
        output_schema: schema,
    };
    serde_json::from_str(&client.body(&prompt, ThoughtForm::Kept)).unwrap()
}

fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

#[test]
fn a_request_has_what_the_api_demands_and_marks_for_its_cache() {
    let hosted = vec![spec("web_search", SpecKind::WebSearch(WebSearch::Live))];
    assert_eq!(
        body(&client(options("m")), hosted, true, None),
        json!({
            "model": "m",
            "max_tokens": 8192,
            "system": [marked(json!({"type": "text", "text": "I"}))],
            "messages": [{"role": "user", "content": [marked(json!({"type": "text", "text": "hi"}))]}],
            "stream": true
        })
    );
}

#[test]
fn tools_are_functions_and_only_the_last_one_is_marked() {
    let parameters = Schema::new(&json!({"properties": {"a": {"type": "string"}}})).unwrap();
    let grammar = Grammar { syntax: "lark".to_owned(), definition: "start: A".to_owned() };
    let tools = vec![
        spec("f", SpecKind::Function { parameters: parameters.clone() }),
        spec("tool_search", SpecKind::Search { parameters }),
        spec("apply_patch", SpecKind::Custom { grammar }),
        spec("local_shell", SpecKind::LocalShell),
    ];
    let body = body(&client(options("m")), tools, false, None);
    let tools = body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["f", "tool_search", "apply_patch"]);
    assert!(tools.iter().all(|tool| tool["input_schema"]["type"] == "object"), "{tools:?}");
    let marks: Vec<_> = tools.iter().map(|tool| tool.get("cache_control").is_some()).collect();
    assert_eq!(marks, [false, false, true]);
    assert_eq!(body["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    let marks = body.to_string().matches("cache_control").count();
    assert_eq!(marks, 3, "tools, instructions and one user message");
}

#[test]
fn the_options_have_the_names_of_this_api() {
    let all = Options {
        reasoning_effort: Some("high".to_owned()),
        reasoning_summary: Some("auto".to_owned()),
        verbosity: Some("low".to_owned()),
        max_output_tokens: Some(9000),
        ..options("claude-opus-4-6")
    };
    let body = body(&client(all), vec![], true, Some(&json!({"type": "object"})));
    assert_eq!(body["max_tokens"], 9000);
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    assert_eq!(body["output_config"], json!({"effort": "high", "format": format}));
    assert_eq!(body.get("verbosity"), None);
}
