//! The steps of a change, in an order in which each finds what it needs: removals from the inside out, directories from the
//! outside in, contents, and modes of directories last.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs::{File, Permissions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{PermissionsExt, fchown},
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, futimens, mkdirat, openat,
        renameat_with, symlinkat, unlinkat,
    },
    io::Errno,
};
use windlass_contract::{EntryChange, EntryContent, EntryVersion};

use super::{
    EntryStanding, ObservedEntry, ReadContent, RestoreError, RestoreReport, observed_entry::is_absent,
    place_of, standing,
};
use crate::{
    DirHandle, EntryStat,
    commit::attributes,
    handle::{to_name_in, to_name_in_at, to_read_at},
};

/// All permissions of the owner.
const OWNER_ACCESS: u32 = 0o700;

/// How many files or directories are flushed one by one.
const MAX_FLUSHED: usize = 16;

/// Makes changes.
pub(super) struct Applier<'a> {
    changes: &'a [EntryChange],
    contents: ReadContent<'a>,
    /// The changes that were begun.
    done: Vec<bool>,
    /// New contents beside the files, by the place of their change.
    staged: Vec<(usize, OsString)>,
    report: RestoreReport,
}

/// One change that is to be made, and the entry as it was found.
struct Planned<'a> {
    at: usize,
    change: &'a EntryChange,
    now: Option<ObservedEntry>,
}

