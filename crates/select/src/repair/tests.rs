//! Tests of repairs.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_contract::meta::AliasMeaning;

use super::*;

fn schema() -> Schema {
    Schema::new(&json!({
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "mode": {"enum": ["read_only", "full"], "type": "string"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "options": {"type": "object", "properties": {"max_depth": {"type": "integer"}}},
        },
        "required": ["path"],
        "additionalProperties": false,
    }))
    .unwrap()
}

/// Repairs arguments of a tool `look` with that schema and a few other names.
fn repaired(text: &str, mode: RepairMode) -> Result<RepairedArguments, ArgumentError> {
    let aliases = [
        ParameterAlias { name: "where", means: AliasMeaning::Parameter("path") },
        ParameterAlias { name: "everything", means: AliasMeaning::Switch("mode", "full") },
        ParameterAlias { name: "-n", means: AliasMeaning::AlwaysSo(true) },
        ParameterAlias { name: "description", means: AliasMeaning::Remark },
    ];
    let schema = schema();
    let parameters =
        ToolParameters { tool: "look", tool_aliases: &["LS"], schema: &schema, aliases: &aliases };
    repair(&parameters, text, mode)
}

fn outcome(text: &str, mode: RepairMode) -> String {
    match repaired(text, mode) {
        Ok(RepairedArguments { value, repairs, .. }) => {
            let notes: Vec<_> = repairs.into_iter().map(|repair| repair.note).collect();
            format!("{value} ({})", notes.join("; "))
        }
        Err(why) => format!("{why:?}"),
    }
}

