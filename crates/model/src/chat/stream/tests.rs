//! Tests of chunks, as real servers send them.

use proptest::prelude::*;
use windlass_contract::item::Cached;

use super::*;
use crate::answer::EventDecoder as _;

fn decoder() -> ChatDecoder {
    ChatDecoder::new(CallIds::default(), HashSet::from(["patch".to_owned()]), TextReading::Plain)
}

/// Plays chunks and tells what came out, one line each. A chunk that is a string stands for itself,
/// not for JSON.
fn play(chunks: &[Value]) -> Vec<String> {
    play_text(&chunks.iter().map(text_of_chunk).collect::<Vec<_>>())
}

fn text_of_chunk(chunk: &Value) -> String {
    chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned)
}

fn play_text(chunks: &[String]) -> Vec<String> {
    play_with(decoder(), chunks)
}

fn play_with(mut decoder: ChatDecoder, chunks: &[String]) -> Vec<String> {
    let (mut out, mut lines) = (VecDeque::new(), Vec::new());
    for data in chunks {
        let step = decoder.take(&ServerSentEvent { name: String::new(), data: data.clone() }, &mut out);
        // Pieces of arguments are counted, not shown: the call that follows has them all.
        out.retain(|event| !matches!(event, ModelEvent::CallDelta(_)));
        let is_over = step.is_err() || matches!(out.back(), Some(ModelEvent::Completed { .. }));
        lines.extend(out.drain(..).map(show));
        lines.extend(step.err().map(|error| format!("error: {error}")));
        if is_over {
            return lines;
        }
    }
    let end = decoder.end(Ok(()), &mut out);
    lines.extend(out.drain(..).map(show));
    lines.extend(end.err().map(|error| format!("error: {error}")));
    lines
}

fn show(event: ModelEvent) -> String {
    match event {
        ModelEvent::TextDelta(text) => format!("text {text:?}"),
        ModelEvent::ReasoningDelta(text) => format!("reasoning {text:?}"),
        ModelEvent::CallDelta(text) => format!("arguments {text:?}"),
        ModelEvent::Item(Item { body, raw }) => {
            let raw = raw.map(|raw| format!(" raw {}", raw.json.get())).unwrap_or_default();
            match body {
                Body::Message { content, .. } => format!("message {:?}{raw}", Content::join(&content)),
                Body::Call(call) => format!("call {} {} {:?}{raw}", call.id, call.name, call.input),
                Body::Reasoning { text, .. } => format!("reasoned {}{raw}", text.join("|")),
                other => format!("{other:?}{raw}"),
            }
        }
        ModelEvent::Completed { usage, .. } => {
            format!("completed {:?}", usage.map(|usage| (usage.input_tokens, usage.output_tokens)))
        }
        ModelEvent::Notice(text) => text,
    }
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn calls(entries: &Value) -> Value {
    delta(&json!({"tool_calls": entries}))
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn done() -> Value {
    json!("[DONE]")
}

#[test]
fn text_and_usage_arrive_and_the_message_is_whole() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    let chunks = [
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"content": "Hel"})),
        delta(&json!({"content": [{"type": "text", "text": "lo"}]})),
        finish("stop"),
        usage,
        done(),
    ];
    let expected = ["text \"Hel\"", "text \"lo\"", "message \"Hello\"", "completed Some((10, 5))"];
    assert_eq!(play(&chunks), expected);
    assert_eq!(play(&chunks[..5]), expected, "an end without [DONE] is an end all the same");
}

#[test]
fn thoughts_are_read_in_every_form_and_go_back_in_their_field() {
    for (field, value) in [
        ("reasoning", json!("hm")),
        ("reasoning_content", json!("hm")),
        ("reasoning", json!({"text": "hm"})),
        ("reasoning", json!({"content": "hm"})),
    ] {
        let chunks = [delta(&json!({field: value})), delta(&json!({"content": "x"})), finish("stop")];
        let raw = json!({field: "hm"});
        assert_eq!(
            play(&chunks),
            [
                "reasoning \"hm\"".to_owned(),
                format!("reasoned hm raw {raw}"),
                "text \"x\"".to_owned(),
                "message \"x\"".to_owned(),
                "completed None".to_owned()
            ]
        );
    }
}

