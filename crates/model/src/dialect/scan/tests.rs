//! Tests of texts as models write them, whole and in pieces.

use proptest::prelude::*;
use serde_json::json;
use windlass_contract::{
    Content, Item, ToolSpec,
    call::InputKind,
    item::{Body, Cached},
    spec::SpecKind,
};
use windlass_schema::Schema;

use super::*;

fn known() -> KnownTools {
    let parameters = json!({"properties": {
        "a": {"type": "integer"}, "b": {"type": "string"}, "o": {"type": "object"}, "n": {"type": ["string", "null"]}
    }});
    let spec = |name: &str| ToolSpec {
        name: name.into(),
        description: String::new(),
        kind: SpecKind::Function { parameters: Schema::new(&parameters).unwrap() },
    };
    KnownTools::from_specs(&[spec("f"), spec("g")])
}

/// Scans a text in pieces and returns one line per result; adjacent text is one line.
fn read<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut scanner = CallScanner::new(dialect, known).unwrap();
    let mut found: Vec<ScannedPiece> = pieces.into_iter().flat_map(|piece| scanner.feed(piece)).collect();
    found.extend(scanner.finish());
    let mut joined = Vec::new();
    for piece in found {
        match piece {
            ScannedPiece::Text(text) => push(&text, &mut joined),
            call @ ScannedPiece::Call(_) => joined.push(call),
        }
    }
    let line = |piece| match piece {
        ScannedPiece::Text(text) => format!("text {text}"),
        ScannedPiece::Call(found) => format!("call {} {}", found.name, found.arguments),
    };
    joined.into_iter().map(line).collect()
}

/// Whole, letter by letter, and cut at every place the result is the same, also where any dialect
/// is looked for.
#[track_caller]
fn check(dialect: Dialect, text: &str, expected: &[&str]) {
    for dialect in [dialect, Dialect::Auto] {
        assert_eq!(read(dialect, [text]), expected, "{dialect:?}");
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(read(dialect, letters.iter().map(String::as_str)), expected, "{dialect:?}, by letter");
        for (at, _) in text.char_indices() {
            let (context, after) = text.split_at(at);
            assert_eq!(read(dialect, [context, after]), expected, "{dialect:?}, cut at {at}");
        }
    }
}

