//! The way of an event: the diff of a turn is added, the cleaner takes out secrets, the journal
//! records what is kept, and the event sink of the user gets all of it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use windlass_contract::{
    Clean, Event, Journal,
    event::{EventEmitter, EventSink},
    journal::Record,
};
use windlass_runtime::CleanEvents;
use windlass_tools::TurnDiff;

/// Adds the diff of a turn at its end. It comes before the cleaner, because a diff is made from
/// whole files.
pub(crate) struct TurnDiffEvents {
    cleaner: CleanEvents,
    cwd: PathBuf,
    diff: Mutex<TurnDiff>,
}

impl TurnDiffEvents {
    /// Emits to a cleaner. Paths of files are shown relative to `cwd`.
    pub(crate) fn new(cleaner: CleanEvents, cwd: PathBuf) -> Self {
        Self { cleaner, cwd, diff: Mutex::default() }
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

impl EventEmitter for TurnDiffEvents {
    fn emit(&self, event: Event) {
        if let Some(diff) = self.turn_diff(&event) {
            self.cleaner.emit(Event::TurnDiff { diff });
        }
        self.cleaner.emit(event);
    }
}

/// Records the events that are kept, and forwards all.
pub(crate) struct RecordedEvents {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) front: Arc<dyn EventSink>,
}

impl EventSink for RecordedEvents {
    fn emit(&self, event: &Clean<Event>) {
        if event.is_kept()
            && let Err(error) = self.journal.append(&Record::Event(event.as_ref()))
        {
            // The next item meets the same error and ends the turn; an event alone must not.
            tracing::error!(%error, "an event is not on record");
        }
        self.front.emit(event);
    }
}

#[cfg(test)]
mod tests {
    use windlass_fakes::{EventRecorder, MemoryJournal};
    use windlass_runtime::Secrets;

    use super::*;

    #[test]
    fn the_journal_and_the_user_get_the_same_clean_event() {
        let (journal, front) = (Arc::new(MemoryJournal::default()), Arc::new(EventRecorder::default()));
        let recorded = RecordedEvents { journal: journal.clone(), front: front.clone() };
        let cleaner = CleanEvents::new(Arc::new(recorded), Secrets::default());
        let events = TurnDiffEvents::new(cleaner, "/w".into());
        events.emit(Event::Warning { message: "DB_PASSWORD=q8Zk2mPv0Lr7".to_owned() });
        let message = "DB_PASSWORD=[REDACTED:password#1]".to_owned();
        assert_eq!(journal.lines()[0]["payload"]["message"], message);
        assert_eq!(front.events(), [Event::Warning { message }]);
    }
}
