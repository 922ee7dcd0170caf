//! Tests of requests.

use windlass_contract::{
    Item,
    id::ThreadId,
    item::Role,
    spec::{Grammar, WebSearch},
};
use windlass_schema::Schema;

use super::*;
use crate::Dialect;

fn client(base_url: &str, options: Options) -> ChatClient {
    let info = ModelInfo {
        provider: "p".into(),
        model: "m".into(),
        wire: "chat",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    let provider = Provider { base_url: Some(base_url.to_owned()), ..Provider::default() };
    ChatClient::new(info, &provider, options, &|_| None).unwrap()
}

fn spec(name: &str, kind: SpecKind) -> ToolSpec {
    ToolSpec { name: name.into(), description: "D".to_owned(), kind }
}

fn function() -> ToolSpec {
    spec("f", SpecKind::Function { parameters: Schema::new(&json!({})).unwrap() })
}

fn custom() -> ToolSpec {
    let grammar = Grammar { syntax: "lark".to_owned(), definition: "start: A".to_owned() };
    spec("apply_patch", SpecKind::Custom { grammar })
}

fn body(client: &ChatClient, tools: Vec<ToolSpec>, schema: Option<&Value>) -> Value {
    let prompt = Prompt {
        thread: &ThreadId::from("T"),
        instructions: "I",
        history: &[Item::message(Role::User, "hi").into()],
        tools: &Cached::new(tools),
        parallel_calls: true,
        output_schema: schema,
    };
    serde_json::from_str(&client.body(&prompt)).unwrap()
}

#[test]
fn a_plain_request_has_nothing_a_small_server_might_stumble_over() {
    let client = client("http://x", Options { model: "m".to_owned(), ..Options::default() });
    let hosted = vec![
        spec("local_shell", SpecKind::LocalShell),
        spec("web_search", SpecKind::WebSearch(WebSearch::Live)),
    ];
    assert_eq!(
        body(&client, hosted, None),
        json!({
            "model": "m",
            "messages": [{"role": "system", "content": "I"}, {"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true}
        })
    );
}

#[test]
fn functions_are_offered_and_freeform_tools_as_functions_with_one_text() {
    let body = body(&client("http://x", Options::default()), vec![function(), custom()], None);
    assert_eq!(body["parallel_tool_calls"], true);
    assert_eq!(
        body["tools"],
        json!([
            {"type": "function", "function":
                {"name": "f", "description": "D", "parameters": {"type": "object", "properties": {}}}},
            {"type": "function", "function": {"name": "apply_patch", "description": "D", "parameters": {
                "type": "object",
                "properties": {"input": {"type": "string",
                    "description": "The text, which fits this lark grammar:\nstart: A"}},
                "required": ["input"],
                "additionalProperties": false}}}
        ])
    );
}

#[test]
fn options_are_sent_under_the_names_each_server_knows() {
    let options = Options {
        model: "m".to_owned(),
        reasoning_effort: Some("low".to_owned()),
        reasoning_summary: Some("auto".to_owned()),
        verbosity: Some("high".to_owned()),
        max_output_tokens: Some(7),
    };
    let schema = json!({"type": "object"});
    let local = body(&client("http://x", options.clone()), vec![], Some(&schema));
    assert_eq!((&local["reasoning_effort"], &local["verbosity"]), (&json!("low"), &json!("high")));
    assert_eq!((&local["max_tokens"], local.get("max_completion_tokens")), (&json!(7), None));
    let wanted = json!({"name": "codex_output_schema", "strict": true, "schema": schema});
    assert_eq!(local["response_format"], json!({"type": "json_schema", "json_schema": wanted}));
    let openai = body(&client("https://api.openai.com/v1", options), vec![], None);
    assert_eq!((&openai["max_completion_tokens"], openai.get("max_tokens")), (&json!(7), None));
}

#[test]
fn only_freeform_tools_get_their_input_as_text() {
    assert_eq!(
        freeform::names(&[function(), custom()]),
        std::collections::HashSet::from(["apply_patch".to_owned()])
    );
}

fn telling(dialect: Dialect) -> ChatClient {
    let mut client = client("http://x", Options::default());
    (client.reading, client.uses_tool_prompt) = (CallReading::Dialect(dialect), true);
    client
}

#[test]
fn a_server_that_ignores_tools_has_them_in_its_instructions() {
    for dialect in &Dialect::ALL[1..] {
        let body = body(&telling(*dialect), vec![function()], None);
        assert_eq!((body.get("tools"), body.get("parallel_tool_calls")), (None, None));
        let told = body["messages"][0]["content"].as_str().unwrap();
        assert!(told.starts_with("I\n\n# Tools\n"), "{told}");
        assert!(told.contains(r#""function":{"name":"f","description":"D""#), "{told}");
        assert!(told.contains(&dialect.call("f", "{}")), "{told}");
    }
    let without = body(&telling(Dialect::Hermes), vec![], None);
    assert_eq!(without["messages"][0], json!({"role": "system", "content": "I"}));
}
