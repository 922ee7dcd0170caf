//! A model that asks for `true` so many times and then answers, over either wire. One thread per
//! connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// A listening server.
pub(super) struct Server {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    calls: usize,
    stopped: AtomicBool,
    connections: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    answered: usize,
    /// When the last answer was handed to the kernel.
    last: Option<Instant>,
    gaps: Vec<Duration>,
}

impl Server {
    /// Listens on loopback.
    pub(super) fn start(calls: usize) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            calls,
            stopped: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            state: Mutex::default(),
        });
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.stopped.load(Ordering::SeqCst) {
                    return;
                }
                server.connections.fetch_add(1, Ordering::SeqCst);
                let server = Arc::clone(&server);
                thread::spawn(move || serve(stream, &server));
            }
        });
        Ok(Self { port, shared })
    }

    /// The client's time for each call, and how many connections it opened.
    pub(super) fn stop(self) -> (Vec<Duration>, usize) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it is over.
        let _woken = TcpStream::connect(("127.0.0.1", self.port));
        let state = self.shared.state.lock().expect("no thread panics");
        (state.gaps.clone(), self.shared.connections.load(Ordering::SeqCst))
    }
}

/// Serves one connection to its end.
fn serve(stream: TcpStream, shared: &Shared) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let arrived = Instant::now();
        let chat = line.contains("chat/completions");
        let mut length = 0;
        while line.trim() != "" {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok()?;
            }
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        io::copy(&mut reader.by_ref().take(length), &mut io::sink()).ok()?;
        let mut state = shared.state.lock().ok()?;
        if let Some(last) = state.last {
            state.gaps.push(arrived.duration_since(last));
        }
        let body = if state.answered < shared.calls { call(chat, state.answered) } else { text(chat) };
        state.answered += 1;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        writer.write_all(format!("{head}{body}").as_bytes()).ok()?;
        state.last = Some(Instant::now());
    }
}

fn call(chat: bool, number: usize) -> String {
    let arguments = json!({"command": format!("true # {number}")}).to_string();
    let id = format!("call_{number}");
    if chat {
        let function = json!({"name": "shell_command", "arguments": arguments});
        let calls = json!([{"index": 0, "id": id, "type": "function", "function": function}]);
        return chat_answer(&json!({"tool_calls": calls}), "tool_calls");
    }
    responses_answer(
        &json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "shell_command", "arguments": arguments}),
    )
}

fn text(chat: bool) -> String {
    if chat {
        return chat_answer(&json!({"content": "done"}), "stop");
    }
    let content = json!([{"type": "output_text", "text": "done"}]);
    responses_answer(&json!({"type": "message", "id": "m", "role": "assistant", "content": content}))
}

fn responses_answer(item: &Value) -> String {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    let events = [
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.output_item.done", "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "usage": usage}}),
    ];
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn chat_answer(delta: &Value, reason: &str) -> String {
    let chunks = [
        json!({"choices": [{"index": 0, "delta": delta}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
    ];
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("{events}data: [DONE]\n\n")
}
