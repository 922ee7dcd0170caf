//! A server for tests: the test binary, started again as a server in a mode.
//!
//! The test harness writes some lines to the standard output before the server begins, as many real
//! servers do.

use std::{
    io::{BufRead, Write},
    process::{Command, Stdio, exit},
    time::Duration,
};

use serde_json::{Value, json};

/// A time that no test waits for.
const FOREVER: Duration = Duration::from_mins(2);

#[test]
fn serves_when_asked() {
    if let Ok(mode) = std::env::var("FAKE_MODE") {
        let (subscription, question) = (Value::Null, Value::Null);
        let task = FakeTask::default();
        FakeServer { mode, calls: 0, subscription, question, task }.serve();
        exit(0);
    }
}

struct FakeServer {
    mode: String,
    calls: u32,
    subscription: Value,
    question: Value,
    task: FakeTask,
}

impl FakeServer {
    fn serve(&mut self) {
        eprintln!("server in mode {}", self.mode);
        match self.mode.as_str() {
            "exits" => {
                eprintln!("cannot find \u{1b}[31mmodule\u{7} x");
                exit(3);
            }
            "silent" => std::thread::sleep(FOREVER),
            "floods_stderr" => flood_stderr(50),
            _ => {}
        }
        let input = std::io::stdin().lock();
        for line in input.lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            self.receive(&message);
        }
        if self.mode == "ignores_eof" {
            std::thread::sleep(FOREVER);
        }
    }

    fn receive(&mut self, message: &Value) {
        let id = &message["id"];
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        match (self.mode.as_str(), method) {
            ("hangs_at_start", "server/discover" | "initialize") | ("hangs_at_list", "tools/list") => {
                std::thread::sleep(FOREVER);
            }
            ("dies_at_discover", "server/discover") => exit(1),
            (mode, "server/discover") if mode.starts_with("modern") => answer(id, &discovered()),
            (_, "server/discover") => fail(id, -32601, "unknown method"),
            (mode, "initialize") if mode.starts_with("modern") => fail(id, -32022, "too old"),
            (_, "initialize") => answer(id, &self.initialized(params)),
            (_, "ping") => answer(id, &json!({})),
            (_, "tools/list") => self.list(id, params),
            (_, "tools/call") => self.call(id, params),
            (_, "subscriptions/listen") => {
                self.subscription = id.clone();
                let mut accepted = subscribed("notifications/subscriptions/acknowledged", id);
                accepted["params"]["notifications"] = json!({"toolsListChanged": true});
                send(&accepted.to_string());
            }
            (_, "tasks/get" | "tasks/update" | "tasks/cancel") => self.task.receive(id, method, params),
            (_, "") if *id == json!("ours") => self.receive_answer(message),
            _ => {}
        }
    }

    fn initialized(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = match self.mode.as_str() {
            mode if mode.starts_with("v20") => &mode[1..],
            "unknown_version" => "1999-01-01",
            _ => asked,
        };
        json!({
            "protocolVersion": version, "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "fake", "version": "1"}, "instructions": "Be\u{7} kind.",
        })
    }

    fn list(&self, id: &Value, params: &Value) {
        let page = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0_u64);
        let result = match self.mode.as_str() {
            "endless_pages" => {
                json!({"tools": [tool(&format!("t{page}"))], "nextCursor": (page + 1).to_string()})
            }
            "repeats_cursor" => json!({"tools": [tool(&format!("t{page}"))], "nextCursor": "1"}),
            "many_tools" => {
                let tools: Vec<Value> = (0..1500).map(|number| tool(&format!("t{number}"))).collect();
                json!({"tools": tools})
            }
            "bad_tools" => json!({"tools": [
                tool("good"), tool("bell\u{7}"), tool(&"x".repeat(500)), tool("good"),
                {"name": "no_schema"}, {"name": "bad_schema", "inputSchema": 5}, tool("last"),
            ]}),
            "deep_tools" => {
                let mut deep = tool("deep");
                deep["inputSchema"] = nested(300);
                deep["inputSchema"]["type"] = json!("object");
                json!({"tools": [tool("good"), deep, tool("last")]})
            }
            "changes" | "modern_changes" if self.calls > 0 => json!({"tools": [tool("echo"), tool("new")]}),
            _ => json!({"tools": [tool("echo")], "ttlMs": 60_000, "cacheScope": "private"}),
        };
        answer(id, &result);
    }

    /// Sends the next request of a call that asks the client.
    fn ask_next(&self) {
        let mut request = self.question["request"].clone();
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!("ours");
        send(&request.to_string());
    }

    fn receive_answer(&mut self, message: &Value) {
        let question = &mut self.question;
        let is_accepted = message["result"]["action"] == "accept";
        question["accepted"] = json!(question["accepted"].as_u64().unwrap() + u64::from(is_accepted));
        question["left"] = json!(question["left"].as_u64().unwrap() - 1);
        if question["left"] == 0 {
            let said = json!({"accepted": question["accepted"], "last": message["result"],
                "error": message["error"]["code"]});
            say(&question["call"], &said.to_string());
        } else {
            self.ask_next();
        }
    }

    fn call(&mut self, id: &Value, params: &Value) {
        self.calls += 1;
        match params["name"].as_str().unwrap_or_default() {
            "pid" => say(id, &std::process::id().to_string()),
            "calls" => say(id, &self.calls.to_string()),
            "env" => {
                let name = params["arguments"]["name"].as_str().unwrap_or_default();
                say(id, &std::env::var(name).unwrap_or_default());
            }
            "die" => {
                eprintln!("last words");
                exit(7);
            }
            "fork" => {
                // The child keeps all pipes open, and the server is gone.
                let _ = Command::new("sleep").arg("120").stdin(Stdio::inherit()).spawn().unwrap();
                exit(7);
            }
            "hang" => {}
            "deaf" => std::thread::sleep(FOREVER),
            "progress" => progress(id, params),
            "flood_stderr" => {
                flood_stderr(50);
                say(id, "flooded");
            }
            "big" => big_answer(id),
            "deep" => answer(id, &json!({"content": [], "structuredContent": nested(300)})),
            "values" => {
                answer(id, &json!({"content": [], "structuredContent": vec![0; 1_500_000]}));
            }
            "garbage" => {
                send("{\"jsonrpc\": \"2.0\", \"id\": ");
                send("not json \u{0} at all");
                send("[1,2,3]");
                send("{\"jsonrpc\":\"2.0\",\"method\":5}");
                say(id, "after garbage");
            }
            "ids" => {
                say(&json!(999_999), "wrong");
                say(&json!("text"), "wrong");
                say(id, "right");
                say(id, "repeated");
            }
            "wrong_type" => answer(id, &json!({"surprise": true})),
            "error" => fail(id, -32000, "no\u{1b}[31m way"),
            "requests" => {
                for number in 0..200_000 {
                    ask_number(number);
                }
                say(id, "asked");
            }
            "change" => {
                let method = "notifications/tools/list_changed";
                let changed = match &self.subscription {
                    Value::Null => json!({"jsonrpc": "2.0", "method": method}),
                    id => subscribed(method, id),
                };
                send(&changed.to_string());
                say(id, "changed");
            }
            "ask" => {
                self.question = json!({"call": id, "left": params["arguments"]["times"], "accepted": 0,
                    "request": params["arguments"]["request"]});
                self.ask_next();
            }
            "task" => self.task.start(id, &params["arguments"]),
            "task_state" => say(id, &self.task.state()),
            "input" => input(id, params),
            "page" if self.calls == 1 => {
                let page =
                    json!({"mode": "url", "message": "m", "url": "https://a.test/", "elicitationId": "1"});
                let error = json!({"code": -32042, "message": "open it", "data": {"elicitations": [page]}});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
            }
            "page" => say(id, "opened"),
            _ => say(id, &params["arguments"].to_string()),
        }
    }
}

