//! The tools for resources.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_contract::{AnyTool, Input, remote::ServerReach};

use crate::{TestHome, TestSession, echo, run, text};

fn tool(session: &TestSession, name: &str) -> Arc<dyn AnyTool> {
    session.tools.resource_tools().into_iter().find(|tool| tool.name().as_str() == name).unwrap()
}

async fn said(session: &TestSession, name: &str, arguments: Value) -> Result<Value, String> {
    let output = run(&tool(session, name), &arguments).await.map_err(|error| error.message)?;
    Ok(serde_json::from_str(&text(&output)).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_of_all_servers_are_listed_with_all_pages() {
    let home = TestHome::new();
    for server in ["b", "c"] {
        home.set_tools(server, &json!([echo("Says it.")]));
    }
    let session = home.session(&["c", "a", "b"], &json!({}));
    let list = said(&session, "list_mcp_resources", json!({"server": " "})).await.unwrap();
    let addresses: Vec<_> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{}{}", entry["server"].as_str().unwrap(), entry["uri"].as_str().unwrap()))
        .collect();
    assert_eq!(addresses, ["btest://1", "btest://2", "btest://3", "ctest://1", "ctest://2", "ctest://3"]);
    assert_eq!(list.get("nextCursor"), None);
    assert_eq!(list["errors"][0]["server"], "a");
    assert!(list["errors"][0]["error"].as_str().unwrap().starts_with("resources/list failed: "));
    session.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_is_listed_page_by_page_and_read() {
    let home = TestHome::new();
    home.set_tools("s", &json!([]));
    let session = home.session(&["s"], &json!({}));
    let first = said(&session, "list_mcp_resource_templates", json!({"server": "s"})).await.unwrap();
    let entry = |number: u32| json!({"server": "s", "name": format!("r{number}"), "uriTemplate": format!("test://{number}")});
    let expected = json!({"server": "s", "resourceTemplates": [entry(1), entry(2)], "nextCursor": "second"});
    assert_eq!(first, expected);
    let next = json!({"server": "s", "cursor": "second"});
    let second = said(&session, "list_mcp_resource_templates", next).await.unwrap();
    assert_eq!(second, json!({"server": "s", "resourceTemplates": [entry(3)]}));
    let read = said(&session, "read_mcp_resource", json!({"server": "s", "uri": "test://1"})).await.unwrap();
    let contents = json!([{"uri": "test://1", "mimeType": "text/plain", "text": "one"}]);
    assert_eq!(read, json!({"server": "s", "uri": "test://1", "contents": contents}));
    session.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_and_failures_are_explained() {
    let home = TestHome::new();
    home.set_tools("s", &json!([]));
    let session = home.session(&["s"], &json!({}));
    for (name, arguments, problem) in [
        ("list_mcp_resources", json!({"cursor": "x"}), "cursor can only be used when a server is specified"),
        ("read_mcp_resource", json!({"uri": "x"}), "server must be provided"),
        ("read_mcp_resource", json!({"server": "s", "uri": " "}), "uri must be provided"),
        ("list_mcp_resources", json!({"server": "t"}), "resources/list failed: there is no MCP server `t`"),
        (
            "list_mcp_resources",
            json!({"server": "s", "cursor": "loop"}),
            "resources/list failed: the server repeats a cursor",
        ),
        (
            "read_mcp_resource",
            json!({"server": "s", "uri": "x"}),
            "resources/read failed: MCP server `s` answered with error -32002: not there",
        ),
    ] {
        assert_eq!(said(&session, name, arguments).await.unwrap_err(), problem);
    }
    session.close().await;
}

#[tokio::test]
async fn texts_of_the_model_reach_a_server_only_as_a_declared_effect() {
    let home = TestHome::new();
    let session = home.session(&["s"], &json!({"network": true}));
    let remote = |name: &str, arguments: Value| {
        let parsed = tool(&session, name).prepare(&Input::Json(arguments.to_string())).unwrap();
        parsed.effects().remote
    };
    assert_eq!(remote("list_mcp_resources", json!({})), None);
    assert_eq!(remote("list_mcp_resources", json!({"server": "s"})), None);
    let page = remote("list_mcp_resources", json!({"server": "s", "cursor": "x"})).unwrap();
    let read = remote("read_mcp_resource", json!({"server": "s", "uri": "x"})).unwrap();
    assert_eq!([page.tool.as_str(), read.tool.as_str()], ["resources/list", "resources/read"]);
    assert!(read.reach == ServerReach::Outside && read.may_change());
    assert!(home.session(&[], &json!({})).tools.resource_tools().is_empty());
}
