//! Calls of remote tools.

use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    outcome::Facts,
    remote::{RemoteCall, ServerReach, ToolApprovalMode, ToolHints},
    report::{RemoteReport, ToolReport},
    tool::ErrorKind,
};

use windlass_mcp::pool::{RemoteError, RemoteToolCall};

use crate::{RunningCall, TestHome, echo, run, run_in, text};

fn named(name: &str) -> serde_json::Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_passes_its_arguments_and_declares_its_effects() {
    let home = TestHome::new();
    let mut tool = echo("Says it.\u{e0041}");
    tool["inputSchema"] = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
    tool["annotations"] = json!({"readOnlyHint": true, "openWorldHint": false});
    home.set_tools("s", &json!([tool]));
    let keys = json!({"network": true, "trusted": true, "tools": {"echo": {"approval_mode": "prompt"}}});
    let session = home.session(&["s"], &keys);
    session.listed().await;
    let tool = session.tool("mcp__s__echo");
    assert_eq!(tool.spec().unwrap().description, "Says it.");
    let parsed = tool.clone().prepare(&windlass_contract::Input::Json("{\"a\": 1}".into())).unwrap();
    let hints = ToolHints { read_only: Some(true), open_world: Some(false), ..ToolHints::default() };
    let effects = windlass_contract::Effects::remote(RemoteCall {
        server: "s".into(),
        tool: "echo".into(),
        reach: ServerReach::Outside,
        hints,
        trusted: true,
        approval: ToolApprovalMode::Prompt,
    });
    assert_eq!(parsed.effects(), effects);
    let output = run(&tool, &json!({"a": 1})).await.unwrap();
    assert_eq!(text(&output), "{\"a\":1}");
    assert_eq!(output.facts, Facts::Remote(RemoteReport { output_bytes: 7, ..RemoteReport::default() }));
    session.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_failures_and_progress_are_mapped() {
    let home = TestHome::new();
    home.set_tools(
        "s",
        &json!([named("fail"), named("structured"), named("progress"), named("error"), named("die")]),
    );
    let session = home.session(&["s"], &json!({}));
    session.listed().await;
    let tool = |name: &str| session.tool(&format!("mcp__s__{name}"));

    let failed = run(&tool("fail"), &json!({})).await.unwrap();
    assert!(matches!(failed.facts, Facts::Remote(RemoteReport { failed: true, .. })));
    let structured = run(&tool("structured"), &json!({})).await.unwrap();
    assert_eq!(text(&structured), "{\"sum\":3}");
    assert_eq!(structured.data, Some(ToolReport::Json(json!({"sum": 3}))));

    let running = RunningCall::default();
    run_in(&tool("progress"), &json!({}), &running).await.unwrap();
    let events = running.events.0.lock().unwrap().clone();
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["id"], &events[0]["message"]), (&json!("call_1"), &json!("half way")));

    let refused = run(&tool("error"), &json!({})).await.unwrap_err();
    assert_eq!(refused.message, "MCP server `s` answered with error -32602: nope");
    let died = run(&tool("die"), &json!({})).await.unwrap_err();
    assert!(died.message.contains("ended during the call"), "{died}");
    session.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_can_be_cancelled_and_has_the_time_limit_of_its_server() {
    let home = TestHome::new();
    home.set_tools("s", &json!([named("hang")]));
    home.set_tools("t", &json!([named("hang")]));
    let servers = [("s", json!({})), ("t", json!({"tool_timeout_sec": 0.2}))];
    let servers = servers.iter().map(|(name, keys)| ((*name).to_owned(), home.config(name, keys)));
    let session = home.session_with(servers.collect());
    session.listed().await;
    let running = RunningCall::default();
    let tool = session.tool("mcp__s__hang");
    let in_flight = || session.pool.status()[0].calls_in_flight;
    let cancelling = async {
        while in_flight() == 0 {
            tokio::task::yield_now().await;
        }
        running.cancel.cancel();
    };
    let arguments = json!({});
    let (result, ()) = tokio::join!(run_in(&tool, &arguments, &running), cancelling);
    assert_eq!(result.unwrap_err().kind, ErrorKind::Cancelled);
    let late = run(&session.tool("mcp__t__hang"), &json!({})).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::TimedOut);
    session.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_checked_before_a_restart_is_not_sent_to_other_tools() {
    let home = TestHome::new();
    home.set_tools("s", &json!([named("die"), named("other")]));
    let session = home.session(&["s"], &json!({}));
    let checked = session.pool.start("s").await.unwrap();
    let (arguments, cancel) = (Map::new(), CancellationToken::new());
    let die = || RemoteToolCall {
        server: "s",
        tool: "die",
        arguments: &arguments,
        progress: &|_| {},
        elicitor: None,
        cancel: &cancel,
    };
    let died = session.pool.call_listed(die(), &checked).await;
    assert!(matches!(died, Err(RemoteError::Died { .. })), "{died:?}");
    // It is the same list after a restart, so the call is sent.
    let died = session.pool.call_listed(die(), &checked).await;
    assert!(matches!(died, Err(RemoteError::Died { .. })), "{died:?}");
    home.set_tools("s", &json!([named("other")]));
    let refused = session.pool.call_listed(die(), &checked).await;
    assert!(matches!(refused, Err(RemoteError::Relisted { .. })), "{refused:?}");
    assert_eq!(session.pool.status()[0].restarts, 2);
    session.close().await;
}
