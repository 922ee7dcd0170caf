//! One call in progress: its task, and the channels between it and the protocol.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ServeLimits, question_channel::AskedQuestion};
use crate::{pool::RemoteProgress, result::RemoteResult};

/// A call in progress. Dropping it cancels the call, which then has a short time to end by itself.
#[derive(Debug)]
pub(super) struct CallInProgress {
    pub(super) result: oneshot::Receiver<RemoteResult>,
    pub(super) questions: mpsc::Receiver<AskedQuestion>,
    pub(super) progress: mpsc::Receiver<RemoteProgress>,
    pub(super) cancel: CancellationToken,
    pub(super) _cancelled_on_drop: DropGuard,
}

/// Next event of a call.
#[derive(Debug)]
pub(super) enum CallStep {
    /// It has reported progress.
    Progress(RemoteProgress),
    /// It asks a question.
    Question(AskedQuestion),
    /// It has ended.
    Ended(RemoteResult),
}

impl CallInProgress {
    /// Waits for the next event. Progress comes before the question or the end that follows it.
    pub(super) async fn step(&mut self) -> CallStep {
        tokio::select! {
            biased;
            Some(progress) = self.progress.recv() => CallStep::Progress(progress),
            Some(question) = self.questions.recv() => CallStep::Question(question),
            ended = &mut self.result => CallStep::Ended(
                ended.unwrap_or_else(|_lost| RemoteResult::failed("the call was lost by an internal error")),
            ),
        }
    }
}

/// The tasks of all calls. Dropping it aborts them.
#[derive(Debug, Default)]
pub(super) struct CallTasks(Mutex<JoinSet<()>>);

impl CallTasks {
    /// Starts a call. It ends by itself, or is dropped a while after its cancellation.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = RemoteResult> + Send + 'static,
        cancel: CancellationToken,
        limits: &ServeLimits,
        ended: oneshot::Sender<RemoteResult>,
    ) {
        let grace = limits.cancel_grace;
        let task = async move {
            let deadline = async {
                cancel.cancelled().await;
                sleep(grace).await;
            };
            let result = tokio::select! {
                result = work => result,
                () = deadline => RemoteResult::failed("the call was cancelled"),
            };
            // The client may be gone.
            let _unread = ended.send(result);
        };
        self.keep(task);
    }

    /// Starts a task that ends with its connection.
    pub(super) fn keep(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Waits until all calls have ended. The caller has cancelled them.
    pub(super) async fn wait(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}
