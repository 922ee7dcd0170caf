//! One recorded session of calls by clients.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::sync::RwLock;
use windlass::{
    AgentBuilder, BoxFuture, Input, ModelClient, ModelError, ModelInfo, ModelStream, Outcome, Prompt, Reason,
    SpecKind, Stop, ToolCall, Toolbox,
    mcp::{result::RemoteResult, serve::ServedCall},
};

use super::{
    client_questions::ClientApprover,
    live_calls::{ClientEvents, LiveCall, LiveCalls},
};
use crate::{
    problem::{CliProblem, chain},
    user_tools,
};

/// The session of all clients with the same roots.
pub(crate) struct ServedSession {
    pub(crate) toolbox: Arc<Toolbox>,
    calls: Arc<LiveCalls>,
    order: Arc<RwLock<()>>,
}

impl ServedSession {
    /// Returns a toolbox that records nothing, for the list of tools.
    pub(crate) fn toolbox(builder: AgentBuilder, cwd: &Path) -> Result<Toolbox, CliProblem> {
        // The descriptions say that there is a person to ask.
        let approver = ClientApprover::new(&Arc::default(), cwd);
        let toolbox = builder.approver(Arc::new(approver)).toolbox();
        let toolbox = toolbox.map_err(|errors| CliProblem::usage(errors.to_string()))?;
        user_tools::report_quarantined(toolbox.registry.quarantined());
        Ok(toolbox)
    }

    /// Starts a session of an agent that works in a directory.
    pub(crate) fn start(
        builder: AgentBuilder,
        cwd: &Path,
        client: Option<&str>,
        calls: &Arc<LiveCalls>,
    ) -> Result<Self, CliProblem> {
        let calls = Arc::clone(calls);
        let builder = builder
            .approver(Arc::new(ClientApprover::new(&calls, cwd)))
            .events(Arc::new(ClientEvents(Arc::clone(&calls))));
        let agent = builder.build().map_err(|error| CliProblem::failed(chain(&error)))?;
        let toolbox = Arc::clone(agent.toolbox());
        let name = client.unwrap_or("a client");
        let opening = toolbox.record_message(&format!("calls of the MCP client {name}"));
        opening.map_err(|error| CliProblem::failed(chain(&error)))?;
        crate::note(&format!("calls are recorded in session {}", agent.thread()));
        Ok(Self { toolbox, calls, order: Arc::default() })
    }

    /// Runs a call through the whole pipeline. It is recorded to its end even if it is cancelled.
    /// Its outcome is written for the client by `form`.
    pub(crate) async fn call(&self, asked: ServedCall, form: fn(&Outcome) -> RemoteResult) -> RemoteResult {
        let stop = Stop::default();
        // Tools of servers may have joined since the last call.
        self.toolbox.registry.join_new();
        let call = self.tool_call(&asked);
        let prepared = self.toolbox.prepare(call.clone());
        let live = LiveCall::new(asked.elicitor, asked.progress, &self.order, prepared.may_overlap());
        let live = Arc::new(live);
        let _registered = self.calls.add(&call.id, Arc::clone(&live));
        tokio::select! {
            () = live.take_place() => {}
            () = asked.cancel.cancelled() => return RemoteResult::failed("the call was cancelled"),
        }
        self.toolbox.record_call(&call);
        let mut run = std::pin::pin!(self.toolbox.run(prepared, &stop));
        let finished = tokio::select! {
            finished = &mut run => finished,
            () = asked.cancel.cancelled() => {
                stop.stop(Reason::Interrupted);
                run.await
            }
        };
        live.leave_place();
        form(&finished.outcome)
    }

    fn tool_call(&self, asked: &ServedCall) -> ToolCall {
        let tool = self.toolbox.registry.find(&asked.tool);
        let freeform = tool.is_some_and(|tool| matches!(tool.spec.kind, SpecKind::Custom { .. }));
        let text = asked.arguments.get("input").and_then(|input| input.as_str());
        let input = match text {
            Some(text) if freeform => Input::Text(text.to_owned()),
            _ => Input::Json(serde_json::Value::Object(asked.arguments.clone()).to_string()),
        };
        ToolCall {
            id: self.calls.new_id(asked.client.name.as_deref()),
            name: asked.tool.as_str().into(),
            input,
        }
    }
}

/// The client in the place of a model: it calls tools by itself, and is never asked.
pub(crate) struct OutsideCaller(ModelInfo);

impl OutsideCaller {
    /// Creates a caller that is known as a client.
    pub(crate) fn new() -> Self {
        Self::named("client")
    }

    /// Creates the caller of a client, whose name is recorded as that of a model is.
    pub(crate) fn named(client: &str) -> Self {
        Self(ModelInfo {
            provider: "mcp".to_owned(),
            model: client.to_owned(),
            wire: "builtin",
            request_retries: 0,
            stream_retries: 0,
            retry_budget: Duration::ZERO,
        })
    }
}

impl ModelClient for OutsideCaller {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn open<'a>(&'a self, _prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let (provider, problem) = (self.0.provider.clone(), "a client asks, it is not asked".to_owned());
        Box::pin(async { Err(ModelError::Provider { provider, problem }) })
    }
}