#[test]
fn tagged_json() {
    let dialect = Dialect::Hermes;
    check(
        dialect,
        "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": \"</tool_call> \\\" 中\"}}\n</tool_call>\n<tool_call>{'name': 'g', 'arguments': {}}</tool_call> Done.",
        &["text I look.\n", r#"call f {"b": "</tool_call> \" 中"}"#, "text \n", "call g {}", "text  Done."],
    );
    // The end tag is forgotten, a brace is missing, two calls share a tag.
    check(
        dialect,
        r#"<tool_call>{"name":"f","arguments":{"a":1}}<tool_call>{"name":"g","arguments":{"a":2}</tool_call>"#,
        &[r#"call f {"a":1}"#, r#"call g {"a":2}"#],
    );
    check(
        dialect,
        "<tool_call>[{\"name\":\"f\",\"arguments\":{}},\n{\"name\":\"g\",\"arguments\":{}}]</tool_call>",
        &["call f {}", "call g {}"],
    );
}

#[test]
fn a_name_that_is_no_tool_is_called_only_where_nothing_else_can_be_meant() {
    check(Dialect::Hermes, r#"<tool_call>{"name": "h", "arguments": {}}</tool_call>"#, &["call h {}"]);
    let fenced = "```json\n{\"name\": \"h\", \"arguments\": {}}\n```";
    check(Dialect::Json, fenced, &[&format!("text {fenced}")]);
    check(Dialect::Pythonic, "[h(a=1)]", &["text [h(a=1)]"]);
}

#[test]
fn fenced_and_bare_json() {
    let dialect = Dialect::Json;
    check(
        dialect,
        "So:\n```json\n{\"name\": \"f\", \"parameters\": {\"b\": \"``` x\"}}\n```\nand on",
        &["text So:\n", r#"call f {"b": "``` x"}"#, "text \nand on"],
    );
    check(dialect, "```\n{\"name\": \"f\", \"arguments\": {}}\n```", &["call f {}"]);
    check(dialect, " {\"name\": \"f\", \"arguments\": {}}\n", &["text  ", "call f {}", "text \n"]);
    check(
        dialect,
        "[\n {\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {\"a\": 1}}]",
        &["call f {}", r#"call g {"a": 1}"#],
    );
    check(
        dialect,
        r#"{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}"#,
        &["call f {}", "call g {}"],
    );
}

#[test]
fn json_that_is_no_call_is_text() {
    for text in [
        r#"{"name": "f", "arguments": {}} is how to call it"#,
        r#"{"name": "f", "age": 3}"#,
        r#"{"answer": [1, 2, 3]}"#,
        "```json\n{\"x\": 1}\n```\nmore",
        "```json\n{\"name\": \"f\", \"arguments\": {}}\nand then\n```",
        "```python\nx = 1\n```\n{\"name\": \"f\", \"arguments\": {}}",
        "use `f`: {\"name\": \"f\", \"arguments\": {}}",
        "``` ```` `",
        "[1, 2]",
        "[]",
        "[link](http://x)",
    ] {
        check(Dialect::Json, text, &[&format!("text {text}")]);
    }
}

#[test]
fn python_lists() {
    let dialect = Dialect::Pythonic;
    check(
        dialect,
        "Now\n[f(a=1, b='x]'), g()]\nand\n[g(b=\"y\")]",
        &["text Now\n", r#"call f {"a":1,"b":"x]"}"#, "call g {}", "text \nand\n", r#"call g {"b":"y"}"#],
    );
    check(dialect, "[f(a=1), h()] is it", &[r#"call f {"a":1}"#, "call h {}", "text  is it"]);
    check(dialect, "<|python_start|>[f(a=2)]<|python_end|>", &[r#"call f {"a":2}"#]);
    for text in ["[f](x) is [f(1)]", "see [f(a=1)]", "[ f g(", "[f", "[", "[中(a=1)]"] {
        check(dialect, text, &[&format!("text {text}")]);
    }
}

#[test]
fn elements() {
    let dialect = Dialect::Xml;
    check(
        dialect,
        "<tool_call>\n<function=f>\n<parameter=a>\n7\n</parameter>\n<parameter=b>\n1 < 2\n</parameter> and </function>\n</parameter>\n<parameter=o>{\"x\": [1]}</parameter>\n</function>\n</tool_call>!",
        &[r#"call f {"a":7,"b":"1 < 2\n</parameter> and </function>","o":{"x":[1]}}"#, "text !"],
    );
    check(
        dialect,
        "<function_calls>\n<invoke name=\"f\">\n<parameter name=\"b\">7</parameter></invoke>\n<invoke name=\"g\"></invoke>\n</function_calls>",
        &[r#"call f {"b":"7"}"#, "call g {}"],
    );
    // Only the end tag of the outer element is there.
    check(
        dialect,
        "<function=g>\n<parameter=a>not a number</parameter>\n</function>\n</tool_call>\nok",
        &[r#"call g {"a":"not a number"}"#, "text \nok"],
    );
    check(
        dialect,
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": null}}</tool_call>",
        &[r#"call f {"n": null}"#],
    );
    for text in
        ["<function=>", "<function=<b>", "<functional>", "<invoke >x", "<tool_call> <b>x</b>", "a < b > c"]
    {
        check(dialect, text, &[&format!("text {text}")]);
    }
}

#[test]
fn mistral_marks() {
    let dialect = Dialect::Mistral;
    check(
        dialect,
        r#"[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]"#,
        &[r#"call f {"a": 1}"#, "call g {}"],
    );
    check(
        dialect,
        r#"Hm.[TOOL_CALLS]f[ARGS]{"b": "{"}[TOOL_CALLS]g{"a": 2}"#,
        &["text Hm.", r#"call f {"b": "{"}"#, r#"call g {"a": 2}"#],
    );
    check(dialect, r"[TOOL_CALLS]f[CALL_ID]123[ARGS]{}", &["call f {}"]);
    for text in ["[TOOL_CALLS]", "[TOOL_CALLS] f", "[TOOL_CALLS]中", "[TOOL_CALL]x"] {
        check(dialect, text, &[&format!("text {text}")]);
    }
}

#[test]
fn a_call_that_is_cut_off_is_never_completed() {
    let rows = [
        (Dialect::Hermes, r#"<tool_call>{"name": "f", "arguments": {"b": "rm "#, r#"call f {"b": "rm"#),
        (Dialect::Hermes, r#"<tool_call>{"name": "f", "argu"#, "call f {"),
        (Dialect::Hermes, r#"<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_c"#, r#"call f {"a": 1}"#),
        (Dialect::Json, "```json\n{\"name\": \"f\", \"arguments\": {\"b\": \"x", r#"call f {"b": "x"#),
        (Dialect::Json, r#"{"name": "f", "arguments": {"b""#, r#"call f {"b""#),
        (Dialect::Pythonic, r#"[f(a=1, b="x"#, r#"call f {"a":1,"b":"x"#),
        (Dialect::Xml, "<function=f>\n<parameter=a>1</parameter>", r#"call f {"a":"1</parameter>"#),
        (Dialect::Xml, "<function=f><parameter=b>\nrm -r", r#"call f {"b":"\nrm -r"#),
        (Dialect::Mistral, r#"[TOOL_CALLS]f[ARGS]{"b": "#, r#"call f {"b": "#),
    ];
    for (dialect, text, expected) in rows {
        check(dialect, text, &[expected]);
    }
    // Nobody knows what this was going to be.
    for text in [r#"<tool_call>{"name": "f"#, "<tool_call>", "<tool_"] {
        check(Dialect::Hermes, text, &[&format!("text {text}")]);
    }
}

#[test]
fn prose_goes_on_at_once_and_half_a_mark_does_not() {
    let mut scanner = CallScanner::new(Dialect::Auto, known).unwrap();
    assert_eq!(
        scanner.feed("I will <b>look</b> <tool"),
        [ScannedPiece::Text("I will <b>look</b> ".to_owned())]
    );
    assert_eq!(scanner.feed("s"), [ScannedPiece::Text("<tools".to_owned())]);
    assert_eq!(scanner.feed(" <tool_call>{"), [ScannedPiece::Text(" ".to_owned())]);
    assert_eq!(scanner.feed(r#""name": "f", "arguments": {}"#), []);
    let call = TextCall { name: "f".to_owned(), arguments: "{}".to_owned() };
    assert_eq!(scanner.feed("}</tool_call>"), [ScannedPiece::Call(call)]);
}

fn writing() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("<tool_call>"),
        Just("</tool_call>"),
        Just("<function=f>"),
        Just("</function>"),
        Just("<parameter=b>"),
        Just("</parameter>"),
        Just("<invoke name=\"g\">"),
        Just("</invoke>"),
        Just("[TOOL_CALLS]"),
        Just("[ARGS]"),
        Just("```json\n"),
        Just("```"),
        Just(r#"{"name": "f", "arguments": {"a": 1}}"#),
        Just("[f(a=1, b='x')]"),
        Just("f("),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("\\"),
        Just("\n"),
        Just(" "),
        Just("<"),
        Just(">"),
        Just("中 words"),
    ];
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL[1..].to_vec())
}

proptest! {
    #[test]
    fn any_split_gives_what_the_whole_gives(
        text in writing(), dialect in any_dialect(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)
    ) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&places)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]);
        prop_assert_eq!(read(dialect, pieces), read(dialect, [text.as_str()]));
    }

    #[test]
    fn text_without_a_call_comes_out_as_it_went_in(text in ".*", dialect in any_dialect()) {
        let lines = read(dialect, [text.as_str()]);
        if lines.iter().all(|line| line.starts_with("text ")) {
            prop_assert_eq!(lines.concat(), if text.is_empty() { String::new() } else { format!("text {text}") });
        }
    }

    #[test]
    fn what_is_written_for_a_server_is_what_is_read_from_it(b in ".*", a in any::<i64>(), dialect in any_dialect()) {
        // Elements have no escapes: a value that holds their tags, or ends in a line break, cannot
        // be told apart.
        prop_assume!(dialect != Dialect::Xml || !(b.contains("</") || b.starts_with('\r') || b.ends_with('\r')));
        let arguments = json!({"a": a, "b": b});
        let lines = read(dialect, [dialect.call("f", &arguments.to_string()).as_str()]);
        prop_assert_eq!(lines.len(), 1, "{:?}", lines);
        let json = lines[0].strip_prefix("call f ").unwrap();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(json).unwrap(), arguments);
    }
}

/// Scans a text with caution, whole and character by character. Returns the results, and whether a
/// call was rejected.
fn read_cautiously(text: &str, quoted: &str) -> (Vec<String>, bool) {
    let specs = || {
        let parameters = json!({"properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false});
        let parameters = Schema::new(&parameters).unwrap();
        [ToolSpec {
            name: "read".into(),
            description: String::new(),
            kind: SpecKind::Function { parameters },
        }]
    };
    let output = Body::Output {
        call: "c".into(),
        input: InputKind::Json,
        content: vec![Content::Text(quoted.to_owned())],
        failed: false,
    };
    let mut results = [text.split_inclusive(|_| true).collect::<Vec<_>>(), vec![text]].map(|pieces| {
        let history = [Cached::from(Item::from(output.clone()))];
        let mut scanner = CallScanner::cautious(KnownTools::with_caution(&specs(), &history));
        let mut found: Vec<ScannedPiece> = pieces.into_iter().flat_map(|piece| scanner.feed(piece)).collect();
        found.extend(scanner.finish());
        let mut lines: Vec<String> = Vec::new();
        for piece in found {
            match (piece, lines.last_mut()) {
                (ScannedPiece::Call(call), _) => lines.push(format!("call {} {}", call.name, call.arguments)),
                (ScannedPiece::Text(text), Some(last)) if last.starts_with("text ") => last.push_str(&text),
                (ScannedPiece::Text(text), _) => lines.push(format!("text {text}")),
            }
        }
        (lines, scanner.has_rejected_call())
    });
    assert_eq!(results[0], results[1], "cut anywhere it is the same");
    std::mem::take(&mut results[0])
}

#[test]
fn with_caution_a_text_that_is_nothing_but_calls_is_taken_for_calls() {
    let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
    let expected = vec![r#"call read {"path": "a"}"#.to_owned()];
    for text in [
        call.to_owned(),
        format!("\n  {call}\n"),
        format!("[{call}]"),
        format!("```json\n{call}\n```"),
        format!("```json\n{call}\n```\n\n"),
        format!("```\n{call}\n```"),
        format!("<tool_call>\n{call}\n</tool_call>"),
        format!("[TOOL_CALLS][{call}]"),
    ] {
        let (lines, is_doubtful) = read_cautiously(&text, "");
        let calls: Vec<_> = lines.into_iter().filter(|line| line.trim() != "text").collect();
        assert_eq!((calls, is_doubtful), (expected.clone(), false), "{text}");
    }
    let two = format!("```json\n{call}\n```\n```json\n{call}\n```");
    assert_eq!(read_cautiously(&two, "").0.iter().filter(|line| line.starts_with("call ")).count(), 2);
    let after_words = format!("I will look.\n```json\n{call}\n```");
    assert_eq!(read_cautiously(&after_words, "").0.last(), expected.first());
}

#[test]
fn with_caution_what_only_shows_a_call_is_text() {
    let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
    for (text, is_doubtful) in [
        (format!("Call it like this: {call}"), false),
        (format!("{call}\nis how you call it"), false),
        (format!("```json\n{call}\n```\nThis is how you call it."), false),
        (format!("```python\n{call}\n```"), false),
        (r#"{"name": "ls", "arguments": {"path": "a"}}"#.to_owned(), false),
        (r#"{"name": "read", "arguments": {"path": 7}}"#.to_owned(), true),
        (r#"{"name": "read", "arguments": {"file": "a"}}"#.to_owned(), true),
        (r#"{"name": "read", "arguments": {}}"#.to_owned(), true),
        (r#"{"name": "read", "arguments": {"path": "a"#.to_owned(), true),
        (r#"{"name": "read", "version": "1.0"}"#.to_owned(), false),
        (r#"<tool_call>{"name": "ls", "arguments": {}}</tool_call>"#.to_owned(), false),
        ("so:\n[read(path=\"a\")]".to_owned(), false),
        ("[1, 2, 3]".to_owned(), false),
    ] {
        assert_eq!(read_cautiously(&text, ""), (vec![format!("text {text}")], is_doubtful));
    }
}

#[test]
fn with_caution_a_call_that_a_result_holds_is_not_run_when_it_is_repeated() {
    let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
    let file = "{\n  \"name\": \"read\",\n  \"arguments\": {\n    \"path\": \"a\"\n  }\n}";
    assert_eq!(read_cautiously(call, file), (vec![format!("text {call}")], true));
    assert_eq!(read_cautiously(call, "read nothing").0, [r#"call read {"path": "a"}"#]);
}
