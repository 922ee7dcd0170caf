//! Applies changes of files, links and directories by handle. An undo uses it to take back what a
//! command did.
//!
//! All contents are in an archive, so no other copy is kept. An error rolls back what was done.
//! After a crash, the same undo is run again: an entry that is restored already is skipped, one
//! that is still as the command left it is changed, and any other is a conflict. New contents are
//! flushed before they are renamed into place, and everything is flushed before the undo is
//! recorded. A note in the home of Windlass names the drafts beside the files, so that the next
//! start removes them ([`recover_restores`]).

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use windlass_contract::snapshot::{ContentDigest, EntryChange};

use crate::fail_points::FailPoints;

mod draft_note;
mod entry_draft;
mod entry_restorer;
mod entry_writing;
mod inspection;
mod observed_entry;

pub use draft_note::recover_restores;
use entry_restorer::{EntryRestorer, RestoreGoal};
use inspection::inspect;

/// Reads a content by its digest.
pub type ReadContent<'a> = &'a dyn Fn(&ContentDigest) -> io::Result<Vec<u8>>;

/// The state of an entry relative to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStanding {
    /// The entry is as before the change, which can be made.
    Ready,
    /// The entry is as after the change already.
    Done,
    /// The entry is neither: someone else's work.
    Conflict,
}

/// The result of changes that were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Directories that were not removed because they hold other entries.
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
    /// A system call failed. Everything is as it was.
    #[error("cannot {step} `{path}`: {source}; nothing was changed")]
    Failed {
        /// The step.
        step: &'static str,
        /// The entry.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Everything is as it was, except some entries.
    #[error("{reason}, except {}: someone else changed that as well, or it cannot be put back", listed(.left))]
    Left {
        /// The reason why the changes were not made.
        reason: Box<Self>,
        /// The entries that are not as they were.
        left: Vec<PathBuf>,
    },
}

fn listed(paths: &[PathBuf]) -> String {
    const MAX_LISTED: usize = 5;
    let mut names: Vec<_> =
        paths.iter().take(MAX_LISTED).map(|path| format!("`{}`", path.display())).collect();
    if paths.len() > MAX_LISTED {
        names.push(format!("{} more", paths.len() - MAX_LISTED));
    }
    names.join(", ")
}

/// Compares entries with both sides of their changes, by content and by the metadata that the
/// changes alter. Changes of one call belong together: a directory that the call replaced is no
/// obstacle to its entries.
pub fn inspect_changes(changes: &[EntryChange]) -> io::Result<Vec<EntryStanding>> {
    let mut standings = vec![EntryStanding::Conflict; changes.len()];
    for entry in inspect(changes).map_err(|(_, error)| error)? {
        standings[entry.at] = entry.standing;
    }
    Ok(standings)
}

/// Makes all changes or none. Each entry must be as before its change, or as after it already.
/// `notes` is a directory of Windlass, which no command can reach.
pub fn restore_entries(
    changes: &[EntryChange],
    contents: ReadContent<'_>,
    notes: &Path,
) -> Result<RestoreReport, RestoreError> {
    restore_with_fail_points(changes, contents, notes, &FailPoints::default())
}

fn restore_with_fail_points(
    changes: &[EntryChange],
    contents: ReadContent<'_>,
    notes: &Path,
    fail_points: &FailPoints,
) -> Result<RestoreReport, RestoreError> {
    let mut restorer = EntryRestorer::new(changes, contents, fail_points, RestoreGoal::AllOrNothing);
    let error = match restorer.run(notes) {
        Ok(()) => return Ok(restorer.report),
        Err(error) => error,
    };
    let done: Vec<_> = restorer.begun().map(EntryChange::reversed).collect();
    let mut back = EntryRestorer::new(&done, contents, fail_points, RestoreGoal::AsMuchAsPossible);
    let stopped = back.run(notes).err().map(|second| second.path().to_owned());
    let left: Vec<_> = back.left.into_iter().chain(stopped).collect();
    Err(if left.is_empty() { error } else { RestoreError::Left { reason: Box::new(error), left } })
}

impl RestoreError {
    fn path(&self) -> &Path {
        match self {
            Self::Conflict { path } | Self::Failed { path, .. } => path,
            Self::Left { reason, .. } => reason.path(),
        }
    }
}

/// Returns the directory of an entry and its name in it.
fn place_of(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what people and commands do")]
mod tests;
