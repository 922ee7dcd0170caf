//! Forwards events to the event sink, after recording those that are kept.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use windlass_contract::{Event, Journal, event::EventSink, journal::Record};
use windlass_runtime::Secrets;
use windlass_tools::TurnDiff;

/// Records and forwards events. At the end of a turn it announces the diff of the turn.
pub(crate) struct EventAnnouncer {
    journal: Arc<dyn Journal>,
    front: Arc<dyn EventSink>,
    cwd: PathBuf,
    diff: Mutex<TurnDiff>,
    /// Secrets that must not be recorded.
    secrets: Secrets,
}

impl EventAnnouncer {
    /// Creates an announcer. Paths of files are shown relative to `cwd`.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        front: Arc<dyn EventSink>,
        cwd: PathBuf,
        secrets: Secrets,
    ) -> Self {
        Self { journal, front, cwd, diff: Mutex::default(), secrets }
    }

    /// Returns the diff of the turn if the event ends it and files have changed.
    fn turn_diff(&self, event: &Event) -> Option<String> {
        let mut diff = self.diff.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::EditEnded { changed, .. } => diff.take(changed),
            Event::TurnCompleted { .. } | Event::TurnFailed { .. } => {
                let text = diff.text(&self.cwd);
                diff.clear();
                return Some(text).filter(|text| !text.is_empty());
            }
            _ => {}
        }
        None
    }
}

impl EventSink for EventAnnouncer {
    fn emit(&self, event: &Event) {
        if let Some(diff) = self.turn_diff(event) {
            self.front.emit(&Event::TurnDiff { diff });
        }
        if event.is_kept()
            && let Err(error) = self.journal.append(&Record::Event(&self.secrets.clean_event(event)))
        {
            // The next item meets the same error and ends the turn; an event alone must not.
            tracing::error!(%error, "an event is not on record");
        }
        self.front.emit(event);
    }
}
