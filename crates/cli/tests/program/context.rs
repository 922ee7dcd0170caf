//! Conversations that outgrow the context window: a server that enforces one, over all three wires.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::support::{Reply, Step, User, Wire, command, lines};

/// The context window of the server, and the size of a token in the body of a request.
const WINDOW: usize = 8000;
const TOKEN_BYTES: usize = 4;

/// Calls of the task. The output of each takes an eighth of the window.
const CALLS: usize = 85;

/// A server that counts tokens and refuses a request that has too many.
struct WindowServer {
    url: String,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
}

/// A request, with the answer to it in one word.
#[derive(Clone)]
struct SeenRequest {
    body: Value,
    tokens: usize,
    answer: &'static str,
}

impl WindowServer {
    fn start(wire: Wire) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || while serve(&stream, wire, &shared).is_some() {});
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Configures the server with a window that the user does not know to be too large.
    fn configure(&self, user: &User, wire: Wire, window: usize) {
        user.configure(&format!(
            "model_provider = \"test\"\nmodel = \"m\"\nmodel_context_window = {window}\n[model_providers.test]\n\
             base_url = \"{}\"\nwire_api = \"{}\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
            self.url,
            wire.name(),
        ));
    }
}

/// Answers one request of a connection. Returns `None` at its end.
fn serve(stream: &TcpStream, wire: Wire, seen: &Mutex<Vec<SeenRequest>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (tokens, body) = (length / TOKEN_BYTES, serde_json::from_slice::<Value>(&body).ok()?);
    let mut seen = seen.lock().unwrap();
    let called = seen.iter().filter(|request| request.answer == "call").count();
    let is_summary = body["tools"].as_array().is_none_or(Vec::is_empty);
    let (answer, reply) = match called {
        _ if tokens > WINDOW => ("refusal", refusal(wire, tokens)),
        _ if is_summary => ("summary", said(wire, "SUMMARY: numbers were printed", tokens)),
        CALLS => ("end", said(wire, "all printed", tokens)),
        _ => {
            let first = called * 10_000;
            let line = format!("seq {} {}", 1_000_000 + first, 1_000_000 + first + 2000);
            ("call", stream_of(wire, wire.calls(&[command("c", &line)]), tokens))
        }
    };
    seen.push(SeenRequest { body, tokens, answer });
    drop(seen);
    let Reply(steps) = reply;
    for step in steps {
        let Step::Send(bytes) = step else { return None };
        let mut stream = stream;
        stream.write_all(&bytes).ok()?;
    }
    Some(())
}

fn said(wire: Wire, text: &str, tokens: usize) -> Reply {
    stream_of(wire, wire.text(text), tokens)
}