#[test]
fn a_call_starts_as_soon_as_the_next_one_opens() {
    let mut decoder = decoder();
    let mut out = VecDeque::new();
    let mut take = |chunk: Value| {
        decoder.take(&ServerSentEvent { name: String::new(), data: chunk.to_string() }, &mut out).unwrap();
        out.drain(..).map(show).collect::<Vec<_>>()
    };
    let piece = |text: &str| format!("arguments {text:?}");
    let first = json!([{"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}}]);
    assert_eq!(take(delta(&json!({"content": "I look."}))), ["text \"I look.\""]);
    assert_eq!(take(calls(&first)), ["message \"I look.\""]);
    assert_eq!(
        take(calls(&json!([{"index": 0, "function": {"arguments": "{\"a\":1}"}}]))),
        [piece("{\"a\":1}")]
    );
    let second = json!([{"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{"}}]);
    assert_eq!(take(calls(&second)), ["call c1 f Json(\"{\\\"a\\\":1}\")", &piece("{")]);
    assert_eq!(take(calls(&json!([{"index": 1, "function": {"arguments": "}"}}]))), [piece("}")]);
    assert_eq!(take(finish("tool_calls")), ["call c2 g Json(\"{}\")"]);
}

#[test]
fn pieces_find_their_call_by_index_by_id_or_by_being_last() {
    let by_id = |id: &str, arguments: &str| json!([{"id": id, "function": {"arguments": arguments}}]);
    let expected = ["call a f Json(\"{}\")", "call b f Json(\"[]\")", "completed None"];
    let named = json!([{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "f"}}]);
    let chunks = [
        calls(&named),
        calls(&by_id("a", "{")),
        calls(&by_id("b", "[")),
        calls(&by_id("a", "}")),
        calls(&by_id("b", "]")),
        finish("tool_calls"),
    ];
    assert_eq!(play(&chunks), expected);
    let last = json!([{"function": {"arguments": "{}"}}]);
    let chunks = [calls(&json!([{"id": "a", "function": {"name": "f"}}])), calls(&last), finish("stop")];
    assert_eq!(play(&chunks), [expected[0], expected[2]]);
}

#[test]
fn calls_that_all_claim_to_be_the_first_are_told_apart() {
    let by_id = |id: &str| json!([{"index": 0, "id": id, "function": {"name": "f", "arguments": "{}"}}]);
    let expected = ["call a f Json(\"{}\")", "call b f Json(\"{}\")", "completed None"];
    assert_eq!(play(&[calls(&by_id("a")), calls(&by_id("b")), finish("stop")]), expected);
    let nameless = json!([{"function": {"name": "f", "arguments": {"a": 1}}}]);
    assert_eq!(
        play(&[calls(&nameless), calls(&nameless), finish("stop")]),
        [
            "call tool-call-0 f Json(\"{\\\"a\\\":1}\")",
            "call tool-call-1 f Json(\"{\\\"a\\\":1}\")",
            "completed None"
        ]
    );
}

#[test]
fn missing_ids_are_invented_and_never_given_twice_in_a_session() {
    let call = json!([{"index": 0, "function": {"name": "f", "arguments": ""}}]);
    let lines = play(&[calls(&call), finish("tool_calls")]);
    assert_eq!(lines, ["call tool-call-0 f Json(\"\")", "completed None"]);
    let earlier = ToolCall { id: "tool-call-0".into(), name: "f".into(), input: Input::Json(String::new()) };
    let history = [Cached::new(Item::from(Body::Call(earlier)))];
    let mut decoder = ChatDecoder::new(CallIds::from_history(&history), HashSet::new(), TextReading::Plain);
    let mut out = VecDeque::new();
    for chunk in [calls(&call), finish("tool_calls")] {
        decoder.take(&ServerSentEvent { name: String::new(), data: chunk.to_string() }, &mut out).unwrap();
    }
    let line = show(out.pop_front().unwrap());
    assert!(line.starts_with("call tool-call-0-"), "{line}");
}

#[test]
fn names_and_ids_are_taken_once_and_a_call_without_a_name_is_one_of_no_tool() {
    let again = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]);
    let repeat = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]);
    let nameless = json!([{"index": 1, "id": "b", "function": {"arguments": "{}"}}]);
    let chunks = [calls(&again), calls(&repeat), calls(&nameless), finish("tool_calls")];
    let unnamed = "call b unnamed Json(\"{}\")";
    assert_eq!(play(&chunks), ["call a f Json(\"{}\")", unnamed, "completed None"]);
}