impl Planned<'_> {
    /// Tells whether the entry must go before another can take its place.
    fn removes(&self) -> bool {
        let EntryChange { before, after, .. } = self.change;
        match (before, after) {
            (Some(before), Some(after)) => !before.content.has_same_type(&after.content),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn makes(&self) -> Option<&EntryVersion> {
        self.change.after.as_ref()
    }

    fn makes_directory(&self) -> bool {
        self.makes().is_some_and(|version| version.content == EntryContent::Directory)
    }

    fn was_directory(&self) -> bool {
        self.change.before.as_ref().is_some_and(|version| version.content == EntryContent::Directory)
    }

    /// The permission bits it is to have: those of the change if it alters them, and otherwise what they are now.
    fn mode(&self, after: &EntryVersion) -> u32 {
        let before =
            self.change.before.as_ref().filter(|before| before.content.has_same_type(&after.content));
        match (before, &self.now) {
            (Some(before), Some(now)) if before.mode == after.mode => now.stat.permissions.into(),
            _ => after.mode,
        }
    }
}

impl<'a> Applier<'a> {
    pub(super) fn new(changes: &'a [EntryChange], contents: ReadContent<'a>) -> Self {
        let done = vec![false; changes.len()];
        Self { changes, contents, done, staged: Vec::new(), report: RestoreReport::default() }
    }

    /// Returns the changes that were begun.
    pub(super) fn done(&self) -> Vec<EntryChange> {
        let pairs = self.changes.iter().zip(&self.done);
        pairs.filter(|(_, done)| **done).map(|(change, _)| change.clone()).collect()
    }

    pub(super) fn run(&mut self) -> Result<RestoreReport, RestoreError> {
        let planned = self.plan()?;
        let end = self.make(&planned);
        for (at, name) in std::mem::take(&mut self.staged) {
            // Left behind by an error.
            let parent = self.changes[at].path.parent().map(to_name_in);
            if let Some(Ok(directory)) = parent {
                let _gone = unlinkat(directory, name, AtFlags::empty());
            }
        }
        end.map(|()| std::mem::take(&mut self.report))
    }

    fn plan(&self) -> Result<Vec<Planned<'a>>, RestoreError> {
        let mut planned = Vec::new();
        for (at, change) in self.changes.iter().enumerate() {
            let now = ObservedEntry::look(&change.path).map_err(failed("look at", &change.path))?;
            match standing(change, now.as_ref()) {
                EntryStanding::Ready => planned.push(Planned { at, change, now }),
                EntryStanding::Done => {}
                EntryStanding::Conflict => {
                    return Err(RestoreError::Conflict { path: change.path.clone() });
                }
            }
        }
        // So that a directory comes before what is in it.
        planned.sort_by(|one, other| one.change.path.cmp(&other.change.path));
        Ok(planned)
    }

    fn make(&mut self, planned: &[Planned<'_>]) -> Result<(), RestoreError> {
        for plan in planned.iter().filter(|plan| plan.was_directory()) {
            self.open_up(plan)?;
        }
        for plan in planned.iter().rev().filter(|plan| plan.removes()) {
            self.remove(plan)?;
        }
        for plan in
            planned.iter().filter(|plan| plan.makes_directory() && (plan.now.is_none() || plan.removes()))
        {
            self.make_directory(plan)?;
        }
        for plan in planned {
            self.stage(plan)?;
        }
        self.flush_staged()?;
        let by_place: HashMap<_, _> = planned.iter().map(|plan| (plan.at, plan)).collect();
        for (at, name) in std::mem::take(&mut self.staged) {
            let placed = by_place.get(&at).map_or(Ok(()), |plan| self.place(plan, &name));
            if placed.is_err() {
                self.staged.push((at, name));
            }
            placed?;
        }
        for plan in planned.iter().rev() {
            self.set_access(plan)?;
        }
        self.flush_directories(planned)
    }

    /// Gives the owner access to a directory in which something is to be done.
    fn open_up(&mut self, plan: &Planned<'_>) -> Result<(), RestoreError> {
        let path = &plan.change.path;
        let Some(now) = &plan.now else { return Ok(()) };
        if u32::from(now.stat.permissions) & OWNER_ACCESS == OWNER_ACCESS {
            return Ok(());
        }
        self.done[plan.at] = true;
        let (parent, name) = place_of(path).map_err(failed("open", path))?;
        let above = DirHandle::open(parent).map_err(failed("open", path))?;
        above.give_owner_access(Path::new(name), &now.stat).map_err(failed("change the mode of", path))
    }

    fn remove(&mut self, plan: &Planned<'_>) -> Result<(), RestoreError> {
        let path = &plan.change.path;
        let (Some(now), Ok((parent, name))) = (&plan.now, place_of(path)) else { return Ok(()) };
        let directory = to_name_in(parent).map_err(failed("open", path))?;
        self.done[plan.at] = true;
        if !plan.was_directory() {
            return take_out(&directory, name, now, path);
        }
        match unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) if plan.change.after.is_none() => {
                self.done[plan.at] = false;
                self.report.left.push(path.clone());
                Ok(())
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                self.done[plan.at] = false;
                Err(RestoreError::Conflict { path: path.clone() })
            }
            Err(error) => Err(failed("remove", path)(error.into())),
        }
    }

    fn make_directory(&mut self, plan: &Planned<'_>) -> Result<(), RestoreError> {
        let path = &plan.change.path;
        let (parent, name) = place_of(path).map_err(failed("make", path))?;
        let directory = open_or_make(parent).map_err(failed("make the directory of", path))?;
        self.done[plan.at] = true;
        match mkdirat(&directory, name, Mode::RWXU) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(RestoreError::Conflict { path: path.clone() }),
            Err(error) => Err(failed("make", path)(error.into())),
        }
    }

    /// Writes a new file or link beside its place.
    fn stage(&mut self, plan: &Planned<'_>) -> Result<(), RestoreError> {
        let Some(after) = plan.makes() else { return Ok(()) };
        let path = &plan.change.path;
        let is_there = plan.now.as_ref().is_some_and(|now| now.holds(&after.content));
        if is_there && !plan.removes() {
            return Ok(());
        }
        let bytes = match &after.content {
            EntryContent::Directory => return Ok(()),
            EntryContent::Symlink(_) => Vec::new(),
            EntryContent::File(digest) => {
                (self.contents)(digest).map_err(failed("read the kept content of", path))?
            }
        };
        let (parent, name) = place_of(path).map_err(failed("write", path))?;
        let directory = open_or_make(parent).map_err(failed("make the directory of", path))?;
        let free = OsString::from(format!(".windlass-undo-{:016x}", fastrand::u64(..)));
        self.staged.push((plan.at, free.clone()));
        let written = match &after.content {
            EntryContent::Symlink(target) => symlinkat(target, &directory, &free).map_err(io::Error::from),
            EntryContent::File(_) | EntryContent::Directory => {
                write_file(&directory, (name, &free), &bytes, plan, after)
            }
        };
        written.map_err(failed("write", path))
    }

    /// Gives a staged entry its name.
    fn place(&mut self, plan: &Planned<'_>, staged: &OsStr) -> Result<(), RestoreError> {
        let path = &plan.change.path;
        let (parent, name) = place_of(path).map_err(failed("replace", path))?;
        let directory = to_name_in(parent).map_err(failed("open", path))?;
        self.done[plan.at] = true;
        if let Some(now) = plan.now.as_ref().filter(|_| !plan.removes()) {
            // In one step, so that the end of this process never leaves the name without a file.
            match renameat_with(&directory, staged, &directory, name, RenameFlags::EXCHANGE) {
                Ok(()) => return drop_replaced(&directory, (staged, name), now, path),
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => take_out(&directory, name, now, path)?,
                Err(error) => return Err(failed("replace", path)(error.into())),
            }
        }
        match renameat_with(&directory, staged, &directory, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(RestoreError::Conflict { path: path.clone() }),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                let linked = rustix::fs::linkat(&directory, staged, &directory, name, AtFlags::empty());
                linked.map_err(|error| failed("replace", path)(error.into()))?;
                unlinkat(&directory, staged, AtFlags::empty())
                    .map_err(|error| failed("replace", path)(error.into()))
            }
            Err(error) => Err(failed("replace", path)(error.into())),
        }
    }

    /// Sets mode and owner of a directory, or of a file that keeps its content.
    fn set_access(&mut self, plan: &Planned<'_>) -> Result<(), RestoreError> {
        let path = &plan.change.path;
        let Some(after) = plan.makes() else { return Ok(()) };
        let is_same_file = || plan.now.as_ref().is_some_and(|now| now.holds(&after.content));
        match &after.content {
            EntryContent::Symlink(_) => return Ok(()),
            EntryContent::File(_) if !is_same_file() => return Ok(()),
            EntryContent::File(_) | EntryContent::Directory => {}
        }
        self.done[plan.at] = true;
        let (parent, name) = place_of(path).map_err(failed("open", path))?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened =
            to_name_in(parent).and_then(|directory| Ok(openat(directory, name, flags, Mode::empty())?));
        let file = File::from(opened.map_err(failed("open", path))?);
        give_owner(&file, plan, after);
        file.set_permissions(Permissions::from_mode(plan.mode(after)))
            .map_err(failed("change the mode of", path))
    }

    /// Flushes new contents before they get their names: few of them one by one, and many with their file systems.
    fn flush_staged(&self) -> Result<(), RestoreError> {
        if self.staged.len() > MAX_FLUSHED {
            return self.flush_file_systems();
        }
        for (at, name) in &self.staged {
            let change = &self.changes[*at];
            let is_link =
                matches!(change.after, Some(EntryVersion { content: EntryContent::Symlink(_), .. }));
            let parent = change.path.parent().filter(|_| !is_link);
            let flushed = parent.map_or(Ok(()), |parent| {
                let file = to_read_at(&to_name_in(parent)?, name)?;
                Ok(rustix::fs::fsync(file)?)
            });
            flushed.map_err(failed("flush", &change.path))?;
        }
        Ok(())
    }

    /// Flushes the directories in which something changed.
    fn flush_directories(&self, planned: &[Planned<'_>]) -> Result<(), RestoreError> {
        let parents: HashSet<_> = planned.iter().filter_map(|plan| plan.change.path.parent()).collect();
        if parents.len() > MAX_FLUSHED {
            return self.flush_file_systems();
        }
        for parent in parents {
            match DirHandle::open(parent).and_then(|directory| Ok(rustix::fs::fsync(directory)?)) {
                // Removed with what was in it, or may be written and not read.
                Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
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
                flush_file_system(&existing).map_err(failed("flush", &change.path))?;
            }
        }
        Ok(())
    }
}

