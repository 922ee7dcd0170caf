//! `windlass mcp gateway` as a client sees it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::support::{FOREVER, McpClient, User, accept, lines, text};

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

/// A server whose tools do what only bad or demanding servers do.
const ODD_SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      tools=
      for name in leak flood measure ask; do
        tools="$tools{\"name\":\"$name\",\"description\":\"Tests how to $name.\",\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\",\"properties\":{\"depth\":{\"type\":\"number\"}},\"required\":[\"depth\"]}},"
      done
      say "{\"tools\":[${tools%,}]}" ;;
    *'"name":"leak"'*)
      say '{"content":[{"type":"text","text":"the key is ghp_'"$PART$PART$PART$PART"'"}],"structuredContent":{"depth":1,"key":"ghp_'"$PART$PART$PART$PART"'"}}' ;;
    *'"name":"flood"'*)
      flood=$(head -c 5000000 /dev/zero | tr '\0' w)
      say '{"content":[{"type":"text","text":"'"$flood"'"}],"structuredContent":{"depth":1,"text":"'"$flood"'"}}' ;;
    *'"name":"measure"'*)
      say '{"content":[{"type":"text","text":"deep"}],"structuredContent":{"depth":42}}' ;;
    *'"name":"ask"'*)
      echo '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Which harbor?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}}}'
      IFS= read -r answer
      case $answer in
        *'"accept"'*north*) say '{"content":[{"type":"text","text":"they said north"}]}' ;;
        *'"decline"'*) say '{"content":[{"type":"text","text":"they declined"}]}' ;;
        *) say '{"content":[{"type":"text","text":"no answer"}]}' ;;
      esac ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id" ;;
  esac
done
"#;

/// A user with the odd server, whose calls need no approval.
fn odd_user() -> User {
    let user = User::new();
    let script = user.file("odd.sh", ODD_SERVER);
    let part = "PART=aB3dE5gH7";
    let words = ["mcp", "add", "odd", "--approval-mode", "approve", "--env", part, "--", "sh", &script];
    user.run(&words).assert_code(0);
    user
}

#[test]
fn secrets_and_floods_of_servers_do_not_pass_the_gateway() {
    let user = odd_user();
    let mut client = McpClient::start_command(&user, &["mcp", "gateway"], None, None);
    let leaked = client.call("mcp__odd__leak", &json!({}));
    assert!(text(&leaked).contains("the key is") && leaked["isError"] == json!(false), "{leaked}");
    assert!(!leaked.to_string().contains("aB3dE5gH7"), "{leaked}");
    assert_eq!(leaked["structuredContent"]["depth"], 1, "{leaked}");
    let flood = client.call("mcp__odd__flood", &json!({}));
    assert!(flood.to_string().len() < 100_000, "{}", flood.to_string().len());
    assert_eq!((&flood["isError"], &flood["structuredContent"]), (&json!(false), &Value::Null));
}

#[test]
fn data_of_servers_passes_the_gateway_and_no_schema_promises_it() {
    let user = odd_user();
    let mut client = McpClient::start_command(&user, &["mcp", "gateway"], None, None);
    let listed = client.request("tools/list", &json!({}), None);
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 4, "{listed}");
    assert!(tools.iter().all(|tool| tool["outputSchema"].is_null()), "{listed}");
    let measured = client.call("mcp__odd__measure", &json!({}));
    assert_eq!(measured["structuredContent"], json!({"depth": 42}), "{measured}");
}

#[test]
fn questions_of_servers_reach_the_client_that_called() {
    let user = odd_user();
    let north = accept(&json!("north"));
    let mut client = McpClient::start_command(&user, &["mcp", "gateway"], Some(north), None);
    assert_eq!(text(&client.call("mcp__odd__ask", &json!({}))), "they said north");
    let [question] = client.asked.as_slice() else { panic!("{:?}", client.asked) };
    assert_eq!(question["message"], "The MCP server `odd` asks: Which harbor?");
    drop(client);
    let mut client = McpClient::start_command(&user, &["mcp", "gateway"], None, None);
    assert_eq!(text(&client.call("mcp__odd__ask", &json!({}))), "they declined");
}

#[test]
fn many_tools_are_found_and_called_by_name() {
    let user = odd_user();
    let words = ["mcp", "gateway", "--search", "always", "--tools", "*measure,*leak"];
    let mut client = McpClient::start_command(&user, &words, None, None);
    assert_eq!(client.tools(), ["tool_search", "call_tool"]);
    let found = client.call("tool_search", &json!({"query": "measure"}));
    let shown = found.to_string();
    assert!(shown.contains("mcp__odd__measure") && shown.contains("inputSchema"), "{found}");
    assert!(!shown.contains("mcp__odd__flood"), "{found}");
    let direct = client.call("mcp__odd__measure", &json!({}));
    let wrapped = client.call("call_tool", &json!({"name": "mcp__odd__measure", "arguments": {}}));
    assert_eq!(direct["structuredContent"], json!({"depth": 42}), "{direct}");
    assert_eq!(wrapped, direct);
    for name in ["mcp__odd__flood", "call_tool", "none"] {
        let unknown = client.call("call_tool", &json!({"name": name}));
        assert!(text(&unknown).contains("there is no tool"), "{name}: {unknown}");
    }
    let hidden = client.request("tools/call", &json!({"name": "mcp__odd__flood"}), None);
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
}

