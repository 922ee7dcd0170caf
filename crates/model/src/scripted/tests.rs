//! Tests of scripts.

use std::io::Write;

use windlass_contract::id::ThreadId;

use super::*;

fn script(text: &str) -> Result<ScriptedClient, ModelError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let info = ModelInfo {
        provider: "s".into(),
        model: "m".into(),
        wire: "scripted",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    ScriptedClient::new(info, file.path())
}

/// Asks once; keeps what the model said, as a session would.
async fn ask(model: &ScriptedClient, history: &mut Vec<Cached<Item>>) -> Vec<Result<String, ModelError>> {
    let prompt = Prompt {
        thread: &ThreadId::from("t"),
        instructions: "",
        history,
        tools: &Cached::new(vec![]),
        parallel_calls: true,
        output_schema: None,
    };
    let mut answer = match model.open(prompt).await {
        Ok(answer) => answer,
        Err(error) => return vec![Err(error)],
    };
    let mut seen = Vec::new();
    while let Some(event) = answer.next().await {
        seen.push(event.map(|event| match event {
            ModelEvent::TextDelta(text) => format!("text {text}"),
            ModelEvent::ReasoningDelta(text) => format!("reasoning {text}"),
            ModelEvent::CallDelta(text) => format!("arguments {text}"),
            ModelEvent::Item(item) => {
                let shown = match &item.body {
                    Body::Call(call) => format!("call {} {} {:?}", call.id, call.name, call.input),
                    Body::Message { .. } => "message".to_owned(),
                    other => format!("{other:?}"),
                };
                history.push(item.into());
                shown
            }
            ModelEvent::Completed { .. } => "completed".to_owned(),
            ModelEvent::Notice(text) => text,
        }));
    }
    seen
}

fn ok(lines: &[&str]) -> Vec<Result<String, ModelError>> {
    lines.iter().map(|line| Ok((*line).to_owned())).collect()
}

#[tokio::test]
async fn turns_are_played_in_order_with_deltas_and_fixed_ids() {
    let model = script(
        r#"{"turns": [
            {"reasoning": "hm", "text": "12345678", "calls": [
                {"name": "a", "arguments": {"x": 1}}, {"name": "b", "input": "text"}, {"name": "c", "arguments": "{br"}]},
            {"text": "é"}]}"#,
    )
    .unwrap();
    let mut history = vec![];
    let first = ok(&[
        "reasoning h",
        "reasoning m",
        r#"Reasoning { summary: ["hm"], text: [] }"#,
        "text 12",
        "text 34",
        "text 56",
        "text 78",
        "message",
        r#"call call_0_2 a Json("{\"x\":1}")"#,
        r#"call call_0_3 b Text("text")"#,
        r#"call call_0_4 c Json("{br")"#,
        "completed",
    ]);
    assert_eq!(ask(&model, &mut history).await, first);
    assert_eq!(ask(&model, &mut history).await, ok(&["text é", "message", "completed"]));
    let error = ask(&model, &mut history).await.remove(0).unwrap_err().to_string();
    assert!(error.ends_with("it has 2 turns, and the model was asked for one more"), "{error}");
}

#[tokio::test]
async fn a_resumed_session_goes_on_where_it_was() {
    let text = r#"{"turns": [{"text": "one"}, {"text": "two"}]}"#;
    let mut history = vec![];
    ask(&script(text).unwrap(), &mut history).await;
    let saved = serde_json::to_string(history[0].get()).unwrap();
    let mut history: Vec<Cached<Item>> = vec![serde_json::from_str::<Item>(&saved).unwrap().into()];
    let played = ask(&script(text).unwrap(), &mut history).await;
    assert_eq!(played, ok(&["text t", "text w", "text o", "message", "completed"]));
}

#[tokio::test]
async fn a_failure_is_played_once_and_the_next_try_gets_the_next_turn() {
    let model = script(
        r#"{"turns": [{"broken": "reset"}, {"error": "no"}, {"text": "x", "broken": "gone"}, {"text": "y"}]}"#,
    );
    let (model, mut history) = (model.unwrap(), vec![]);
    let broken = |cause: &str| Err(ModelError::StreamBroken { cause: cause.to_owned() });
    assert_eq!(ask(&model, &mut history).await, [broken("reset")]);
    let rejected = ModelError::InvalidRequest { status: 400, message: "no".to_owned() };
    assert_eq!(ask(&model, &mut history).await, [Err(rejected)]);
    let third = ask(&model, &mut history).await;
    assert_eq!(third, [Ok("text x".to_owned()), Ok("message".to_owned()), broken("gone")]);
    assert_eq!(ask(&model, &mut history).await, ok(&["text y", "message", "completed"]));
    assert_eq!(
        ask(&model, &mut vec![]).await,
        [broken("reset")],
        "a new conversation begins at the beginning"
    );
}

#[tokio::test]
async fn a_failed_turn_that_nobody_kept_is_not_played_again() {
    let model = script(r#"{"turns": [{"text": "x", "broken": "gone"}, {"text": "y"}]}"#).unwrap();
    let broken = Err(ModelError::StreamBroken { cause: "gone".to_owned() });
    assert_eq!(ask(&model, &mut vec![]).await.last(), Some(&broken));
    assert_eq!(ask(&model, &mut vec![]).await, ok(&["text y", "message", "completed"]));
}

#[test]
fn a_script_that_makes_no_sense_says_where_and_what_is_allowed() {
    let problem = |text: &str| script(text).unwrap_err().to_string().split_once("`: ").unwrap().1.to_owned();
    assert_eq!(problem("{"), "EOF while parsing an object at line 1 column 1");
    assert_eq!(
        problem("{\"turns\": [\n{\"txt\": 1}]}"),
        "unknown field `txt`, expected one of `reasoning`, `text`, `calls`, `error`, `broken` at line 2 column 6"
    );
    let empty = problem(r#"{"turns": [{}]}"#);
    assert!(empty.starts_with("a turn needs at least one of `reasoning`"), "{empty}");
    let call = problem(r#"{"turns": [{"calls": [{"name": "a"}]}]}"#);
    assert!(call.starts_with("a call needs either `arguments` or `input` at line 1"), "{call}");
    let both = problem(r#"{"turns": [{"error": "a", "broken": "b"}]}"#);
    assert!(both.starts_with("a turn ends in `error` or in `broken`, not in both"), "{both}");
}

#[test]
fn a_missing_script_is_named() {
    let info = ModelInfo {
        provider: "s".into(),
        model: "m".into(),
        wire: "scripted",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    let error = ScriptedClient::new(info, Path::new("no/such.json")).unwrap_err().to_string();
    assert_eq!(error, "script `no/such.json`: cannot be read: No such file or directory (os error 2)");
}

#[test]
fn the_script_in_the_documentation_is_a_script() {
    let docs = include_str!("../../../../docs/scripts.md");
    let text = docs.split("```json").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(script(text).unwrap().turns.len(), 2);
}
