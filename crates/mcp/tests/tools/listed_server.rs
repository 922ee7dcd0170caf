//! A server for tests: the test binary, started again. It reads its tools from a file.

use std::{
    fs,
    io::{BufRead, Write},
    process::exit,
};

use serde_json::{Value, json};

#[test]
fn serves_when_asked() {
    if let Ok(path) = std::env::var("LISTED_TOOLS") {
        for line in std::io::stdin().lock().lines() {
            receive(&path, &serde_json::from_str(&line.unwrap()).unwrap());
        }
        exit(0);
    }
}

fn receive(path: &str, message: &Value) {
    let (id, params) = (&message["id"], &message["params"]);
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => answer(
            id,
            &json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}, "resources": {}},
                "serverInfo": {"name": "listed", "version": "1.2.3"},
            }),
        ),
        "tools/list" => {
            let Ok(tools) = fs::read_to_string(path) else { exit(4) };
            answer(id, &json!({"tools": serde_json::from_str::<Value>(&tools).unwrap()}));
        }
        "tools/call" => call(id, params),
        "ping" => answer(id, &json!({})),
        "resources/list" => list(id, params, "resources", "uri"),
        "resources/templates/list" => list(id, params, "resourceTemplates", "uriTemplate"),
        "resources/read" => read(id, params["uri"].as_str().unwrap()),
        "notifications/initialized" | "notifications/cancelled" => {}
        _ => send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})),
    }
}

fn call(id: &Value, params: &Value) {
    let text = |text: &str| json!({"type": "text", "text": text});
    match params["name"].as_str().unwrap() {
        "change" => {
            send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            answer(id, &json!({"content": [text("changed")]}));
        }
        "fail" => answer(id, &json!({"content": [text("it\u{1b}[31m broke")], "isError": true})),
        "hang" => {}
        "progress" => {
            let token = &params["_meta"]["progressToken"];
            let progress =
                json!({"progressToken": token, "progress": 1, "total": 2, "message": "half\u{7}\nway"});
            send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
            answer(id, &json!({"content": [text("done")]}));
        }
        "structured" => {
            let value = json!({"sum": 3});
            answer(id, &json!({"content": [text(&value.to_string())], "structuredContent": value}));
        }
        "error" => {
            send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no\u{7}pe"}}))
        }
        "die" => exit(9),
        _ => answer(id, &json!({"content": [text(&params["arguments"].to_string())]})),
    }
}

/// Two pages of two entries; a cursor `loop` leads to itself.
fn list(id: &Value, params: &Value, member: &str, address: &str) {
    let entry = |number: u32| json!({"name": format!("r{number}"), address: format!("test://{number}")});
    let result = match params["cursor"].as_str() {
        None => json!({member: [entry(1), entry(2)], "nextCursor": "second"}),
        Some("loop") => json!({member: [entry(5)], "nextCursor": "loop"}),
        Some(_) => json!({member: [entry(3)]}),
    };
    answer(id, &result);
}

fn read(id: &Value, uri: &str) {
    let error = json!({"code": -32002, "message": "not there"});
    match uri {
        "test://1" => {
            answer(id, &json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "one"}]}))
        }
        "test://2" => answer(id, &json!({"contents": [{"uri": uri, "blob": "AAAA"}]})),
        _ => send(&json!({"jsonrpc": "2.0", "id": id, "error": error})),
    }
}

fn answer(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn send(message: &Value) {
    let mut output = std::io::stdout().lock();
    // The client may have closed the pipe.
    if writeln!(output, "{message}").and_then(|()| output.flush()).is_err() {
        exit(0);
    }
}
