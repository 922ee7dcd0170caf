//! Finishes or rolls back the commits that crashed processes have left incomplete.
#![expect(
    clippy::disallowed_methods,
    reason = "the logs are in a directory of Windlass itself, which no command can reach"
)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use windlass_contract::edit::Archive;

use super::{
    FailPoints,
    file_swap::{FileSwap, SettledSwap},
    flush::TouchedDirectories,
    folders::{remove_folders, remove_made},
    log_format::{LoggedChange, ParsedLog, parse},
    write_ahead::EXTENSION,
};
use crate::{
    crash_note::for_each_abandoned,
    handle::{lstat, open_directory},
};

/// Maximum time that a log is kept for a directory that does not exist.
const MAX_WAIT: Duration = Duration::from_hours(720);

/// The result of recovering an incomplete commit.
#[derive(Debug)]
pub enum CommitRecovery {
    /// These files were restored to their state before the change.
    PutBack(Vec<PathBuf>),
    /// The change is committed; only drafts had to be removed.
    Finished,
    /// The file holds neither the old nor the new content: someone else's work. It was left as it
    /// is.
    Conflict {
        /// The file.
        path: PathBuf,
        /// The path of another content of the file: the one from before the change, as far as that
        /// is known.
        before: Option<PathBuf>,
    },
    /// A change could not be finished or rolled back; it is tried again at the next start.
    Failed {
        /// The file, or the log of the change.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

/// Finishes the commits that are in an edit log, and rolls back the others. `archive` may be any
/// archive of the user.
pub fn recover(archive: &dyn Archive) -> io::Result<Vec<CommitRecovery>> {
    let mut recovered = Vec::new();
    for_each_abandoned(archive.notes(), EXTENSION, |path, bytes| {
        match parse(bytes) {
            ParsedLog::Complete(change) => recovered.extend(change.recover(archive, &path)),
            ParsedLog::Torn => remove_log(&path, &mut recovered),
            ParsedLog::WithoutChecksums(files) => {
                recovered.extend(files.into_iter().flat_map(|(path, beside)| report_drafts(&path, beside)));
                remove_log(&path, &mut recovered);
            }
            ParsedLog::LaterVersion => {
                let source = io::Error::other("a later version of windlass has written it");
                recovered.push(CommitRecovery::Failed { path, source });
            }
        }
        Ok(())
    })?;
    Ok(recovered)
}

fn remove_log(path: &Path, recovered: &mut Vec<CommitRecovery>) {
    if let Err(source) = fs::remove_file(path) {
        recovered.push(CommitRecovery::Failed { path: path.to_owned(), source });
    }
}

/// Reports the drafts beside a file. Without checksums its content cannot be identified, so nothing
/// is changed.
fn report_drafts(path: &Path, beside: [PathBuf; 2]) -> Vec<CommitRecovery> {
    let found = beside.into_iter().filter(|beside| lstat(beside).is_ok());
    found.map(|beside| CommitRecovery::Conflict { path: path.to_owned(), before: Some(beside) }).collect()
}

impl LoggedChange {
    fn recover(self, archive: &dyn Archive, log: &Path) -> Vec<CommitRecovery> {
        let failed = |path: &Path, source| CommitRecovery::Failed { path: path.to_owned(), source };
        let counts = match archive.is_logged(&self.edit_log, &self.transaction) {
            Ok(counts) => counts,
            Err(source) => return vec![failed(&self.edit_log, source)],
        };
        let mut recovered = Vec::new();
        let mut touched = TouchedDirectories::default();
        let (mut put_back, mut is_complete) = (Vec::new(), true);
        for swap in self.swaps.iter().rev() {
            let end = swap.real.parent().ok_or_else(|| io::ErrorKind::NotFound.into()).and_then(|parent| {
                let directory = open_directory(parent)?;
                let fail_points = FailPoints::default();
                let end = if counts {
                    swap.roll_forward(&directory, &fail_points)
                } else {
                    swap.roll_back(&directory, &fail_points)
                };
                touched.take(&directory).and(end)
            });
            match end {
                Ok(SettledSwap::Clear) => put_back.push(swap.real.clone()),
                Ok(SettledSwap::Conflict { before }) => {
                    recovered.push(CommitRecovery::Conflict { path: swap.real.clone(), before });
                }
                // The directory is not made yet, or is removed already.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.owns_directory_of(swap) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => is_complete = false,
                Err(source) => recovered.push(failed(&swap.real, source)),
            }
        }
        if !is_complete && !is_expired(log) {
            return recovered;
        }
        if recovered.iter().any(|one| matches!(one, CommitRecovery::Failed { .. })) {
            return recovered;
        }
        self.settle_folders(counts);
        // The restored files must be on the disk before the log is removed.
        let roots = self.trees.iter().map(|tree| &tree.root);
        let made = self.made.iter().map(|made| &made.real);
        let flushed = touched.take_parents(roots.chain(made).chain(&self.removed_folders));
        if let Err(source) = flushed.and_then(|()| touched.flush()) {
            recovered.push(failed(log, source));
            return recovered;
        }
        remove_log(log, &mut recovered);
        if counts {
            recovered.push(CommitRecovery::Finished);
        } else if !put_back.is_empty() {
            put_back.reverse();
            recovered.push(CommitRecovery::PutBack(put_back));
        }
        recovered
    }

    /// Returns true if the change makes or removes the directory of a file.
    fn owns_directory_of(&self, swap: &FileSwap) -> bool {
        let mut owned = self.trees.iter().map(|tree| &tree.root).chain(&self.removed_folders);
        owned.any(|folder| swap.real.starts_with(folder))
    }

    fn settle_folders(&self, counts: bool) {
        let fail_points = FailPoints::default();
        if counts {
            remove_folders(&self.removed_folders, &fail_points);
        } else {
            remove_made(&self.made, &fail_points);
        }
        self.trees.iter().for_each(|tree| tree.remove_draft(&fail_points));
    }
}

/// Returns true if a log is too old to wait any longer for a missing directory, whose file system
/// may not be mounted yet.
fn is_expired(log: &Path) -> bool {
    let age = fs::metadata(log).and_then(|metadata| metadata.modified()).map(|modified| modified.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > MAX_WAIT))
}
