//! Makes the changes of an undo in an order that satisfies their dependencies: removals from the
//! inside out, directories from the outside in, contents, and modes of directories last.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat},
    io::Errno,
};
use windlass_contract::snapshot::{EntryChange, EntryContent, EntryVersion};

use super::{
    EntryStanding, ReadContent, RestoreError, RestoreReport,
    draft_note::create_draft_note,
    entry_draft::EntryDraft,
    entry_writing::{give_owner, open_or_make, remove_entry, write_file},
    inspection::{InspectedEntry, OWNER_ACCESS, inspect},
    observed_entry::{ObservedEntry, is_unreachable},
    place_of,
};
use crate::{
    DirHandle, EntryStat,
    checked_rename::{CheckedExchange, EntryPlace, exchange, remove_file, rename_to_free, take_away},
    fail_points::FailPoints,
    handle::{open_directory, open_read_at},
};

/// Maximum number of files or directories that are flushed one by one.
const MAX_FLUSHED: usize = 16;

/// The treatment of the other changes if one cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoreGoal {
    /// None of them is made.
    AllOrNothing,
    /// The others are made; used for a rollback.
    AsMuchAsPossible,
}

/// Makes a list of changes.
pub(super) struct EntryRestorer<'a> {
    changes: &'a [EntryChange],
    contents: ReadContent<'a>,
    fail_points: &'a FailPoints,
    goal: RestoreGoal,
    /// The changes that were begun.
    begun: Vec<bool>,
    /// The changes that were given up.
    skipped: Vec<bool>,
    /// The paths of the changes that were given up.
    pub(super) left: Vec<PathBuf>,
    pub(super) report: RestoreReport,
}

/// One change to make, and the entry as it is now.
pub(super) struct PlannedRestore<'a> {
    at: usize,
    pub(super) change: &'a EntryChange,
    now: Option<ObservedEntry>,
    draft: EntryDraft,
}

impl PlannedRestore<'_> {
    fn path(&self) -> &Path {
        &self.change.path
    }

    /// Returns true if the entry is removed, and nothing takes its place.
    fn removes(&self) -> bool {
        self.now.is_some() && self.change.after.is_none()
    }

    /// Returns the old entry, if its metadata is copied to a new one of the same type.
    pub(super) fn predecessor(&self) -> Option<&ObservedEntry> {
        let after = self.change.after.as_ref()?;
        let before = self.change.before.as_ref()?;
        self.now.as_ref().filter(|_| before.content.has_same_type(&after.content))
    }

    fn was_directory(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.holds(&EntryContent::Directory))
    }

    /// Returns the version that is made under a draft name and then renamed into place.
    fn new_version(&self) -> Option<&EntryVersion> {
        let after = self.change.after.as_ref()?;
        let is_there = self.now.as_ref().is_some_and(|now| now.holds(&after.content));
        (!is_there).then_some(after)
    }

    fn makes_directory(&self) -> bool {
        self.new_version().is_some_and(|after| after.content == EntryContent::Directory)
    }

    /// Returns true if the change needs a draft beside the entry.
    fn needs_draft(&self) -> bool {
        self.new_version().is_some() || (self.removes() && !self.was_directory())
    }

    /// Returns the new permission bits: those of the change if it alters them, and otherwise the
    /// current ones.
    pub(super) fn mode(&self, after: &EntryVersion) -> u32 {
        let before =
            self.change.before.as_ref().filter(|before| before.content.has_same_type(&after.content));
        match (before, &self.now) {
            (Some(before), Some(now)) if before.mode == after.mode => now.mode(),
            _ => after.mode,
        }
    }
}

impl<'a> EntryRestorer<'a> {
    pub(super) fn new(
        changes: &'a [EntryChange],
        contents: ReadContent<'a>,
        fail_points: &'a FailPoints,
        goal: RestoreGoal,
    ) -> Self {
        let (begun, skipped) = (vec![false; changes.len()], vec![false; changes.len()]);
        Self {
            changes,
            contents,
            fail_points,
            goal,
            begun,
            skipped,
            left: Vec::new(),
            report: RestoreReport::default(),
        }
    }

