//! The earlier conversation of a session that is resumed, for its screen.

use std::{path::PathBuf, thread};

use windlass::{
    Body, Content, Item, Role,
    clean::Secrets,
    is_of_program,
    record::{self, SessionEntry, Which},
};
use windlass_tui::{EarlierConversation, EarlierEntry};

use crate::setup::ProgramSetup;

/// Maximum number of messages and calls that are shown.
const MAX_ENTRIES: usize = 50;

/// Begins to read the end of the conversation, while the agent is built from the same file. A
/// session that cannot be read has none here: resuming it reports the error.
pub(crate) fn read(setup: &ProgramSetup, which: &Which) -> EarlierConversation {
    let path = match which {
        Which::Id(id) => record::find(&setup.home, id).ok().map(|(_, path)| path),
        Which::Last => newest(setup, |entry| !entry.is_of_sub_agent()),
        Which::LastIn(cwd) => newest(setup, |entry| entry.cwd == *cwd && !entry.is_of_sub_agent()),
    };
    let secrets = setup.secrets();
    let load = move || {
        let session = path.and_then(|path| record::load(&path).ok());
        session.map(|session| last_entries(session.transcript(), &secrets)).unwrap_or_default()
    };
    let thread = thread::Builder::new().name("windlass-earlier".to_owned()).spawn(load);
    Box::new(move || thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_default())
}

fn newest(setup: &ProgramSetup, is_wanted: impl Fn(&SessionEntry) -> bool) -> Option<PathBuf> {
    let entries = record::list(&setup.home).ok()?;
    entries.into_iter().find(is_wanted).map(|entry| entry.path)
}

/// Returns why a turn ended early, from the message about it to the model.
fn early_end(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("<turn_aborted>\n")?.strip_suffix("</turn_aborted>")?;
    let reason = inner.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    Some(match reason {
        Some(("aborted by user", _)) | None => "cancelled",
        Some((reason, _)) => reason.strip_prefix("aborted: ").unwrap_or(reason),
    })
}

fn last_entries<'a>(items: impl Iterator<Item = &'a Item>, secrets: &Secrets) -> Vec<EarlierEntry> {
    let clean = |text: String| secrets.clean(&text).into_owned();
    let entry = |item: &Item| match &item.body {
        Body::Message { role: Role::User, content } => {
            let text = Content::join(content);
            match early_end(&text) {
                Some(word) => Some(EarlierEntry::Ended(clean(word.to_owned()))),
                None if is_of_program(&text) || text.trim().is_empty() => None,
                None => Some(EarlierEntry::Prompt(clean(text))),
            }
        }
        Body::Message { role: Role::Assistant, content } => {
            Some(EarlierEntry::Answer(clean(Content::join(content))))
        }
        Body::Call(call) => Some(EarlierEntry::Call(call.clone())),
        _ => None,
    };
    let mut entries: Vec<_> = items.filter_map(entry).collect();
    let omitted = entries.len().saturating_sub(MAX_ENTRIES);
    entries.drain(..omitted);
    if omitted > 0 {
        entries.insert(0, EarlierEntry::Omitted(omitted));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_ended_early_is_told_apart_from_a_message() {
        let note = |why: &str| {
            let text = format!("<turn_aborted>\nThe turn was ended early ({why}). Look.\n</turn_aborted>");
            Item::message(Role::User, text)
        };
        let history = [
            Item::message(Role::User, "<environment_context>here</environment_context>"),
            Item::message(Role::User, "what is <turn_aborted>?"),
            note("aborted by user"),
            note("aborted: the program was ended"),
        ];
        let entries = last_entries(history.iter(), &Secrets::default());
        let [EarlierEntry::Prompt(prompt), EarlierEntry::Ended(first), EarlierEntry::Ended(second)] =
            &entries[..]
        else {
            panic!("{entries:?}")
        };
        let shown = [prompt, first, second].map(String::as_str);
        assert_eq!(shown, ["what is <turn_aborted>?", "cancelled", "the program was ended"]);
    }
}