/// A task that works for some polls and then has an outcome.
#[derive(Default)]
struct FakeTask {
    polls: u64,
    plan: Value,
    answers: Value,
    is_cancelled: bool,
}

impl FakeTask {
    fn start(&mut self, id: &Value, plan: &Value) {
        *self = Self { plan: plan.clone(), ..Self::default() };
        let mut task = Self::shown("working", "begun");
        task["resultType"] = json!("task");
        answer(id, &task);
    }

    fn receive(&mut self, id: &Value, method: &str, params: &Value) {
        match method {
            "tasks/cancel" => self.is_cancelled = true,
            "tasks/update" => self.answers = params["inputResponses"].clone(),
            _ => return self.report(id),
        }
        answer(id, &json!({"resultType": "complete"}));
    }

    fn report(&mut self, id: &Value) {
        self.polls += 1;
        let outcome = self.plan["outcome"].as_str().unwrap_or_default();
        let is_working = outcome == "never" || Some(self.polls) <= self.plan["polls"].as_u64();
        let mut task = match outcome {
            _ if is_working => Self::shown("working", &format!("poll {}", self.polls)),
            "input" if self.answers.is_null() => Self::shown("input_required", "asking"),
            "input" => Self::shown("completed", "done"),
            outcome => Self::shown(outcome, "ended"),
        };
        match task["status"].as_str() {
            Some("completed") => {
                let text = format!("task done {}", self.answers);
                task["result"] = json!({"content": [{"type": "text", "text": text}]});
            }
            Some("failed") => task["error"] = json!({"code": -32055, "message": "no luck"}),
            Some("input_required") => task["inputRequests"] = json!({"who": question()}),
            _ => {}
        }
        answer(id, &task);
    }

