//! `windlass mcp serve` and `gateway` as a client sees them: lines of JSON on their pipes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};

use crate::support::{FOREVER, User};

/// A client in the words of the protocol.
struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// The answer to every question; without one the client cannot ask.
    answer: Option<Value>,
    asked: Vec<Value>,
    progress: Vec<Value>,
    next: u64,
}

impl McpClient {
    fn start(user: &User, options: &[&str], answer: Option<Value>, roots: Option<&[String]>) -> Self {
        let words: Vec<_> = ["mcp", "serve"].iter().chain(options).copied().collect();
        Self::start_command(user, &words, answer, roots)
    }

    fn start_command(user: &User, words: &[&str], answer: Option<Value>, roots: Option<&[String]>) -> Self {
        let mut command = user.program(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not protocol: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut client = Self { child, input, messages, answer, asked: vec![], progress: vec![], next: 1 };
        let mut capabilities = json!({});
        if client.answer.is_some() {
            capabilities["elicitation"] = json!({});
        }
        if roots.is_some() {
            capabilities["roots"] = json!({});
        }
        let info = json!({"name": "a test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info});
        client.request("initialize", &params, roots);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request, and answers the requests of the server until its result is there.
    fn request(&mut self, method: &str, params: &Value, roots: Option<&[String]>) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.messages.recv_timeout(FOREVER).unwrap();
            match message["method"].as_str() {
                Some("elicitation/create") => {
                    self.asked.push(message["params"].clone());
                    let answer = self.answer.clone().unwrap();
                    self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}));
                }
                Some("roots/list") => {
                    let roots: Vec<_> =
                        roots.unwrap_or_default().iter().map(|uri| json!({"uri": uri})).collect();
                    self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}}));
                }
                Some("notifications/progress") => self.progress.push(message["params"].clone()),
                Some(_) => {}
                None if message["id"] == json!(id) => return message,
                None => panic!("{message}"),
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.call_with_roots(tool, arguments, None)
    }

    fn call_with_roots(&mut self, tool: &str, arguments: &Value, roots: Option<&[String]>) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
        self.request("tools/call", &params, roots)["result"].clone()
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", &json!({}), None);
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ended = self.child.kill();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn patch(file: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n*** Add File: {file}\n+made\n*** End Patch")})
}

fn accept(answer: &Value) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

#[test]
fn a_client_reads_and_is_refused_what_it_cannot_ask_about() {
    let user = User::new();
    user.file("notes.txt", "42 stones\n");
    let mut client = McpClient::start(&user, &["-s", "read-only"], None, None);
    let read = client.call("read_file", &json!({"file_path": user.work().join("notes.txt")}));
    assert_eq!((text(&read), &read["isError"]), ("L1: 42 stones", &json!(false)), "{read}");
    assert_eq!(read["structuredContent"]["output"], "L1: 42 stones");
    let refused = client.call("apply_patch", &patch("new.txt"));
    assert!(text(&refused).contains("nobody is there to approve it"), "{refused}");
    assert_eq!(refused["structuredContent"]["status"], "rejected");
    assert!(!user.work().join("new.txt").exists());
    assert_eq!(client.end(), 0);
}

#[test]
fn an_approved_change_is_recorded_and_can_be_undone() {
    let user = User::new();
    let mut client = McpClient::start(&user, &["-s", "read-only"], Some(accept(&json!("once"))), None);
    let made = client.call("apply_patch", &patch("new.txt"));
    assert_eq!(made["isError"], json!(false), "{made}");
    assert_eq!(user.read("new.txt"), "made\n");
    let [question] = client.asked.as_slice() else { panic!("{:?}", client.asked) };
    assert!(question["message"].as_str().unwrap().contains("new.txt"), "{question}");
    assert_eq!(question["requestedSchema"]["properties"]["answer"]["enum"][0], "once");
    assert_eq!(client.end(), 0);
    let sessions = user.run(&["sessions", "list"]);
    assert!(sessions.stdout.contains("calls of the MCP client a test"), "{sessions:#?}");
    user.run(&["undo"]).assert_code(0);
    assert!(!user.work().join("new.txt").exists());
}

#[test]
fn answers_of_the_wrong_shape_allow_nothing() {
    let wrong = [
        accept(&json!("always")),
        accept(&json!(["once"])),
        json!({"action": "accept", "content": "once"}),
        json!({"action": "yes"}),
        json!({"action": "decline", "content": {"answer": "once"}}),
    ];
    let user = User::new();
    for answer in wrong {
        let shown = answer.to_string();
        let mut client = McpClient::start(&user, &["-s", "read-only"], Some(answer), None);
        let refused = client.call("apply_patch", &patch("new.txt"));
        assert_eq!(refused["isError"], json!(true), "{shown}: {refused}");
        assert!(!user.work().join("new.txt").exists(), "{shown}");
    }
}