#[test]
fn what_can_be_read_in_one_way_is_read() {
    let cases = [
        (r#"{"path":"a"}"#, r#"{"path":"a"} ()"#),
        (
            r#"{"path":"a","limit":"5"}"#,
            r#"{"limit":5,"path":"a"} (`arguments.limit`: string read as integer)"#,
        ),
        (r#"{"path":7}"#, r#"{"path":"7"} (`arguments.path`: integer read as string)"#),
        (
            r#"{"path":"a","deep":"True"}"#,
            r#"{"deep":true,"path":"a"} (`arguments.deep`: string read as boolean)"#,
        ),
        (r#"{"path":"a","limit":null}"#, r#"{"path":"a"} (`arguments.limit`: null left out)"#),
        (r#"{"path":"a","maybe":null}"#, r#"{"maybe":null,"path":"a"} ()"#),
        (
            r#"{"path":"a","maybe":"3"}"#,
            r#"{"maybe":3,"path":"a"} (`arguments.maybe`: string read as integer)"#,
        ),
        (
            r#"{"path":"a","names":"[\"b\"]"}"#,
            r#"{"names":["b"],"path":"a"} (`arguments.names`: string read as array)"#,
        ),
        (
            r#"{"path":"a","options":"{'maxDepth': '2'}"}"#,
            r#"{"options":{"max_depth":2},"path":"a"} (`arguments.options`: string read as object; `arguments.options.maxDepth`: read as `max_depth`; `arguments.options.max_depth`: string read as integer)"#,
        ),
        (
            r#"{"Path":"a","mode":"Read-Only"}"#,
            r#"{"mode":"read_only","path":"a"} (`arguments.Path`: read as `path`; `arguments.mode`: read as "read_only")"#,
        ),
        (r#""{\"path\":\"a\"}""#, r#"{"path":"a"} (the arguments were JSON inside a string)"#),
        (r#"{"arguments":{"path":"a"}}"#, r#"{"path":"a"} (the arguments were inside `arguments`)"#),
        (
            "```json\n{\"path\": \"a\"}\n```",
            r#"{"path":"a"} (the code fence around the arguments was taken off)"#,
        ),
        (r#"{"path":"a","names":["b",],}"#, r#"{"names":["b"],"path":"a"} (a trailing comma was dropped)"#),
        (r#"{,"path":"a",,"limit":1}"#, r#"{"limit":1,"path":"a"} (an extra comma was dropped)"#),
        (
            "{'path': 'it\\'s', 'deep': True, 'limit': None}",
            r#"{"deep":true,"path":"it's"} (Python's True, False and None were read as JSON's; single quotes were read as double quotes; `arguments.limit`: null left out)"#,
        ),
        (
            "{path: \"a\nb\"}",
            r#"{"path":"a\nb"} (line breaks and tabs inside strings were kept as they are; names without quotes were read as names)"#,
        ),
        (r"{'path': '\u00e9\ud83d\ude00'}", r#"{"path":"é😀"} (single quotes were read as double quotes)"#),
    ];
    for (text, expected) in cases {
        assert_eq!(outcome(text, RepairMode::Exact), expected, "{text}");
    }
}

#[test]
fn what_is_only_likely_is_left_alone_where_it_matters() {
    let cases = [
        (
            r#"{"path":"a","names":"b"}"#,
            r#"{"names":["b"],"path":"a"} (`arguments.names`: string read as array)"#,
        ),
        (r#"{"file_path":"a"}"#, r#"{"path":"a"} (`arguments.file_path`: read as `path`)"#),
        (r#"{"path":"a","limits":5}"#, r#"{"limit":5,"path":"a"} (`arguments.limits`: read as `limit`)"#),
        (r#"{"path":["a"]}"#, r#"{"path":"a"} (`arguments.path`: array read as string)"#),
        (
            r#"{"path":"a","deep":"yes"}"#,
            r#"{"deep":true,"path":"a"} (`arguments.deep`: string read as boolean)"#,
        ),
        (r#"{"path":3.5}"#, r#"{"path":"3.5"} (`arguments.path`: number read as string)"#),
        (r#"{"path":"\d+"}"#, r#"{"path":"\\d+"} (a backslash that escapes nothing was kept as it is)"#),
    ];
    for (text, expected) in cases {
        assert_eq!(outcome(text, RepairMode::Likely), expected, "{text}");
        assert!(repaired(text, RepairMode::Exact).is_err(), "{text}");
    }
}

#[test]
fn what_cannot_be_known_is_not_guessed() {
    let cases = [
        ("", "CutOff"),
        (r#"{"path":"a"#, "CutOff"),
        (r#"{"path":"a","#, "CutOff"),
        ("{'path': 'a'", "CutOff"),
        ("```json\n{\"path\":\"a\"}", "CutOff"),
        (r#"{"path":"a"} {"path":"b"}"#, "Unreadable"),
        (r#"{"path":"a"} trailing"#, "Unreadable"),
        ("the file a", "Unreadable"),
        (r#"{"path":"a","limit":"many"}"#, r#"Unfit(["`arguments.limit` must be integer, found string"])"#),
        (
            r#"{"limit":"x","what":1}"#,
            r#"Unfit(["`arguments.path` is missing", "`arguments.limit` must be integer, found string", "`arguments.what` is not known; there are `deep`, `limit`, `maybe`, `mode`, `names`, `options`, `path`, `ratio`"])"#,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(outcome(text, RepairMode::Likely), expected, "{text}");
    }
    assert_eq!(outcome(&"[".repeat(200_000), RepairMode::Likely), "Unreadable");
}

#[test]
fn a_whole_call_in_place_of_its_arguments_is_unwrapped_unless_it_is_of_another_tool() {
    for text in [
        r#"{"name":"look","arguments":{"path":"a"}}"#,
        r#"{"name":"functions.Look","arguments":"{\"path\":\"a\"}"}"#,
        r#"{"tool":"LS","parameters":{"path":"a"},"id":"1"}"#,
        r#"{"type":"function","function":{"name":"look","arguments":"{\"path\":\"a\"}"}}"#,
        r#"{"tool_name":"look","tool_input":{"where":"a"}}"#,
        r#"[{"path":"a"}]"#,
    ] {
        let repaired = repaired(text, RepairMode::Exact).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        assert_eq!(repaired.value, json!({"path": "a"}), "{text}");
        assert!(repaired.repairs[0].note.starts_with("the arguments were inside "), "{:?}", repaired.repairs);
    }
    assert_eq!(
        outcome(r#"{"name":"remove","arguments":{"path":"a"}}"#, RepairMode::Likely),
        r#"Unfit(["`arguments` are a call of `remove`, but `look` was called"])"#
    );
    let beside = repaired(r#"{"arguments":{"path":"a"},"deep":true}"#, RepairMode::Likely);
    assert!(matches!(beside, Err(ArgumentError::Unfit(_))), "{beside:?}");
}

#[test]
fn other_names_of_parameters_mean_what_the_tool_says_they_do() {
    let cases = [
        (r#"{"where":"a"}"#, r#"{"path":"a"} (`arguments.where`: read as `path`)"#),
        (r#"{"where":"a","path":"a"}"#, r#"{"path":"a"} (`arguments.where`: read as `path`)"#),
        (
            r#"{"path":"a","everything":true}"#,
            r#"{"mode":"full","path":"a"} (`arguments.everything`: read as `mode`)"#,
        ),
        (r#"{"path":"a","everything":"False"}"#, r#"{"path":"a"} (`arguments.everything`: read as `mode`)"#),
        (r#"{"path":"a","-n":true}"#, r#"{"path":"a"} (`arguments.-n`: it is so in any case)"#),
        (
            r#"{"path":"a","description":"look around"}"#,
            r#"{"path":"a"} (`arguments.description`: left out, it changes nothing about the call)"#,
        ),
        (
            r#"{"path":"a","where":"b"}"#,
            r#"Unfit(["`arguments.where` is not known; it is another name of `path`, which is given too; leave one of them out"])"#,
        ),
        (r#"{"path":"a","-n":false}"#, r#"Unfit(["`arguments.-n` is not known; here it can only be true"])"#),
        (
            r#"{"path":"a","everything":3}"#,
            r#"Unfit(["`arguments.everything` is not known; it must be true or false; true means `mode` \"full\""])"#,
        ),
        (
            r#"{"path":"a","ratios":0.5}"#,
            r#"Unfit(["`arguments.ratios` is not known; the nearest is `ratio`"])"#,
        ),
        (r#"{"path":"a","options":{"depth":1}}"#, r#"{"options":{"depth":1},"path":"a"} ()"#),
    ];
    for (text, expected) in cases {
        assert_eq!(outcome(text, RepairMode::Exact), expected, "{text}");
    }
}

#[test]
fn of_two_different_values_neither_is_taken_where_it_matters() {
    for text in [r#"{"path":"a","path":"b"}"#, "{'path': 'a', 'path': 'b'}", r#"{"path":"a","path":"b",}"#] {
        assert_eq!(outcome(text, RepairMode::Exact), r#"Repeated("arguments.path")"#, "{text}");
        let taken = outcome(text, RepairMode::Likely);
        assert!(taken.starts_with(r#"{"path":"b"}"#) && taken.contains("the last one was taken"), "{taken}");
    }
    let same = repaired(r#"{"path":"a","path":"a"}"#, RepairMode::Exact).unwrap();
    assert_eq!((same.repairs, same.is_verbatim), (vec![], false));
}

#[test]
fn names_are_the_same_but_for_case_separators_and_name_space() {
    for name in
        ["readFile", "read-file", "functions.read_file", "Read File", "tools::READ_FILE", " read_file "]
    {
        assert!(same_name("read_file", name), "{name}");
    }
    for name in ["read_files", "reader.read_file", "r\u{435}ad_file", "", "_", "functions."] {
        assert!(!same_name("read_file", name), "{name}");
    }
    assert_eq!(nearest("reed_file", ["list_dir", "read_file", "write_file"])[0], "read_file");
}

#[test]
fn the_expected_shape_comes_with_an_example() {
    assert_eq!(
        describe_expected(&schema(), None),
        "expected: {\"deep\"?: boolean, \"limit\"?: integer, \"maybe\"?: integer | null, \"mode\"?: \"read_only\" | \
         \"full\", \"names\"?: [string, …], \"options\"?: {\"max_depth\"?: integer}, \"path\": string, \"ratio\"?: number}\n\
         example: {\"path\":\"…\"}"
    );
    assert!(describe_expected(&schema(), Some(r#"{"path":"src"}"#)).ends_with("example: {\"path\":\"src\"}"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9 \\[{\"']{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name =
            prop_oneof![Just("path"), Just("limit"), Just("names"), Just("Options"), Just("limt"), Just("x")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_call_that_fits_is_never_changed(mut value in any_json()) {
        if let Some(members) = value.as_object_mut() {
            members.insert("path".into(), "a".into());
        }
        for mode in [RepairMode::Exact, RepairMode::Likely] {
            if schema().check(&value).is_empty() {
                let untouched = RepairedArguments { value: value.clone(), repairs: Vec::new(), is_verbatim: true };
                prop_assert_eq!(repaired(&value.to_string(), mode), Ok(untouched));
            }
        }
    }

    #[test]
    fn what_comes_out_fits_and_says_what_was_done(value in any_json()) {
        for mode in [RepairMode::Exact, RepairMode::Likely] {
            if let Ok(repaired) = repaired(&value.to_string(), mode) {
                prop_assert!(schema().check(&repaired.value).is_empty());
                prop_assert_eq!(repaired.value == value, repaired.repairs.is_empty());
            }
        }
    }

    #[test]
    fn no_text_is_too_odd(text in "[{}\\[\\]'\",:\\\\`a-u0-9TN \n.-]{0,40}") {
        let _ = repaired(&text, RepairMode::Likely);
    }

    #[test]
    fn no_beginning_of_a_call_is_taken_for_the_call(value in any_json(), cut in 0_usize..100) {
        let text = json!({"path": "a", "names": [value]}).to_string();
        let cut = cut.min(text.len() - 1);
        if let Some(begun) = text.get(..cut) {
            prop_assert!(matches!(repaired(begun, RepairMode::Likely), Err(ArgumentError::CutOff)));
        }
    }
}
