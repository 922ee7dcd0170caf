//! Commits changes to several files atomically: all of them or none, even across a crash or a loss
//! of power.
//!
//! The order is that of a database ([decision
//! 0040](../../../docs/decisions/0040-order-of-flushes.md)). All files are read and compared first
//! ([`plan`]). The old contents go to the archive and a write-ahead log lists the planned changes
//! ([`write_ahead`]); both are flushed. New contents are staged beside the files and flushed, old
//! and new are exchanged ([`file_swap`]), and the directories are flushed. Flushing the line in the
//! edit log commits the change; only then are the old contents beside the files removed. An error
//! rolls the change back. After a crash, the next start finishes the change or rolls it back
//! ([`recovery`]).

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use windlass_contract::{
    CallId,
    edit::{Archive, Change, Changed, CommitError, ContentPair, EditRecord, KeptPair},
    files::FileError,
};

use crate::{fail_points::FailPoints, resolve::PathResolver};
use content_id::BeforeId;
use file_swap::{FileSwap, SettledSwap, is_same};
use flush::{MAX_FLUSHED_AT_ONCE, TouchedDirectories, flush_all};
use folders::{FolderTree, MadeFolder, descend, remove_folders, remove_made};
use log_format::LoggedChange;
use plan::{CommitPlan, PlannedFile};
use write_ahead::WriteAheadLog;

mod content_id;
mod disk_space;
mod file_before;
mod file_swap;
mod flush;
mod folders;
mod log_format;
mod plan;
pub(crate) mod recovery;
mod target_directory;
mod write_ahead;
pub(crate) mod xattrs;

pub(crate) use flush::ignore_unsupported;

/// Changes files that the resolver allows to be written.
pub(crate) fn commit(
    resolver: &PathResolver,
    archive: Option<&dyn Archive>,
    call: &CallId,
    changes: Vec<Change>,
) -> Result<Vec<Changed>, CommitError> {
    commit_with_fail_points(resolver, archive, call, changes, &FailPoints::default())
}

fn commit_with_fail_points(
    resolver: &PathResolver,
    archive: Option<&dyn Archive>,
    call: &CallId,
    changes: Vec<Change>,
    fail_points: &FailPoints,
) -> Result<Vec<Changed>, CommitError> {
    let mut plan = CommitPlan::default();
    for change in changes {
        plan.add(resolver, change)?;
    }
    plan.check()?;
    disk_space::check(&plan.files, disk_space::free_bytes)?;
    CommitTransaction::new(plan, archive, fail_points, unique()).run(call)
}

/// Returns a transaction name that is unique across processes.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{:x}-{count}", std::process::id(), now.as_micros())
}

/// A set of changes that is being committed.
struct CommitTransaction<'a> {
    archive: Option<&'a dyn Archive>,
    fail_points: &'a FailPoints,
    unique: String,
    plan: CommitPlan,
    /// One for each planned file.
    contents: Vec<ContentPair>,
    /// One for each planned file.
    swaps: Vec<FileSwap>,
    /// Directories to make.
    trees: Vec<FolderTree>,
    /// Directories that were made.
    made: Vec<MadeFolder>,
    log: Option<WriteAheadLog>,
}

impl<'a> CommitTransaction<'a> {
    fn new(
        mut plan: CommitPlan,
        archive: Option<&'a dyn Archive>,
        fail_points: &'a FailPoints,
        unique: String,
    ) -> Self {
        let contents = plan.contents();
        let swaps = plan.files.iter().zip(&contents).enumerate().map(|(at, (planned, content))| FileSwap {
            real: planned.real.clone(),
            unique: format!("{unique}-{at}"),
            before: planned
                .before
                .as_ref()
                .zip(content.before.as_ref())
                .map(|(before, content)| BeforeId { content: content.into(), inode: before.stat.st_ino }),
            after: content.after.as_ref().map(Into::into),
        });
        let swaps = swaps.collect();
        let trees = FolderTree::plan(&mut plan.files, &unique);
        Self { archive, fail_points, unique, plan, contents, swaps, trees, made: Vec::new(), log: None }
    }

