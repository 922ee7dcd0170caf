//! Calls of tools: their time limit, progress, cancellation, and the rounds of a call that needs
//! input.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientNotification, ClientRequest, DiscoverRequest, DiscoverRequestParams, ErrorData, InputRequest,
        InputRequiredResult, InputResponses, NumberOrString, PingRequest, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
    transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{ServerConnection, conversion, ending::EndCause, handshake::causes, running_calls::InFlightCall};
use crate::{
    pool::{RemoteError, RemoteProgress, RemoteToolCall},
    result::RemoteResult,
    untrusted_text::visible_line,
};

/// Maximum number of times that a call is sent again with the input it asked for.
const MAX_INPUT_ROUNDS: usize = 8;
/// Maximum number of inputs that one answer asks for.
const MAX_INPUTS: usize = 16;
/// Progress extends the time limit up to this many times the limit.
const MAX_EXTENSION: u32 = 5;
/// Time for a server to show that it has read a cancellation.
const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// Maximum size of the message of an error.
const MAX_ERROR_MESSAGE: usize = 2048;

impl ServerConnection {
    /// Calls a tool. Returns within two seconds after a cancellation or the time limit.
    pub(crate) async fn call(
        &self,
        call: &RemoteToolCall<'_>,
        limit: Duration,
    ) -> Result<RemoteResult, RemoteError> {
        let running = InFlightCall::new(call.elicitor.clone());
        let mut clock = CallClock::new(limit, &running);
        let mut params = CallToolRequestParams::new(call.tool.to_owned());
        params.arguments = Some(call.arguments.clone());
        for _ in 0..=MAX_INPUT_ROUNDS {
            let answer = self.round(call, &running, params.clone(), &mut clock).await?;
            match answer {
                ServerResult::CallToolResult(result) => return Ok(conversion::call_result(result)),
                ServerResult::InputRequiredResult(required) => {
                    params.request_state.clone_from(&required.request_state);
                    params.input_responses = self.inputs(call, &running, required).await?;
                }
                _ => return Err(self.bad_answer("the answer is no result of a call")),
            }
        }
        Err(self.bad_answer(&format!("it asked for input more than {MAX_INPUT_ROUNDS} times")))
    }

    /// Sends one request and waits for its answer.
    async fn round(
        &self,
        call: &RemoteToolCall<'_>,
        running: &Arc<InFlightCall>,
        params: CallToolRequestParams,
        clock: &mut CallClock<'_>,
    ) -> Result<ServerResult, RemoteError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut sent = self.send(request, Some(running)).await?;
        let stopped = loop {
            tokio::select! {
                biased;
                answer = &mut sent.handle.rx => {
                    sent.is_answered = true;
                    while let Ok(progress) = sent.progress.try_recv() {
                        (call.progress)(progress);
                    }
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(self.error(error).await),
                        Err(_) => Err(self.end.report().await.error(&self.server)),
                    };
                }
                report = self.end.report() => {
                    sent.is_answered = true;
                    return Err(report.error(&self.server));
                }
                () = call.cancel.cancelled() => break RemoteError::Cancelled,
                Some(progress) = sent.progress.recv() => {
                    clock.extend();
                    (call.progress)(progress);
                }
                () = clock.ring() => {
                    let seconds = clock.limit.as_secs_f64();
                    break RemoteError::TimedOut { server: self.server.clone(), seconds };
                }
            }
        };
        self.abort(&mut sent).await;
        Err(stopped)
    }

    /// Answers what a call asks for. `None` if it asks for nothing but another try.
    async fn inputs(
        &self,
        call: &RemoteToolCall<'_>,
        running: &InFlightCall,
        required: InputRequiredResult,
    ) -> Result<Option<InputResponses>, RemoteError> {
        let Some(requests) = required.input_requests else { return Ok(None) };
        if requests.len() > MAX_INPUTS {
            return Err(self.bad_answer(&format!("it asked for more than {MAX_INPUTS} inputs at once")));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = tokio::select! {
                biased;
                answer = self.input(running, request) => answer,
                () = call.cancel.cancelled() => return Err(RemoteError::Cancelled),
                report = self.end.report() => return Err(report.error(&self.server)),
            };
            responses.insert(key, answer);
        }
        Ok(Some(responses))
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

    /// Sends a request that is cancelled when it is dropped before its answer.
    pub(super) async fn send(
        &self,
        request: ClientRequest,
        running: Option<&Arc<InFlightCall>>,
    ) -> Result<SentRequest<'_>, RemoteError> {
        let options = PeerRequestOptions::no_options();
        let handle = tokio::select! {
            biased;
            report = self.end.report() => return Err(report.error(&self.server)),
            handle = self.peer.send_cancellable_request(request, options) => handle,
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(error) => return Err(self.error(error).await),
        };
        let call = running.map_or_else(|| InFlightCall::new(None), Arc::clone);
        let token = handle.progress_token.clone();
        let progress = self.calls.register(handle.id.clone(), token, call);
        Ok(SentRequest { connection: self, handle, progress, is_answered: false })
    }

    /// Cancels a request. A server that does not show within a second that it has read the
    /// cancellation is ended. One that has read it goes on serving other calls.
    pub(super) async fn abort(&self, sent: &mut SentRequest<'_>) {
        sent.is_answered = true;
        let id = sent.handle.id.clone();
        let acknowledged = async {
            self.send_cancelled(id, "cancelled by the client").await;
            if self.process.is_some() {
                self.probe().await;
            }
        };
        if timeout(CANCEL_GRACE, acknowledged).await.is_err() && self.process.is_some() {
            self.end.note(EndCause::Unresponsive);
            self.kill();
        }
    }

    /// Asks for anything, and waits for the answer: messages are read in order.
    async fn probe(&self) {
        let has_ping = self.peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
        let request = if has_ping {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
        };
        if let Err(error) = self.peer.send_request(request).await {
            // An error is an answer too.
            tracing::debug!(server = self.server, %error, "the probe was answered with an error");
        }
    }

    /// Tells the server that the answer to a request is not needed any more.
    pub(super) async fn send_cancelled(&self, id: NumberOrString, reason: &str) {
        let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        let notification = ClientNotification::CancelledNotification(CancelledNotification::new(params));
        let sent = timeout(CANCEL_GRACE, self.peer.send_notification(notification)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(server = self.server, "a cancellation could not be sent");
        }
    }

    /// Returns the error of a request.
    pub(super) async fn error(&self, error: ServiceError) -> RemoteError {
        let server = self.server.clone();
        match error {
            ServiceError::McpError(error) => RemoteError::Protocol {
                server,
                code: error.code.0,
                message: visible_line(&error.message, MAX_ERROR_MESSAGE),
            },
            ServiceError::UnexpectedResponse => self.bad_answer("the answer has another type"),
            ServiceError::TransportClosed if self.process.is_some() || self.peer.is_transport_closed() => {
                self.end.note(EndCause::Closed);
                self.end.report().await.error(&self.server)
            }
            // One stream of an HTTP server.
            ServiceError::TransportClosed => {
                let reason = "it closed the stream before the answer".to_owned();
                RemoteError::Died { server, reason }
            }
            ServiceError::TransportSend(error) => self.send_failed(error.error.as_ref()).await,
            other => self.bad_answer(&visible_line(&other.to_string(), MAX_ERROR_MESSAGE)),
        }
    }

    /// Returns the error of a request that could not be sent.
    async fn send_failed(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> RemoteError {
        let (cause, reason) = (send_failure(error), causes(error));
        if let Some(cause) = cause.or(self.process.is_some().then_some(EndCause::Closed)) {
            self.end.note(cause);
            return self.end.report().await.error(&self.server);
        }
        RemoteError::Died { server: self.server.clone(), reason: visible_line(&reason, MAX_ERROR_MESSAGE) }
    }

    pub(super) fn bad_answer(&self, reason: &str) -> RemoteError {
        RemoteError::BadAnswer { server: self.server.clone(), reason: reason.to_owned() }
    }
}

