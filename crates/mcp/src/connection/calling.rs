//! Calls of tools and other exchanges: their time limit, progress and cancellation, and the rounds
//! of a request that needs input.

use std::{sync::Arc, time::Duration};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ElicitRequestParams, ElicitationAction, ErrorCode,
    ErrorData, InputRequest, InputRequests, InputResponses, ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{ServerConnection, call_clock::CallClock, conversion, running_calls::InFlightCall};
use crate::{
    pool::{RemoteError, RemoteProgress, RemoteToolCall},
    result::RemoteResult,
};

/// Maximum number of times that a request is sent again with the input it asked for.
pub(super) const MAX_INPUT_ROUNDS: usize = 8;
/// Error of a request that a server carries out only after a page was opened.
const PAGE_REQUIRED: ErrorCode = ErrorCode(-32042);
/// Maximum number of inputs that one answer asks for.
const MAX_INPUTS: usize = 16;
/// Time before a request is sent again that asked for nothing.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Everything that belongs to one call of ours, however many requests it takes.
pub(super) struct CallScope<'a> {
    pub(super) running: &'a Arc<InFlightCall>,
    pub(super) clock: CallClock<'a>,
    pub(super) cancel: &'a CancellationToken,
    pub(super) progress: &'a (dyn Fn(RemoteProgress) + Send + Sync),
}

/// The input that the next request carries.
#[derive(Default)]
pub(super) struct RoundInput {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

impl ServerConnection {
    /// Calls a tool. Returns within two seconds after a cancellation or the time limit.
    pub(crate) async fn call(
        &self,
        call: &RemoteToolCall<'_>,
        limit: Duration,
    ) -> Result<RemoteResult, RemoteError> {
        let running = InFlightCall::new(call.elicitor.clone());
        let mut scope = CallScope {
            running: &running,
            clock: CallClock::new(limit, &running),
            cancel: call.cancel,
            progress: call.progress,
        };
        let request = |input: RoundInput| {
            let mut params = CallToolRequestParams::new(call.tool.to_owned());
            params.arguments = Some(call.arguments.clone());
            params.input_responses = input.responses;
            params.request_state = input.state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        match self.rounds(&mut scope, &request).await? {
            ServerResult::CallToolResult(result) => Ok(conversion::call_result(result)),
            ServerResult::CreateTaskResult(created) => self.follow_task(&mut scope, created.task).await,
            _ => Err(self.bad_answer("the answer is no result of a call")),
        }
    }

    /// Asks for something that is no call, at most for `limit`.
    pub(super) async fn ask(
        &self,
        request: impl Fn(RoundInput) -> ClientRequest + Sync,
        limit: Duration,
    ) -> Result<ServerResult, RemoteError> {
        let (running, cancel) = (InFlightCall::new(None), CancellationToken::new());
        let clock = CallClock::new(limit, &running);
        let mut scope = CallScope { running: &running, clock, cancel: &cancel, progress: &|_| {} };
        self.rounds(&mut scope, &request).await
    }

    /// Sends a request until it needs no more input. All of it is one call of ours.
    async fn rounds(
        &self,
        scope: &mut CallScope<'_>,
        request: &(impl Fn(RoundInput) -> ClientRequest + Sync),
    ) -> Result<ServerResult, RemoteError> {
        let mut input = RoundInput::default();
        for _ in 0..=MAX_INPUT_ROUNDS {
            match self.exchange_once(request(input), scope).await? {
                Ok(ServerResult::InputRequiredResult(required)) => {
                    let mut responses = None;
                    if let Some(requests) = required.input_requests {
                        responses = Some(self.inputs(scope, requests).await?);
                    } else {
                        sleep(RETRY_DELAY).await;
                    }
                    input = RoundInput { responses, state: required.request_state };
                }
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let refused = self.protocol_error(&error);
                    self.open_pages(scope, error).await?.then_some(()).ok_or(refused)?;
                    input = RoundInput::default();
                }
            }
        }
        Err(self.bad_answer(&format!("it asked for input more than {MAX_INPUT_ROUNDS} times")))
    }

