//! Tests of event streams, as transcripts of what real servers send.

use serde_json::json;
use windlass_contract::{Content, Item};

use super::*;
use crate::answer::EventDecoder as _;

/// Plays events and tells what came out, one line each.
fn play(events: &[Value]) -> Vec<String> {
    play_raw(&events.iter().map(|event| ("", event.to_string())).collect::<Vec<_>>())
}

fn play_raw(events: &[(&str, String)]) -> Vec<String> {
    play_limited(events, None)
}

fn play_limited(events: &[(&str, String)], limit_tokens: Option<u64>) -> Vec<String> {
    let mut decoder = ResponsesDecoder::new(CallIds::default(), limit_tokens);
    let mut out = VecDeque::new();
    let events =
        events.iter().map(|(name, data)| ServerSentEvent { name: (*name).to_owned(), data: data.clone() });
    let mut lines = Vec::new();
    for event in events {
        let step = decoder.take(&event, &mut out);
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
    lines.extend(end.err().map(|error| format!("error: {error}")));
    lines
}

fn show(event: ModelEvent) -> String {
    match event {
        ModelEvent::TextDelta(text) => format!("text {text:?}"),
        ModelEvent::ReasoningDelta(text) => format!("reasoning {text:?}"),
        ModelEvent::CallDelta(text) => format!("arguments {text:?}"),
        ModelEvent::Item(Item { body, raw }) => {
            let how = if raw.is_some() { "" } else { " (anew)" };
            match body {
                Body::Message { content, .. } => format!("message {:?}{how}", Content::join(&content)),
                Body::Call(call) => format!("call {} {} {}{how}", call.id, call.name, call.input.as_str()),
                Body::Reasoning { summary, text } => format!("reasoned {summary:?} {text:?}{how}"),
                other => format!("{other:?}{how}"),
            }
        }
        ModelEvent::Completed { usage, finish } => {
            let tokens = usage.map(|usage| (usage.input_tokens, usage.output_tokens));
            format!("completed {tokens:?}{}", if finish == Finish::More { " more" } else { "" })
        }
        ModelEvent::Notice(text) => text,
    }
}

fn added(item: &Value) -> Value {
    json!({"type": "response.output_item.added", "item": item})
}

fn done(item: &Value) -> Value {
    json!({"type": "response.output_item.done", "item": item})
}

fn completed(response: &Value) -> Value {
    json!({"type": "response.completed", "response": response})
}

fn call(id: &str, call_id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": "f", "arguments": arguments})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

#[test]
fn a_whole_answer_gives_deltas_items_and_usage() {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    let lines = play(&[
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "r", "summary_index": 0}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "r", "delta": "Look"}),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "r", "summary_index": 1}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "r", "delta": "Do"}),
        done(&json!({"type": "reasoning", "id": "r", "summary": [
            {"type": "summary_text", "text": "Look"}, {"type": "summary_text", "text": "Do"}]})),
        added(&message("m", "")),
        json!({"type": "response.output_text.delta", "item_id": "m", "delta": "He"}),
        json!({"type": "response.output_text.delta", "item_id": "m", "delta": "llo"}),
        json!({"type": "response.from_the_future", "x": [1]}),
        done(&message("m", "Hello")),
        done(&call("f1", "c1", "{\"a\":1}")),
        completed(
            &json!({"id": "r1", "usage": usage, "output": [message("m", "Hello"), call("f1", "c1", "{\"a\":1}")]}),
        ),
    ]);
    assert_eq!(
        lines,
        [
            "reasoning \"Look\"",
            "reasoning \"\\n\\n\"",
            "reasoning \"Do\"",
            "reasoned [\"Look\", \"Do\"] []",
            "text \"He\"",
            "text \"llo\"",
            "message \"Hello\"",
            "call c1 f {\"a\":1}",
            "completed Some((10, 5))",
        ]
    );
}

#[test]
fn calls_are_put_together_when_their_done_events_are_left_out() {
    let delta = |id: &str, delta: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": delta});
    let lines = play(&[
        added(&call("f1", "c1", "")),
        added(&call("f2", "c2", "")),
        delta("f1", "{\"a\""),
        delta("f2", "{\"b\""),
        delta("f1", ":1}"),
        delta("f2", ":2}"),
        completed(&json!({})),
    ]);
    assert_eq!(lines, ["call c1 f {\"a\":1}", "call c2 f {\"b\":2}", "completed None"]);
}