/// Returns the cause of the end of a connection whose requests are refused for want of a login.
fn send_failure(error: &(dyn std::error::Error + 'static)) -> Option<EndCause> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<AuthRequiredError>() || error.is::<InsufficientScopeError>() {
            return Some(EndCause::LoginNeeded);
        }
        cause = error.source();
    }
    None
}

/// A request that waits for its answer. Dropped before, it is cancelled.
pub(super) struct SentRequest<'a> {
    connection: &'a ServerConnection,
    pub(super) handle: RequestHandle<RoleClient>,
    progress: mpsc::Receiver<RemoteProgress>,
    is_answered: bool,
}

impl SentRequest<'_> {
    /// Waits for the answer, at most for `limit`.
    pub(super) async fn answer(mut self, limit: Duration) -> Result<ServerResult, RemoteError> {
        let connection = self.connection;
        let answer = tokio::select! {
            biased;
            answer = &mut self.handle.rx => answer,
            report = connection.end.report() => {
                self.is_answered = true;
                return Err(report.error(&connection.server));
            }
            () = tokio::time::sleep(limit) => {
                connection.abort(&mut self).await;
                let server = connection.server.clone();
                return Err(RemoteError::TimedOut { server, seconds: limit.as_secs_f64() });
            }
        };
        self.is_answered = true;
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(connection.error(error).await),
            Err(_) => Err(connection.end.report().await.error(&connection.server)),
        }
    }
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        self.connection.calls.remove(&self.handle.id);
        if !self.is_answered {
            // A full queue means that the server does not read; then nothing helps.
            let _ = self.connection.abandoned.try_send(self.handle.id.clone());
        }
    }
}

/// The time limit of a call. Progress extends it; it stands still while a person is asked.
struct CallClock<'a> {
    limit: Duration,
    deadline: Instant,
    last_deadline: Instant,
    running: &'a InFlightCall,
}

impl<'a> CallClock<'a> {
    fn new(limit: Duration, running: &'a InFlightCall) -> Self {
        let now = Instant::now();
        let far = Duration::from_hours(24 * 365);
        let total = limit.saturating_mul(MAX_EXTENSION).min(far);
        let deadline = now + limit.min(far);
        Self { limit, deadline, last_deadline: now + total, running }
    }

    /// Grants the limit once more, within the total.
    fn extend(&mut self) {
        self.deadline = (Instant::now() + self.limit).min(self.last_deadline);
    }

    /// Waits for the deadline.
    async fn ring(&mut self) {
        let mut waiting = self.running.waiting_for_person.subscribe();
        loop {
            if *waiting.borrow_and_update() == 0 {
                tokio::select! {
                    () = sleep_until(self.deadline) => return,
                    _ = waiting.wait_for(|count| *count > 0) => {}
                }
            }
            let began = Instant::now();
            // The sender lives as long as the call.
            let _ = waiting.wait_for(|count| *count == 0).await;
            let paused = began.elapsed();
            self.deadline += paused;
            self.last_deadline += paused;
        }
    }
}