#[test]
fn freeform_tools_get_their_text_and_whatever_else_a_model_writes() {
    let patch = |arguments: &str| {
        let call = json!([{"index": 0, "id": "a", "function": {"name": "patch", "arguments": arguments}}]);
        play(&[calls(&call), finish("tool_calls")]).remove(0)
    };
    assert_eq!(patch(r#"{"input":"*** x\n"}"#), r#"call a patch Text("*** x\n")"#);
    assert_eq!(patch("*** x"), r#"call a patch Text("*** x")"#);
    assert_eq!(patch(r#"{"patch":1}"#), r#"call a patch Text("{\"patch\":1}")"#);
}

#[test]
fn fields_nobody_knows_are_kept_with_the_call() {
    let call = json!([{"index": 0, "id": "a", "type": "function", "extra_content": {"sig": "s"},
        "function": {"name": "f", "arguments": "{}", "new": 1}}]);
    let raw = json!({"id": "a", "type": "function", "extra_content": {"sig": "s"},
        "function": {"name": "f", "arguments": "{}", "new": 1}});
    let lines = play(&[calls(&call), finish("tool_calls")]);
    assert_eq!(lines[0], format!("call a f Json(\"{{}}\") raw {raw}"));
}

#[test]
fn a_cut_answer_keeps_its_whole_calls_and_never_gives_the_last_one() {
    let whole = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]);
    let half = json!([{"index": 1, "id": "b", "function": {"name": "f", "arguments": "{}"}}]);
    let cut = "error: the answer was cut off by the server (length); raise its output or context limit, or ask for less";
    assert_eq!(
        play(&[calls(&whole), calls(&half), finish("length")]),
        ["call a f Json(\"{}\")", cut],
        "even a call that looks whole may have been meant to go on"
    );
    assert_eq!(play(&[calls(&whole), finish("length")]), [cut]);
    assert_eq!(
        play(&[delta(&json!({"content": "Hel"})), finish("length")]),
        ["text \"Hel\"", "message \"Hel\"", cut]
    );
    let filtered = &play(&[finish("content_filter")])[0];
    assert!(filtered.ends_with("rephrase the request"), "{filtered}");
}

#[test]
fn an_answer_that_only_stops_is_broken_and_gives_nothing_half() {
    let call = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]);
    let broken = "error: the answer broke off: stream closed before finish_reason; check the server and the connection to it";
    assert_eq!(play(&[calls(&call)]), [broken]);
    assert_eq!(play(&[]), [broken]);
    assert_eq!(play(&[calls(&call), done()]), ["call a f Json(\"{}\")", "completed None"]);
    assert_eq!(play(&[json!("DONE")]), ["completed None"]);
}

#[test]
fn errors_inside_the_stream_are_told() {
    let rows = [
        json!({"error": {"code": 500, "message": "boom", "type": "server_error"}}),
        json!({"error": "boom"}),
        json!({"object": "error", "message": "boom"}),
    ];
    for row in rows {
        assert_eq!(
            play(&[row]),
            ["error: the model's server failed: boom; try again later, or check the server's log"]
        );
    }
    assert_eq!(
        play(&[finish("error")]),
        ["error: the model's server failed: no reason given; try again later, or check the server's log"]
    );
}

#[test]
fn nonsense_between_chunks_is_skipped() {
    let mut chunks = vec!["ping".to_owned(), "null".to_owned(), "{}".to_owned(), "[]".to_owned()];
    for wrong in [
        json!({"choices": 5}),
        json!({"choices": [{"delta": {"content": 5, "tool_calls": "no"}, "finish_reason": 7}]}),
        json!({"choices": [{"delta": "text"}], "usage": {"prompt_tokens": -1}, "error": null}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": "x", "function": 5}]}}]}),
    ] {
        chunks.push(wrong.to_string());
    }
    chunks.extend([delta(&json!({"content": "ok"})), finish("stop")].map(|chunk| chunk.to_string()));
    let lines = play_text(&chunks);
    assert_eq!(lines, ["text \"ok\"", "message \"ok\"", "completed Some((0, 0))"]);
}

#[test]
fn a_whole_message_counts_unless_pieces_came_before() {
    let whole =
        json!({"choices": [{"message": {"content": "Hi", "reasoning": "hm"}, "finish_reason": "stop"}]});
    let lines = play(std::slice::from_ref(&whole));
    assert_eq!(lines[1], "reasoned hm raw {\"reasoning\":\"hm\"}");
    assert_eq!(lines[3..], ["message \"Hi\"", "completed None"]);
    let after = play(&[delta(&json!({"content": "Hi"})), whole]);
    assert_eq!(after, ["text \"Hi\"", "message \"Hi\"", "completed None"]);
}

#[test]
fn blank_text_before_a_call_is_no_message() {
    let call = json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]);
    let lines = play(&[delta(&json!({"content": "\n\n"})), calls(&call), finish("tool_calls")]);
    assert_eq!(lines, ["text \"\\n\\n\"", "call a f Json(\"{}\")", "completed None"]);
}

/// The identification that a server gives its calls.
#[derive(Debug, Clone, Copy)]
enum Naming {
    Index,
    Id,
    Both,
}

