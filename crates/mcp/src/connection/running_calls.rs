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
use windlass_contract::elicitation::Elicitor;

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
    key: u64,
    /// The identity on the wire, once it is known: the server may ask back before that.
    wire: Option<(RequestId, ProgressToken)>,
    last_progress: f64,
    progress: mpsc::Sender<RemoteProgress>,
    call: Arc<InFlightCall>,
}

#[derive(Default)]
struct RequestTable {
    next_key: u64,
    requests: Vec<RunningRequest>,
    early: VecDeque<ProgressNotificationParam>,
}

/// The calls that run on one connection.
#[derive(Default)]
pub(crate) struct RunningCalls(Mutex<RequestTable>);

/// A registered request. Dropped, it is forgotten.
pub(crate) struct RequestEntry {
    calls: Arc<RunningCalls>,
    key: u64,
    /// Its progress.
    pub(crate) progress: mpsc::Receiver<RemoteProgress>,
}

impl RequestEntry {
    /// Notes the identity that the request got.
    pub(crate) fn identify(&self, id: RequestId, token: ProgressToken) {
        let mut table = self.calls.table();
        let RequestTable { requests, early, .. } = &mut *table;
        let Some(request) = requests.iter_mut().find(|request| request.key == self.key) else { return };
        early.retain(|progress| {
            let is_ours = progress.progress_token == token;
            if is_ours {
                request.report(progress);
            }
            !is_ours
        });
        request.wire = Some((id, token));
    }
}

impl Drop for RequestEntry {
    fn drop(&mut self) {
        self.calls.table().requests.retain(|request| request.key != self.key);
    }
}

impl RunningCalls {
    /// Registers a request that is about to be sent.
    pub(crate) fn register(self: &Arc<Self>, call: Arc<InFlightCall>) -> RequestEntry {
        let (progress, receiver) = mpsc::channel(MAX_WAITING_PROGRESS);
        let mut table = self.table();
        let key = table.next_key;
        table.next_key = key.wrapping_add(1);
        let last_progress = f64::NEG_INFINITY;
        table.requests.push(RunningRequest { key, wire: None, last_progress, progress, call });
        RequestEntry { calls: Arc::clone(self), key, progress: receiver }
    }

    /// Passes a notification of progress to its request.
    pub(crate) fn progress(&self, progress: &ProgressNotificationParam) {
        let mut table = self.table();
        let token = &progress.progress_token;
        if let Some(request) = table.requests.iter_mut().find(|request| request.has_token(token)) {
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
            let requests = &table.requests;
            let known = requests.iter().find(|request| request.has_id(origin));
            let request = known.or_else(|| match &requests[..] {
                [only] if only.wire.is_none() => Some(only),
                _ => None,
            });
            return request.map(|request| Arc::clone(&request.call));
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
    fn has_id(&self, id: &RequestId) -> bool {
        self.wire.as_ref().is_some_and(|(own, _)| own == id)
    }

    fn has_token(&self, token: &ProgressToken) -> bool {
        self.wire.as_ref().is_some_and(|(_, own)| own == token)
    }

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
        let calls = Arc::new(RunningCalls::default());
        let call = InFlightCall::new(None);
        let mut first = calls.register(Arc::clone(&call));
        let mut second = calls.register(call);
        // The server is faster than we are.
        calls.progress(&ProgressNotificationParam::new(token(1), 1.0).with_message("a\u{1b}b"));
        first.identify(NumberOrString::Number(10), token(1));
        second.identify(NumberOrString::Number(11), token(2));
        for value in [2.0, 2.0, 1.5, f64::NAN, 3.0] {
            calls.progress(&ProgressNotificationParam::new(token(1), value));
        }
        let mut seen = Vec::new();
        while let Ok(progress) = first.progress.try_recv() {
            seen.push((progress.progress, progress.message));
        }
        assert_eq!(seen, [(1.0, Some("ab".to_owned())), (2.0, None), (3.0, None)]);
        assert!(second.progress.try_recv().is_err());
        drop((first, second));
        assert!(calls.table().requests.is_empty());
    }

    #[test]
    fn a_question_belongs_to_the_request_of_its_stream() {
        let calls = Arc::new(RunningCalls::default());
        let (one, other) = (InFlightCall::new(None), InFlightCall::new(None));
        let first = calls.register(Arc::clone(&one));
        let id = NumberOrString::Number(1);
        assert!(Arc::ptr_eq(&calls.asking_call(Some(&id)).unwrap(), &one));
        first.identify(id.clone(), token(1));
        let _second = calls.register(other);
        assert!(Arc::ptr_eq(&calls.asking_call(Some(&id)).unwrap(), &one));
        assert!(calls.asking_call(Some(&NumberOrString::Number(5))).is_none());
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
