//! The calls that run on one connection: their progress and the people to ask.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use tokio::sync::{Semaphore, mpsc, watch};
use windlass_contract::remote::Elicitor;

use crate::{pool::RemoteProgress, untrusted_text::visible_line};

/// Maximum number of questions of a server during one call.
pub(crate) const MAX_QUESTIONS: usize = 8;
/// Maximum number of reports of progress that wait for their call.
const MAX_WAITING_PROGRESS: usize = 64;
/// Maximum number of reports kept for calls that are not registered yet.
const MAX_EARLY_PROGRESS: usize = 16;
/// Maximum size of a message of progress.
const MAX_PROGRESS_MESSAGE: usize = 1024;

/// One call, from its first request to its end.
pub(crate) struct InFlightCall {
    /// Answers questions of the server.
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    /// Questions asked so far.
    questions: AtomicUsize,
    /// One question is asked at a time.
    pub(crate) asking: Semaphore,
    /// Number of questions that a person is answering now.
    pub(crate) waiting_for_person: watch::Sender<usize>,
}

impl InFlightCall {
    pub(crate) fn new(elicitor: Option<Arc<dyn Elicitor>>) -> Arc<Self> {
        let (waiting_for_person, _) = watch::channel(0);
        let questions = AtomicUsize::new(0);
        Arc::new(Self { elicitor, questions, asking: Semaphore::new(1), waiting_for_person })
    }

    /// Returns true if one more question may be asked.
    pub(crate) fn may_ask(&self) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed) < MAX_QUESTIONS
    }
}

/// One request of a call. A call that needs input is sent again, as another request.
struct RunningRequest {
    id: RequestId,
    token: ProgressToken,
    last_progress: f64,
    progress: mpsc::Sender<RemoteProgress>,
    call: Arc<InFlightCall>,
}

#[derive(Default)]
struct RequestTable {
    requests: Vec<RunningRequest>,
    early: VecDeque<ProgressNotificationParam>,
}

/// The calls that run on one connection.
#[derive(Default)]
pub(crate) struct RunningCalls(Mutex<RequestTable>);

impl RunningCalls {
    /// Registers a request and returns the receiver of its progress.
    pub(crate) fn register(
        &self,
        id: RequestId,
        token: ProgressToken,
        call: Arc<InFlightCall>,
    ) -> mpsc::Receiver<RemoteProgress> {
        let (progress, receiver) = mpsc::channel(MAX_WAITING_PROGRESS);
        let last_progress = f64::NEG_INFINITY;
        let mut request = RunningRequest { id, token, last_progress, progress, call };
        let mut table = self.table();
        // The server may have answered before the request was registered.
        table.early.retain(|early| {
            let is_ours = early.progress_token == request.token;
            if is_ours {
                request.report(early);
            }
            !is_ours
        });
        table.requests.push(request);
        receiver
    }

    /// Forgets a request.
    pub(crate) fn remove(&self, id: &RequestId) {
        self.table().requests.retain(|request| request.id != *id);
    }

    /// Passes a notification of progress to its request.
    pub(crate) fn progress(&self, progress: &ProgressNotificationParam) {
        let mut table = self.table();
        let token = &progress.progress_token;
        if let Some(request) = table.requests.iter_mut().find(|request| request.token == *token) {
            request.report(progress);
            return;
        }
        if table.early.len() == MAX_EARLY_PROGRESS {
            table.early.pop_front();
        }
        table.early.push_back(progress.clone());
    }

    /// Returns the call that a question of the server belongs to: that of the request whose stream
    /// it came on, else the only one that could ask a person. `None` if that is not certain.
    pub(crate) fn asking_call(&self, origin: Option<&RequestId>) -> Option<Arc<InFlightCall>> {
        let table = self.table();
        if let Some(origin) = origin {
            let request = table.requests.iter().find(|request| request.id == *origin)?;
            return Some(Arc::clone(&request.call));
        }
        let first = table.requests.first()?;
        let is_same = |request: &RunningRequest| match (&request.call.elicitor, &first.call.elicitor) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        table.requests.iter().all(is_same).then(|| Arc::clone(&first.call))
    }

    fn table(&self) -> std::sync::MutexGuard<'_, RequestTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningRequest {
    /// Reports progress unless it goes back.
    fn report(&mut self, progress: &ProgressNotificationParam) {
        if progress.progress <= self.last_progress || !progress.progress.is_finite() {
            return;
        }
        self.last_progress = progress.progress;
        let message = progress.message.as_deref();
        // A call that does not keep up misses some of it.
        let _ = self.progress.try_send(RemoteProgress {
            progress: progress.progress,
            total: progress.total.filter(|total| total.is_finite()),
            message: message.map(|message| visible_line(message, MAX_PROGRESS_MESSAGE)),
        });
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    fn token(number: i64) -> ProgressToken {
        ProgressToken(NumberOrString::Number(number))
    }

    #[test]
    fn progress_reaches_its_request_in_order_and_never_goes_back() {
        let calls = RunningCalls::default();
        let call = InFlightCall::new(None);
        calls.progress(&ProgressNotificationParam::new(token(1), 1.0).with_message("a\u{1b}b"));
        let mut first = calls.register(NumberOrString::Number(10), token(1), Arc::clone(&call));
        let mut second = calls.register(NumberOrString::Number(11), token(2), call);
        for value in [2.0, 2.0, 1.5, f64::NAN, 3.0] {
            calls.progress(&ProgressNotificationParam::new(token(1), value));
        }
        let mut seen = Vec::new();
        while let Ok(progress) = first.try_recv() {
            seen.push((progress.progress, progress.message));
        }
        assert_eq!(seen, [(1.0, Some("ab".to_owned())), (2.0, None), (3.0, None)]);
        assert!(second.try_recv().is_err());
    }

    #[test]
    fn unknown_tokens_do_not_use_up_memory() {
        let calls = RunningCalls::default();
        for number in 0..1000 {
            calls.progress(&ProgressNotificationParam::new(token(number), 1.0));
        }
        assert_eq!(calls.table().early.len(), MAX_EARLY_PROGRESS);
    }
}
