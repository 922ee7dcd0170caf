//! Tests of a server on pipes, with the client of `rmcp` in both generations of the protocol.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        ProgressNotificationParam, ProtocolVersion,
    },
    service::{
        NotificationContext, PeerRequestOptions, RequestContext, RoleClient, RunningService, ServiceError,
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::timeout,
};
use windlass_contract::{
    elicitation::{Asker, Elicitation, ElicitationForm},
    remote::ToolHints,
};

use super::*;
use crate::result::RemoteContent;

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Tools for tests: `echo`, `ask` (a question, then its answer), `steps` (progress) and `wait`
/// (until it is cancelled).
#[derive(Default)]
pub(super) struct TestTools {
    pub(super) asked: AtomicUsize,
    pub(super) waiting: AtomicUsize,
    pub(super) started: Notify,
    pub(super) cancelled: Notify,
}

fn text(text: impl Into<String>) -> RemoteResult {
    let content = vec![RemoteContent::Text { text: text.into() }];
    RemoteResult { content, ..RemoteResult::default() }
}

fn question() -> Elicitation {
    let choices = json!({"type": "string", "enum": ["yes", "no"]});
    let schema = json!({"type": "object", "properties": {"answer": choices}, "required": ["answer"]});
    let form = ElicitationForm::Fields { schema };
    Elicitation { asker: Asker::Agent, message: "May it run?".into(), form }
}

impl ServedTools for TestTools {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity { name: "test".into(), version: "1".into(), ..ServerIdentity::default() }
    }

    fn tools(&self) -> Vec<RemoteToolDefinition> {
        let tools = ["ask", "echo", "steps", "wait"].map(|name| RemoteToolDefinition {
            name: name.into(),
            title: None,
            description: Some("A tool.".into()),
            input_schema: json!({"type": "object"}).as_object().cloned().unwrap_or_default(),
            output_schema: None,
            hints: ToolHints { read_only: Some(name == "echo"), ..ToolHints::default() },
        });
        tools.into()
    }

    fn call(&self, call: ServedCall) -> BoxFuture<'_, RemoteResult> {
        Box::pin(async move {
            match call.tool.as_str() {
                "echo" => {
                    let structured = Some(json!(call.arguments));
                    RemoteResult { structured_content: structured, ..text(json!(call.arguments).to_string()) }
                }
                "ask" => {
                    self.asked.fetch_add(1, Ordering::SeqCst);
                    let Some(elicitor) = call.elicitor else { return RemoteResult::failed("nobody to ask") };
                    text(format!("{:?}", elicitor.elicit(&question()).await))
                }
                "steps" => {
                    for (progress, message) in [(1.0, "one"), (2.0, "two"), (2.0, "no advance")] {
                        let message = Some(message.to_owned());
                        call.progress.report(RemoteProgress { progress, total: Some(2.0), message });
                    }
                    text("done")
                }
                _ => {
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    self.started.notify_one();
                    call.cancel.cancelled().await;
                    self.cancelled.notify_one();
                    RemoteResult::failed("cancelled")
                }
            }
        })
    }
}

/// A client that gives the same answer to every question.
pub(super) struct TestClient {
    answer: Option<Value>,
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
}

impl ClientHandler for TestClient {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        let can_ask = self.answer.is_some();
        info.capabilities = ClientCapabilities::default();
        info.capabilities.elicitation = can_ask.then(ElicitationCapability::default);
        info
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let mut result = ElicitResult::new(ElicitationAction::Accept);
        result.content.clone_from(&self.answer);
        Ok(result)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.send(params).unwrap();
    }
}

struct Connected {
    client: RunningService<RoleClient, TestClient>,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    serving: JoinHandle<Result<(), stdio::StdioServeError>>,
    server: ToolServer,
}

fn generations() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

async fn connect(
    tools: &Arc<TestTools>,
    limits: ServeLimits,
    answer: Option<Value>,
    mode: ClientLifecycleMode,
) -> Connected {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let server = ToolServer::new(Arc::clone(tools) as Arc<dyn ServedTools>, limits);
    let handler = server.clone();
    let serving = tokio::spawn(async move {
        let stop = CancellationToken::new();
        stdio::serve_pipes(handler, input, output, limits.max_message_bytes, &stop).await
    });
    let (sender, progress) = mpsc::unbounded_channel();
    let client = TestClient { answer, progress: sender };
    let client = client.serve_with_lifecycle(theirs, mode).await.unwrap();
    Connected { client, progress, serving, server }
}

fn request(tool: &'static str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
}

fn text_of(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect()
}

