//! Compares entries with both sides of their changes.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

use windlass_contract::snapshot::{EntryChange, EntryContent, EntryVersion};

use super::{
    EntryStanding,
    observed_entry::{EntryLookup, ObservedEntry},
};

/// All permissions of the owner.
pub(super) const OWNER_ACCESS: u32 = 0o700;

/// A change and the entry as it is now.
pub(super) struct InspectedEntry<'a> {
    /// The index in the list of changes.
    pub(super) at: usize,
    pub(super) change: &'a EntryChange,
    pub(super) now: Option<ObservedEntry>,
    pub(super) standing: EntryStanding,
}

/// Reads the entries of all changes, sorted by path: a directory comes before its entries.
pub(super) fn inspect(changes: &[EntryChange]) -> Result<Vec<InspectedEntry<'_>>, (PathBuf, io::Error)> {
    let mut order: Vec<_> = changes.iter().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| one.path.cmp(&other.path));
    let mut known: HashMap<&Path, (EntryStanding, bool)> = HashMap::new();
    let mut inspected = Vec::new();
    for (at, change) in order {
        let look = EntryLookup::new(&change.path).map_err(|error| (change.path.clone(), error))?;
        let (now, standing) = match look {
            EntryLookup::Found(now) => {
                let standing = standing(change, Some(&now));
                (Some(now), standing)
            }
            EntryLookup::Absent => (None, standing(change, None)),
            EntryLookup::Behind { obstacle, is_link } => {
                (None, standing_behind(change, known.get(&*obstacle).copied(), is_link))
            }
        };
        known.insert(&change.path, (standing, is_directory(change.after.as_ref())));
        inspected.push(InspectedEntry { at, change, now, standing });
    }
    Ok(inspected)
}

/// Returns the standing of an entry whose directory has become a file or a link. `above` is the
/// standing of that file or link, and true if it becomes a directory; `None` if it is not part of
/// the changes.
fn standing_behind(
    change: &EntryChange,
    above: Option<(EntryStanding, bool)>,
    is_link: bool,
) -> EntryStanding {
    let (is_ours, becomes_directory) = match above {
        Some((EntryStanding::Ready, becomes_directory)) => (true, becomes_directory),
        Some((EntryStanding::Done, _)) => (true, false),
        Some((EntryStanding::Conflict, _)) | None => (false, false),
    };
    // A link of someone else may lead to a directory that has the entry.
    if (change.after.is_some() && !becomes_directory) || (is_link && !is_ours) {
        return EntryStanding::Conflict;
    }
    standing(change, None)
}

fn standing(change: &EntryChange, now: Option<&ObservedEntry>) -> EntryStanding {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let Some(now) = now else {
        return match (before, after) {
            (None, _) => EntryStanding::Ready,
            (Some(_), None) => EntryStanding::Done,
            // Someone removed it: there is no mode to restore.
            (Some(_), Some(_)) if is_directory(before) && is_directory(after) => EntryStanding::Done,
            (Some(_), Some(_)) => EntryStanding::Conflict,
        };
    };
    let holds = |version: &EntryVersion| now.holds(&version.content);
    match (before, after) {
        (Some(before), Some(after)) if before.content.has_same_type(&after.content) => {
            if holds(before) || holds(after) {
                standing_of_metadata(before, after, now)
            } else {
                EntryStanding::Conflict
            }
        }
        // The entry is removed, and its metadata with it.
        (Some(before), _) if holds(before) => {
            let is_as_left = has_mode(now, before.mode) && now.owner() == before.owner;
            if is_as_left { EntryStanding::Ready } else { EntryStanding::Conflict }
        }
        (_, Some(after)) if holds(after) => {
            let is_open = now.mode() != after.mode && has_mode(now, after.mode);
            if is_open { EntryStanding::Ready } else { EntryStanding::Done }
        }
        _ => EntryStanding::Conflict,
    }
}

/// Returns the standing of an entry that holds one of two contents. Metadata that the change does
/// not alter may differ.
fn standing_of_metadata(before: &EntryVersion, after: &EntryVersion, now: &ObservedEntry) -> EntryStanding {
    let (is_mode_altered, is_owner_altered) = (before.mode != after.mode, before.owner != after.owner);
    let is_known_mode = has_mode(now, before.mode) || has_mode(now, after.mode);
    let is_known_owner = [before.owner, after.owner].contains(&now.owner());
    if (is_mode_altered && !is_known_mode) || (is_owner_altered && !is_known_owner) {
        return EntryStanding::Conflict;
    }
    let is_done = now.holds(&after.content)
        && (!is_mode_altered || now.mode() == after.mode)
        && (!is_owner_altered || now.owner() == after.owner);
    if is_done { EntryStanding::Done } else { EntryStanding::Ready }
}

/// Returns true if an entry has this mode. A directory may also have all permissions for its owner,
/// which it has during a change.
fn has_mode(now: &ObservedEntry, mode: u32) -> bool {
    let is_open = now.holds(&EntryContent::Directory) && now.mode() == mode | OWNER_ACCESS;
    now.mode() == mode || is_open
}

fn is_directory(version: Option<&EntryVersion>) -> bool {
    version.is_some_and(|version| version.content == EntryContent::Directory)
}
