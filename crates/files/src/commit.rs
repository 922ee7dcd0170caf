//! Changes files, all of them or none, so that neither the end of the process nor a loss of power leaves anything half done.
//!
//! The order is that of a database ([decision 0040](../../../docs/decisions/0040-order-of-flushes.md)). Everything is looked
//! at and compared first ([`plan`]). The old contents go to the archive and a write-ahead log says what is about to happen
//! ([`write_ahead`]); both are flushed. New contents are staged beside the files and flushed, old and new change places
//! ([`trace`]), and the directories are flushed. The line in the edit log, flushed, is the moment the change counts; only
//! then are the old contents beside the files removed. What fails on the way is taken back, and what a process did not live
//! to finish, the next start finishes or takes back ([`recovery`]).

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

use crate::{resolve::Resolver, steps::Steps};
use content_id::BeforeId;
pub(crate) use content_id::sha256_of;
use flush::{MAX_FLUSHED_AT_ONCE, TouchedDirectories, flush_all};
use folders::{FolderTree, MadeFolder, descend, remove_folders, remove_made};
use log_format::LoggedChange;
use plan::{Plan, Slot};
use trace::{Settled, Trace, is_same};
use write_ahead::WriteAheadLog;

pub(crate) mod attributes;
mod before;
mod content_id;
mod directory;
mod flush;
mod folders;
mod log_format;
mod plan;
pub(crate) mod recovery;
mod room;
mod trace;
mod write_ahead;

/// Changes files within what the resolver allows.
pub(crate) fn commit(
    resolver: &Resolver,
    archive: Option<&dyn Archive>,
    call: &CallId,
    changes: Vec<Change>,
) -> Result<Vec<Changed>, CommitError> {
    commit_by_steps(resolver, archive, call, changes, &Steps::default())
}

fn commit_by_steps(
    resolver: &Resolver,
    archive: Option<&dyn Archive>,
    call: &CallId,
    changes: Vec<Change>,
    steps: &Steps,
) -> Result<Vec<Changed>, CommitError> {
    let mut plan = Plan::default();
    for change in changes {
        plan.add(resolver, change)?;
    }
    plan.check()?;
    room::check(&plan.slots, room::free_bytes)?;
    Transaction::new(plan, archive, steps, unique()).run(call)
}

/// A name for a transaction that no other has, of this process or another.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{:x}-{count}", std::process::id(), now.as_micros())
}

/// A change that is being made.
struct Transaction<'a> {
    archive: Option<&'a dyn Archive>,
    steps: &'a Steps,
    unique: String,
    plan: Plan,
    /// One for each slot.
    contents: Vec<ContentPair>,
    /// One for each slot.
    traces: Vec<Trace>,
    /// Directories that are to be made.
    trees: Vec<FolderTree>,
    /// Directories that were made.
    made: Vec<MadeFolder>,
    log: Option<WriteAheadLog>,
}

impl<'a> Transaction<'a> {
    fn new(mut plan: Plan, archive: Option<&'a dyn Archive>, steps: &'a Steps, unique: String) -> Self {
        let contents = plan.contents();
        let traces = plan.slots.iter().zip(&contents).enumerate().map(|(at, (slot, content))| Trace {
            real: slot.real.clone(),
            unique: format!("{unique}-{at}"),
            before: slot
                .before
                .as_ref()
                .zip(content.before.as_ref())
                .map(|(before, content)| BeforeId { content: content.into(), inode: before.stat.st_ino }),
            after: content.after.as_ref().map(Into::into),
        });
        let traces = traces.collect();
        let trees = FolderTree::plan(&mut plan.slots, &unique);
        Self { archive, steps, unique, plan, contents, traces, trees, made: Vec::new(), log: None }
    }

    fn run(mut self, call: &CallId) -> Result<Vec<Changed>, CommitError> {
        match self.make(call) {
            Ok(changed) => {
                self.clear();
                Ok(changed)
            }
            Err(Failure::TakeBack(error)) => Err(self.take_back(error)),
            Err(Failure::Undecided(error)) => Err(error),
        }
    }

    fn make(&mut self, call: &CallId) -> Result<Vec<Changed>, Failure> {
        let kept = self.begin()?;
        self.make_folders()?;
        self.stage()?;
        for at in 0..self.plan.slots.len() {
            self.swap(at)?;
        }
        self.steps
            .take()
            .and_then(|()| self.flush_directories())
            .map_err(|error| self.failed("flush the directory of", 0)(error))?;
        let changed: Vec<_> = self.plan.slots.iter().map(Slot::changed).collect();
        self.count(&EditRecord { transaction: &self.unique, call, files: &changed, kept: &kept })?;
        Ok(changed)
    }