#[tokio::test]
async fn both_generations_list_and_call_tools() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let connected = connect(&tools, ServeLimits::default(), None, mode).await;
        let listed = connected.client.list_all_tools().await.unwrap();
        let names: Vec<_> = listed.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["ask", "echo", "steps", "wait"]);
        assert_eq!(listed[1].annotations.as_ref().unwrap().read_only_hint, Some(true));
        let mut call = request("echo");
        call.arguments = json!({"a": 1}).as_object().cloned();
        let result = connected.client.call_tool(call).await.unwrap();
        assert_eq!(result.structured_content, Some(json!({"a": 1})));
        assert_eq!(text_of(&result), r#"{"a":1}"#);
        let unknown = connected.client.call_tool(request("none")).await.unwrap_err();
        assert!(unknown.to_string().contains("there is no tool `none`"), "{unknown}");
        connected.client.cancel().await.unwrap();
        timeout(PATIENCE, connected.serving).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_question_reaches_the_person_once_and_the_call_runs_once() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let answer = Some(json!({"answer": "yes"}));
        let connected = connect(&tools, ServeLimits::default(), answer, mode).await;
        let result = connected.client.call_tool(request("ask")).await.unwrap();
        assert_eq!(text_of(&result), r#"Accept(Object {"answer": String("yes")})"#);
        assert_eq!(tools.asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn an_answer_of_the_wrong_form_is_a_refusal() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let connected = connect(&tools, ServeLimits::default(), Some(json!([1, "yes"])), mode).await;
        let result = connected.client.call_tool(request("ask")).await.unwrap();
        assert_eq!(text_of(&result), "Decline");
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_gives_no_elicitor() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let connected = connect(&tools, ServeLimits::default(), None, mode).await;
        let result = connected.client.call_tool(request("ask")).await.unwrap();
        assert_eq!((text_of(&result).as_str(), result.is_error), ("nobody to ask", Some(true)));
    }
}

#[tokio::test]
async fn a_repeated_request_continues_its_own_call_only() {
    let tools = Arc::new(TestTools::default());
    let answer = Some(json!({"answer": "yes"}));
    let [_, modern] = generations();
    let connected = connect(&tools, ServeLimits::default(), answer, modern).await;
    let first = connected.client.call_tool_once(request("ask")).await.unwrap();
    let rmcp::model::CallToolResponse::InputRequired(required) = first else { panic!("{first:?}") };
    let state = required.request_state.unwrap();
    let repeated = |tool, state: &str, arguments: Value| {
        let mut call = request(tool);
        call.request_state = Some(state.to_owned());
        call.arguments = arguments.as_object().cloned();
        call
    };
    let other_tool = connected.client.call_tool_once(repeated("echo", &state, Value::Null)).await;
    assert!(other_tool.unwrap_err().to_string().contains("belongs to another call"));
    let other = connected.client.call_tool_once(repeated("ask", &state, json!({"a": 1}))).await;
    assert!(other.unwrap_err().to_string().contains("belongs to another call"));
    let guessed = connected.client.call_tool_once(repeated("ask", "00", Value::Null)).await;
    assert!(guessed.unwrap_err().to_string().contains("belongs to no waiting call"));
    // Without an answer the question is declined.
    let own = connected.client.call_tool_once(repeated("ask", &state, Value::Null)).await.unwrap();
    let rmcp::model::CallToolResponse::Complete(result) = own else { panic!("{own:?}") };
    assert_eq!(text_of(&result), "Decline");
    let again = connected.client.call_tool_once(repeated("ask", &state, Value::Null)).await;
    assert!(again.unwrap_err().to_string().contains("belongs to no waiting call"));
    assert_eq!(tools.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn progress_is_reported_while_it_advances() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let mut connected = connect(&tools, ServeLimits::default(), None, mode).await;
        connected.client.call_tool(request("steps")).await.unwrap();
        let mut reported = Vec::new();
        for _ in 0..2 {
            let step = timeout(PATIENCE, connected.progress.recv()).await.unwrap().unwrap();
            reported.push((step.progress, step.total, step.message.unwrap()));
        }
        assert_eq!(reported, [(1.0, Some(2.0), "one".into()), (2.0, Some(2.0), "two".into())]);
        assert!(connected.progress.try_recv().is_err());
    }
}

#[tokio::test]
async fn a_cancelled_request_cancels_its_call() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let connected = connect(&tools, ServeLimits::default(), None, mode).await;
        let call = ClientRequest::CallToolRequest(CallToolRequest::new(request("wait")));
        let options = PeerRequestOptions::no_options();
        let handle = connected.client.send_cancellable_request(call, options).await.unwrap();
        timeout(PATIENCE, tools.started.notified()).await.unwrap();
        handle.cancel(None).await.unwrap();
        timeout(PATIENCE, tools.cancelled.notified()).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_disappears_cancels_its_calls() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let connected = connect(&tools, ServeLimits::default(), None, mode).await;
        let call = ClientRequest::CallToolRequest(CallToolRequest::new(request("wait")));
        let options = PeerRequestOptions::no_options();
        let _handle = connected.client.send_cancellable_request(call, options).await.unwrap();
        timeout(PATIENCE, tools.started.notified()).await.unwrap();
        drop(connected.client);
        timeout(PATIENCE, tools.cancelled.notified()).await.unwrap();
        timeout(PATIENCE, connected.serving).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_thousand_calls_are_bounded() {
    for mode in generations() {
        let tools = Arc::new(TestTools::default());
        let limits = ServeLimits { max_running_calls: 4, max_waiting_calls: 12, ..ServeLimits::default() };
        let connected = connect(&tools, limits, None, mode).await;
        let calls = (0..1000).map(|_| {
            let peer = connected.client.peer().clone();
            tokio::spawn(async move { peer.call_tool(request("wait")).await })
        });
        let calls: Vec<JoinHandle<Result<CallToolResult, ServiceError>>> = calls.collect();
        let mut refused = 0;
        let (sender, mut ended) = mpsc::unbounded_channel();
        for call in calls {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(call.await.unwrap()) });
        }
        while refused < 984 {
            let result = timeout(PATIENCE, ended.recv()).await.unwrap().unwrap().unwrap();
            assert!(text_of(&result).contains("16 calls in progress"), "{result:?}");
            refused += 1;
        }
        assert!(tools.waiting.load(Ordering::SeqCst) <= 4);
        timeout(PATIENCE, connected.server.shut_down()).await.unwrap();
        for _ in 0..16 {
            let result = timeout(PATIENCE, ended.recv()).await.unwrap().unwrap().unwrap();
            assert_eq!(result.is_error, Some(true));
        }
    }
}
