//! Texts that a message of the user mentions, such as skills (`$NAME`).

use windlass_contract::{Event, Item, event::EventEmitter, item::Role, journal::JournalError};

use crate::history::ConversationHistory;

/// Loads texts that messages mention. Implemented by the program; called for each message of the
/// user. Must not wait for anything but the disk.
pub trait MentionLoader: Send + Sync {
    /// Returns the messages for the model that follow this message, or for each that cannot be
    /// loaded a warning for the person.
    fn load(&self, message: &str) -> Vec<Result<String, String>>;
}

/// Adds what a message mentions to the history.
pub(crate) fn push_mentioned(
    loader: Option<&dyn MentionLoader>,
    message: &str,
    history: &mut ConversationHistory,
    events: &dyn EventEmitter,
) -> Result<(), JournalError> {
    for loaded in loader.map(|loader| loader.load(message)).unwrap_or_default() {
        match loaded {
            Ok(text) => history.push(Item::message(Role::User, text))?,
            Err(message) => events.emit(Event::Warning { message }),
        }
    }
    Ok(())
}