    /// Keeps the contents and writes the log, both at once: a disk takes about as long for that as for one.
    fn begin(&mut self) -> Result<Vec<KeptPair>, CommitError> {
        let Some(archive) = self.archive else { return Ok(Vec::new()) };
        let change = LoggedChange {
            transaction: self.unique.clone(),
            edit_log: archive.log_path(),
            trees: self.trees.clone(),
            unmade: self.plan.unmade.clone(),
            traces: self.traces.clone(),
            made: Vec::new(),
        };
        let (steps, contents) = (self.steps, &self.contents);
        let keep = || archive.keep(contents);
        let (kept, log) = steps.take().map_err(self.failed("keep for an undo", 0)).map(|()| {
            let begin = || WriteAheadLog::begin(archive.notes(), &change, steps);
            thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, keep) {
                Ok(kept) => {
                    let log = begin();
                    (kept.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked"))), log)
                }
                // No more threads: then one after the other.
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
        for at in 0..self.plan.slots.len() {
            let (entered, name) = (self.enter_folders(at), self.plan.slots[at].name.clone());
            entered.map_err(|error| crate::resolve::said(&name, error))?;
        }
        Ok(())
    }

    fn make_trees(&mut self, trees: &[FolderTree]) -> Result<(), CommitError> {
        let slot_of = |slots: &[Slot], tree: &FolderTree| {
            slots.iter().position(|slot| slot.real.starts_with(&tree.root))
        };
        for tree in trees {
            let at = slot_of(&self.plan.slots, tree).unwrap_or_default();
            let parent = self.plan.slots[at].directory.open();
            let made = parent.and_then(|parent| tree.make(&parent, self.steps));
            self.made.extend(made.map_err(self.failed("make the directory of", at))?);
        }
        if let Some(log) = &mut self.log {
            let noted = log.note_made(&self.made, self.steps);
            noted.map_err(|error| self.failed("note the change of", 0)(error))?;
        }
        for tree in trees {
            let at = slot_of(&self.plan.slots, tree).unwrap_or_default();
            let parent = self.plan.slots[at].directory.open();
            let appeared = parent.and_then(|parent| tree.appear(&parent, self.steps));
            appeared.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => CommitError::Stale { path: self.plan.slots[at].name.clone() },
                _ => self.failed("make the directory of", at)(error),
            })?;
        }
        Ok(())
    }

    /// Goes on to the directory that was made for a file.
    fn enter_folders(&mut self, at: usize) -> io::Result<()> {
        let slot = &self.plan.slots[at];
        let parent = slot.real.parent().unwrap_or(Path::new("/")).to_owned();
        let existing = parent.ancestors().nth(slot.missing).unwrap_or(Path::new("/"));
        let inside = parent.strip_prefix(existing).unwrap_or(Path::new("")).to_owned();
        if let Some(inside) = descend(&*slot.directory.open()?, &inside)? {
            self.plan.slots[at].directory = self.plan.directories.take(inside, &parent)?;
        }
        Ok(())
    }

    /// Writes and flushes the new contents, some at once.
    fn stage(&self) -> Result<(), CommitError> {
        let slots: Vec<_> =
            (0..self.plan.slots.len()).filter(|at| self.plan.slots[*at].after.is_some()).collect();
        for some in slots.chunks(MAX_FLUSHED_AT_ONCE) {
            let mut files = Vec::new();
            for &at in some {
                files.push(self.write(at).map_err(self.failed("write", at))?);
            }
            let flushed = self.steps.take().and_then(|()| flush_all(&files));
            flushed.map_err(self.failed("write", some[0]))?;
            for &at in some {
                let directory = self.plan.slots[at].directory.open();
                let staged = directory.and_then(|directory| self.traces[at].stage(&directory, self.steps));
                staged.map_err(self.failed("write", at))?;
            }
        }
        Ok(())
    }

    fn write(&self, at: usize) -> io::Result<std::fs::File> {
        let slot = &self.plan.slots[at];
        let after = slot.after.as_ref().ok_or(io::ErrorKind::NotFound)?;
        after.write(&self.traces[at], &*slot.directory.open()?, self.steps)
    }

    fn swap(&self, at: usize) -> Result<(), CommitError> {
        let (slot, trace, steps) = (&self.plan.slots[at], &self.traces[at], self.steps);
        let directory = &*slot.directory.open().map_err(self.failed("reach", at))?;
        let stale = || CommitError::Stale { path: slot.name.clone() };
        let was = match (&slot.before, &slot.after) {
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                return trace.appear(directory, steps).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => stale(),
                    _ => self.failed("make", at)(error),
                });
            }
            (Some(_), Some(_)) => trace.exchange(directory, steps).map_err(self.failed("replace", at))?,
            (Some(_), None) => trace.step_aside(directory, steps).map_err(self.failed("remove", at))?,
        };
        // What was taken away must be what was read: whoever wrote in between keeps their work.
        let is_as_read =
            slot.before.as_ref().zip(was).is_some_and(|(before, was)| is_same(&before.stat, &was));
        if is_as_read { Ok(()) } else { Err(stale()) }
    }

    /// Flushes every directory in which a name has changed.
    fn flush_directories(&self) -> io::Result<()> {
        let mut touched = TouchedDirectories::default();
        for slot in &self.plan.slots {
            match slot.directory.open() {
                Ok(directory) => touched.take(&directory)?,
                // Made for this change, and removed again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        touched.take_parents(self.made.iter().map(|made| &made.real).chain(&self.plan.unmade))?;
        touched.flush()
    }

    /// Writes the edit to the log of the archive. This is the moment the change counts.
    fn count(&self, edit: &EditRecord<'_>) -> Result<(), Failure> {
        let Some(archive) = self.archive else { return Ok(()) };
        let Err(source) = self.steps.take().and_then(|()| archive.log(edit)) else { return Ok(()) };
        let (step, path) = ("keep for an undo", self.plan.slots.first().map(|slot| slot.name.clone()));
        let path = path.unwrap_or_default();
        match archive.is_logged(&archive.log_path(), edit.transaction) {
            Ok(false) => Err(Failure::TakeBack(self.failed(step, 0)(source))),
            Ok(true) => Ok(()),
            // Neither finished nor taken back: the next start reads the log again, and does the one or the other.
            Err(_) => {
                let left = path.clone();
                Err(Failure::Undecided(CommitError::Stuck { step, path, source, left }))
            }
        }
    }

    /// Takes everything back.
    fn take_back(&self, error: CommitError) -> CommitError {
        let (mut stuck, mut conflict) = (None, None);
        for (slot, trace) in self.plan.slots.iter().zip(&self.traces).rev() {
            match slot.directory.open().and_then(|directory| trace.roll_back(&directory, self.steps)) {
                Ok(Settled::Clear | Settled::Conflict { before: None }) => {}
                Ok(Settled::Conflict { before }) => conflict = Some((slot.name.clone(), before)),
                Err(_) => stuck = Some(slot.name.clone()),
            }
        }
        remove_made(&self.made, self.steps);
        self.trees.iter().for_each(|tree| tree.remove_draft(self.steps));
        // Without a flush, a loss of power could bring a new content back when the log is gone.
        let flushed = self.log.as_ref().map_or(Ok(()), |_| self.flush_directories());
        if stuck.is_none()
            && flushed.is_ok()
            && let Some(log) = &self.log
        {
            // Left behind, it only makes the next start look again.
            let _left = log.remove(self.steps);
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

    /// Removes what is left of the old. The change counts already: what stays is removed at the next start.
    fn clear(&self) {
        let (mut is_clear, mut is_apart) = (true, false);
        for (slot, trace) in self.plan.slots.iter().zip(&self.traces) {
            let cleared = slot.directory.open().and_then(|directory| {
                let device = rustix::fs::fstat(&*directory)?.st_dev as _;
                is_apart |= self.log.as_ref().is_some_and(|log| !log.shares_device_with(device));
                trace.clear(&directory, self.steps)
            });
            is_clear &= cleared.is_ok();
        }
        remove_folders(&self.plan.unmade, self.steps);
        // A file system keeps its own order. Of two, the log's must not be ahead, or the old contents would stay for ever.
        if is_apart {
            is_clear &= self.steps.take().and_then(|()| self.flush_directories()).is_ok();
        }
        if let Some(log) = self.log.as_ref().filter(|_| is_clear) {
            let _left = log.remove(self.steps);
        }
    }

    /// Turns a system error into ours; for `map_err`.
    fn failed(&self, step: &'static str, at: usize) -> impl FnOnce(io::Error) -> CommitError + use<> {
        let path = self.plan.slots.get(at).map(|slot| slot.name.clone()).unwrap_or_default();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => FileError::NoPermission { path }.into(),
            _ => CommitError::Failed { step, path, source },
        }
    }
}

/// Why a change was not made.
enum Failure {
    /// It is to be taken back.
    TakeBack(CommitError),
    /// Nobody can tell whether it counts; it is left to the next start.
    Undecided(CommitError),
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        Self::TakeBack(error)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;
