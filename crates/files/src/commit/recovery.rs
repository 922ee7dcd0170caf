//! Finishes or takes back the changes that processes which are gone have left unfinished.
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
    Steps,
    flush::TouchedDirectories,
    folders::{remove_folders, remove_made},
    log_format::{FoundLog, LoggedChange, parse},
    trace::{Settled, Trace},
    write_ahead::EXTENSION,
};
use crate::{
    crash_note::for_each_abandoned,
    handle::{lstat, to_name_in},
};

/// How long a log waits for a directory that is not there.
const MAX_WAIT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What became of a change that was left unfinished.
#[derive(Debug)]
pub enum Recovery {
    /// These files are again what they were before the change.
    PutBack(Vec<PathBuf>),
    /// The change counts; only our own traces were left.
    Finished,
    /// The file holds something that is neither its content from before the change nor the new one: someone else's work. It
    /// was left as it is.
    Conflict {
        /// The file.
        path: PathBuf,
        /// Where another content of it is: the one from before the change, as far as that is known.
        before: Option<PathBuf>,
    },
    /// A change could not be finished or taken back; it is tried again next time.
    Failed {
        /// The file, or the log of the change.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Finishes the changes that are in an edit log, and takes back the others. The archive may be any one of the user's.
pub fn recover(archive: &dyn Archive) -> io::Result<Vec<Recovery>> {
    let mut recovered = Vec::new();
    for_each_abandoned(archive.notes(), EXTENSION, |path, bytes| {
        match parse(bytes) {
            FoundLog::Whole(change) => recovered.extend(change.recover(archive, &path)),
            FoundLog::Torn => remove_log(&path, &mut recovered),
            FoundLog::Unproven(files) => {
                recovered.extend(files.into_iter().flat_map(|(path, beside)| leave(&path, beside)));
                remove_log(&path, &mut recovered);
            }
            FoundLog::Unknown => {
                let source = io::Error::other("a later version of windlass has written it");
                recovered.push(Recovery::Failed { path, source });
            }
        }
        Ok(())
    })?;
    Ok(recovered)
}

fn remove_log(path: &Path, recovered: &mut Vec<Recovery>) {
    if let Err(source) = fs::remove_file(path) {
        recovered.push(Recovery::Failed { path: path.to_owned(), source });
    }
}

/// Without checksums there is no proof of what a file is: it is left, with whatever is beside it.
fn leave(path: &Path, beside: [PathBuf; 2]) -> Vec<Recovery> {
    let found = beside.into_iter().filter(|beside| lstat(beside).is_ok());
    found.map(|beside| Recovery::Conflict { path: path.to_owned(), before: Some(beside) }).collect()
}

impl LoggedChange {
    fn recover(self, archive: &dyn Archive, log: &Path) -> Vec<Recovery> {
        let failed = |path: &Path, source| Recovery::Failed { path: path.to_owned(), source };
        let counts = match archive.is_logged(&self.edit_log, &self.transaction) {
            Ok(counts) => counts,
            Err(source) => return vec![failed(&self.edit_log, source)],
        };
        let mut recovered = Vec::new();
        let mut touched = TouchedDirectories::default();
        let (mut put_back, mut is_complete) = (Vec::new(), true);
        for trace in self.traces.iter().rev() {
            let end = trace.real.parent().ok_or_else(|| io::ErrorKind::NotFound.into()).and_then(|parent| {
                let directory = to_name_in(parent)?;
                let steps = Steps::default();
                let end = if counts {
                    trace.roll_forward(&directory, &steps)
                } else {
                    trace.roll_back(&directory, &steps)
                };
                touched.take(&directory).and(end)
            });
            match end {
                Ok(Settled::Clear) => put_back.push(trace.real.clone()),
                Ok(Settled::Conflict { before }) => {
                    recovered.push(Recovery::Conflict { path: trace.real.clone(), before });
                }
                // Not made yet, or removed already.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.owns_directory_of(trace) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => is_complete = false,
                Err(source) => recovered.push(failed(&trace.real, source)),
            }
        }
        if !is_complete && !is_expired(log) {
            return recovered;
        }
        if recovered.iter().any(|one| matches!(one, Recovery::Failed { .. })) {
            return recovered;
        }
        self.settle_folders(counts);
        // What was put back must be on the disk before the log is gone.
        let roots = self.trees.iter().map(|tree| &tree.root);
        let made = self.made.iter().map(|made| &made.real);
        let flushed = touched.take_parents(roots.chain(made).chain(&self.unmade));
        if let Err(source) = flushed.and_then(|()| touched.flush()) {
            recovered.push(failed(log, source));
            return recovered;
        }
        remove_log(log, &mut recovered);
        if counts {
            recovered.push(Recovery::Finished);
        } else if !put_back.is_empty() {
            put_back.reverse();
            recovered.push(Recovery::PutBack(put_back));
        }
        recovered
    }

    /// Tests whether the change makes or removes the directory of a file.
    fn owns_directory_of(&self, trace: &Trace) -> bool {
        let mut owned = self.trees.iter().map(|tree| &tree.root).chain(&self.unmade);
        owned.any(|folder| trace.real.starts_with(folder))
    }

    fn settle_folders(&self, counts: bool) {
        let steps = Steps::default();
        if counts {
            remove_folders(&self.unmade, &steps);
        } else {
            remove_made(&self.made, &steps);
        }
        self.trees.iter().for_each(|tree| tree.remove_draft(&steps));
    }
}

/// Tests whether it is no use to wait any longer for a directory that is not there. Its file system may not be mounted yet.
fn is_expired(log: &Path) -> bool {
    let age = fs::metadata(log).and_then(|metadata| metadata.modified()).map(|modified| modified.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > MAX_WAIT))
}
