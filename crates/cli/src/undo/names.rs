//! The names of calls, as `windlass history` shows them.

use std::{collections::HashMap, ops::ControlFlow};

use windlass::record::{Call, CallFilter, Edit, Edits, ThreadFolder, UNDO};

use super::EditPlace;
use crate::{calls, screen::visible, setup::ProgramSetup};

/// The class of a call that was running when its process ended.
const CUT_SHORT: &str = "cut short";

/// Minimum length of an abbreviated name.
const MIN_PREFIX: usize = 4;

/// The short names and tools of calls, by session and the id from their model.
pub(super) struct CallNames {
    calls: HashMap<(Option<String>, String), Vec<Call>>,
    /// The newest call of this directory whose outcome is not on record.
    unfinished: Option<Call>,
}

impl CallNames {
    /// Looks up the calls of these edits. Without an index, calls have the ids from their models.
    pub(super) fn open<'a>(setup: &ProgramSetup, places: impl Iterator<Item = &'a EditPlace>) -> Self {
        let mut names = Self { calls: HashMap::new(), unfinished: None };
        let Ok(index) = calls::open(setup) else { return names };
        // A damaged index only costs a note.
        let _partly = index.for_each_call(&CallFilter::default(), |call| {
            if !call.cwd.starts_with(&setup.cwd) {
                return ControlFlow::Continue(());
            }
            let is_unfinished = call.status.is_none() || call.class.as_deref() == Some(CUT_SHORT);
            names.unfinished = is_unfinished.then_some(call);
            ControlFlow::Break(())
        });
        for place in places {
            let session = place.edits.session().map(str::to_owned);
            for edit in &place.list {
                let (_, id) = without_undo(edit.call.as_str());
                names.calls.entry((session.clone(), id.to_owned())).or_insert_with(|| {
                    let mut found = index.find(id).unwrap_or_default();
                    found.retain(|call| call.id.as_str() == id && is_of(call, session.as_deref()));
                    found
                });
            }
        }
        names
    }

    /// Notes that the newest call here has no outcome: its changes may not be in the log.
    pub(super) fn note_unfinished(&self) {
        if let Some(call) = &self.unfinished {
            crate::note(&format!(
                "note: call {} is still running, or was interrupted when Windlass ended; its changes may not be recorded",
                visible(&call.handle)
            ));
        }
    }

    /// Returns the call that made an edit: of those with its name, the last that began before it.
    pub(super) fn call(&self, edits: &Edits, edit: &Edit) -> Option<&Call> {
        let (_, id) = without_undo(edit.call.as_str());
        let known = self.calls.get(&(edits.session().map(str::to_owned), id.to_owned()))?;
        // The newest comes first.
        known.iter().find(|call| call.time <= edit.time).or(known.first())
    }

    /// Returns the name under which an edit is shown.
    pub(super) fn display_name(&self, edits: &Edits, edit: &Edit) -> String {
        let (undo, id) = without_undo(edit.call.as_str());
        let name = self.call(edits, edit).map_or(id, |call| &call.handle);
        format!("{}{name}", UNDO.repeat(undo))
    }

    /// Returns true if a name stands for one of these edits.
    pub(super) fn knows(&self, places: &[EditPlace], name: &str) -> bool {
        places.iter().any(|place| place.list.iter().any(|edit| self.is_meant(&place.edits, edit, name)))
    }

    /// Returns true if a name stands for this edit: its name, a prefix of it, or the id from the
    /// model.
    pub(super) fn is_meant(&self, edits: &Edits, edit: &Edit, name: &str) -> bool {
        let shown = self.display_name(edits, edit);
        let (undo, _) = without_undo(&shown);
        let (asked_undo, asked) = without_undo(name);
        let is_prefix = asked.len() >= MIN_PREFIX && undo == asked_undo && shown.starts_with(name);
        edit.call.as_str() == name || shown == name || is_prefix
    }
}

fn is_of(call: &Call, session: Option<&str>) -> bool {
    match session {
        Some(session) => call.thread.as_str() == session,
        None => call.folder == ThreadFolder::Calls,
    }
}

/// Returns the number of `undo:` prefixes of a name, and the rest of it.
pub(super) fn without_undo(mut name: &str) -> (usize, &str) {
    let mut times = 0;
    while let Some(rest) = name.strip_prefix(UNDO) {
        (times, name) = (times + 1, rest);
    }
    (times, name)
}