#[test]
fn deltas_without_item_ids_find_their_item_by_index_or_by_being_last() {
    let by_index = |index: u64, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta});
    let last = |kind: &str, delta: &str| json!({"type": kind, "delta": delta});
    let at = |index: u64, item: &Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    assert_eq!(
        play(&[
            at(0, &call("", "c1", "")),
            at(1, &call("", "c2", "")),
            by_index(0, "{}"),
            by_index(1, "[]"),
            completed(&json!({})),
        ]),
        ["call c1 f {}", "call c2 f []", "completed None"]
    );
    assert_eq!(
        play(&[
            added(&message("", "")),
            added(&call("", "c1", "")),
            last("response.output_text.delta", "Hi"),
            last("response.function_call_arguments.delta", "{}"),
            completed(&json!({})),
        ]),
        ["text \"Hi\"", "message \"Hi\"", "call c1 f {}", "completed None"]
    );
}

#[test]
fn freeform_input_and_final_arguments_are_taken_from_their_events_too() {
    let custom = json!({"type": "custom_tool_call", "id": "x", "call_id": "c1", "name": "p", "input": ""});
    assert_eq!(
        play(&[
            added(&custom),
            json!({"type": "response.custom_tool_call_input.delta", "item_id": "x", "delta": "*** B"}),
            json!({"type": "response.custom_tool_call_input.done", "item_id": "x", "input": "*** Begin"}),
            added(&call("f", "c2", "")),
            json!({"type": "response.function_call_arguments.done", "item_id": "f", "arguments": "{}"}),
            completed(&json!({})),
        ]),
        ["call c1 p *** Begin", "call c2 f {}", "completed None"]
    );
}

#[test]
fn items_only_the_final_list_has_are_delivered_and_none_twice() {
    let lines = play(&[
        done(&call("f1", "c1", "{}")),
        done(&call("f1", "c1", "{}")),
        completed(
            &json!({"output": [call("other", "c1", "{}"), call("f2", "c2", "{}"), message("m", "x"), 5]}),
        ),
    ]);
    let notice = "the server sent a malformed item ``; it is left out of later requests";
    assert_eq!(lines, ["call c1 f {}", "call c2 f {}", "message \"x\"", notice, "Other", "completed None"]);
}

#[test]
fn items_without_ids_are_recognised_in_the_final_list_by_what_they_say() {
    let bare =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]});
    let renamed = message("another", "x");
    assert_eq!(
        play(&[done(&bare), completed(&json!({"output": [renamed]}))]),
        ["message \"x\"", "completed None"]
    );
    let bare = json!({"type": "function_call", "name": "f", "arguments": "{}"});
    let lines = play(&[done(&bare), completed(&json!({"output": [bare]}))]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("call call-") && lines[0].ends_with("f {} (anew)"), "{lines:?}");
}

#[test]
fn two_equal_calls_under_two_ids_are_two_calls() {
    let lines = play(&[done(&call("f1", "c1", "{}")), done(&call("f2", "c2", "{}")), completed(&json!({}))]);
    assert_eq!(lines, ["call c1 f {}", "call c2 f {}", "completed None"]);
}

#[test]
fn two_calls_under_one_id_are_two_calls() {
    let (one, two) = (call("f1", "c", "{\"a\":1}"), call("f2", "c", "{\"a\":2}"));
    let lines = play(&[done(&one), done(&two), completed(&json!({"output": [one, two]}))]);
    assert_eq!((lines.len(), lines[0].as_str()), (3, "call c f {\"a\":1}"));
    assert!(lines[1].starts_with("call c-") && lines[1].ends_with(" f {\"a\":2} (anew)"), "{lines:?}");
}

#[test]
fn a_call_whose_item_has_a_new_id_in_every_event_is_one_call() {
    let (begun, whole) = (call("i1", "c", ""), call("i2", "c", "{\"a\":1}"));
    let listed = completed(&json!({"output": [call("i3", "c", "{ \"a\": 1 }")]}));
    for end in [completed(&json!({})), listed] {
        assert_eq!(play(&[added(&begun), done(&whole), end]), ["call c f {\"a\":1}", "completed None"]);
    }
}

