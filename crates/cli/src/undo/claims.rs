//! Changes that several sessions claim, because they were made while commands of each ran.

use std::collections::HashMap;
use std::path::PathBuf;

use windlass::record::{Edit, EditedFile, KeptVersion, UnkeptFile};

use super::EditPlace;
use crate::calls::one_line;

/// A change of a file, and the time span in which it was made.
struct ChangeClaim {
    order: i64,
    begun: jiff::Timestamp,
    ended: jiff::Timestamp,
    after: Option<KeptVersion>,
    origin: String,
}

/// Removes from each command the changes that another call made while it ran. If the other call ran
/// within that time, or is not a command, the change is the other's. If neither ran within the time
/// of the other, the author is unknown, and neither undo takes it back.
pub(super) fn leave_to_others(places: &mut [EditPlace]) {
    let mut claims: HashMap<PathBuf, Vec<ChangeClaim>> = HashMap::new();
    for edit in places.iter().flat_map(|place| &place.list) {
        for file in &edit.files {
            claims.entry(file.path.clone()).or_default().push(ChangeClaim::new(edit, file));
        }
    }
    claims.retain(|_, claims| claims.len() > 1);
    for edit in places.iter_mut().flat_map(|place| &mut place.list) {
        leave_files_to_others(edit, &claims);
    }
}

fn leave_files_to_others(edit: &mut Edit, claims: &HashMap<PathBuf, Vec<ChangeClaim>>) {
    let files = std::mem::take(&mut edit.files);
    for file in files {
        let others = claims.get(&file.path).map(Vec::as_slice).unwrap_or_default();
        let own = ChangeClaim::new(edit, &file);
        let Some(note) = edit.command.as_mut().filter(|note| note.begun.is_some()) else {
            edit.files.push(file);
            continue;
        };
        match others.iter().find(|other| own.may_be_of(other)) {
            None => edit.files.push(file),
            Some(other) => {
                note.unkept_count += 1;
                let path = file.path.to_string_lossy().into_owned();
                let reason = format!("changed at the same time by {}", other.origin);
                note.unkept.push(UnkeptFile { path, reason });
            }
        }
    }
}

impl ChangeClaim {
    fn new(edit: &Edit, file: &EditedFile) -> Self {
        let begun = edit.command.as_ref().and_then(|note| note.begun).unwrap_or(edit.time);
        let origin = match &edit.command {
            Some(note) => format!("`{}`", one_line(&note.line)),
            None => format!("call {}", edit.call),
        };
        Self { order: edit.order(), begun, ended: edit.time, after: file.after.clone(), origin }
    }

    /// Returns true if this change may be the other call's.
    fn may_be_of(&self, other: &Self) -> bool {
        let state =
            |after: &Option<KeptVersion>| after.as_ref().map(|kept| (kept.kind, kept.content.clone()));
        let is_same_change = state(&self.after) == state(&other.after);
        let is_at_once = other.begun <= self.ended && self.begun <= other.ended;
        let is_within_other = other.begun <= self.begun && self.ended <= other.ended;
        self.order != other.order && is_same_change && is_at_once && !is_within_other
    }
}