proptest! {
    #[test]
    fn however_a_call_is_cut_it_comes_out_the_same(
        arguments in prop::collection::vec("\\{\"a\":\"[a-z é]{0,12}\"\\}", 1..4),
        cuts in prop::collection::vec(1_usize..6, 0..40),
        naming in prop::sample::select(vec![Naming::Index, Naming::Id, Naming::Both]),
        interleaved in any::<bool>(),
    ) {
        let entry = |at: usize, function: Value| {
            let id = format!("c{at}");
            match naming {
                Naming::Index => json!({"index": at, "function": function}),
                Naming::Id => json!({"id": id, "function": function}),
                Naming::Both => json!({"index": at, "id": id, "function": function}),
            }
        };
        let mut cuts = cuts.into_iter().cycle();
        let mut pieces: Vec<VecDeque<Value>> = Vec::new();
        for (at, text) in arguments.iter().enumerate() {
            let mut entries = VecDeque::from([entry(at, json!({"name": "f", "arguments": ""}))]);
            let chars: Vec<char> = text.chars().collect();
            let size = cuts.next().unwrap_or(1);
            entries.extend(chars.chunks(size).map(|piece| entry(at, json!({"arguments": piece.iter().collect::<String>()}))));
            pieces.push(entries);
        }
        let mut chunks = Vec::new();
        if interleaved {
            while pieces.iter().any(|entries| !entries.is_empty()) {
                let row: Vec<Value> = pieces.iter_mut().filter_map(VecDeque::pop_front).collect();
                chunks.push(calls(&json!(row)));
            }
        } else {
            chunks.extend(pieces.into_iter().flatten().map(|entry| calls(&json!([entry]))));
        }
        chunks.push(finish("tool_calls"));
        let mut expected: Vec<String> = arguments.iter().enumerate().map(|(at, text)| {
            let id = if matches!(naming, Naming::Index) { format!("tool-call-{at}") } else { format!("c{at}") };
            format!("call {id} f {:?}", Input::Json(text.clone()))
        }).collect();
        expected.push("completed None".to_owned());
        prop_assert_eq!(play(&chunks), expected);
    }

    #[test]
    fn arbitrary_data_never_panics(chunks in prop::collection::vec("\\PC{0,40}|\\{\"choices\":\\[\\{\"delta\":\\{\"tool_calls\":\\[\\{\"index\":[0-9]{0,3},?\"id\":\"a?\"\\}\\]\\}\\}\\]\\}", 0..8)) {
        play_text(&chunks);
    }
}

fn in_text(chunks: &[Value]) -> Vec<String> {
    let spec = |name: &str| windlass_contract::ToolSpec {
        name: name.into(),
        description: String::new(),
        kind: windlass_contract::spec::SpecKind::LocalShell,
    };
    let known = || crate::dialect::KnownTools::from_specs(&[spec("f"), spec("patch")]);
    let scanner = TextReading::Scanned(CallScanner::new(crate::Dialect::Auto, known).unwrap());
    let decoder = ChatDecoder::new(CallIds::default(), HashSet::from(["patch".to_owned()]), scanner);
    play_with(decoder, &chunks.iter().map(text_of_chunk).collect::<Vec<_>>())
}

#[test]
fn calls_in_the_text_are_calls_and_the_rest_stays_text() {
    let chunks = [
        delta(&json!({"reasoning": "hm"})),
        delta(&json!({"content": "Looking. <tool_"})),
        delta(&json!({"content": "call>{\"name\": \"f\", \"argum"})),
        delta(&json!({"content": "ents\": {\"a\": 1}}</tool_call>"})),
        delta(&json!({"content": "<tool_call>{\"name\": \"patch\", \"arguments\": {\"input\": \"*** x\"}}"})),
        finish("stop"),
        done(),
    ];
    assert_eq!(
        in_text(&chunks),
        [
            "reasoning \"hm\"",
            "reasoned hm raw {\"reasoning\":\"hm\"}",
            "text \"Looking. \"",
            "message \"Looking. \"",
            "call text-call-0 f Json(\"{\\\"a\\\": 1}\")",
            "call text-call-1 patch Text(\"*** x\")",
            "completed None"
        ]
    );
}

#[test]
fn a_server_that_takes_calls_out_after_all_is_understood() {
    let call = json!([{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]);
    let chunks = [delta(&json!({"content": "x <"})), calls(&call), finish("tool_calls"), done()];
    assert_eq!(
        in_text(&chunks),
        ["text \"x \"", "text \"<\"", "message \"x <\"", "call c f Json(\"{}\")", "completed None"]
    );
}

#[test]
fn a_call_in_the_text_that_a_limit_cut_is_not_given() {
    let chunks = [
        delta(&json!({"content": "[f(a=1)]\n[f(b=\"rm"})),
        json!({"choices": [{"delta": {}, "finish_reason": "length"}]}),
    ];
    let lines = in_text(&chunks);
    assert_eq!(lines[..2], ["call text-call-0 f Json(\"{\\\"a\\\":1}\")", "text \"\\n\""]);
    assert!(lines.len() == 3 && lines[2].starts_with("error: the answer was cut off"), "{lines:?}");
}