#[test]
fn a_call_that_the_final_list_has_under_a_new_id_does_not_run_again() {
    let list = |ids: &[&str]| {
        let calls: Vec<_> = ids.iter().map(|id| call(&format!("item {id}"), id, "{}")).collect();
        completed(&json!({"output": calls}))
    };
    let once = ["call c1 f {}", "completed None"];
    assert_eq!(play(&[done(&call("f1", "c1", "{}")), list(&["x1"])]), once);
    let both = [done(&call("f1", "c1", "{}")), done(&call("f2", "c2", "{}"))];
    let twice = ["call c1 f {}", "call c2 f {}", "completed None"];
    for ids in [&["c1", "c2"], &["c1", "x2"], &["x1", "c2"], &["x1", "x2"]] {
        assert_eq!(play(&[&both[..], &[list(ids)]].concat()), twice, "{ids:?}");
    }
    // The list has one call more than the stream.
    assert_eq!(play(&[both[0].clone(), list(&["c1", "c2"])]), twice);
    assert_eq!(play(&[both[0].clone(), list(&["x1", "c2"])]), twice);
    // Its `done` never came.
    let begun = [
        added(&call("f1", "c1", "")),
        json!({"type": "response.function_call_arguments.delta", "item_id": "f1", "delta": "{}"}),
    ];
    assert_eq!(play(&[&begun[..], &[list(&["c1"])]].concat()), once);
    assert_eq!(play(&[&begun[..], &[list(&["x1"])]].concat()), ["call x1 f {}", "completed None"]);
    // Written with other spaces, it is still the same.
    let spaced = completed(&json!({"output": [call("f2", "x1", "{ \"a\": [1, 2] }")]}));
    assert_eq!(
        play(&[done(&call("f1", "c1", "{\"a\":[1,2]}")), spaced]),
        ["call c1 f {\"a\":[1,2]}", "completed None"]
    );
    // Another input is another call.
    let other = call("f2", "x1", "{\"a\":1}");
    assert_eq!(
        play(&[both[0].clone(), completed(&json!({"output": [other]}))]),
        ["call c1 f {}", "call x1 f {\"a\":1}", "completed None"]
    );
}

#[test]
fn an_id_that_history_has_already_is_changed() {
    let earlier = call("f1", "c1", "{}");
    let history = [ReceivedItem::parse(serde_json::value::to_raw_value(&earlier).unwrap()).item.into()];
    let mut decoder = ResponsesDecoder::new(CallIds::from_history(&history), None);
    let mut out = VecDeque::new();
    decoder
        .take(&ServerSentEvent { name: String::new(), data: done(&earlier).to_string() }, &mut out)
        .unwrap();
    let line = show(out.pop_front().unwrap());
    assert!(line.starts_with("call c1-") && line.ends_with(" (anew)"), "{line}");
}

#[test]
fn a_message_that_stays_open_while_a_call_begins_is_no_problem() {
    let lines = play(&[
        added(&message("m", "")),
        json!({"type": "response.output_text.delta", "item_id": "m", "delta": "Hm"}),
        added(&call("f1", "c1", "")),
        json!({"type": "response.function_call_arguments.delta", "item_id": "f1", "delta": "{}"}),
        done(&message("m", "Hm")),
        done(&call("f1", "c1", "{}")),
        completed(&json!({"usage": {"input_tokens": 1, "output_tokens": 2}})),
    ]);
    assert_eq!(lines, ["text \"Hm\"", "message \"Hm\"", "call c1 f {}", "completed Some((1, 2))"]);
}

#[test]
fn a_cut_answer_keeps_its_whole_items_and_never_gives_a_half_call() {
    let cut = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}});
    let error = "error: the answer was cut off by the server (max_output_tokens); raise its output or context limit, or ask for less";
    let mut half = call("f2", "c2", "{\"a\":");
    half["status"] = json!("incomplete");
    for last in [json!({"type": "response.incomplete", "response": cut}), completed(&cut)] {
        let begun = [done(&call("f1", "c1", "{}")), added(&call("f2", "c2", "")), done(&half), last];
        assert_eq!(play(&begun), ["call c1 f {}", error]);
    }
    let mut said = message("m1", "Hel");
    said["status"] = json!("incomplete");
    let last = json!({"type": "response.incomplete", "response": cut});
    assert_eq!(play(&[added(&message("m1", "")), done(&said), last.clone()]), ["message \"Hel\"", error]);
    let said = json!({"type": "response.output_text.delta", "item_id": "m1", "delta": "Hel"});
    let begun = [added(&message("m1", "")), said, last];
    assert_eq!(play(&begun), ["text \"Hel\"", "message \"Hel\"", error], "its end never came");
}

#[test]
fn a_half_call_that_its_server_calls_completed_is_not_given_out_if_the_limit_was_reached() {
    let half = call("f1", "c1", "{\"city\": \"Os");
    let usage = json!({"input_tokens": 1, "output_tokens": 14});
    let events = [
        added(&call("f1", "c1", "")),
        done(&half),
        completed(&json!({"status": "completed", "output": [half], "usage": usage})),
    ];
    let events: Vec<_> = events.iter().map(|event| ("", event.to_string())).collect();
    let lines = play_limited(&events, Some(14));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("error: the answer was cut off by the server (max_output_tokens)"),
        "{lines:?}"
    );
    let slip = ["call c1 f {\"city\": \"Os", "completed Some((1, 14))"];
    assert_eq!(play_limited(&events, Some(15)), slip, "the model forgot to close it, and is told so");
    assert_eq!(play_limited(&events, None), slip);
}

