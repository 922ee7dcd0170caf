//! Tests of routing.

use serde_json::json;
use windlass_contract::{AnyTool, CallId, Output, tool};

use super::*;

/// A tool of each kind: one that only looks and one that changes something. Both say what they were given.
fn registry() -> Registry {
    let schema = json!({
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let made = |name: &str, effects: Effects| -> Arc<dyn AnyTool> {
        let effects = move |_: &Value| effects.clone();
        let echo = |value: Value, _| async move { Ok(Output::from(value.to_string())) };
        Arc::new(tool(name, effects, echo).description("Echo.").schema(&schema))
    };
    let looks = made("look", Effects::read("/a"));
    let changes = made("change", Effects::write("/a"));
    Registry::builder().tool(looks).tool(changes).build().unwrap()
}

fn routed(name: &str, input: &str) -> Result<Vec<String>, String> {
    let registry = registry();
    let call = ToolCall { id: CallId::from("1"), name: name.into(), input: Input::Json(input.into()) };
    match route(&registry, &call).ready {
        Ok(understood) => Ok(understood.repairs),
        Err(Failure::Tool(error)) => Err(error.message),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_call_that_fits_has_no_repairs() {
    assert_eq!(routed("change", r#"{"path":"a","lines":3}"#), Ok(vec![]));
}

#[test]
fn a_certain_repair_is_made_for_every_call_and_noted() {
    for name in ["look", "change"] {
        let repairs = routed(name, r#"{'path': 'a', 'lines': "3"}"#).unwrap();
        let expected =
            ["single quotes were read as double quotes", "`arguments.lines`: string read as integer"];
        assert_eq!(repairs, expected, "{name}");
    }
}

#[test]
fn a_likely_repair_is_made_only_where_nothing_can_change() {
    let input = r#"{"path":"a","tags":"x"}"#;
    assert_eq!(routed("look", input).unwrap(), ["`arguments.tags`: string read as array"]);
    assert!(routed("change", input).unwrap_err().contains("`arguments.tags` must be array, found string"));
}

#[test]
fn all_problems_are_told_at_once_with_what_would_fit() {
    assert_eq!(
        routed("look", r#"{"lines":"many","tags":[1.5]}"#).unwrap_err(),
        "failed to parse function arguments: `arguments.path` is missing; `arguments.lines` must be integer, found \
         string; `arguments.tags[0]` must be string, found number\n\
         expected: {\"lines\"?: integer, \"path\": string, \"tags\"?: [string, …]}\n\
         example: {\"path\":\"…\"}"
    );
}

#[test]
fn a_call_that_was_cut_off_is_told_so_and_not_run() {
    let told = routed("look", r#"{"path":"a","#).unwrap_err();
    assert!(told.starts_with("failed to parse function arguments: EOF"), "{told}");
    assert!(told.contains("the arguments stop in the middle, and nothing was run"), "{told}");
}

#[test]
fn what_is_too_much_to_look_at_is_refused_and_what_is_long_is_not_repaired() {
    let deep = format!(r#"{{"path":{}"#, "[".repeat(1000));
    assert!(routed("change", &deep).unwrap_err().contains("nested deeper"));
    let long = |lines: &str| format!(r#"{{"path":"{}","lines":{lines}}}"#, "x".repeat(1_100_000));
    assert_eq!(routed("change", &long("1")), Ok(Vec::new()));
    let short = r#"{"path":"x","lines":"1"}"#;
    assert_eq!(routed("change", short).map(|repairs| repairs.len()), Ok(1));
    assert!(routed("change", &long("\"1\"")).unwrap_err().contains("must be integer"));
}
