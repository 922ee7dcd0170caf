//! Servers that misbehave: one clear line, exit code 1, and a session that goes on with a better
//! server.

use std::time::Duration;

use crate::support::{FULL_ACCESS, Reply, Server, Step, User, Wire, chunk, command, repeated};

/// What a server does and what the user is told of it.
struct Case {
    replies: Vec<Reply>,
    /// What the one line holds, with the address as URL.
    said: &'static str,
    /// How many requests it takes to give up.
    requests: usize,
    options: &'static [&'static str],
}

fn plain(status: &str, headers: &str, body: &str) -> Reply {
    Reply::plain(status, headers, body)
}

/// The same answer again and again, as broken servers give it.
fn always(reply: impl Fn() -> Reply, requests: usize, said: &'static str) -> Case {
    Case { replies: (0..requests).map(|_| reply()).collect(), said, requests, options: &[] }
}

fn check(wire: Wire, case: Case) {
    let server = Server::start(case.replies);
    let user = User::new();
    user.use_server(&server, wire);
    let ended = user.run(&[&["exec", "hi"], case.options].concat());
    ended.assert_code(1);
    assert_eq!(ended.stdout, "");
    let said =
        ended.last_word().replace(&server.url().replace("/v1", ""), "URL").replace(wire.path(), "/PATH");
    assert!(said.starts_with("error: ") && said.contains(case.said), "{wire:?}: {said}");
    assert_eq!(server.requests().len(), case.requests, "{said}");
    let better = Server::start([wire.says("better")]);
    user.use_server(&better, wire);
    let ended = user.run(&["exec", "resume", "--last", "again"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "better\n");
    assert!(!ended.stderr.contains("warning"), "{ended:#?}");
}

fn each(case: impl Fn(Wire) -> Case) {
    for wire in Wire::ALL {
        check(wire, case(wire));
    }
}

const JSON: &str = "content-type: application/json\r\n";
const HTML: &str = "content-type: text/html\r\n";

#[test]
fn a_web_page_is_no_answer() {
    let page = || plain("200 OK", HTML, "<!doctype html><html><title>Welcome</title></html>");
    each(|_| {
        always(
            page,
            1,
            "URL/PATH did not answer with an event stream but with the web page “Welcome”; is `base_url` right, and `wire_api`?",
        )
    });
    let missing = || plain("404 Not Found", HTML, "<html><h1>Not Found</h1></html>");
    each(|_| always(missing, 1, "HTTP 404"));
}

#[test]
fn a_wrong_key_is_not_tried_again() {
    let refused =
        || plain("401 Unauthorized", JSON, r#"{"error":{"message":"bad key","code":"invalid_api_key"}}"#);
    each(|_| {
        always(
            refused,
            1,
            "URL/PATH refused the API key (HTTP 401): bad key; check `model_providers.test.env_key`",
        )
    });
}

#[test]
fn a_limit_on_requests_is_waited_for_as_long_as_the_server_says() {
    let limited = || plain("429 Too Many", "retry-after: 0\r\n", r#"{"error":{"message":"slow down"}}"#);
    each(|_| always(limited, 2, "the server is limiting requests (HTTP 429): slow down"));
}

#[test]
fn nobody_waits_an_hour_without_being_asked() {
    let limited = || plain("429 Too Many", "retry-after: 3600\r\n", r#"{"error":{"message":"slow down"}}"#);
    each(|_| {
        always(
            limited,
            1,
            "the server is limiting requests (HTTP 429): slow down; the server asks to wait 3600 s",
        )
    });
}

#[test]
fn a_server_that_is_asked_many_times_is_reported_once() {
    for wire in Wire::ALL {
        let refusals = || plain("409 Conflict", JSON, r#"{"error":{"message":"busy"}}"#);
        let server = Server::start((0..3).map(|_| refusals()).chain([wire.says("after all")]));
        let user = User::new();
        user.use_server(&server, wire);
        let ended = user.run(&["exec", "hi", "-c", "model_providers.test.request_max_retries=3"]);
        ended.assert_code(0);
        assert_eq!((ended.stdout.as_str(), server.requests().len()), ("after all\n", 4), "{wire:?}");
        assert_eq!(ended.stderr.matches("retrying test in ").count(), 1, "{ended:#?}");
        assert_eq!(ended.stderr.matches("retrying").count(), 1, "{ended:#?}");
        assert!(!ended.stderr.contains("model's name"), "{ended:#?}");
    }
}

#[test]
fn a_failing_server_is_tried_again_and_then_reported() {
    let failing = || plain("500 Oh", JSON, r#"{"error":{"message":"out of order"}}"#);
    each(|_| always(failing, 2, "URL/PATH answered HTTP 500: out of order"));
    let gateway = || plain("502 Bad Gateway", HTML, "<html><title>502 Bad Gateway</title></html>");
    each(|_| always(gateway, 2, "URL/PATH answered HTTP 502: “502 Bad Gateway”"));
}

#[test]
fn a_server_that_recovers_is_answered_as_if_nothing_had_happened() {
    for wire in Wire::ALL {
        let server = Server::start([plain("500 Oops", JSON, "{}"), wire.says("after all")]);
        let user = User::new();
        user.use_server(&server, wire);
        let ended = user.run(&["exec", "hi"]);
        ended.assert_code(0);
        assert_eq!((ended.stdout.as_str(), server.requests().len()), ("after all\n", 2), "{wire:?}");
        assert!(ended.stderr.contains("retrying"), "{ended:#?}");
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    const IDLE: &str =
        "the server sent no event for 0.3 s; a slow model may need a larger `stream_idle_timeout_ms`";
    let impatient = |reply: fn() -> Reply, requests| Case {
        options: &["-c", "model_providers.test.stream_idle_timeout_ms=300"],
        ..always(reply, requests, IDLE)
    };
    each(|_| impatient(|| Reply(vec![Step::Hang]), 1));
    each(|_| impatient(|| Reply::begun(&[]).then(Step::Hang), 1));
    let begun = r#"{"type":"response.created","choices":[{"delta":{"role":"assistant"}}]}"#;
    each(|_| Case {
        replies: (0..2).map(|_| Reply::begun(&[begun]).then(Step::Hang)).collect(),
        said: IDLE,
        requests: 2,
        options: &["-c", "model_providers.test.stream_idle_timeout_ms=300"],
    });
}

#[test]
fn comments_do_not_hold_a_turn_open() {
    each(|_| Case {
        options: &["-c", "model_providers.test.stream_idle_timeout_ms=200"],
        ..always(
            || Reply::begun(&[]).then(repeated(b": ping\n\n", Duration::from_millis(20), usize::MAX)),
            1,
            "the server sent no event for 0.6 s; a slow model may need a larger `stream_idle_timeout_ms`",
        )
    });
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    each(|wire| {
        always(move || Wire::begins(&wire.text("half")).then(Step::Close), 2, "the answer broke off: ")
    });
    each(|_| always(|| Reply(vec![Step::Close]), 2, "cannot reach URL/PATH: "));
}

#[test]
fn an_event_of_50_megabytes_is_not_swallowed() {
    let huge = || {
        let megabytes = (0..50).map(|_| chunk(&vec![b'x'; 1 << 20]));
        megabytes.fold(Reply::begun(&[]).then(chunk(b"data: ")), Reply::then)
    };
    each(|_| always(huge, 1, "the server sent an event of more than 16777216 bytes"));
}

#[test]
fn nothing_but_nonsense_is_no_answer() {
    let nonsense = || Reply::begun(&["{\"type\":", "7", "[]"]).then(chunk(b"\xff\xfe\n\n")).then(Step::Close);
    each(|_| always(nonsense, 2, "the answer broke off: "));
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    let error = r#"{"error":{"message":"the model fell over","code":500,"type":"server_error"}}"#;
    each(|_| always(|| Reply::events(&[error]), 2, "the model's server failed: the model fell over"));
}

#[test]
fn invalid_utf_8_in_an_answer_becomes_a_replacement_character() {
    for wire in Wire::ALL {
        let events: Vec<u8> = wire
            .text("a?b")
            .into_iter()
            .chain(wire.done())
            .flat_map(|event| format!("data: {event}\n\n").into_bytes())
            .map(|byte| if byte == b'?' { 0xff } else { byte })
            .collect();
        let server = Server::start([Reply::begun(&[]).then(chunk(&events)).then(Step::Close)]);
        let user = User::new();
        user.use_server(&server, wire);
        let ended = user.run(&["exec", "hi"]);
        ended.assert_code(0);
        assert_eq!(ended.stdout, "a\u{fffd}b\n");
    }
}

#[test]
fn nothing_but_garbage_is_no_answer() {
    let said = "the server sent an event that cannot be read: `{not json`";
    each(|_| always(|| Reply::events(&["{not json", "[DONE]"]), 1, said));
    let said = "the server sent an event that cannot be read: `{\"what\":\"ever\"}`";
    each(|_| always(|| Reply::events(&[r#"{"what":"ever"}"#, "[DONE]"]), 1, said));
}

#[test]
fn nobody_there_is_said_so() {
    let user = User::new();
    let server = Server::start([]);
    user.use_server(&server, Wire::Responses);
    drop(server);
    let ended = user.run(&["exec", "hi"]);
    ended.assert_code(1);
    assert!(ended.last_word().contains("is the server running, and is `base_url` right?"), "{ended:#?}");
}

#[test]
fn a_stream_that_breaks_after_a_call_ran_does_not_repeat_the_call() {
    let wire = Wire::Responses;
    let append = command("c1", "echo ran >> log");
    let broken = Wire::begins(&wire.calls(&[append])).then(Step::Close);
    let server = Server::start([broken, wire.says("It ran.")]);
    let user = User::new();
    user.use_server(&server, wire);
    let ended = user.run(&[&["exec", "hi"], &FULL_ACCESS[..]].concat());
    ended.assert_code(0);
    assert_eq!((ended.stdout.as_str(), user.read("log").as_str()), ("It ran.\n", "ran\n"));
    let requests = server.requests();
    assert_eq!(wire.outputs(&requests[1]), [("c1", "Exit code: 0\nOutput:".to_owned())]);
}

#[test]
fn a_call_that_was_cut_off_is_not_run() {
    let event = r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"f","call_id":"c1","name":"shell_command","arguments":""}}"#;
    let half = r#"{"type":"response.function_call_arguments.delta","item_id":"f","delta":"{\"command\":\"touch here\""}"#;
    let cut =
        r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#;
    let server = Server::start([Reply::events(&[event, half, cut])]);
    let user = User::new();
    user.use_server(&server, Wire::Responses);
    let ended = user.run(&[&["exec", "hi"], &FULL_ACCESS[..]].concat());
    ended.assert_code(1);
    assert!(ended.last_word().contains("cut off by the server (max_output_tokens)"), "{ended:#?}");
    assert!(!user.work().join("here").exists());
}