    /// Returns the changes that were begun.
    pub(super) fn begun(&self) -> impl Iterator<Item = &'a EntryChange> {
        self.changes.iter().zip(&self.begun).filter(|(_, begun)| **begun).map(|(change, _)| change)
    }

    pub(super) fn run(&mut self, notes: &Path) -> Result<(), RestoreError> {
        let planned = self.plan()?;
        let drafts: Vec<_> =
            planned.iter().filter(|plan| plan.needs_draft()).map(|plan| &plan.draft).collect();
        let Some(first) = drafts.first() else { return self.make(&planned) };
        let note = self.fail_points.hit().and_then(|()| create_draft_note(notes, &drafts));
        let note = match (note, self.goal) {
            (Ok(note), _) => Some(note),
            // A rollback without a note is better than none.
            (Err(_), RestoreGoal::AsMuchAsPossible) => None,
            (Err(error), RestoreGoal::AllOrNothing) => {
                return Err(failed("note the change of", &first.path)(error));
            }
        };
        let end = self.make(&planned);
        let mut is_settled = true;
        if end.is_err() || !self.left.is_empty() {
            for draft in &drafts {
                is_settled &= self.fail_points.hit().and_then(|()| draft.settle()).is_ok();
            }
        }
        if let Some(note) = note.filter(|_| is_settled) {
            // A note that stays only makes the next start check again.
            let _left = self.fail_points.hit().and_then(|()| note.remove());
        }
        end
    }

    fn plan(&mut self) -> Result<Vec<PlannedRestore<'a>>, RestoreError> {
        let mut planned = Vec::new();
        let inspected = inspect(self.changes).map_err(|(path, error)| failed("look at", &path)(error))?;
        for InspectedEntry { at, change, now, standing } in inspected {
            match standing {
                EntryStanding::Ready => {
                    let content =
                        |version: &Option<EntryVersion>| version.as_ref().map(|it| it.content.clone());
                    let (before, after) = (content(&change.before), content(&change.after));
                    let draft = EntryDraft::new(change.path.clone(), before, after);
                    planned.push(PlannedRestore { at, change, now, draft });
                }
                EntryStanding::Done => {}
                EntryStanding::Conflict if self.goal == RestoreGoal::AsMuchAsPossible => {
                    self.left.push(change.path.clone());
                }
                EntryStanding::Conflict => return Err(conflict(&change.path)),
            }
        }
        Ok(planned)
    }

    fn make(&mut self, planned: &[PlannedRestore<'_>]) -> Result<(), RestoreError> {
        for plan in planned.iter().filter(|plan| plan.was_directory()) {
            self.run_step(plan, Self::give_access)?;
        }
        for plan in planned.iter().rev().filter(|plan| plan.removes()) {
            self.run_step(plan, Self::remove)?;
        }
        for plan in planned.iter().filter(|plan| plan.makes_directory()) {
            self.run_step(plan, Self::make_directory)?;
        }
        let is_written = |plan: &&PlannedRestore<'_>| plan.new_version().is_some() && !plan.makes_directory();
        let written: Vec<_> = planned.iter().filter(is_written).collect();
        for plan in &written {
            self.run_step(plan, Self::stage)?;
        }
        self.flush_staged(&written).or_else(|error| self.continue_after(error))?;
        for plan in &written {
            self.run_step(plan, Self::rename_into_place)?;
        }
        for plan in planned.iter().rev() {
            self.run_step(plan, Self::set_access)?;
        }
        self.flush_directories(planned)
    }

    /// Calls `act` for one change, unless the change was given up.
    fn run_step(
        &mut self,
        plan: &PlannedRestore<'_>,
        act: fn(&mut Self, &PlannedRestore<'_>) -> Result<(), RestoreError>,
    ) -> Result<(), RestoreError> {
        if self.skipped[plan.at] {
            return Ok(());
        }
        let step = self.fail_points.hit().map_err(failed("change", plan.path()));
        step.and_then(|()| act(self, plan)).or_else(|error| {
            self.skipped[plan.at] = true;
            self.left.extend((self.goal == RestoreGoal::AsMuchAsPossible).then(|| plan.path().to_owned()));
            self.continue_after(error)
        })
    }

    fn continue_after(&self, error: RestoreError) -> Result<(), RestoreError> {
        if self.goal == RestoreGoal::AsMuchAsPossible { Ok(()) } else { Err(error) }
    }

    /// Gives the owner access to a directory in which something changes.
    fn give_access(&mut self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let path = plan.path();
        let Some(now) = &plan.now else { return Ok(()) };
        if now.mode() & OWNER_ACCESS == OWNER_ACCESS {
            return Ok(());
        }
        self.begun[plan.at] = true;
        let (parent, name) = place_of(path).map_err(failed("open", path))?;
        let above = DirHandle::open(parent).map_err(failed("open", path))?;
        above.give_owner_access(Path::new(name), &now.stat).map_err(failed("change the mode of", path))
    }

    fn remove(&mut self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let path = plan.path();
        let (parent, name) = place_of(path).map_err(failed("remove", path))?;
        self.begun[plan.at] = true;
        if !plan.was_directory() {
            return self.remove_file_or_link(plan);
        }
        let directory = open_directory(parent).map_err(failed("open", path))?;
        match unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) if plan.change.after.is_none() => {
                // Its mode is set at the end, if it was altered.
                self.report.left.push(path.to_owned());
                Ok(())
            }
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR) => Err(conflict(path)),
            Err(error) => Err(failed("remove", path)(error.into())),
        }
    }

    /// Removes a file or link, if it is still the one that was inspected.
    fn remove_file_or_link(&self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let (path, old) = (plan.path(), plan.draft.old());
        let (parent, name) = place_of(path).map_err(failed("remove", path))?;
        let directory = open_directory(parent).map_err(failed("open", path))?;
        let is_same = || {
            let seen = plan.now.as_ref().zip(EntryStat::read(&directory, &old).ok());
            seen.is_some_and(|(seen, now)| seen.is_same(&now))
        };
        let rename = |from: EntryPlace<'_, _>, to: EntryPlace<'_, _>| {
            self.fail_points.hit()?;
            rename_to_free(from, to)
        };
        match take_away((&directory, name), (&directory, &old), rename, is_same) {
            Ok(true) => remove_file(&directory, &old).map_err(failed("remove", path)),
            Ok(false) => Err(conflict(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(conflict(path)),
            Err(error) => Err(failed("remove", path)(error)),
        }
    }

    fn make_directory(&mut self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let (path, draft) = (plan.path(), &*plan.draft.name);
        let Some(after) = plan.new_version() else { return Ok(()) };
        let (parent, _) = place_of(path).map_err(failed("make", path))?;
        let directory = open_or_make(parent).map_err(failed("make the directory of", path))?;
        let made = mkdirat(&directory, draft, Mode::RWXU).map_err(io::Error::from);
        // All permissions for the owner until its entries are made.
        let open = Permissions::from_mode(after.mode | OWNER_ACCESS);
        let set = made.and_then(|()| File::from(open_read_at(&directory, draft)?).set_permissions(open));
        set.map_err(failed("make", path))?;
        self.rename_into_place(plan)
    }

    /// Writes a new file or link beside its path.
    fn stage(&mut self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let (path, part) = (plan.path(), plan.draft.part());
        let Some(after) = plan.new_version() else { return Ok(()) };
        let bytes = match &after.content {
            EntryContent::Directory | EntryContent::Symlink(_) => Vec::new(),
            EntryContent::File(digest) => {
                (self.contents)(digest).map_err(failed("read the kept content of", path))?
            }
        };
        let (parent, name) = place_of(path).map_err(failed("write", path))?;
        let directory = open_or_make(parent).map_err(failed("make the directory of", path))?;
        let written = match &after.content {
            EntryContent::Symlink(target) => symlinkat(target, &directory, &part).map_err(io::Error::from),
            EntryContent::File(_) | EntryContent::Directory => {
                write_file(&directory, (name, &part), &bytes, plan, after)
            }
        };
        let staged = written.and_then(|()| self.fail_points.hit());
        let staged =
            staged.and_then(|()| rename_to_free((&directory, &part), (&directory, &plan.draft.name)));
        staged.map_err(failed("write", path))
    }

    /// Renames a staged entry to its real name.
    fn rename_into_place(&mut self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let path = plan.path();
        let (parent, name) = place_of(path).map_err(failed("replace", path))?;
        let directory = open_directory(parent).map_err(failed("open", path))?;
        let (ours, target) = ((&directory, &*plan.draft.name), (&directory, name));
        self.begun[plan.at] = true;
        if let Some(now) = &plan.now {
            let exchanging = CheckedExchange {
                exchange: &|| self.fail_points.hit().and_then(|()| exchange(ours, target)),
                put_back: &|| rename_to_free(ours, target),
                look: &|| Ok(Some(EntryStat::read(ours.0, ours.1)?)),
                is_same_file: EntryStat::is_same_file,
            };
            // Exchange atomically, so that a crash never leaves the name without an entry. A
            // directory that came out is removed only if it is empty.
            let is_dropped =
                |found: &EntryStat| now.is_same(found) && remove_entry(&directory, ours.1, found).is_ok();
            match exchanging.run(is_dropped) {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(conflict(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(conflict(path)),
                Err(error) if error.kind() == io::ErrorKind::Unsupported => self.remove(plan)?,
                Err(error) => return Err(failed("replace", path)(error)),
            }
        }
        let placed = self.fail_points.hit().and_then(|()| rename_to_free(ours, target));
        placed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => conflict(path),
            _ => failed("replace", path)(error),
        })
    }

    /// Sets mode and owner of a directory, or of a file that keeps its content.
    fn set_access(&mut self, plan: &PlannedRestore<'_>) -> Result<(), RestoreError> {
        let path = plan.path();
        let is_left = self.report.left.iter().any(|left| left == path);
        let kept = plan.change.before.as_ref().filter(|_| is_left);
        let Some(after) = plan.change.after.as_ref().or(kept) else { return Ok(()) };
        let is_written = plan.new_version().is_some() && after.content != EntryContent::Directory;
        if is_written || matches!(after.content, EntryContent::Symlink(_)) {
            return Ok(());
        }
        self.begun[plan.at] = true;
        let (parent, name) = place_of(path).map_err(failed("open", path))?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened =
            open_directory(parent).and_then(|directory| Ok(openat(directory, name, flags, Mode::empty())?));
        let file = File::from(opened.map_err(|error| {
            if is_unreachable(&error) { conflict(path) } else { failed("open", path)(error) }
        })?);
        let found = EntryStat::read(&file, OsStr::new(""));
        let found = found.map_err(|error| failed("open", path)(error.into()))?;
        if plan.predecessor().is_some_and(|now| !now.stat.is_same_file(&found)) {
            return Err(conflict(path));
        }
        give_owner(&file, plan, after);
        file.set_permissions(Permissions::from_mode(plan.mode(after)))
            .map_err(failed("change the mode of", path))
    }

    /// Flushes new contents before they are renamed into place: a few of them one by one, many with
    /// `syncfs`.
    fn flush_staged(&self, written: &[&PlannedRestore<'_>]) -> Result<(), RestoreError> {
        if written.len() > MAX_FLUSHED {
            return self.flush_file_systems();
        }
        for plan in written.iter().filter(|plan| !self.skipped[plan.at]) {
            let is_link =
                plan.new_version().is_some_and(|version| matches!(version.content, EntryContent::Symlink(_)));
            let parent = plan.path().parent().filter(|_| !is_link);
            let flushed = parent.map_or(Ok(()), |parent| {
                let file = open_read_at(&open_directory(parent)?, &plan.draft.name)?;
                Ok(rustix::fs::fsync(file)?)
            });
            flushed.map_err(failed("flush", plan.path()))?;
        }
        Ok(())
    }

    /// Flushes the directories in which something changed.
    fn flush_directories(&self, planned: &[PlannedRestore<'_>]) -> Result<(), RestoreError> {
        let parents: HashSet<_> = planned.iter().filter_map(|plan| plan.change.path.parent()).collect();
        if parents.len() > MAX_FLUSHED {
            return self.flush_file_systems();
        }
        for parent in parents {
            match DirHandle::open(parent).and_then(|directory| Ok(rustix::fs::fsync(directory)?)) {
                // The directory was removed, or is not readable.
                Err(error) if is_unreachable(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                flushed => flushed.map_err(failed("flush", parent))?,
            }
        }
        Ok(())
    }

    fn flush_file_systems(&self) -> Result<(), RestoreError> {
        let mut flushed = HashSet::new();
        for change in self.changes {
            let above = change.path.ancestors().skip(1);
            let Some(existing) = above.into_iter().find_map(|above| DirHandle::open(above).ok()) else {
                continue;
            };
            let device = existing.stat().map_err(failed("flush", &change.path))?.dev;
            if flushed.insert(device) {
                existing.sync_file_system().map_err(failed("flush", &change.path))?;
            }
        }
        Ok(())
    }
}

/// Returns a closure that turns a system error into a [`RestoreError`], for `map_err`.
fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RestoreError + use<> {
    let path = path.to_owned();
    move |source| RestoreError::Failed { step, path, source }
}

fn conflict(path: &Path) -> RestoreError {
    RestoreError::Conflict { path: path.to_owned() }
}