    fn run(mut self, call: &CallId) -> Result<Vec<Changed>, CommitError> {
        match self.apply(call) {
            Ok(changed) => {
                self.clean_up();
                Ok(changed)
            }
            Err(TransactionError::RollBack(error)) => Err(self.roll_back(error)),
            Err(TransactionError::Undecided(error)) => Err(error),
        }
    }

    fn apply(&mut self, call: &CallId) -> Result<Vec<Changed>, TransactionError> {
        let kept = self.begin()?;
        self.make_folders()?;
        self.stage()?;
        for at in 0..self.plan.files.len() {
            self.swap(at)?;
        }
        self.fail_points
            .hit()
            .and_then(|()| self.flush_directories())
            .map_err(|error| self.failed("flush the directory of", 0)(error))?;
        let changed: Vec<_> = self.plan.files.iter().map(PlannedFile::changed).collect();
        self.log_edit(&EditRecord { transaction: &self.unique, call, files: &changed, kept: &kept })?;
        Ok(changed)
    }

    /// Archives the contents and writes the log at the same time: a disk takes about as long for
    /// both as for one.
    fn begin(&mut self) -> Result<Vec<KeptPair>, CommitError> {
        let Some(archive) = self.archive else { return Ok(Vec::new()) };
        let change = LoggedChange {
            transaction: self.unique.clone(),
            edit_log: archive.log_path(),
            trees: self.trees.clone(),
            removed_folders: self.plan.removed_folders.clone(),
            swaps: self.swaps.clone(),
            made: Vec::new(),
        };
        let (fail_points, contents) = (self.fail_points, &self.contents);
        let keep = || archive.keep(contents);
        let (kept, log) = fail_points.hit().map_err(self.failed("keep for an undo", 0)).map(|()| {
            let begin = || WriteAheadLog::begin(archive.notes(), &change, fail_points);
            thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, keep) {
                Ok(kept) => {
                    let log = begin();
                    (kept.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked"))), log)
                }
                // No more threads: do one after the other.
                Err(_) => (keep(), begin()),
            })
        })?;
        self.log = Some(log.map_err(self.failed("note the change of", 0))?);
        kept.map_err(self.failed("keep for an undo", 0))
    }

    fn make_folders(&mut self) -> Result<(), CommitError> {
        if self.trees.is_empty() {
            return Ok(());
        }
        let trees = std::mem::take(&mut self.trees);
        let end = self.make_trees(&trees);
        self.trees = trees;
        end?;
        for at in 0..self.plan.files.len() {
            let (entered, name) = (self.enter_folders(at), self.plan.files[at].name.clone());
            entered.map_err(|error| crate::resolve::file_error(&name, error))?;
        }
        Ok(())
    }

    fn make_trees(&mut self, trees: &[FolderTree]) -> Result<(), CommitError> {
        let file_below = |files: &[PlannedFile], tree: &FolderTree| {
            files.iter().position(|planned| planned.real.starts_with(&tree.root))
        };
        for tree in trees {
            let at = file_below(&self.plan.files, tree).unwrap_or_default();
            let parent = self.plan.files[at].directory.open();
            let made = parent.and_then(|parent| tree.make(&parent, self.fail_points));
            self.made.extend(made.map_err(self.failed("make the directory of", at))?);
        }
        if let Some(log) = &mut self.log {
            let noted = log.note_made(&self.made, self.fail_points);
            noted.map_err(|error| self.failed("note the change of", 0)(error))?;
        }
        for tree in trees {
            let at = file_below(&self.plan.files, tree).unwrap_or_default();
            let parent = self.plan.files[at].directory.open();
            let appeared = parent.and_then(|parent| tree.rename_into_place(&parent, self.fail_points));
            appeared.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => CommitError::Stale { path: self.plan.files[at].name.clone() },
                _ => self.failed("make the directory of", at)(error),
            })?;
        }
        Ok(())
    }

    /// Replaces the directory of a file by the one that was made for it.
    fn enter_folders(&mut self, at: usize) -> io::Result<()> {
        let planned = &self.plan.files[at];
        let parent = planned.real.parent().unwrap_or(Path::new("/")).to_owned();
        let existing = parent.ancestors().nth(planned.missing).unwrap_or(Path::new("/"));
        let inside = parent.strip_prefix(existing).unwrap_or(Path::new("")).to_owned();
        if let Some(inside) = descend(&*planned.directory.open()?, &inside)? {
            self.plan.files[at].directory = self.plan.directories.take(inside, &parent)?;
        }
        Ok(())
    }

    /// Writes and flushes the new contents, several at once.
    fn stage(&self) -> Result<(), CommitError> {
        let written: Vec<_> =
            (0..self.plan.files.len()).filter(|at| self.plan.files[*at].after.is_some()).collect();
        for some in written.chunks(MAX_FLUSHED_AT_ONCE) {
            let mut opened = Vec::new();
            for &at in some {
                opened.push(self.write(at).map_err(self.failed("write", at))?);
            }
            let flushed = self.fail_points.hit().and_then(|()| flush_all(&opened));
            flushed.map_err(self.failed("write", some[0]))?;
            for &at in some {
                let directory = self.plan.files[at].directory.open();
                let staged =
                    directory.and_then(|directory| self.swaps[at].stage(&directory, self.fail_points));
                staged.map_err(self.failed("write", at))?;
            }
        }
        Ok(())
    }

    fn write(&self, at: usize) -> io::Result<std::fs::File> {
        let planned = &self.plan.files[at];
        let after = planned.after.as_ref().ok_or(io::ErrorKind::NotFound)?;
        after.write(&self.swaps[at], &*planned.directory.open()?, self.fail_points)
    }

    fn swap(&self, at: usize) -> Result<(), CommitError> {
        let (planned, swap, fail_points) = (&self.plan.files[at], &self.swaps[at], self.fail_points);
        let directory = &*planned.directory.open().map_err(self.failed("reach", at))?;
        let stale = || CommitError::Stale { path: planned.name.clone() };
        let was = match (&planned.before, &planned.after) {
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                return swap.rename_into_place(directory, fail_points).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => stale(),
                    _ => self.failed("make", at)(error),
                });
            }
            (Some(_), Some(_)) => {
                swap.exchange(directory, fail_points).map_err(self.failed("replace", at))?
            }
            (Some(_), None) => swap.move_aside(directory, fail_points).map_err(self.failed("remove", at))?,
        };
        // The replaced file must be the one that was read: a write in between must not be lost.
        let is_as_read =
            planned.before.as_ref().zip(was).is_some_and(|(before, was)| is_same(&before.stat, &was));
        if is_as_read { Ok(()) } else { Err(stale()) }
    }

    /// Flushes every directory in which a name has changed.
    fn flush_directories(&self) -> io::Result<()> {
        let mut touched = TouchedDirectories::default();
        for planned in &self.plan.files {
            match planned.directory.open() {
                Ok(directory) => touched.take(&directory)?,
                // The directory was made for this change and removed again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        touched.take_parents(self.made.iter().map(|made| &made.real).chain(&self.plan.removed_folders))?;
        touched.flush()
    }

    /// Writes the edit to the log of the archive, which commits the change.
    fn log_edit(&self, edit: &EditRecord<'_>) -> Result<(), TransactionError> {
        let Some(archive) = self.archive else { return Ok(()) };
        let Err(source) = self.fail_points.hit().and_then(|()| archive.log(edit)) else { return Ok(()) };
        let (step, path) = ("keep for an undo", self.plan.files.first().map(|planned| planned.name.clone()));
        let path = path.unwrap_or_default();
        match archive.is_logged(&archive.log_path(), edit.transaction) {
            Ok(false) => Err(TransactionError::RollBack(self.failed(step, 0)(source))),
            Ok(true) => Ok(()),
            // Leave the change as it is: the next start reads the log again and finishes it or
            // rolls it back.
            Err(_) => {
                let left = path.clone();
                Err(TransactionError::Undecided(CommitError::Stuck { step, path, source, left }))
            }
        }
    }

    /// Rolls everything back.
    fn roll_back(&self, error: CommitError) -> CommitError {
        let (mut stuck, mut conflict) = (None, None);
        for (planned, swap) in self.plan.files.iter().zip(&self.swaps).rev() {
            match planned.directory.open().and_then(|directory| swap.roll_back(&directory, self.fail_points))
            {
                Ok(SettledSwap::Clear | SettledSwap::Conflict { before: None }) => {}
                Ok(SettledSwap::Conflict { before }) => conflict = Some((planned.name.clone(), before)),
                Err(_) => stuck = Some(planned.name.clone()),
            }
        }
        remove_made(&self.made, self.fail_points);
        self.trees.iter().for_each(|tree| tree.remove_draft(self.fail_points));
        // Without a flush, a loss of power could bring a new content back after the log is removed.
        let flushed = self.log.as_ref().map_or(Ok(()), |_| self.flush_directories());
        if stuck.is_none()
            && flushed.is_ok()
            && let Some(log) = &self.log
        {
            // A log that stays only makes the next start check again.
            let _left = log.remove(self.fail_points);
        }
        let (step, path, source) = match (&stuck, &conflict, error) {
            (None, None, error) => return error,
            (_, _, CommitError::Failed { step, path, source }) => (step, path, source),
            (Some(left), _, error) | (None, Some((left, _)), error) => {
                ("take back the change of", left.clone(), io::Error::other(error))
            }
        };
        match (stuck, conflict) {
            (Some(left), _) => CommitError::Stuck { step, path, source, left },
            (None, conflict) => {
                let (left, before) = conflict.unwrap_or_default();
                CommitError::Conflict { step, path, source, left, before }
            }
        }
    }

    /// Removes the old contents. The change is committed already: what stays is removed at the next
    /// start.
    fn clean_up(&self) {
        let (mut is_clear, mut is_apart) = (true, false);
        for (planned, swap) in self.plan.files.iter().zip(&self.swaps) {
            let cleared = planned.directory.open().and_then(|directory| {
                let device = rustix::fs::fstat(&*directory)?.st_dev as _;
                is_apart |= self.log.as_ref().is_some_and(|log| !log.shares_device_with(device));
                swap.clear(&directory, self.fail_points)
            });
            is_clear &= cleared.is_ok();
        }
        remove_folders(&self.plan.removed_folders, self.fail_points);
        // One file system keeps the order of its own writes. With two, flush first: if only the
        // removal of the log survived, the old contents would stay for ever.
        if is_apart {
            is_clear &= self.fail_points.hit().and_then(|()| self.flush_directories()).is_ok();
        }
        if let Some(log) = self.log.as_ref().filter(|_| is_clear) {
            let _left = log.remove(self.fail_points);
        }
    }

    /// Returns a closure that turns a system error into a [`CommitError`], for `map_err`.
    fn failed(&self, step: &'static str, at: usize) -> impl FnOnce(io::Error) -> CommitError + use<> {
        let path = self.plan.files.get(at).map(|planned| planned.name.clone()).unwrap_or_default();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => FileError::NoPermission { path }.into(),
            _ => CommitError::Failed { step, path, source },
        }
    }
}

/// The reason why a change was not committed.
enum TransactionError {
    /// It must be rolled back.
    RollBack(CommitError),
    /// It is unknown whether the change is committed; the next start decides.
    Undecided(CommitError),
}

impl From<CommitError> for TransactionError {
    fn from(error: CommitError) -> Self {
        Self::RollBack(error)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;
