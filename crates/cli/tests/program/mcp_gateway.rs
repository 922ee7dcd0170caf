//! `windlass mcp gateway` as a client sees it.

use serde_json::{Value, json};

use crate::support::{McpClient, User, accept, text};

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
