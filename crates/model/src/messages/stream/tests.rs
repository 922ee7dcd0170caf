//! Tests of events, in the shapes that servers send.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sse::SseParser;

fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(CallIds::default(), HashSet::from(["patch".to_owned()]))
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "content": [], "model": "m", "stop_reason": null, "usage": {"input_tokens": 10,
        "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 1}}})
}

fn begin(index: u64, block: impl Into<Value>) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block.into()})
}

fn delta(index: u64, delta: impl Into<Value>) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta.into()})
}

fn end(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 25, "output_tokens_details": {"thinking_tokens": 7}}}),
        json!({"type": "message_stop"}),
    ]
}

fn tool(index: u64, id: &str, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let pieces = pieces.iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
    let deltas = pieces.map(|piece| delta(index, piece));
    [begin(index, block)].into_iter().chain(deltas).chain([end(index)]).collect()
}

fn text(index: u64, pieces: &[&str]) -> Vec<Value> {
    let pieces = pieces.iter().map(|piece| delta(index, json!({"type": "text_delta", "text": piece})));
    [begin(index, json!({"type": "text", "text": ""}))]
        .into_iter()
        .chain(pieces)
        .chain([end(index)])
        .collect()
}

/// A thought, a text, two calls and a call without arguments, as one answer.
fn full_answer() -> Vec<Value> {
    let mut events = vec![start(), json!({"type": "ping"})];
    events.push(begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})));
    events.push(delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})));
    events.push(delta(0, json!({"type": "thinking_delta", "thinking": "sée"})));
    events.push(delta(0, json!({"type": "signature_delta", "signature": "EqQBCg/+=="})));
    events.push(end(0));
    events.push(begin(1, json!({"type": "redacted_thinking", "data": "EmwKAhgB"})));
    events.push(end(1));
    events.extend(text(2, &["Hel", "lo"]));
    events.extend(tool(3, "toolu_1", &["", "{\"a\"", ": 1}"]));
    events.extend(tool(4, "toolu_2", &[]));
    events.extend(stop("tool_use"));
    events
}

const FULL_ANSWER: [&str; 9] = [
    "reasoning Let me ",
    "reasoning sée",
    r#"reasoned Let me sée raw {"signature":"EqQBCg/+==","thinking":"Let me sée","type":"thinking"}"#,
    r#"other raw {"data":"EmwKAhgB","type":"redacted_thinking"}"#,
    "text Hel",
    "text lo",
    "message Hello",
    r#"call toolu_1 Json("{\"a\": 1}")"#,
    r#"call toolu_2 Json("{}")"#,
];

fn play(events: &[Value]) -> Vec<String> {
    let stream: String = events.iter().map(event).collect();
    play_chunks([stream.as_bytes()])
}

fn play_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut parser, mut events) = (SseParser::default(), VecDeque::new());
    for chunk in chunks {
        parser.feed(chunk, &mut events).unwrap();
    }
    parser.finish(&mut events).unwrap();
    let (mut decoder, mut out, mut lines) = (decoder(), VecDeque::new(), Vec::new());
    for event in events {
        let step = decoder.take(&event, &mut out);
        let is_over = step.is_err() || matches!(out.back(), Some(ModelEvent::Completed { .. }));
        lines.extend(out.drain(..).filter_map(show));
        lines.extend(step.err().map(|error| format!("error: {error}")));
        if is_over {
            return lines;
        }
    }
    let end = decoder.end(Ok(()), &mut out);
    lines.extend(out.drain(..).filter_map(show));
    lines.extend(end.err().map(|error| format!("error: {error}")));
    lines
}

fn show(event: ModelEvent) -> Option<String> {
    Some(match event {
        ModelEvent::CallDelta(_) => return None,
        ModelEvent::TextDelta(text) => format!("text {text}"),
        ModelEvent::ReasoningDelta(text) => format!("reasoning {text}"),
        ModelEvent::Notice(text) => text,
        ModelEvent::Completed { usage, finish } => {
            format!("{finish:?} {:?}", usage.map(|usage| usage.total()))
        }
        ModelEvent::Item(Item { body, raw }) => {
            let raw = raw.map(|raw| format!(" raw {}", raw.json.get())).unwrap_or_default();
            match body {
                Body::Message { content, .. } => format!("message {}{raw}", Content::join(&content)),
                Body::Call(call) => format!("call {} {:?}{raw}", call.id, call.input),
                Body::Reasoning { text, .. } => format!("reasoned {}{raw}", text.join("|")),
                Body::Other => format!("other{raw}"),
                other => format!("{other:?}{raw}"),
            }
        }
    })
}

