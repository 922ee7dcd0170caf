//! Tests of requests.

use serde_json::json;
use windlass_contract::{Item, id::ThreadId, item::Role, spec::Grammar};
use windlass_schema::Schema;

use super::*;

fn client(provider: &Provider, options: Options) -> ResponsesClient {
    let info = ModelInfo {
        provider: "p".into(),
        model: "m".into(),
        wire: "responses",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    let provider = Provider { base_url: Some("http://x/v1".to_owned()), ..provider.clone() };
    ResponsesClient::new(info, &provider, options, &|_| None).unwrap()
}

fn specs() -> Vec<ToolSpec> {
    let parameters = json!({"properties": {"n": {"type": "integer", "enum": [1, 2]}}});
    let spec = |name: &str, kind| ToolSpec { name: name.into(), description: "D".to_owned(), kind };
    let grammar = Grammar { syntax: "lark".to_owned(), definition: "start: A".to_owned() };
    vec![
        spec("f", SpecKind::Function { parameters: Schema::new(&parameters).unwrap() }),
        spec("local_shell", SpecKind::LocalShell),
        spec("web_search", SpecKind::WebSearch(WebSearch::Cached)),
        spec("apply_patch", SpecKind::Custom { grammar }),
        spec("tool_search", SpecKind::Search { parameters: Schema::default() }),
    ]
}

fn body(client: &ResponsesClient, tools: Vec<ToolSpec>, schema: Option<&Value>) -> Value {
    let prompt = Prompt {
        thread: &ThreadId::from("T"),
        instructions: "I",
        history: &[Item::message(Role::User, "list files").into()],
        tools: &Cached::new(tools),
        parallel_calls: true,
        output_schema: schema,
    };
    serde_json::from_str(&client.body(&prompt, ItemForm::Kept)).unwrap()
}

#[test]
fn a_plain_request_has_the_members_servers_expect_and_no_empty_ones() {
    let client = client(&Provider::default(), Options { model: "m".to_owned(), ..Options::default() });
    assert_eq!(
        body(&client, vec![], None),
        json!({
            "model": "m",
            "instructions": "I",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list files"}]}],
            "store": false,
            "stream": true,
            "include": [],
            "prompt_cache_key": "T"
        })
    );
}

#[test]
fn options_tools_and_the_shape_of_the_answer_are_all_sent() {
    let options = Options {
        model: "m".to_owned(),
        reasoning_effort: Some("high".to_owned()),
        reasoning_summary: Some("none".to_owned()),
        verbosity: Some("low".to_owned()),
        max_output_tokens: Some(99),
    };
    let schema = json!({"type": "object"});
    let body = body(&client(&Provider::default(), options), specs(), Some(&schema));
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["max_output_tokens"], 99);
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("auto"), &json!(true)));
    let format =
        json!({"type": "json_schema", "name": "codex_output_schema", "strict": true, "schema": schema});
    assert_eq!(body["text"], json!({"verbosity": "low", "format": format}));
    let grammar = json!({"type": "grammar", "syntax": "lark", "definition": "start: A"});
    assert_eq!(
        body["tools"],
        json!([
            {"type": "function", "name": "f", "description": "D", "strict": false, "parameters":
                {"type": "object", "properties": {"n": {"type": "integer", "enum": [1, 2]}}}},
            {"type": "local_shell"},
            {"type": "web_search", "external_web_access": false},
            {"type": "custom", "name": "apply_patch", "description": "D", "format": grammar},
            {"type": "tool_search", "execution": "client", "description": "D", "parameters":
                {"type": "object", "properties": {}, "additionalProperties": false}}
        ])
    );
}

#[test]
fn the_lossy_form_of_schemas_is_sent_where_configured() {
    let provider = Provider { tool_schemas: SchemaProfile::Lossy, ..Provider::default() };
    let body = body(&client(&provider, Options::default()), specs(), None);
    assert_eq!(body["tools"][0]["parameters"]["properties"]["n"], json!({"type": "number"}));
}

#[test]
fn azure_keeps_answers_and_gets_the_ids_of_items_back() {
    let provider = Provider { name: "Azure".to_owned(), ..Provider::default() };
    let client = client(&provider, Options::default());
    assert_eq!(body(&client, vec![], None)["store"], json!(true));
    assert_eq!(client.ids, ItemIds::Sent);
}
