//! The drafts beside an entry during a change, and their removal from any point.
//!
//! New content is written to a `.part` file and renamed when it is complete. Then it is exchanged
//! with the entry, so that the draft holds the old content. If the file system cannot exchange, or
//! the entry is removed, the entry is renamed to an `.old` file. A draft that holds neither content
//! of the change, or is a directory that is not empty, is someone else's work, and is put back.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
};

use windlass_contract::snapshot::EntryContent;

use super::{
    entry_writing::remove_entry,
    observed_entry::{ObservedEntry, is_unreachable},
    place_of,
};
use crate::{
    checked_rename::{exchange, remove_file, rename_to_free, save_beside},
    handle::open_directory,
};

const PREFIX: &str = ".windlass-undo-";

/// The name and the possible contents of the drafts of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryDraft {
    /// The entry.
    pub(super) path: PathBuf,
    /// The unique name of the draft beside it.
    pub(super) name: OsString,
    /// The types and contents on both sides.
    pub(super) before: Option<EntryContent>,
    pub(super) after: Option<EntryContent>,
}

impl EntryDraft {
    pub(super) fn new(path: PathBuf, before: Option<EntryContent>, after: Option<EntryContent>) -> Self {
        let name = OsString::from(format!("{PREFIX}{:016x}", fastrand::u64(..)));
        Self { path, name, before, after }
    }

    /// Returns the name of new content that is not complete yet.
    pub(super) fn part(&self) -> OsString {
        self.extended(".part")
    }

    /// Returns the name of the old entry after it was moved away.
    pub(super) fn old(&self) -> OsString {
        self.extended(".old")
    }

    fn extended(&self, end: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(end);
        name
    }

    /// Removes the drafts. Returns the path of someone else's work that was among them and could
    /// not be put back.
    pub(super) fn settle(&self) -> io::Result<Option<PathBuf>> {
        let (parent, name) = place_of(&self.path)?;
        let directory = match open_directory(parent) {
            Err(error) if is_unreachable(&error) => return Ok(None),
            directory => directory?,
        };
        remove_file(&directory, &self.part())?;
        let mut saved = None;
        for draft in [self.old(), self.name.clone()] {
            saved = self.settle_draft(&directory, name, &draft)?.or(saved);
        }
        Ok(saved)
    }

    fn settle_draft(&self, directory: &OwnedFd, name: &OsStr, draft: &OsStr) -> io::Result<Option<PathBuf>> {
        let Some(found) = ObservedEntry::look_in(directory, draft)? else { return Ok(None) };
        let holds = |entry: &ObservedEntry, content: &Option<EntryContent>| {
            content.as_ref().is_some_and(|content| entry.holds(content))
        };
        let (is_before, is_after) = (holds(&found, &self.before), holds(&found, &self.after));
        let here = ObservedEntry::look_in(directory, name)?;
        let (draft_place, place) = ((directory, draft), (directory, name));
        match here {
            // It was moved away, and nothing took its place.
            None if is_before || !is_after => rename_to_free(draft_place, place).map(|()| None),
            _ if (is_before || is_after) && remove_entry(directory, draft, &found.stat).is_ok() => Ok(None),
            None => rename_to_free(draft_place, place).map(|()| None),
            // The draft was exchanged with a file that someone had saved just before.
            Some(here) if holds(&here, &self.after) && exchange(draft_place, place).is_ok() => {
                self.settle_draft_after_exchange(directory, draft)
            }
            _ => self.save(directory, draft),
        }
    }

    fn settle_draft_after_exchange(&self, directory: &OwnedFd, draft: &OsStr) -> io::Result<Option<PathBuf>> {
        let found = ObservedEntry::look_in(directory, draft)?;
        match found.filter(|found| self.after.as_ref().is_some_and(|after| found.holds(after))) {
            Some(ours) if remove_entry(directory, draft, &ours.stat).is_ok() => Ok(None),
            _ => self.save(directory, draft),
        }
    }

    fn save(&self, directory: &OwnedFd, draft: &OsStr) -> io::Result<Option<PathBuf>> {
        let name = place_of(&self.path)?.1;
        let free = save_beside((directory, draft), (directory, name), rename_to_free)?;
        Ok(Some(self.path.with_file_name(free)))
    }
}