#[test]
fn an_answer_with_every_kind_of_block_becomes_items_in_order() {
    let played = play(&full_answer());
    assert_eq!(played[..9], FULL_ANSWER);
    assert_eq!(played[9..], ["Done Some(3235)"]);
}

#[test]
fn an_answer_split_at_any_byte_is_the_same() {
    let stream: String = full_answer().iter().map(event).collect();
    let whole = play_chunks([stream.as_bytes()]);
    for at in 0..stream.len() {
        let (before, after) = stream.as_bytes().split_at(at);
        assert_eq!(play_chunks([before, after]), whole, "split at byte {at}");
    }
    let crlf = stream.replace('\n', "\r\n");
    assert_eq!(play_chunks(crlf.as_bytes().chunks(1)), whole);
}

#[test]
fn the_usage_counts_the_cache_as_input() {
    let mut decoder = decoder();
    let mut out = VecDeque::new();
    for data in [vec![start()], stop("end_turn").to_vec()].concat() {
        let event = ServerSentEvent { name: String::new(), data: data.to_string() };
        decoder.take(&event, &mut out).unwrap();
    }
    let Some(ModelEvent::Completed { usage: Some(usage), .. }) = out.pop_back() else { panic!("{out:?}") };
    let expected = windlass_contract::model::Usage {
        input_tokens: 3210,
        cached_input_tokens: 3000,
        cache_write_input_tokens: 200,
        output_tokens: 25,
        reasoning_output_tokens: 7,
    };
    assert_eq!(usage, expected);
}

