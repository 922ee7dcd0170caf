//! The protocol of a server with tools, on top of `rmcp`.

use std::{fmt, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use windlass_contract::elicitation::{ElicitationAnswer, Elicitor};

use super::{
    ProgressReporter, ServeLimits, ServedCall, ServedClient, ServedTools, answer,
    call_in_progress::{CallInProgress, CallStep, CallTasks},
    client_roots::ClientRoots,
    list_changes::{self, ConnectionLife},
    parked_calls::ParkedCalls,
    question_channel::{AskedQuestion, QuestionChannel, QuestionKinds, answer_of},
};
use crate::{pool::RemoteProgress, result::RemoteResult};

/// Reports of progress that wait for the client.
const PROGRESS_BUFFER: usize = 64;
/// Maximum number of bytes of the name of a client.
const MAX_CLIENT_NAME: usize = 64;

/// A server with tools. Clones share their calls and limits.
#[derive(Clone)]
pub struct ToolServer {
    shared: Arc<SharedCalls>,
    roots: Arc<ClientRoots>,
    connection: ConnectionLife,
}

/// State that the connections of a server share.
struct SharedCalls {
    tools: Arc<dyn ServedTools>,
    limits: ServeLimits,
    accepted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    parked: ParkedCalls,
    tasks: CallTasks,
    ended: CancellationToken,
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

impl ToolServer {
    /// Creates a server.
    pub fn new(tools: Arc<dyn ServedTools>, limits: ServeLimits) -> Self {
        let accepted = Semaphore::new(limits.max_running_calls + limits.max_waiting_calls);
        let shared = SharedCalls {
            tools,
            limits,
            accepted: Arc::new(accepted),
            running: Arc::new(Semaphore::new(limits.max_running_calls)),
            parked: ParkedCalls::default(),
            tasks: CallTasks::default(),
            ended: CancellationToken::new(),
        };
        let connection = ConnectionLife::new(&shared.ended);
        Self { shared: Arc::new(shared), roots: Arc::default(), connection }
    }

    /// Returns the server for another connection, whose client is not known yet.
    #[must_use]
    pub fn for_connection(&self) -> Self {
        let connection = ConnectionLife::new(&self.shared.ended);
        Self { shared: Arc::clone(&self.shared), roots: Arc::default(), connection }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &ServeLimits {
        &self.shared.limits
    }

    /// Cancels all calls, and waits until they have ended or their grace is over.
    pub async fn shut_down(&self) {
        self.shared.ended.cancel();
        self.shared.tasks.wait().await;
    }

    /// Starts a call.
    async fn start(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallInProgress, RemoteResult> {
        let SharedCalls { limits, .. } = &*self.shared;
        let accepted = Arc::clone(&self.shared.accepted).try_acquire_owned().map_err(|_full| {
            let limit = limits.max_running_calls + limits.max_waiting_calls;
            RemoteResult::failed(format!("the server has {limit} calls in progress; try again later"))
        })?;
        let client = self.client(context).await;
        let (progress_sender, progress) = mpsc::channel(PROGRESS_BUFFER);
        let (question_sender, questions) = mpsc::channel(1);
        let (ended, result) = oneshot::channel();
        let cancel = self.shared.ended.child_token();
        let kinds = context.client_capabilities().as_ref().and_then(QuestionKinds::declared);
        let patience = limits.question_timeout;
        let elicitor = kinds.map(|kinds| {
            let channel = QuestionChannel { kinds, questions: question_sender, patience };
            Arc::new(channel) as Arc<dyn Elicitor>
        });
        let call = ServedCall {
            tool: request.name.to_string(),
            arguments: request.arguments.clone().unwrap_or_default(),
            client,
            progress: ProgressReporter { sender: progress_sender },
            elicitor,
            cancel: cancel.clone(),
        };
        let (tools, running) = (Arc::clone(&self.shared.tools), Arc::clone(&self.shared.running));
        let work = async move {
            let _accepted = accepted;
            let slot = tokio::select! {
                slot = running.acquire_owned() => slot,
                () = call.cancel.cancelled() => return RemoteResult::failed("the call was cancelled"),
            };
            let Ok(_slot) = slot else { return RemoteResult::failed("the server is ending") };
            tools.call(call).await
        };
        self.shared.tasks.spawn(work, cancel.clone(), limits, ended);
        let guard = cancel.clone().drop_guard();
        Ok(CallInProgress { result, questions, progress, cancel, _cancelled_on_drop: guard })
    }

    /// Follows a call to its end, or to a question that ends this request.
    async fn follow(
        &self,
        mut running: CallInProgress,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut progress = ReportedProgress::new(context);
        loop {
            let step = tokio::select! {
                step = running.step() => step,
                () = context.ct.cancelled() => {
                    running.cancel.cancel();
                    // The call ends by itself within its grace. The protocol sends no answer to a
                    // cancelled request.
                    let result = running.result.await;
                    let result = result.unwrap_or_else(|_| RemoteResult::failed("the call was cancelled"));
                    return Ok(answer::result(result).into());
                }
            };
            match step {
                CallStep::Progress(step) => progress.notify(step, context).await,
                CallStep::Ended(result) => return Ok(answer::result(result).into()),
                CallStep::Question(question) if asks_by_repetition(context) => {
                    match self.shared.parked.park(running, question, request, &self.shared.limits) {
                        Ok(required) => return Ok(required.into()),
                        Err(refused) => {
                            let question;
                            (running, question) = *refused;
                            let _late = question.answer.send(ElicitationAnswer::Cancel);
                        }
                    }
                }
                CallStep::Question(question) => self.ask(question, context).await,
            }
        }
    }

    /// Asks the client during the call, as versions before 2026-07-28 do.
    async fn ask(&self, question: AskedQuestion, context: &RequestContext<RoleServer>) {
        let AskedQuestion { params, answer } = question;
        let patience = self.shared.limits.question_timeout;
        let asked = context.peer.create_elicitation_with_timeout(params, Some(patience));
        let answered = tokio::select! {
            answered = asked => answered,
            () = context.ct.cancelled() => return,
        };
        let reply = answered.map_or_else(
            |error| {
                tracing::warn!(%error, "a client has not answered a question");
                ElicitationAnswer::Decline
            },
            answer_of,
        );
        // The call may have given up meanwhile.
        let _late = answer.send(reply);
    }

    async fn client(&self, context: &RequestContext<RoleServer>) -> ServedClient {
        let name = context.client_info().map(|client| plain_name(&client.name));
        ServedClient { name, roots: self.roots.of_client(context).await }
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let tools = &self.shared.tools;
        answer::introduction(tools.identity(), tools.changes().is_some())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.shared.tools.tools().iter().filter_map(answer::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools.tool(name).as_ref().and_then(answer::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&request.name).is_none() {
            let name = plain_name(&request.name);
            return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None));
        }
        let running = match &request.request_state {
            Some(handle) => self
                .shared
                .parked
                .resume(handle, &request)
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?,
            None if request.input_responses.is_some() => {
                return Err(ErrorData::invalid_params("`inputResponses` without `requestState`", None));
            }
            None => match self.start(&request, &context).await {
                Ok(running) => running,
                Err(refusal) => return Ok(answer::result(refusal).into()),
            },
        };
        self.follow(running, &request, &context).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.shared.tools.changes().is_some().then(|| requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        match self.shared.tools.changes() {
            Some(changes) => list_changes::notify_subscription(subscription, changes).await,
            None => Ok(()),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(changes) = self.shared.tools.changes() {
            let ended = self.connection.token.clone();
            self.shared.tasks.keep(list_changes::notify_peer(context.peer, changes, ended));
        }
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        self.roots.forget();
    }
}

/// Sends the progress of one request.
struct ReportedProgress {
    token: Option<rmcp::model::ProgressToken>,
    last: f64,
}

impl ReportedProgress {
    fn new(context: &RequestContext<RoleServer>) -> Self {
        Self { token: context.meta.get_progress_token(), last: f64::NEG_INFINITY }
    }

    /// Sends a report, if the client wants them and it shows an advance, as the protocol demands.
    async fn notify(&mut self, step: RemoteProgress, context: &RequestContext<RoleServer>) {
        let Some(token) = self.token.clone() else { return };
        if step.progress <= self.last || !step.progress.is_finite() {
            return;
        }
        self.last = step.progress;
        let mut params = ProgressNotificationParam::new(token, step.progress);
        params.total = step.total;
        params.message = step.message;
        if let Err(error) = context.peer.notify_progress(params).await {
            tracing::debug!(%error, "progress was not sent");
        }
    }
}

/// Returns true if questions end the request, which the client then repeats with the answers.
pub(super) fn asks_by_repetition(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns a name without control characters, cut to a length for messages.
fn plain_name(name: &str) -> String {
    let mut plain: String = name.chars().filter(|c| !c.is_control()).collect();
    plain.truncate(plain.floor_char_boundary(MAX_CLIENT_NAME));
    plain
}