#[test]
fn calls_stay_in_order_around_one_that_is_not_whole() {
    let (a, b, c) = (call("f1", "a", "{\"x\": "), call("f2", "b", "{}"), call("f3", "c", "{}"));
    let all = ["call a f {\"x\": ", "call b f {}", "call c f {}"];
    let begun = [added(&call("f1", "a", "")), done(&a), done(&b), done(&c)];
    for response in [json!({}), json!({"output": [a, b, c]}), json!({"output": []})] {
        let lines = play(&[&begun[..], &[completed(&response)]].concat());
        assert_eq!(lines, [&all[..], &["completed None"]].concat(), "{response}");
    }
    let cut = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}});
    let lines = play(&[&begun[..], &[completed(&cut)]].concat());
    assert_eq!(lines[..3], all, "only the last one can have been cut off");
    let lines = play(&[done(&b), done(&a), completed(&cut)]);
    assert_eq!((lines.len(), lines[0].as_str()), (2, "call b f {}"));
}

#[test]
fn an_answer_that_used_up_its_limit_comes_with_a_warning() {
    let usage = json!({"input_tokens": 1, "output_tokens": 8});
    let events = [done(&message("m", "Sure, I")), completed(&json!({"usage": usage}))];
    let events: Vec<_> = events.iter().map(|event| ("", event.to_string())).collect();
    let warning = "the answer used all of its 8 tokens and may be cut short";
    assert_eq!(play_limited(&events, Some(8)), ["message \"Sure, I\"", warning, "completed Some((1, 8))"]);
}

#[test]
fn an_item_that_began_and_never_said_anything_is_none() {
    let lines = play(&[
        added(&message("m", "")),
        added(&json!({"type": "reasoning", "id": "r"})),
        completed(&json!({})),
    ]);
    assert_eq!(lines, ["completed None"]);
}

#[test]
fn failures_are_told_in_every_form_servers_use() {
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "insufficient_quota", "message": "pay"}}});
    assert_eq!(play(&[failed]), ["error: the account's quota is used up: pay; check its plan and billing"]);
    let untyped = json!({"error": {"code": 500, "message": "failed to parse", "type": "server_error"}});
    assert_eq!(
        play(&[untyped]),
        ["error: the model's server failed: failed to parse; try again later, or check the server's log"]
    );
    let typed = json!({"type": "error", "code": "server_error", "message": "boom"});
    assert_eq!(
        play(&[typed]),
        ["error: the model's server failed: boom; try again later, or check the server's log"]
    );
    let nested = json!({"type": "error", "error": {"code": "context_length_exceeded"}});
    assert!(play(&[nested])[0].contains("context window"));
    assert_eq!(
        play_raw(&[("error", r#"{"message":"boom"}"#.to_owned())]),
        ["error: the model's server failed: boom; try again later, or check the server's log"]
    );
    let bare = json!({"type": "response.failed"});
    assert_eq!(
        play(&[bare]),
        ["error: the model's server failed: no reason given; try again later, or check the server's log"]
    );
    let late = completed(&json!({"status": "failed", "error": {"message": "late"}}));
    assert!(play(&[late])[0].starts_with("error: the model's server failed: late;"));
}

#[test]
fn an_end_without_completed_is_a_break() {
    let broken = "error: the answer broke off: stream closed before response.completed; check the server and the connection to it";
    assert_eq!(play(&[]), [broken]);
    assert_eq!(play(&[done(&call("f1", "c1", "{}"))]), ["call c1 f {}", broken]);
    let lines = play_raw(&[("", "[DONE]".to_owned()), ("", "{\"type\": \"respon".to_owned())]);
    assert!(
        lines[0].starts_with("error: the answer broke off: an event stops after `{\"type\": \"respon`;"),
        "{lines:?}"
    );
}

#[test]
fn the_kind_may_come_as_the_events_name_and_wrong_types_count_as_missing() {
    let delta = r#"{"delta":"Hi","output_index":-1,"item_id":7,"sequence_number":"x"}"#;
    let done =
        r#"{"type":"response.done","response":{"id":5,"usage":"none","end_turn":false,"output":null}}"#;
    assert_eq!(
        play_raw(&[
            ("response.output_text.delta", delta.to_owned()),
            ("", r#"{"type":"response.output_text.delta","delta":{"not":"text"}}"#.to_owned()),
            ("", r#"{"type":"response.output_item.done"}"#.to_owned()),
            ("", "{}".to_owned()),
            ("", done.to_owned())
        ]),
        ["text \"Hi\"", "completed None more"]
    );
}
