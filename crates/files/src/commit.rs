//! Changes files, all of them or none.
//!
//! Everything is looked at and compared first ([`plan`]); then new contents are staged beside the files, a log is written for
//! the start after a crash ([`write_ahead`]), and only then do old and new change places ([`trace`]). What fails on the way is
//! taken back. The old contents go to the archive before the change counts.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{Mode, mkdirat},
    io::Errno,
};
use windlass_contract::{Archive, CallId, Change, Changed, CommitError, FileError};

use crate::{handle::to_name_in_at, resolve::Resolver};
use plan::{Plan, Slot};
use steps::Steps;
use trace::{Trace, is_same};
use write_ahead::{WriteAheadLog, remove_folders};

mod attributes;
mod before;
mod directory;
mod plan;
mod steps;
mod trace;
pub(crate) mod write_ahead;

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
    let unique = unique();
    let traces = plan.slots.iter().enumerate();
    let traces = traces.map(|(at, slot)| Trace::new(slot.real.clone(), &format!("{unique}-{at}")));
    let traces = traces.collect();
    Transaction { archive, steps, unique, plan, traces, log: None, made: Vec::new() }.run(call)
}

/// A name for our files that no other change uses, of this process or another.
fn unique() -> String {
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
    traces: Vec<Trace>,
    log: Option<WriteAheadLog>,
    /// Directories that were made, from the outside in.
    made: Vec<PathBuf>,
}

impl Transaction<'_> {
    fn run(mut self, call: &CallId) -> Result<Vec<Changed>, CommitError> {
        match self.make(call) {
            Ok(changed) => {
                self.clear();
                Ok(changed)
            }
            Err(error) => Err(self.take_back(error)),
        }
    }

    fn make(&mut self, call: &CallId) -> Result<Vec<Changed>, CommitError> {
        self.begin()?;
        for at in 0..self.plan.slots.len() {
            self.make_folders(at)?;
            self.stage(at)?;
        }
        self.ready()?;
        for at in 0..self.plan.slots.len() {
            self.swap(at)?;
        }
        let changed: Vec<_> = self.plan.slots.iter().map(Slot::changed).collect();
        if let Some(archive) = self.archive {
            let kept = self.steps.take().and_then(|()| archive.keep(call, &changed));
            kept.map_err(|error| self.failed("keep for an undo", 0)(error))?;
        }
        if let Some(log) = &mut self.log {
            let done = log.done(self.steps);
            done.map_err(|error| self.failed("note the end of the change of", 0)(error))?;
        }
        Ok(changed)
    }

    fn begin(&mut self) -> Result<(), CommitError> {
        let Some(archive) = self.archive else { return Ok(()) };
        let folders = self.folders();
        let log = WriteAheadLog::begin(archive.notes(), &self.unique, &folders, &self.traces, self.steps);
        self.log = Some(log.map_err(self.failed("note the change of", 0))?);
        Ok(())
    }

    /// Every directory that has to be made, from the outside in.
    fn folders(&self) -> Vec<PathBuf> {
        let mut known = HashSet::new();
        let mut folders = Vec::new();
        for Slot { real, missing, .. } in &self.plan.slots {
            let above: Vec<_> = real.ancestors().skip(1).take(*missing).collect();
            folders
                .extend(above.into_iter().rev().filter(|folder| known.insert(*folder)).map(Path::to_owned));
        }
        folders
    }

    fn make_folders(&mut self, at: usize) -> Result<(), CommitError> {
        let missing = std::mem::take(&mut self.plan.slots[at].missing);
        for depth in (1..=missing).rev() {
            let folder = self.plan.slots[at].real.ancestors().nth(depth).unwrap_or(Path::new("/")).to_owned();
            let made = self.steps.take().and_then(|()| self.make_folder(at, &folder));
            if made.map_err(self.failed("make the directory of", at))? {
                self.made.push(folder.clone());
                self.plan.slots[at].made.push(folder);
            }
        }
        Ok(())
    }

    /// Makes a directory, unless another file of the same change needed it before, and goes into it.
    fn make_folder(&mut self, at: usize, folder: &Path) -> io::Result<bool> {
        let (name, directory) =
            (folder.file_name().unwrap_or_default(), self.plan.slots[at].directory.open()?);
        let made = match mkdirat(&*directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let inside = to_name_in_at(&directory, name)?;
        self.plan.slots[at].directory = self.plan.directories.take(inside, folder)?;
        Ok(made)
    }

    fn stage(&mut self, at: usize) -> Result<(), CommitError> {
        let (slot, steps) = (&self.plan.slots[at], self.steps);
        let Some(after) = &slot.after else { return Ok(()) };
        let trace = &mut self.traces[at];
        let staged = slot.directory.open().and_then(|directory| after.stage(trace, &directory, steps));
        staged.map_err(self.failed("write", at))
    }

    fn ready(&mut self) -> Result<(), CommitError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        // A single file changes in one step, with or without a log; then it only says what to clean up.
        let is_single = self.plan.slots.len() == 1 && self.made.is_empty();
        let ready = log.ready(&self.traces, self.steps);
        let ready = ready.and_then(|()| if is_single { Ok(()) } else { log.sync(self.steps) });
        ready.map_err(|error| self.failed("note the change of", 0)(error))
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

    /// Takes everything back.
    fn take_back(&self, error: CommitError) -> CommitError {
        let mut stuck = None;
        for (slot, trace) in self.plan.slots.iter().zip(&self.traces).rev() {
            let back = slot.directory.open().and_then(|directory| trace.put_back(&directory, self.steps));
            if back.is_err() {
                stuck = Some(slot.name.clone());
            }
        }
        remove_folders(&self.made, self.steps);
        match (stuck, error) {
            (None, error) => {
                if let Some(log) = &self.log {
                    // Left behind, it only makes the next start look again.
                    let _left = log.remove(self.steps);
                }
                error
            }
            (Some(left), CommitError::Failed { step, path, source }) => {
                CommitError::Stuck { step, path, source, left }
            }
            (Some(left), error) => CommitError::Stuck {
                step: "take back the change of",
                path: left.clone(),
                source: io::Error::other(error),
                left,
            },
        }
    }

    /// Removes what is left of the old. The change counts already: what stays is removed at the next start.
    fn clear(&self) {
        let mut is_clear = true;
        for (slot, trace) in self.plan.slots.iter().zip(&self.traces) {
            let cleared = slot.directory.open().and_then(|directory| trace.clear(&directory, self.steps));
            is_clear &= cleared.is_ok();
        }
        remove_folders(&self.plan.unmade, self.steps);
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;
