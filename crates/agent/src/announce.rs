//! Events on their way to whoever watches: those worth keeping go on record first.

use std::sync::Arc;

use windlass_contract::{Event, EventSink, Journal, Record};

/// Records, then passes on.
pub(crate) struct Announcer {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) front: Arc<dyn EventSink>,
}

impl EventSink for Announcer {
    fn emit(&self, event: &Event) {
        if event.is_kept()
            && let Err(error) = self.journal.append(&Record::Event(event))
        {
            // The next item meets the same error and ends the turn; an event alone must not.
            tracing::error!(%error, "an event is not on record");
        }
        self.front.emit(event);
    }
}