/// Takes an entry away, if it is still what it was when it was looked at.
fn take_out(
    directory: &OwnedFd,
    name: &OsStr,
    seen: &ObservedEntry,
    path: &Path,
) -> Result<(), RestoreError> {
    let aside = OsString::from(format!(".windlass-undo-{:016x}", fastrand::u64(..)));
    let rename = |from: &OsStr, to: &OsStr| match renameat_with(
        directory,
        from,
        directory,
        to,
        RenameFlags::NOREPLACE,
    ) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::renameat(directory, from, directory, to)
        }
        renamed => renamed,
    };
    rename(name, &aside).map_err(|error| failed("replace", path)(error.into()))?;
    let is_same = EntryStat::read(directory, &aside).is_ok_and(|now| seen.is_same(&now));
    if !is_same {
        rename(&aside, name).map_err(|error| failed("put back", path)(error.into()))?;
        return Err(RestoreError::Conflict { path: path.to_owned() });
    }
    unlinkat(directory, &aside, AtFlags::empty()).map_err(|error| failed("remove", path)(error.into()))
}

/// Removes what was replaced, or puts it back if someone wrote to it since it was looked at.
fn drop_replaced(
    directory: &OwnedFd,
    (old, name): (&OsStr, &OsStr),
    seen: &ObservedEntry,
    path: &Path,
) -> Result<(), RestoreError> {
    if EntryStat::read(directory, old).is_ok_and(|now| seen.is_same(&now)) {
        return unlinkat(directory, old, AtFlags::empty())
            .map_err(|error| failed("remove", path)(error.into()));
    }
    renameat_with(directory, old, directory, name, RenameFlags::EXCHANGE)
        .map_err(|error| failed("put back", path)(error.into()))?;
    Err(RestoreError::Conflict { path: path.to_owned() })
}

