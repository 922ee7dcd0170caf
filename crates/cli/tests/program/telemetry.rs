//! What operators get to see: spans in logs, and at a collector.

use serde_json::json;

use crate::support::{Ended, Running, User};

/// A session with one call of a shell, under these variables.
fn traced(user: &User, variables: &[(&str, &str)]) -> Ended {
    let script = user.script(&json!([
        {"calls": [{"name": "shell_command", "arguments": {"command": "echo content-of-the-call; exit 3"}}]},
        {"text": "done"},
    ]));
    let mut program = user.program(&["exec", "-s", "workspace-write", "--json", "--script", &script, "go"]);
    program.envs(variables.iter().copied());
    Running::start(program).end()
}

#[test]
fn logs_say_which_call_they_are_about_and_nothing_of_what_it_says() {
    let user = User::new();
    let ended = traced(&user, &[("WINDLASS_LOG", "info")]);
    ended.assert_code(0);
    let line = ended.stderr.lines().find(|line| line.contains("call ended")).unwrap_or(&ended.stderr);
    for part in ["invoke_agent", "execute_tool", "gen_ai.tool.name", "shell_command", "gen_ai.tool.call.id"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!ended.stderr.contains("content-of-the-call"), "{}", ended.stderr);
}

#[test]
fn logs_have_no_colours_in_files_and_say_how_long_calls_took() {
    let user = User::new();
    let ended = traced(&user, &[("WINDLASS_LOG", "info")]);
    let line = ended.stderr.lines().find(|line| line.contains("call ended")).unwrap_or(&ended.stderr);
    assert!(line.contains("duration_ms=") && line.contains("status="), "{line}");
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    assert!(!ended.stderr.contains("call routed"), "decisions are for debug: {}", ended.stderr);
    let forced = traced(&user, &[("WINDLASS_LOG", "info"), ("CLICOLOR_FORCE", "1")]);
    assert!(forced.stderr.contains('\u{1b}'), "{}", forced.stderr);
    let never = traced(&user, &[("WINDLASS_LOG", "info"), ("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]);
    assert!(!never.stderr.contains('\u{1b}'), "{}", never.stderr);
}

#[test]
fn logs_at_debug_say_what_was_decided() {
    let user = User::new();
    let ended = traced(&user, &[("WINDLASS_LOG", "debug")]);
    for (line, part) in [
        ("call routed", "may_change"),
        ("call admitted", "class="),
        ("call admitted", "decision="),
        ("attempt ended", "sandbox="),
        ("call judged", "success=false"),
        ("call judged", "reasons="),
    ] {
        let found = ended.stderr.lines().filter(|each| each.contains(line)).any(|each| each.contains(part));
        assert!(found, "{line}: {part}: {}", ended.stderr);
    }
}

#[cfg(feature = "otel")]
mod collector {
    use std::{
        io::{BufRead, BufReader, Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// Takes one request and says what was in it.
    fn collect(listener: &TcpListener) -> (String, Vec<u8>) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let length =
            head.to_lowercase().split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse();
        let mut body = vec![0; length.unwrap()];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        (head, body)
    }

    #[test]
    fn a_collector_gets_every_step_by_its_conventional_name_and_no_content() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let collector = thread::spawn(move || collect(&listener));
        let user = User::new();
        let ended = traced(&user, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
        let (head, body) = collector.join().unwrap();
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        // Names are text in Protocol Buffers too.
        let sent = String::from_utf8_lossy(&body);
        for name in [
            "windlass",
            "invoke_agent windlass",
            "chat scripted",
            "execute_tool shell_command",
            "gen_ai.operation.name",
            "gen_ai.tool.name",
            "gen_ai.tool.call.id",
            "gen_ai.tool.type",
            "gen_ai.request.model",
            "gen_ai.usage.input_tokens",
            "error.type",
            "route",
            "effects",
            "preflight",
            "gate",
            "journal",
            "attempt",
            "confine",
            "call",
            "shape",
            "record",
        ] {
            assert!(sent.contains(name), "{name}: {sent}");
        }
        assert!(!sent.contains("content-of-the-call"), "{sent}");
    }

    #[test]
    fn a_collector_that_is_not_there_costs_a_warning() {
        let user = User::new();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let ended = traced(&user, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{closed}"))]);
        ended.assert_code(0);
        assert_eq!(ended.stderr.matches("warning: ").count(), 1, "{}", ended.stderr);
    }

    #[test]
    fn nothing_is_sent_when_it_is_switched_off() {
        let user = User::new();
        let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), ("OTEL_SDK_DISABLED", "true")];
        let ended = traced(&user, &off);
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
    }
}
