//! Tests of preparing calls.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

/// Repeat a word.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
struct Args {
    word: String,
    times: Option<u8>,
}

fn repeat() -> Arc<dyn AnyTool> {
    Arc::new(tool("repeat", |_: &Args| Effects::none(), |args: Args, _| async move { Ok(args.word.into()) }))
}

fn problem(tool: Arc<dyn AnyTool>, input: &Input) -> String {
    tool.prepare(input).expect_err("must not be accepted").message
}

#[test]
fn broken_arguments_are_told_in_known_words_with_their_place() {
    assert_eq!(
        problem(repeat(), &Input::Json(r#"{"word":"a","times":"b"}"#.into())),
        "failed to parse function arguments: invalid type: string \"b\", expected a whole number from 0 to 255 at line 1 column 23 (at `times`)"
    );
    assert!(
        problem(repeat(), &Input::Json("{".into())).starts_with("failed to parse function arguments: EOF")
    );
    assert!(
        problem(repeat(), &Input::Json("{} {}".into())).starts_with("failed to parse function arguments: ")
    );
    assert!(problem(repeat(), &Input::Json(r#"{"word":"a"} x"#.into())).contains("trailing characters"));
}

#[test]
fn a_wrong_kind_of_input_is_told_not_fatal() {
    assert_eq!(problem(repeat(), &Input::Text("x".into())), "tool repeat invoked with incompatible payload");
}

#[test]
fn arguments_that_fit_the_schema_must_still_fit_the_type() {
    let call = |input: &str| {
        let repeat =
            tool("repeat", |_: &Args| Effects::none(), |args: Args, _| async move { Ok(args.word.into()) });
        Arc::new(repeat.schema(&json!({}))).prepare(&Input::Json(input.into()))
    };
    assert!(call(r#"{"word":"a"}"#).is_ok());
    assert_eq!(
        call(r#"{"word":"a","times":300}"#).err().unwrap().message,
        "failed to parse function arguments: invalid value: integer `300`, expected a whole number from 0 to 255 at line 1 column 23 (at `times`)"
    );
    assert!(call("{").err().unwrap().message.starts_with("failed to parse function arguments: EOF"));
}

#[test]
fn a_schema_that_cannot_be_understood_is_told_and_nothing_is_called() {
    let tool = tool("t", |_: &Value| Effects::none(), |_: Value, _| async { Ok("".into()) });
    let tool: Arc<dyn AnyTool> = Arc::new(tool.schema(&json!([])));
    let why = "parameters must be a JSON Schema of type `object`, found array";
    assert_eq!(tool.spec().unwrap_err().to_string(), why);
    assert_eq!(problem(tool, &Input::Json("{}".into())), format!("tool t cannot be called: {why}"));
}

#[test]
fn no_arguments_at_all_mean_an_empty_object() {
    let tool: Arc<dyn AnyTool> =
        Arc::new(tool("t", |_: &Value| Effects::none(), |_: Value, _| async { Ok("".into()) }));
    assert!(tool.prepare(&Input::Json("  ".into())).is_ok());
}
