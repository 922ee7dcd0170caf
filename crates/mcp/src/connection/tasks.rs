//! Calls that the server turns into tasks (extension `io.modelcontextprotocol/tasks`): polled,
//! answered and cancelled as the one call that they are.

use std::{collections::HashSet, time::Duration};

use rmcp::model::{
    CallToolResult, CancelTaskParams, ClientRequest, GetTaskParams, GetTaskRequest, InputRequests,
    ServerResult, Task, TaskPayload, UpdateTaskParams, UpdateTaskRequest,
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{
    AbandonedWork, ServerConnection,
    calling::{CallScope, MAX_INPUT_ROUNDS},
    conversion,
    ending::EndCause,
    sending::CANCEL_GRACE,
};
use crate::{
    pool::{RemoteError, RemoteProgress},
    result::RemoteResult,
    untrusted_text::visible_line,
};

/// Time between two questions about a task that names none.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two questions, whatever the task names.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time between two questions, whatever the task names.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum size of a message about a task.
const MAX_STATUS_MESSAGE: usize = 1024;
/// Maximum size of the id of a task.
const MAX_TASK_ID: usize = 1024;

/// A task whose call goes on. Dropped before its end, it is cancelled.
struct RunningTask<'a> {
    connection: &'a ServerConnection,
    id: String,
    has_ended: bool,
    status_message: Option<String>,
    steps: f64,
    answered: HashSet<String>,
    rounds: usize,
}

impl ServerConnection {
    /// Polls a task until it has a result.
    pub(super) async fn follow_task(
        &self,
        scope: &mut CallScope<'_>,
        task: Task,
    ) -> Result<RemoteResult, RemoteError> {
        if task.task_id.is_empty() || task.task_id.len() > MAX_TASK_ID {
            return Err(self.bad_answer("the id of its task is empty or too long"));
        }
        let mut interval = poll_interval(&task);
        let mut running = RunningTask::new(self, &task);
        running.report(scope, &task);
        loop {
            let stopped = tokio::select! {
                biased;
                report = self.end.report() => {
                    running.has_ended = true;
                    return Err(report.error(&self.server));
                }
                () = scope.cancel.cancelled() => Some(RemoteError::Cancelled),
                () = scope.clock.ring() => Some(self.timed_out(scope)),
                () = sleep(interval) => None,
            };
            if let Some(stopped) = stopped {
                running.cancel().await;
                return Err(stopped);
            }
            let request = GetTaskRequest::new(GetTaskParams::new(running.id.as_str()));
            let ServerResult::GetTaskResult(answer) =
                self.exchange(ClientRequest::GetTaskRequest(request), scope).await?
            else {
                return Err(self.bad_answer("the answer is no task"));
            };
            let detailed = answer.task;
            interval = poll_interval(&detailed.task);
            running.report(scope, &detailed.task);
            running.has_ended = detailed.status().is_terminal();
            match detailed.payload {
                TaskPayload::Completed { result } => {
                    let result = serde_json::from_value::<CallToolResult>(Value::Object(result));
                    let unusable = |_| self.bad_answer("the result of its task is no result of a call");
                    return result.map(conversion::call_result).map_err(unusable);
                }
                TaskPayload::Failed { error } => return Err(self.task_error(&Value::Object(error))),
                TaskPayload::Cancelled => return Err(self.bad_answer("it cancelled the task")),
                TaskPayload::InputRequired { input_requests } => {
                    running.answer(scope, input_requests).await?;
                }
                _ => {}
            }
        }
    }

    fn task_error(&self, error: &Value) -> RemoteError {
        let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok());
        let message = error["message"].as_str().unwrap_or("the task failed");
        RemoteError::Protocol {
            server: self.server.clone(),
            code: code.unwrap_or_default(),
            message: visible_line(message, MAX_STATUS_MESSAGE),
        }
    }

    /// Asks the server to end a task. Returns true if it has answered.
    pub(super) async fn cancel_task(&self, id: &str) -> bool {
        let cancelled = timeout(CANCEL_GRACE, self.peer.cancel_task(CancelTaskParams::new(id))).await;
        if !matches!(cancelled, Ok(Ok(()))) {
            tracing::debug!(server = self.server, "a task could not be cancelled");
        }
        cancelled.is_ok()
    }
}

impl<'a> RunningTask<'a> {
    fn new(connection: &'a ServerConnection, task: &Task) -> Self {
        Self {
            connection,
            id: task.task_id.clone(),
            has_ended: false,
            status_message: None,
            steps: 0.0,
            answered: HashSet::new(),
            rounds: 0,
        }
    }

    /// Reports a new message of the task as progress.
    fn report(&mut self, scope: &mut CallScope<'_>, task: &Task) {
        if task.status_message.is_none() || task.status_message == self.status_message {
            return;
        }
        self.status_message.clone_from(&task.status_message);
        self.steps += 1.0;
        scope.clock.extend();
        let message = task.status_message.as_deref();
        (scope.progress)(RemoteProgress {
            progress: self.steps,
            total: None,
            message: message.map(|message| visible_line(message, MAX_STATUS_MESSAGE)),
        });
    }

    /// Answers the questions of the task that are new. The server may show answered ones again.
    async fn answer(
        &mut self,
        scope: &mut CallScope<'_>,
        mut requests: InputRequests,
    ) -> Result<(), RemoteError> {
        requests.retain(|key, _| !self.answered.contains(key));
        if requests.is_empty() {
            return Ok(());
        }
        self.rounds += 1;
        if self.rounds > MAX_INPUT_ROUNDS {
            let problem = format!("it asked for input more than {MAX_INPUT_ROUNDS} times");
            return Err(self.connection.bad_answer(&problem));
        }
        self.answered.extend(requests.keys().cloned());
        let responses = self.connection.inputs(scope, requests).await?;
        let request = UpdateTaskRequest::new(UpdateTaskParams::new(self.id.as_str(), responses));
        self.connection.exchange(ClientRequest::UpdateTaskRequest(request), scope).await?;
        Ok(())
    }

    /// Cancels the task. A server that does not answer is ended.
    async fn cancel(mut self) {
        self.has_ended = true;
        let connection = self.connection;
        if !connection.cancel_task(&self.id).await && connection.process.is_some() {
            connection.end.note(EndCause::Unresponsive);
            connection.kill();
        }
    }
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            // A full queue means that the server does not read; then nothing helps.
            let work = AbandonedWork::Task(std::mem::take(&mut self.id));
            let _ = self.connection.abandoned.try_send(work);
        }
    }
}

fn poll_interval(task: &Task) -> Duration {
    let interval = task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
    interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
}