    /// Asks a person to open the pages that a server of 2025-11-25 wants opened before it carries a
    /// request out. Returns false if the error is another one, or the person does not want to.
    async fn open_pages(&self, scope: &CallScope<'_>, error: ErrorData) -> Result<bool, RemoteError> {
        if error.code != PAGE_REQUIRED {
            return Ok(false);
        }
        let pages = error.data.and_then(|mut data| data.get_mut("elicitations").map(Value::take));
        let Ok(pages) = serde_json::from_value::<Vec<ElicitRequestParams>>(pages.unwrap_or_default()) else {
            return Ok(false);
        };
        for page in pages.iter().take(MAX_INPUTS) {
            let answer = tokio::select! {
                biased;
                answer = self.handler.ask(scope.running, page.clone()) => answer,
                () = scope.cancel.cancelled() => return Err(RemoteError::Cancelled),
                report = self.end.report() => return Err(report.error(&self.server)),
            };
            if answer.action != ElicitationAction::Accept {
                return Ok(false);
            }
        }
        Ok(!pages.is_empty() && pages.len() <= MAX_INPUTS)
    }

    /// Sends one request and waits for its answer. An error of the protocol is an error.
    pub(super) async fn exchange(
        &self,
        request: ClientRequest,
        scope: &mut CallScope<'_>,
    ) -> Result<ServerResult, RemoteError> {
        self.exchange_once(request, scope).await?.map_err(|error| self.protocol_error(&error))
    }

    /// Sends one request and waits for its answer.
    async fn exchange_once(
        &self,
        request: ClientRequest,
        scope: &mut CallScope<'_>,
    ) -> Result<Result<ServerResult, ErrorData>, RemoteError> {
        let mut sent = self.send(request, scope.running).await?;
        let stopped = loop {
            tokio::select! {
                biased;
                answer = &mut sent.handle.rx => {
                    sent.is_answered = true;
                    while let Ok(progress) = sent.entry.progress.try_recv() {
                        (scope.progress)(progress);
                    }
                    return match answer {
                        Ok(Ok(result)) => Ok(Ok(result)),
                        Ok(Err(ServiceError::McpError(error))) => Ok(Err(error)),
                        Ok(Err(error)) => Err(self.error(error).await),
                        Err(_) => Err(self.end.report().await.error(&self.server)),
                    };
                }
                report = self.end.report() => {
                    sent.is_answered = true;
                    return Err(report.error(&self.server));
                }
                () = scope.cancel.cancelled() => break RemoteError::Cancelled,
                Some(progress) = sent.entry.progress.recv() => {
                    scope.clock.extend();
                    (scope.progress)(progress);
                }
                () = scope.clock.ring() => break self.timed_out(scope),
            }
        };
        self.abort(&mut sent).await;
        Err(stopped)
    }

    pub(super) fn timed_out(&self, scope: &CallScope<'_>) -> RemoteError {
        let seconds = scope.clock.limit.as_secs_f64();
        RemoteError::TimedOut { server: self.server.clone(), seconds }
    }

    /// Answers what a request asks for.
    pub(super) async fn inputs(
        &self,
        scope: &CallScope<'_>,
        requests: InputRequests,
    ) -> Result<InputResponses, RemoteError> {
        if requests.len() > MAX_INPUTS {
            return Err(self.bad_answer(&format!("it asked for more than {MAX_INPUTS} inputs at once")));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = tokio::select! {
                biased;
                answer = self.input(scope.running, request) => answer,
                () = scope.cancel.cancelled() => return Err(RemoteError::Cancelled),
                report = self.end.report() => return Err(report.error(&self.server)),
            };
            responses.insert(key, answer);
        }
        Ok(responses)
    }

    async fn input(&self, running: &InFlightCall, request: InputRequest) -> Value {
        let answer = match request {
            InputRequest::Elicitation(request) => {
                serde_json::to_value(self.handler.ask(running, request.params).await)
            }
            InputRequest::ListRoots(_) => serde_json::to_value(self.handler.roots()),
            _ => serde_json::to_value(ErrorData::invalid_request("sampling is not supported", None)),
        };
        answer.unwrap_or_else(|_| json!({}))
    }
}