#[test]
fn only_allowed_tools_are_on_offer() {
    let user = User::new();
    let mut client = McpClient::start(&user, &["--allow-tools", "read_*,list_dir"], None, None);
    assert_eq!(client.tools(), ["read_file", "list_dir", "read_output"]);
    let params = json!({"name": "shell_command", "arguments": {"command": "date"}});
    let refused = client.request("tools/call", &params, None);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let ended = user.run(&["mcp", "serve", "--allow-tools", "nothing"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("no tool fits `nothing`"), "{ended:#?}");
}

#[test]
fn roots_narrow_what_a_client_writes() {
    let user = User::new();
    std::fs::create_dir(user.work().join("inner")).unwrap();
    let inner = [format!("file://{}/inner", user.work().display()), "file:///etc".to_owned()];
    let mut client = McpClient::start(&user, &["-s", "workspace-write", "-a", "never"], None, Some(&inner));
    let made = client.call_with_roots("apply_patch", &patch("a.txt"), Some(&inner));
    assert_eq!(made["isError"], json!(false), "{made}");
    assert!(user.work().join("inner/a.txt").exists());
    let outside = client.call("apply_patch", &patch("../b.txt"));
    assert_eq!(outside["isError"], json!(true), "{outside}");
    assert!(!user.work().join("b.txt").exists());
}

#[test]
fn an_agent_answers_a_client_within_the_ceiling() {
    let user = User::new();
    let script = user.script(&json!([{"text": "Nine."}, {"text": "Ten."}]));
    user.configure(&format!(
        "model_provider = \"scripted\"\n[model_providers.scripted]\nscript = \"{script}\"\n"
    ));
    let mut client = McpClient::start(&user, &["-s", "read-only", "-a", "on-request"], None, None);
    assert!(client.tools().ends_with(&["windlass".to_owned(), "windlass-reply".to_owned()]));
    for (key, value) in [("sandbox", "workspace-write"), ("cwd", "/etc"), ("cwd", "..")] {
        let refused = client.call("windlass", &json!({"prompt": "How many?", key: value}));
        assert_eq!(refused["isError"], json!(true), "{key} {value}: {refused}");
    }
    let answer = client.call("windlass", &json!({"prompt": "How many?"}));
    assert_eq!(text(&answer), "Nine.", "{answer}");
    assert!(client.progress.iter().any(|step| step["message"] == "Nine."), "{:?}", client.progress);
    let thread = answer["structuredContent"]["threadId"].clone();
    assert!(thread.is_string(), "{answer}");
    let more = client.call("windlass-reply", &json!({"threadId": thread, "prompt": "And now?"}));
    assert_eq!(more["structuredContent"]["threadId"], thread, "{more}");
    let other = client.call("windlass-reply", &json!({"threadId": "0", "prompt": "x"}));
    assert!(text(&other).contains("none of the conversations"), "{other}");
}

#[test]
fn a_gateway_offers_the_tools_of_servers_under_the_gate_of_a_session() {
    let user = User::new();
    user.add_mcp_server("fake", &[]);
    user.add_mcp_server("other", &[]);
    let words = ["mcp", "gateway", "fake", "--tools", "mcp__fake__*"];
    let mut client = McpClient::start_command(&user, &words, None, None);
    let names = ["mcp__fake__greet", "mcp__fake__break"];
    assert_eq!(client.tools(), names);
    let greeted = client.call(names[0], &json!({"who": "me"}));
    assert!(text(&greeted).contains("Hello, you."), "{greeted}");
    // Its annotation says that it destroys something.
    let refused = client.call(names[1], &json!({}));
    assert!(text(&refused).contains("nobody is there to approve it"), "{refused}");
    assert_eq!(client.end(), 0);
    let mut client = McpClient::start_command(&user, &words, Some(accept(&json!("once"))), None);
    let broken = client.call(names[1], &json!({}));
    assert!(text(&broken).contains("it broke") && broken["isError"] == json!(true), "{broken}");
    assert_eq!(client.asked.len(), 1);
    assert!(client.asked[0]["message"].to_string().contains("fake"), "{:?}", client.asked);
    let history = user.run(&["history"]);
    assert!(history.stdout.contains("mcp__fake__break"), "{history:#?}");
    let ended = user.run(&["mcp", "gateway", "none"]);
    ended.assert_code(2);
}
