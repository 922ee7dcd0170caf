//! Calls of clients that are running: the way to their clients, and their order.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use windlass::{
    CallId, Clean, Elicitor, Event, EventSink, first_line,
    mcp::{pool::RemoteProgress, serve::ProgressReporter},
};

/// Maximum number of characters of a message about progress.
const MAX_MESSAGE_CHARS: usize = 200;

/// Maximum number of characters of the name of a client in the id of a call.
const MAX_ID_NAME: usize = 32;

/// The running calls, by their ids.
#[derive(Default)]
pub(crate) struct LiveCalls {
    calls: Mutex<HashMap<CallId, Arc<LiveCall>>>,
    ids: AtomicU64,
}

/// One running call.
pub(crate) struct LiveCall {
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    progress: ProgressReporter,
    printed: Mutex<u64>,
    order: Arc<RwLock<()>>,
    overlaps: bool,
    place: Mutex<Option<RunningPlace>>,
}

/// The place of a call among the others: it runs alone, or with others that change nothing.
enum RunningPlace {
    Shared { _held: OwnedRwLockReadGuard<()> },
    Alone { _held: OwnedRwLockWriteGuard<()> },
}

impl LiveCalls {
    /// Returns the id of a new call, with the name of its client, so that every record has it.
    /// Sessions with the same calls never share one.
    pub(crate) fn new_id(&self, client: Option<&str>) -> CallId {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let plain = |c: char| if is_plain(c) { c } else { '-' };
        let client: String = client.unwrap_or("client").chars().take(MAX_ID_NAME).map(plain).collect();
        let number = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        format!("mcp_{client}_{number}").as_str().into()
    }

    /// Adds a call until the returned guard is dropped.
    pub(crate) fn add(self: &Arc<Self>, id: &CallId, call: Arc<LiveCall>) -> LiveCallGuard {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), call);
        LiveCallGuard { calls: Arc::clone(self), id: id.clone() }
    }

    /// Returns a call.
    pub(crate) fn get(&self, id: &CallId) -> Option<Arc<LiveCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

/// Removes its call when it is dropped.
pub(crate) struct LiveCallGuard {
    calls: Arc<LiveCalls>,
    id: CallId,
}

impl Drop for LiveCallGuard {
    fn drop(&mut self) {
        self.calls.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl LiveCall {
    /// Creates a call that has no place yet.
    pub(crate) fn new(
        elicitor: Option<Arc<dyn Elicitor>>,
        progress: ProgressReporter,
        order: &Arc<RwLock<()>>,
        overlaps: bool,
    ) -> Self {
        let (printed, place, order) = (Mutex::new(0), Mutex::new(None), Arc::clone(order));
        Self { elicitor, progress, printed, order, overlaps, place }
    }

    /// Waits for its place.
    pub(crate) async fn take_place(&self) {
        let order = Arc::clone(&self.order);
        let place = if self.overlaps {
            RunningPlace::Shared { _held: order.read_owned().await }
        } else {
            RunningPlace::Alone { _held: order.write_owned().await }
        };
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }

    /// Lets others run, while a person is asked or at the end.
    pub(crate) fn leave_place(&self) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn output(&self, text: &str) {
        let total = {
            let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
            *printed += text.len() as u64;
            *printed
        };
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        let message = line.map(|line| first_line(line).chars().take(MAX_MESSAGE_CHARS).collect());
        #[expect(clippy::cast_precision_loss, reason = "progress needs no more than 52 bits")]
        self.progress.report(RemoteProgress { progress: total as f64, total: None, message });
    }
}

/// Sends the output of commands to their clients as progress, and warnings to stderr.
pub(crate) struct ClientEvents(pub(crate) Arc<LiveCalls>);

impl EventSink for ClientEvents {
    fn emit(&self, event: &Clean<Event>) {
        match &**event {
            Event::CallOutput { id, text } => {
                if let Some(call) = self.0.get(id) {
                    call.output(text);
                }
            }
            Event::CallProgress { id, progress, total, message } => {
                if let Some(call) = self.0.get(id) {
                    let (progress, total, message) = (*progress, *total, message.clone());
                    call.progress.report(RemoteProgress { progress, total, message });
                }
            }
            Event::Warning { message } => crate::note(&format!("warning: {message}")),
            _ => {}
        }
    }
}