fn write_file(
    directory: &OwnedFd,
    (name, free): (&OsStr, &OsStr),
    bytes: &[u8],
    plan: &Planned<'_>,
    after: &EntryVersion,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, free, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    if let Some(now) = plan.now.as_ref().filter(|_| !plan.removes()) {
        // What an undo does not know stays: it goes on to the new file.
        let old = File::from(to_read_at(directory, name)?);
        attributes::give(&attributes::of(&old)?, &file)?;
        let _not_allowed = fchown(&file, Some(now.stat.uid), Some(now.stat.gid));
    }
    give_owner(&file, plan, after);
    file.set_permissions(Permissions::from_mode(plan.mode(after)))?;
    let (seconds, nanoseconds) = after.modified;
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Ok(futimens(&file, &Timestamps { last_access, last_modification: modified })?)
}

/// Gives back the owner if the change altered it, as far as this user may.
fn give_owner(file: &File, plan: &Planned<'_>, after: &EntryVersion) {
    if plan.change.before.as_ref().is_none_or(|before| before.owner != after.owner) {
        let (user, group) = after.owner;
        let _not_allowed = fchown(file, Some(user), Some(group));
    }
}

/// Opens a directory to name things in it, and makes it if it is missing.
fn open_or_make(path: &Path) -> io::Result<OwnedFd> {
    match to_name_in(path) {
        Err(error) if is_absent(&error) => {}
        opened => return opened,
    }
    let mut missing: Vec<&Path> = vec![path];
    for above in path.ancestors().skip(1) {
        match to_name_in(above) {
            Ok(mut directory) => {
                for path in missing.into_iter().rev() {
                    let name = place_of(path)?.1;
                    mkdirat(&directory, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
                    directory = to_name_in_at(&directory, name)?;
                }
                return Ok(directory);
            }
            Err(error) if is_absent(&error) => missing.push(above),
            Err(error) => return Err(error),
        }
    }
    to_name_in(path)
}

#[cfg(target_os = "linux")]
fn flush_file_system(directory: &DirHandle) -> io::Result<()> {
    Ok(rustix::fs::syncfs(directory.as_fd())?)
}

#[cfg(not(target_os = "linux"))]
fn flush_file_system(_directory: &DirHandle) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

/// Turns a system error into ours; for `map_err`.
fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RestoreError + use<> {
    let path = path.to_owned();
    move |source| RestoreError::Failed { step, path, source }
}