    fn state(&self) -> String {
        if self.is_cancelled { "cancelled".to_owned() } else { format!("{} polls", self.polls) }
    }

    fn shown(status: &str, message: &str) -> Value {
        let time = "2026-11-19T00:00:00Z";
        json!({"resultType": "complete", "taskId": "t1", "status": status, "statusMessage": message,
            "createdAt": time, "lastUpdatedAt": time, "ttlMs": 60_000, "pollIntervalMs": 1})
    }
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
        "cacheScope": "private", "serverInfo": {"name": "fake", "version": "2"},
        "capabilities": {"tools": {"listChanged": true},
            "extensions": {"io.modelcontextprotocol/tasks": {}}},
    })
}

fn subscribed(method: &str, subscription: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method,
        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}}})
}

fn question() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"method": "elicitation/create",
        "params": {"mode": "form", "message": "who?", "requestedSchema": schema}})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true}})
}

/// Asks for input for ever, or as often as told.
fn input(id: &Value, params: &Value) {
    let round: u64 = params["requestState"].as_str().map_or(0, |state| state.parse().unwrap());
    if Some(round) == params["arguments"]["rounds"].as_u64() {
        return say(id, &params["inputResponses"].to_string());
    }
    answer(
        id,
        &json!({"resultType": "input_required", "inputRequests": {"who": question()},
        "requestState": (round + 1).to_string()}),
    );
}

fn progress(id: &Value, params: &Value) {
    let token = &params["_meta"]["progressToken"];
    for step in 1..=5 {
        send(
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
            {"progressToken": token, "progress": step, "total": 5, "message": format!("step {step}")}})
            .to_string(),
        );
    }
    say(id, "done");
}

fn big_answer(id: &Value) {
    let mut output = std::io::stdout().lock();
    write!(
        output,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\""
    )
    .unwrap();
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..200 {
        output.write_all(&piece).unwrap();
    }
    writeln!(output, "\"}}]}}}}").unwrap();
}

/// An object in an object, and so on.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}))
}

fn flood_stderr(mebibytes: usize) {
    let line = [&[b'e'; 1023][..], b"\n"].concat();
    let mut stderr = std::io::stderr().lock();
    for _ in 0..mebibytes * 1024 {
        stderr.write_all(&line).unwrap();
    }
}

fn ask_number(number: u32) {
    send(
        &json!({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params":
        {"mode": "url", "message": "m", "url": "https://a.test/", "elicitationId": "1"}})
        .to_string(),
    );
}

fn say(id: &Value, text: &str) {
    answer(id, &json!({"content": [{"type": "text", "text": text}], "resultType": "complete"}));
}

fn answer(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
}

fn fail(id: &Value, code: i32, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string());
}

fn send(line: &str) {
    let mut output = std::io::stdout().lock();
    // The client may have closed the pipe.
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        exit(0);
    }
}
