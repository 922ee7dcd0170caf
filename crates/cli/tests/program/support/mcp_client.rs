//! An MCP client for tests: lines of JSON on the pipes of the program.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};

use super::{FOREVER, User};

/// A client in the words of the protocol.
pub(crate) struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// The answer to every question; without one the client cannot ask.
    answer: Option<Value>,
    pub(crate) asked: Vec<Value>,
    pub(crate) progress: Vec<Value>,
    next: u64,
}

impl McpClient {
    pub(crate) fn start(
        user: &User,
        options: &[&str],
        answer: Option<Value>,
        roots: Option<&[String]>,
    ) -> Self {
        let words: Vec<_> = ["mcp", "serve"].iter().chain(options).copied().collect();
        Self::start_command(user, &words, answer, roots)
    }

    pub(crate) fn start_command(
        user: &User,
        words: &[&str],
        answer: Option<Value>,
        roots: Option<&[String]>,
    ) -> Self {
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

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request, and answers the requests of the server until its result is there.
    pub(crate) fn request(&mut self, method: &str, params: &Value, roots: Option<&[String]>) -> Value {
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

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.call_with_roots(tool, arguments, None)
    }

    pub(crate) fn call_with_roots(
        &mut self,
        tool: &str,
        arguments: &Value,
        roots: Option<&[String]>,
    ) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
        self.request("tools/call", &params, roots)["result"].clone()
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", &json!({}), None);
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ended = self.child.kill();
    }
}

/// Returns the first text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Returns the answer to a form with one field.
pub(crate) fn accept(answer: &Value) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}
