//! Applies changes of files, links and directories by handle: how an undo takes back what a command did.
//!
//! Every content before and after is in an archive, so no copy is kept on the side. An error takes back what was done. If
//! the process or the machine dies in the middle, the same undo is run again: an entry that is as it should be is passed
//! over, one that is still as the command left it is changed, and any other is a conflict. New contents are flushed before
//! they get their names, and everything before the undo counts.

use std::{
    io,
    path::{Path, PathBuf},
};

use windlass_contract::{ContentDigest, EntryChange, EntryContent, EntryVersion};

mod observed_entry;
mod steps;

use observed_entry::ObservedEntry;
use steps::Applier;

/// Reads a content by its digest.
pub type ReadContent<'a> = &'a dyn Fn(&ContentDigest) -> io::Result<Vec<u8>>;

/// An entry in the light of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStanding {
    /// It is as before the change, which can be made.
    Ready,
    /// It is as after the change already.
    Done,
    /// It is neither: someone else's work.
    Conflict,
}

/// The result of changes that were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Directories that were to be removed and hold something else.
    pub left: Vec<PathBuf>,
}

/// The reason why changes were not made.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// An entry is not as before the change. Nothing was changed.
    #[error("`{path}` was changed by someone else meanwhile; nothing was changed")]
    Conflict {
        /// The entry.
        path: PathBuf,
    },
    /// The system refused. Everything is as it was.
    #[error("cannot {step} `{path}`: {source}; nothing was changed")]
    Failed {
        /// The step.
        step: &'static str,
        /// The entry.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The system refused, and again when the changes were to be taken back.
    #[error("cannot {step} `{path}`: {source}; `{left}` could not be put back, undo it again")]
    Stuck {
        /// The step.
        step: &'static str,
        /// The entry.
        path: PathBuf,
        /// The error.
        source: io::Error,
        /// The entry that is not as it was.
        left: PathBuf,
    },
}

/// Compares entries with both sides of their changes, by content.
pub fn inspect_changes(changes: &[EntryChange]) -> io::Result<Vec<EntryStanding>> {
    changes.iter().map(|change| Ok(standing(change, ObservedEntry::look(&change.path)?.as_ref()))).collect()
}

/// Makes all changes or none. Each entry must be as before its change, or as after it already.
pub fn restore_entries(
    changes: &[EntryChange],
    contents: ReadContent<'_>,
) -> Result<RestoreReport, RestoreError> {
    let mut applier = Applier::new(changes, contents);
    match applier.run() {
        Ok(report) => Ok(report),
        Err(error) => Err(take_back(error, &applier.done(), contents)),
    }
}

fn take_back(error: RestoreError, done: &[EntryChange], contents: ReadContent<'_>) -> RestoreError {
    let reversed: Vec<_> = done.iter().map(EntryChange::reversed).collect();
    let Err(second) = Applier::new(&reversed, contents).run() else { return error };
    let left = match second {
        RestoreError::Conflict { path }
        | RestoreError::Failed { path, .. }
        | RestoreError::Stuck { path, .. } => path,
    };
    match error {
        RestoreError::Conflict { path } => {
            let source = io::Error::other("it was changed by someone else meanwhile");
            RestoreError::Stuck { step: "change", path, source, left }
        }
        RestoreError::Failed { step, path, source } | RestoreError::Stuck { step, path, source, .. } => {
            RestoreError::Stuck { step, path, source, left }
        }
    }
}

fn standing(change: &EntryChange, now: Option<&ObservedEntry>) -> EntryStanding {
    let holds = |version: Option<&EntryVersion>| match (version, now) {
        (None, None) => true,
        (Some(version), Some(now)) => now.holds(&version.content),
        (Some(_), None) | (None, Some(_)) => false,
    };
    let is_directory = |version: Option<&EntryVersion>| {
        version.is_some_and(|version| version.content == EntryContent::Directory)
    };
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    if holds(before) {
        EntryStanding::Ready
    } else if holds(after) {
        EntryStanding::Done
    } else if now.is_none() && is_directory(before) && is_directory(after) {
        // Someone removed it: there is no mode to restore.
        EntryStanding::Done
    } else {
        EntryStanding::Conflict
    }
}

/// Returns the directory of an entry and its name in it.
fn place_of(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what people and commands do")]
mod tests;