#[test]
fn each_reason_to_stop_has_its_own_end() {
    let ends = |reason: &str| {
        let mut events = vec![start()];
        events.extend(text(0, &["a"]));
        events.extend(stop(reason));
        play(&events).pop().unwrap()
    };
    for reason in ["end_turn", "stop_sequence", "tool_use", "of the future"] {
        assert_eq!(ends(reason), "Done Some(3235)", "{reason}");
    }
    assert_eq!(ends("pause_turn"), "More Some(3235)");
    assert_eq!(ends("refusal"), "Declined Some(3235)");
    for reason in ["max_tokens", "model_context_window_exceeded"] {
        let error = ends(reason);
        assert!(error.starts_with("error: the answer was cut off by the server ("), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_reason_of_a_refusal_is_shown_without_control_characters() {
    let explained = json!({"type": "message_delta", "delta": {"stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": null, "explanation": "not \u{1b}[2Jthis"}}});
    let played = play(&[start(), explained, json!({"type": "message_stop"})]);
    assert_eq!(played, ["the model declined: not [2Jthis", "Declined Some(3211)"]);
}

#[test]
fn a_call_that_a_limit_cut_off_is_never_run() {
    for pieces in [&[][..], &["{\"path\": \"/t"], &["{\"a\":"]] {
        let mut events = vec![start()];
        events.extend(text(0, &["Now: "]));
        events.extend(tool(1, "toolu_1", &["{\"a\": 1}"]));
        events.extend(tool(2, "toolu_2", pieces));
        events.extend(stop("max_tokens"));
        let played = play(&events);
        let calls: Vec<_> = played.iter().filter(|line| line.starts_with("call")).collect();
        assert_eq!(calls, [r#"call toolu_1 Json("{\"a\": 1}")"#], "{pieces:?}");
        assert!(played.contains(&"message Now: ".to_owned()), "{played:?}");
    }
}

#[test]
fn a_call_with_broken_arguments_goes_to_the_model_again() {
    let mut events = vec![start()];
    events.extend(tool(0, "toolu_1", &["{\"a\": tru"]));
    events.extend(stop("tool_use"));
    assert_eq!(play(&events)[0], r#"call toolu_1 Json("{\"a\": tru")"#);
}

#[test]
fn a_freeform_tool_gets_its_text() {
    let block = json!({"type": "tool_use", "id": "t", "name": "patch", "input": {"input": "*** Begin"}});
    let mut events = vec![start(), begin(0, block), end(0)];
    events.extend(stop("tool_use"));
    assert_eq!(play(&events)[0], r#"call t Text("*** Begin")"#);
}

#[test]
fn blocks_that_end_only_with_the_message_are_complete() {
    let mut events = full_answer();
    events.retain(|event| event["type"] != "content_block_stop");
    let mut played = play(&events);
    played.retain(|line| FULL_ANSWER.contains(&line.as_str()) || line.starts_with("Done"));
    assert_eq!(played.len(), 10, "{played:?}");
}

#[test]
fn a_thought_without_a_signature_is_shown_and_not_sent_back() {
    let mut events = vec![start()];
    events.push(begin(0, json!({"type": "thinking", "thinking": ""})));
    events.push(delta(0, json!({"type": "thinking_delta", "thinking": "hm"})));
    events.push(end(0));
    events.extend(stop("end_turn"));
    assert_eq!(play(&events), ["reasoning hm", "reasoned hm", "Done Some(3235)"]);
}

#[test]
fn a_hidden_thought_is_kept_for_its_signature() {
    let mut events = vec![start(), begin(0, json!({"type": "thinking", "thinking": "", "signature": ""}))];
    events.push(delta(0, json!({"type": "signature_delta", "signature": "S"})));
    events.push(end(0));
    events.extend(stop("end_turn"));
    assert_eq!(play(&events)[0], r#"reasoned  raw {"signature":"S","thinking":"","type":"thinking"}"#);
}

#[test]
fn blocks_of_the_servers_own_tools_are_kept_whole() {
    let mut events = vec![start()];
    let block = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    events.push(begin(0, block));
    events.push(delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"})));
    events.push(end(0));
    events.extend(stop("pause_turn"));
    let kept = r#"other raw {"id":"s","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}"#;
    assert_eq!(play(&events), [kept, "More Some(3235)"]);
}

#[test]
fn an_error_in_the_stream_ends_the_answer() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(
        play(&[start(), overloaded]),
        ["error: the model's server is overloaded: Overloaded; try again later"]
    );
    let bare = json!({"error": {"code": 500, "message": "out of memory", "type": "server_error"}});
    assert!(play(&[start(), bare])[0].contains("out of memory"));
}

#[test]
fn a_stream_that_stops_early_is_broken_and_its_calls_are_not_run() {
    let mut events = full_answer();
    events.truncate(events.len() - 2);
    let played = play(&events);
    assert!(played.last().unwrap().starts_with("error: the answer broke off"), "{played:?}");
    assert!(!played.iter().any(|line| line.starts_with("call toolu_2")), "{played:?}");
    // Without the very last event, everything is known.
    let mut events = full_answer();
    events.pop();
    assert_eq!(play(&events).last().unwrap(), "Done Some(3235)");
}

proptest! {
    #[test]
    fn no_sequence_of_events_panics_or_repeats_a_call_id(
        picks in prop::collection::vec((0_usize..14, 0_u64..3), 0..30),
    ) {
        let block = |kind: &str| json!({"type": kind, "id": "same", "name": "f", "text": "t", "input": {}});
        let events: Vec<Value> = picks.iter().map(|(pick, index)| match pick {
            0 => start(),
            1 => begin(*index, block("text")),
            2 | 3 => begin(*index, block("tool_use")),
            4 => begin(*index, block("thinking")),
            5 => delta(*index, json!({"type": "text_delta", "text": "x"})),
            6 => delta(*index, json!({"type": "input_json_delta", "partial_json": "{}"})),
            7 => delta(*index, json!({"type": "thinking_delta", "thinking": "x"})),
            8 => delta(*index, json!({"type": "signature_delta", "signature": "x"})),
            9 => end(*index),
            10 => json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            11 => json!({"type": "content_block_start", "index": "one"}),
            12 => json!({"type": 7}),
            _ => json!({"type": "of the future", "index": index}),
        }).collect();
        let played = play(&events);
        let ids: Vec<_> = played.iter().filter_map(|line| line.strip_prefix("call ")?.split(' ').next()).collect();
        let distinct: HashSet<_> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len());
    }
}