/// Adds settings to those of the servers.
fn configure_more(user: &User, toml: &str) {
    let file = user.home().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}\n{toml}")).unwrap();
}

/// A running gateway, ended at the latest with the test.
struct RunningGateway(Child);

impl Drop for RunningGateway {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Sends a message over HTTP, and returns the whole answer.
fn post(address: &str, token: &str, session: Option<&str>, message: &Value) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(FOREVER)).unwrap();
    let body = message.to_string();
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{session}\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Opens a session over HTTP; returns the answer of a server that refuses it.
fn open_session(address: &str, token: &str) -> Result<String, String> {
    let info = json!({"name": "another", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let answer = post(address, token, None, &message);
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.ok_or_else(|| answer.clone())?.to_owned();
    post(address, token, Some(&id), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    Ok(id)
}

#[test]
fn each_client_has_its_token_its_tools_and_its_records() {
    let user = odd_user();
    configure_more(
        &user,
        "[mcp_gateway.clients.ci]\ntoken_env_var = \"CI_TOKEN\"\ntools = [\"*measure\", \"*leak\"]\n\
         deny = [\"*leak\"]\n[mcp_gateway.clients.desk]\ntoken_env_var = \"DESK_TOKEN\"\n",
    );
    let (ci, desk) = ("c".repeat(32), "d".repeat(32));
    let words = ["mcp", "gateway", "--http", "127.0.0.1:0"];
    let mut command = user.program(&words);
    command.env("CI_TOKEN", &ci).env("DESK_TOKEN", &desk);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut gateway = RunningGateway(child);
    let notes = BufReader::new(gateway.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = notes.into_iter().find_map(|line| {
        let (_, url) = line.split_once("serving on http://")?;
        Some(url.trim_end_matches("/mcp").to_owned())
    });
    let address = address.unwrap();
    let unknown = open_session(&address, &"x".repeat(32)).unwrap_err();
    assert!(unknown.starts_with("HTTP/1.1 401"), "{unknown}");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let call = |tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})
    };
    let narrow = open_session(&address, &ci).unwrap();
    let listed = post(&address, &ci, Some(&narrow), &list);
    assert!(listed.contains("mcp__odd__measure") && !listed.contains("mcp__odd__leak"), "{listed}");
    assert!(!listed.contains("mcp__odd__flood"), "{listed}");
    assert!(post(&address, &ci, Some(&narrow), &call("mcp__odd__measure")).contains("42"));
    for hidden in ["mcp__odd__leak", "mcp__odd__flood"] {
        let refused = post(&address, &ci, Some(&narrow), &call(hidden));
        assert!(refused.contains("there is no tool"), "{refused}");
    }
    let wide = open_session(&address, &desk).unwrap();
    assert!(post(&address, &desk, Some(&wide), &call("mcp__odd__leak")).contains("the key is"));
    // A session belongs to its token.
    let stolen = post(&address, &ci, Some(&wide), &call("mcp__odd__leak"));
    assert!(!stolen.contains("the key is"), "{stolen}");
    drop(gateway);
    let history = lines(&user.run(&["history", "--json"]).stdout);
    let client = |call: &Value| {
        let id = call["id"].as_str().unwrap().rsplit_once('_').unwrap().0.to_owned();
        (id, call["tool"].as_str().unwrap().to_owned())
    };
    let calls: Vec<_> = history.iter().map(client).collect();
    let call = |id: &str, tool: &str| (id.to_owned(), tool.to_owned());
    assert_eq!(calls, [call("mcp_desk", "mcp__odd__leak"), call("mcp_ci", "mcp__odd__measure")]);
    let sessions = user.run(&["sessions", "list"]).stdout;
    assert!(sessions.contains("MCP client ci") && sessions.contains("MCP client desk"), "{sessions}");
}

#[test]
fn clients_with_the_same_token_or_none_are_errors() {
    let user = odd_user();
    configure_more(
        &user,
        "[mcp_gateway.clients.a]\ntoken_env_var = \"ONE\"\n[mcp_gateway.clients.b]\ntoken_env_var = \"TWO\"\n",
    );
    let start = |two: &str| {
        let mut command = user.program(&["mcp", "gateway", "--http", "127.0.0.1:0"]);
        let ended = command.env("ONE", "o".repeat(32)).env("TWO", two).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(start(&"o".repeat(32)).contains("`a` has the same token"));
    assert!(start("").contains("the variable `TWO` has no token"));
    assert!(start("short").contains("at least 32 characters"));
}
