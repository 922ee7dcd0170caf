//! Servers that misbehave. Each ends in one line that names the cause; none in a panic, a hang or a
//! half call.

use std::time::{Duration, Instant};

use windlass_model::{Options, Provider, WireApi, connect};

use crate::{
    ask::{ask, client, provider},
    server::{Reply, Server, Step, chunk, repeated},
    talk::{CHAT_OK, OK, RESPONSES_OK},
};

/// Both wires against the same reply.
async fn both(reply: impl Fn(&'static [&'static str]) -> Reply) -> [Vec<String>; 2] {
    let mut seen = Vec::new();
    for (wire, events) in [(WireApi::Responses, RESPONSES_OK), (WireApi::Chat, CHAT_OK)] {
        let server = Server::start([reply(events)]).await;
        let lines = ask(client(&provider(&server.url, wire)).as_ref()).await;
        seen.push(lines.into_iter().map(|line| line.replace(&server.url, "URL")).collect());
    }
    [seen.remove(0), seen.remove(0)]
}

/// A stream with something odd in front of the real answer.
fn odd(first: &'static [u8]) -> impl Fn(&'static [&'static str]) -> Reply {
    move |events| {
        let mut reply = Reply::begun(&[]).then(chunk(first));
        reply.0.extend(Reply::events(events).0.into_iter().skip(1));
        reply
    }
}

#[tokio::test]
async fn malformed_events_are_skipped() {
    let nonsense = b"\n\n\n:\n: comment\nretry: x\nid\nevent\nnonsense\ndata\n\ndata: \n\ndata:nope\ndata\n\n\xEF\xBB\xBFdata: {}\n\n";
    assert_eq!(both(odd(nonsense)).await, [OK, OK]);
}

#[tokio::test]
async fn truncated_json_is_a_lost_piece_of_the_answer() {
    let said = [
        r#"error: the answer broke off: an event stops after `{"choices":[{"delta"`; check the server and the connection to it"#,
    ];
    assert_eq!(both(odd(b"data: {\"choices\":[{\"delta\"\n\n")).await, [said, said]);
}

#[tokio::test]
async fn an_object_that_is_no_json_is_named_on_one_short_line() {
    let long = format!("{{ \u{1b}{}", "x ".repeat(1000));
    let expected = [unreadable(&format!("{{ {}…", "x ".repeat(99)))];
    for lines in both(|_| Reply::events(&[&long, "[DONE]"])).await {
        assert_eq!(lines, expected);
    }
}

#[tokio::test]
async fn an_answer_of_nothing_that_makes_sense_is_an_error_that_names_the_first_of_it() {
    let ends = [r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, RESPONSES_OK[2], "[DONE]"];
    for first in [
        "hello",
        "12",
        "[1,2]",
        r#"{"foo":1}"#,
        r#"{"choices":"x"}"#,
        r#"{"choices":[7]}"#,
        r#"{"choices":[{"delta":"x"}]}"#,
        r#"{"choices":[{"delta":{"content":7}}]}"#,
    ] {
        for last in [&ends[2..], &ends] {
            let events = [&[first, "later"], last].concat();
            for lines in both(|_| Reply::events(&events)).await {
                assert_eq!(lines, [unreadable(first)], "{events:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_event_without_what_its_kind_needs_makes_no_sense() {
    for first in [
        r#"{"type":"response.output_text.delta","delta":{"a":1}}"#,
        r#"{"type":"response.output_item.done","item":5}"#,
        r#"{"type":"response.completed","response":"done"}"#,
    ] {
        let server = Server::start([Reply::events(&[first, RESPONSES_OK[2]])]).await;
        let lines = ask(client(&provider(&server.url, WireApi::Responses)).as_ref()).await;
        assert_eq!(lines.last().unwrap(), &unreadable(first));
    }
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    let chat = &CHAT_OK[1..];
    for (wire, events) in [(WireApi::Responses, &RESPONSES_OK[2..]), (WireApi::Chat, chat)] {
        let server = Server::start([Reply::events(events)]).await;
        assert_eq!(ask(client(&provider(&server.url, wire)).as_ref()).await, ["completed 3"]);
    }
}

#[tokio::test]
async fn what_a_server_says_went_wrong_counts_more_than_what_made_no_sense() {
    let failed = r#"{"error":{"code":500,"message":"out of memory"}}"#;
    for lines in both(|_| Reply::events(&["ping", failed])).await {
        assert!(lines[0].contains("the model's server failed: out of memory"), "{lines:?}");
    }
}

fn unreadable(event: &str) -> String {
    format!(
        "error: the server sent an event that cannot be read: `{event}`; check the server's log, and `wire_api`"
    )
}

#[tokio::test]
async fn wrong_types_are_skipped() {
    let wrong = br#"data: {"type":"response.output_text.delta","delta":{"a":1},"item_id":5}

data: {"type":7,"choices":{"0":"x"},"usage":"a lot","response":[]}

data: {"choices":[{"delta":{"content":7,"tool_calls":{"a":1},"reasoning":[1]},"finish_reason":{}}]}

data: [1,"two",null]

data: "text"

data: 12

"#;
    assert_eq!(both(odd(wrong)).await, [OK, OK]);
}

#[tokio::test]
async fn unknown_events_and_fields_are_ignored() {
    let unknown = b"event: response.from_the_future\ndata: {\"type\":\"response.from_the_future\",\"new\":{\"deep\":[1]},\"choices\":[{\"delta\":{\"new\":1},\"new\":2}]}\n\n";
    assert_eq!(both(odd(unknown)).await, [OK, OK]);
}

#[tokio::test]
async fn invalid_utf_8_is_replaced() {
    let invalid: &[u8] = b"data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\xFF\xC3\"}\n\n";
    let [responses, _] = both(odd(invalid)).await;
    assert_eq!(responses, [&["text a\u{FFFD}\u{FFFD}"], &OK[..]].concat());
}

#[tokio::test]
async fn an_event_of_50_megabytes_is_refused() {
    let expected = [
        "error: the server sent an event of more than 16777216 bytes; check the server's log, or ask for less at once",
    ];
    let huge = |_: &'static [&'static str]| {
        let mut reply =
            Reply::begun(&[]).then(chunk(b"data: {\"type\":\"response.output_text.delta\",\"delta\":\""));
        reply.0.extend((0..50).map(|_| chunk(&vec![b'x'; 1024 * 1024])));
        reply.then(chunk(b"\"}\n\n"))
    };
    assert_eq!(both(huge).await, [expected, expected]);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_before_and_after_its_first_byte() {
    let hang = [
        Reply(vec![Step::Hang]),
        Reply::begun(&[]).then(Step::Hang),
        Reply::begun(&RESPONSES_OK[..1]).then(Step::Hang),
        Reply(vec![Step::Send(b"HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\n".to_vec()), Step::Hang]),
    ];
    for reply in hang {
        let server = Server::start([reply]).await;
        let provider = Provider { stream_idle_timeout_ms: 50, ..provider(&server.url, WireApi::Responses) };
        let lines = ask(client(&provider).as_ref()).await;
        let expected = "error: the server sent no event for 0.05 s; a slow model may need a larger `stream_idle_timeout_ms`";
        assert_eq!(lines.last().unwrap(), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

/// A stream that sends the same bytes every few milliseconds and never ends.
fn endless(begin: &[&str], bytes: &'static [u8]) -> Reply {
    Reply::begun(begin).then(repeated(bytes, Duration::from_millis(10), usize::MAX))
}

#[tokio::test]
async fn comments_hold_an_answer_open_three_times_as_long_as_silence_and_no_longer() {
    for keep_alive in [b": ping\n\n" as &[u8], b"data:\n\n", b"retry: 5\n", b"x"] {
        let server = Server::start([endless(&[], keep_alive)]).await;
        let provider = Provider { stream_idle_timeout_ms: 100, ..provider(&server.url, WireApi::Responses) };
        let begun = Instant::now();
        let lines = ask(client(&provider).as_ref()).await;
        let expected = "error: the server sent no event for 0.3 s; a slow model may need a larger `stream_idle_timeout_ms`";
        assert_eq!(lines, [expected]);
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_server_may_comment_while_its_model_is_slow() {
    // Longer than the idle limit in all, and never as long without a byte.
    let mut reply = Reply::begun(&[]).then(repeated(b": processing\n\n", Duration::from_millis(50), 8));
    reply.0.extend(Reply::events(RESPONSES_OK).0.into_iter().skip(1));
    let server = Server::start([reply]).await;
    let provider = Provider { stream_idle_timeout_ms: 300, ..provider(&server.url, WireApi::Responses) };
    assert_eq!(ask(client(&provider).as_ref()).await, OK);
}

#[tokio::test]
async fn an_answer_without_end_is_stopped_and_what_it_said_is_kept() {
    let added = r#"{"type":"response.output_item.added","item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#;
    let delta = r#"{"type":"response.output_text.delta","item_id":"m1","delta":"x"}"#;
    let responses = b"data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m1\",\"delta\":\"x\"}\n\n";
    let chat = b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    for (wire, begin, more) in [
        (WireApi::Responses, &[added, delta] as &[&str], responses as &'static [u8]),
        (WireApi::Chat, &[], chat),
    ] {
        let server = Server::start([endless(begin, more)]).await;
        let provider = Provider { stream_timeout_ms: 200, ..provider(&server.url, wire) };
        let lines = ask(client(&provider).as_ref()).await;
        let (error, said) = lines.split_last().unwrap();
        let expected = "error: the answer was not complete after 0.2 s; a long one may need a larger `stream_timeout_ms`";
        assert_eq!(error, expected);
        let (message, pieces) = said.split_last().unwrap();
        assert_eq!(message, &format!("message {}", "x".repeat(pieces.len())));
    }
}

#[tokio::test]
async fn an_answer_that_stops_early_is_broken_off() {
    let closed = |events: &'static [&'static str]| Reply::events(&events[..1]);
    let [responses, chat] = both(closed).await;
    assert_eq!(
        responses,
        [
            "text ok",
            "error: the answer broke off: stream closed before response.completed; check the server and the connection to it"
        ]
    );
    assert_eq!(
        chat,
        [
            "text ok",
            "error: the answer broke off: stream closed before finish_reason; check the server and the connection to it"
        ]
    );
    let cut = |events: &'static [&'static str]| Reply::begun(&events[..1]).then(Step::Close);
    for lines in both(cut).await {
        assert_eq!(lines[0], "text ok");
        assert!(lines[1].starts_with("error: the answer broke off: "), "{lines:?}");
    }
}

#[tokio::test]
async fn a_server_that_always_hangs_up_is_told_as_such() {
    for lines in both(|_| Reply(vec![Step::Close])).await {
        assert!(lines[0].starts_with("error: cannot reach URL/"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_web_page_is_called_one() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    for kind in ["content-type: text/html\r\n", ""] {
        let [responses, chat] = both(|_| Reply::plain("200 OK", kind, page)).await;
        let expected = |path: &str| {
            format!(
                "error: URL/{path} did not answer with an event stream but with the web page “Sign in”; is `base_url` right, and `wire_api`?"
            )
        };
        assert_eq!((responses, chat), (vec![expected("responses")], vec![expected("chat/completions")]));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_called_one() {
    let body = r#"{"id":"r1","object":"response","output":[]}"#;
    for lines in both(|_| Reply::plain("200 OK", "content-type: application/json\r\n", body)).await {
        assert!(lines[0].contains("but with one JSON document"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_refused_key_names_where_it_came_from() {
    let body = r#"{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}"#;
    let server = Server::start([Reply::plain("401 Unauthorized", "", body)]).await;
    let mut provider = provider(&server.url, WireApi::Responses);
    provider.env_key = Some("MY_KEY".to_owned());
    let client = connect("test", &provider, Options::default(), &|_| Some("wrong".to_owned())).unwrap();
    let expected = format!(
        "error: {}/responses refused the API key (HTTP 401): Incorrect API key provided.; check `MY_KEY`",
        server.url
    );
    assert_eq!(ask(client.as_ref()).await, [expected]);
}

#[tokio::test]
async fn an_error_inside_the_stream_is_told_however_it_is_written() {
    let untyped = r#"{"error":{"code":500,"message":"cannot parse\ntool call","type":"server_error"}}"#;
    let error = "error: the model's server failed: cannot parse tool call; try again later, or check the server's log";
    for lines in both(|_| Reply::begun(&[untyped]).then(Step::Hang)).await {
        assert_eq!(lines, [error]);
    }
    for lines in both(|_| Reply::plain("200 OK", "content-type: application/json\r\n", untyped)).await {
        assert_eq!(lines, [error]);
    }
}

#[tokio::test]
async fn a_cut_by_length_never_yields_a_call() {
    let responses: &[&str] = &[
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"f","call_id":"c1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"f","delta":"{}"}"#,
        r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
    ];
    let chat: &[&str] = &[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
        "[DONE]",
    ];
    for (wire, events) in [(WireApi::Responses, responses), (WireApi::Chat, chat)] {
        let server = Server::start([Reply::events(events)]).await;
        let lines = ask(client(&provider(&server.url, wire)).as_ref()).await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("error: the answer was cut off by the server ("), "{lines:?}");
    }
}

#[tokio::test]
async fn every_way_to_say_done_is_understood() {
    let responses = [RESPONSES_OK, &["[DONE]"]].concat();
    let old = RESPONSES_OK[2].replace("response.completed", "response.done");
    for events in [responses, vec![RESPONSES_OK[0], RESPONSES_OK[1], &old]] {
        let server = Server::start([Reply::events(&events)]).await;
        assert_eq!(ask(client(&provider(&server.url, WireApi::Responses)).as_ref()).await, OK);
    }
    let bare: Vec<&str> = CHAT_OK.iter().map(|data| if *data == "[DONE]" { "DONE" } else { data }).collect();
    let without = &CHAT_OK[..3];
    for events in [&bare, without] {
        let server = Server::start([Reply::events(events)]).await;
        assert_eq!(ask(client(&provider(&server.url, WireApi::Chat)).as_ref()).await, OK);
    }
}
