//! Events on their way to whoever watches: those worth keeping go on record first.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use windlass_contract::{Event, Journal, event::EventSink, journal::Record};
use windlass_runtime::Secrets;
use windlass_tools::TurnDiff;

/// Records, then passes on. At the end of a turn it says what the turn has changed.
pub(crate) struct Announcer {
    journal: Arc<dyn Journal>,
    front: Arc<dyn EventSink>,
    cwd: PathBuf,
    diff: Mutex<TurnDiff>,
    /// What is kept must not hold them.
    secrets: Secrets,
}

impl Announcer {
    /// Paths of files are shown relative to `cwd`.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        front: Arc<dyn EventSink>,
        cwd: PathBuf,
        secrets: Secrets,
    ) -> Self {
        Self { journal, front, cwd, diff: Mutex::default(), secrets }
    }

    /// The diff of the turn, if its end is to be announced and it has changed something.
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

impl EventSink for Announcer {
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
