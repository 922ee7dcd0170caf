//! The earlier conversation of a session that is resumed, for its screen.

use std::path::PathBuf;

use windlass::{
    Body, Content, Item, Role,
    clean::Secrets,
    record::{self, SessionEntry, Which},
};
use windlass_tui::EarlierEntry;

use crate::setup::ProgramSetup;

/// Maximum number of messages and calls that are shown.
const MAX_ENTRIES: usize = 50;

/// Returns the end of the conversation. A session that cannot be read has none here: resuming it
/// reports the error.
pub(crate) fn of_session(setup: &ProgramSetup, which: &Which) -> Vec<EarlierEntry> {
    let path = match which {
        Which::Id(id) => record::find(&setup.home, id).ok().map(|(_, path)| path),
        Which::Last => newest(setup, |_| true),
        Which::LastIn(cwd) => newest(setup, |entry| entry.cwd == *cwd),
    };
    let session = path.and_then(|path| record::load(&path).ok());
    session.map(|session| last_entries(session.history, &setup.secrets())).unwrap_or_default()
}

fn newest(setup: &ProgramSetup, is_wanted: impl Fn(&SessionEntry) -> bool) -> Option<PathBuf> {
    let entries = record::list(&setup.home).ok()?;
    entries.into_iter().find(is_wanted).map(|entry| entry.path)
}

fn last_entries(history: Vec<Item>, secrets: &Secrets) -> Vec<EarlierEntry> {
    let clean = |text: String| secrets.clean(&text).into_owned();
    let entry = |item: Item| match item.body {
        Body::Message { role: Role::User, content } => {
            let text = Content::join(&content);
            let is_own = text.starts_with("<environment_context>") || text.trim().is_empty();
            (!is_own).then(|| EarlierEntry::Prompt(clean(text)))
        }
        Body::Message { role: Role::Assistant, content } => {
            Some(EarlierEntry::Answer(clean(Content::join(&content))))
        }
        Body::Call(call) => Some(EarlierEntry::Call(call)),
        _ => None,
    };
    let mut entries: Vec<_> = history.into_iter().filter_map(entry).collect();
    let omitted = entries.len().saturating_sub(MAX_ENTRIES);
    entries.drain(..omitted);
    if omitted > 0 {
        entries.insert(0, EarlierEntry::Omitted(omitted));
    }
    entries
}