/// A whole answer whose usage is what this server counts.
fn stream_of(wire: Wire, events: Vec<String>, tokens: usize) -> Reply {
    let done = wire.done().into_iter().map(|event| {
        let event = event.replace("\"input_tokens\":5", &format!("\"input_tokens\":{tokens}"));
        let event = event.replace("\"input_tokens\":3", &format!("\"input_tokens\":{tokens}"));
        event.replace("\"prompt_tokens\":5", &format!("\"prompt_tokens\":{tokens}"))
    });
    let events: Vec<String> = events.into_iter().chain(done).collect();
    Reply::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The error of a usual server of this wire.
fn refusal(wire: Wire, tokens: usize) -> Reply {
    let error = match wire {
        Wire::Responses => json!({"error": {
            "code": "context_length_exceeded", "type": "invalid_request_error",
            "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        }}),
        Wire::Chat => json!({"error": {
            "code": 400, "type": "exceed_context_size_error", "n_ctx": WINDOW, "n_prompt_tokens": tokens,
            "message": "the request exceeds the available context size, try increasing it",
        }}),
        Wire::Messages => json!({"type": "error", "error": {
            "type": "invalid_request_error",
            "message": format!("prompt is too long: {tokens} tokens > {WINDOW} maximum"),
        }}),
    };
    Reply::plain("400 Bad Request", "content-type: application/json\r\n", &error.to_string())
}

/// Returns how many requests did not begin with the one before, apart from summaries and refusals.
fn prefix_breaks(wire: Wire, requests: &[SeenRequest]) -> usize {
    let name = if wire == Wire::Responses { "input" } else { "messages" };
    let strip = |request: &SeenRequest| {
        let mut body = request.body.clone();
        let mut conversation = body[name].take().as_array().cloned().unwrap_or_default();
        for message in &mut conversation {
            for block in message["content"].as_array_mut().into_iter().flatten() {
                block.as_object_mut().map(|block| block.remove("cache_control"));
            }
        }
        let fixed = [&body["tools"], &body["instructions"], &body["system"]].map(Value::to_string);
        (fixed, conversation.iter().map(Value::to_string).collect::<Vec<_>>())
    };
    let sent: Vec<_> =
        requests.iter().filter(|request| matches!(request.answer, "call" | "end")).map(strip).collect();
    assert!(sent.windows(2).all(|pair| pair[0].0 == pair[1].0), "instructions and tools never change");
    // The messages of the Messages API join the blocks of one author, so the last one may grow.
    let last = usize::from(wire == Wire::Messages);
    sent.windows(2).filter(|pair| !pair[1].1.starts_with(&pair[0].1[..pair[0].1.len() - last])).count()
}

#[test]
fn a_task_of_ten_windows_finishes_on_every_wire() {
    for wire in Wire::ALL {
        let (server, user) = (WindowServer::start(wire), User::new());
        server.configure(&user, wire, WINDOW);
        let ended = user.run(&["exec", "--json", "-s", "danger-full-access", "print many numbers"]);
        let seen = server.seen();
        let answers: Vec<_> = seen.iter().map(|request| request.answer).collect();
        assert_eq!(ended.code, Some(0), "{wire:?} {answers:?} {ended:#?}");
        assert_eq!(answers.iter().filter(|answer| **answer == "call").count(), CALLS, "{wire:?}");
        assert!(seen.iter().all(|request| request.tokens <= WINDOW || request.answer == "refusal"));
        let events = lines(&ended.stdout);
        let compactions: Vec<_> =
            events.iter().filter(|event| event["type"] == "compaction.completed").collect();
        assert!(compactions.len() > 1, "{wire:?} {answers:?}");
        assert!(
            compactions.iter().all(|event| event["tokens_after"].as_u64() < event["tokens_before"].as_u64())
        );
        let breaks = prefix_breaks(wire, &seen);
        assert!(breaks <= compactions.len(), "{wire:?}: {breaks} breaks, {} compactions", compactions.len());
        let last = seen.last().unwrap().body.to_string();
        assert!(last.contains("print many numbers"), "the request of the user stays word for word: {last}");
    }
}

#[test]
fn a_session_that_was_refused_goes_on() {
    for wire in Wire::ALL {
        let (server, user) = (WindowServer::start(wire), User::new());
        server.configure(&user, wire, 200_000);
        let ended = user.run(&["exec", "-s", "danger-full-access", "print many numbers"]);
        let answers: Vec<_> = server.seen().iter().map(|request| request.answer).collect();
        assert_eq!(ended.code, Some(0), "{wire:?} {answers:?} {ended:#?}");
        assert!(answers.contains(&"refusal") && ended.stderr.contains("context made shorter"), "{ended:#?}");
        let resumed = user.run(&["exec", "-s", "danger-full-access", "resume", "--last", "and now?"]);
        assert_eq!(
            (resumed.code, resumed.stdout.as_str()),
            (Some(0), "all printed\n"),
            "{wire:?} {resumed:#?}"
        );
        let context: Value = serde_json::from_str(&user.run(&["context", "--json"]).stdout).unwrap();
        assert!(context["compactions"].as_array().is_some_and(|each| !each.is_empty()), "{context:#}");
        assert!(context["parts"]["tools"]["built-in"].as_u64() > Some(500), "{context:#}");
    }
}

#[test]
fn a_message_that_is_larger_than_the_window_is_cut_and_kept_whole() {
    let wire = Wire::Chat;
    let (server, user) = (WindowServer::start(wire), User::new());
    server.configure(&user, wire, WINDOW);
    let long = format!("begin {} end", "many words ".repeat(10_000));
    let ended = user.run_with_input(&["exec", "-s", "danger-full-access", "-"], long.as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let first = server.seen().first().unwrap().body.to_string();
    assert!(first.contains("begin many") && first.contains("read_output id 1"), "{first}");
    let kept = user.home().join("outputs");
    assert!(kept.is_dir(), "the whole message is kept");
}

#[test]
fn a_conversation_is_made_shorter_by_hand_and_without_a_model() {
    let user = User::new();
    let call = |number: u32| json!({"calls": [{"name": "shell_command", "arguments": {"command": format!("seq {number} 3000")}}]});
    let turns: Vec<_> = (1..9).map(call).chain([json!({"text": "done"})]).collect();
    let script = user.script(&json!(turns));
    let first = user.run(&["exec", "-s", "danger-full-access", "--script", &script, "count for me"]);
    assert_eq!(first.code, Some(0), "{first:#?}");
    let compacted = user.run(&["compact", "--script", &script, "--keep", "the numbers", "--json"]);
    let report: Value = serde_json::from_str(&compacted.stdout).unwrap();
    assert_eq!(report["method"], "rules", "{compacted:#?}");
    assert!(report["tokens_after"].as_u64() < report["tokens_before"].as_u64(), "{report}");
    let shown = user.run(&["context"]).stdout;
    assert!(shown.contains("summarized by rules (request)"), "{shown}");
    let session = user.sessions()[0].clone();
    let text = std::fs::read_to_string(session).unwrap();
    let record = text.lines().find(|line| line.contains("\"type\":\"compacted\"")).unwrap();
    assert!(
        record.contains("count for me") && record.contains("The user asked to keep: the numbers"),
        "{record}"
    );
}
