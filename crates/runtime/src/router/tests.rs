//! Tests of routing.

use serde_json::json;
use windlass_contract::{AnyTool, CallId, Output, tool::tool};

use super::*;

/// A tool of each kind: one that only looks and one that changes something. Both say what they were
/// given.
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
    match route(&registry, &call).accepted {
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
fn a_name_written_otherwise_is_told_with_the_repairs() {
    let repairs = routed("functions.Change", r#"{"path":"a","lines":"3"}"#).unwrap();
    let expected =
        ["the tool `functions.Change` was read as `change`", "`arguments.lines`: string read as integer"];
    assert_eq!(repairs, expected);
}

#[test]
fn an_argument_that_is_not_known_is_never_dropped() {
    let told = routed("change", r#"{"path":"a","line":3}"#).unwrap_err();
    let problem =
        "failed to parse function arguments: `arguments.line` is not known; the nearest is `lines`\n";
    assert!(told.starts_with(problem), "{told}");
    assert_eq!(routed("look", r#"{"path":"a","line":3}"#).unwrap(), ["`arguments.line`: read as `lines`"]);
}

#[test]
fn of_two_values_under_one_name_neither_is_taken_by_what_changes_something() {
    let input = r#"{"path":"a","path":"b"}"#;
    let told = routed("change", input).unwrap_err();
    assert!(
        told.contains("`arguments.path` is there twice with different values, and nothing was run"),
        "{told}"
    );
    let note = "`arguments.path` was given twice with different values; the last one was taken";
    assert_eq!(routed("look", input).unwrap(), [note]);
    assert_eq!(routed("change", r#"{"path":"a","path":"a"}"#), Ok(vec![]));
}

/// A tool whose arguments are a Rust type that says more than its types do.
#[derive(Clone, serde::Deserialize, schemars::JsonSchema)]
struct Bounded {
    #[schemars(range(max = 100))]
    percent: u8,
    #[schemars(regex(pattern = "^[a-z]+$"), length(max = 5))]
    word: Option<String>,
    #[serde(default = "three")]
    times: u8,
}

fn three() -> u8 {
    3
}

#[test]
fn a_tool_of_a_rust_type_is_held_to_its_whole_schema() {
    let bounded = tool(
        "bounded",
        |_: &Bounded| Effects::write("/a"),
        |args: Bounded, _| async move {
            Ok(Output::from(format!("{} {:?} {}", args.percent, args.word, args.times)))
        },
    );
    let registry = Registry::builder().tool(Arc::new(bounded.description("Set it."))).build().unwrap();
    let routed = |input: &str| {
        let call = ToolCall { id: "1".into(), name: "bounded".into(), input: Input::Json(input.into()) };
        match route(&registry, &call).accepted {
            Ok(understood) => Ok(understood.arguments.unwrap().to_string()),
            Err(Failure::Tool(error)) => Err(error.message.lines().next().unwrap().to_owned()),
            Err(other) => panic!("{other:?}"),
        }
    };
    let parse = |problem: &str| Err(format!("failed to parse function arguments: {problem}"));
    assert_eq!(routed(r#"{"percent":100}"#).as_deref(), Ok(r#"{"percent":100,"times":3}"#));
    assert_eq!(routed(r#"{"percent":50.0,"word":null}"#).as_deref(), Ok(r#"{"percent":50,"times":3}"#));
    assert_eq!(routed(r#"{"percent":101}"#), parse("`arguments.percent` must be at most 100"));
    assert_eq!(routed(r#"{"percent":-1}"#), parse("`arguments.percent` must be at least 0"));
    let long = "`arguments.word` must have at most 5 characters; `arguments.word` must match the pattern \
                `^[a-z]+$`, found \"Abcdefg\"";
    assert_eq!(routed(r#"{"percent":1,"word":"Abcdefg"}"#), parse(long));
    assert_eq!(
        routed(r#"{"percent":1,"other":2}"#),
        parse("`arguments.other` is not known; there are `percent`, `times`, `word`")
    );
    assert_eq!(routed("{}"), parse("`arguments.percent` is missing"));
    for wrong in
        [r#"{"percent":1e30}"#, r#"{"percent":99999999999999999999}"#, r#"{"percent":[1]}"#, "[1]", "null"]
    {
        let told = routed(wrong).unwrap_err();
        assert!(!told.contains("u8") && !told.contains("struct"), "{told}");
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
