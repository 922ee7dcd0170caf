//! Changes files, all of them or none.
//!
//! Everything is looked at and compared first; then new contents are staged beside the files, a note is left for whoever
//! comes after a crash ([`note`]), and only then do old and new change places ([`trace`]). What fails on the way is taken
//! back. The old contents go to the archive before the change counts.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{File, Permissions},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt, fchown},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{Access, AtFlags, FileType, Mode, Stat, accessat, fstat, mkdirat},
    io::Errno,
};
use windlass_contract::{
    Action, Archive, CallId, Change, Changed, CommitError, Expected, FileError, FileKind, Version,
};

use super::{
    handle::{to_name_in_at, to_read_at},
    resolve::{Place, Resolver, kind_of, said},
};
use note::{Note, remove_folders};
use steps::Steps;
use trace::{Trace, is_same, look};

pub(crate) mod note;
mod steps;
mod trace;

/// The largest file that a tool changes: it is held in memory, and kept for an undo.
const LIMIT_BYTES: u64 = 64 * 1024 * 1024;

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
    let mut slots = Vec::new();
    for change in changes {
        plan(resolver, change, &mut slots)?;
    }
    let mut known = HashSet::new();
    if let Some(twice) = slots.iter().find(|slot| !known.insert(slot.place.real.clone())) {
        return Err(CommitError::Twice { path: twice.place.name.clone() });
    }
    let unique = unique();
    let traces = slots.iter().enumerate();
    let traces = traces.map(|(at, slot)| Trace::new(slot.place.real.clone(), &format!("{unique}-{at}")));
    let traces = traces.collect();
    Transaction { archive, steps, unique, slots, traces, note: None, made: Vec::new() }.run(call)
}

/// A file before it is changed, and what is to become of it.
#[derive(Debug)]
struct Slot {
    place: Place,
    before: Option<Before>,
    after: Option<After>,
}

/// A file as it was found.
#[derive(Debug, Clone)]
struct Before {
    version: Version,
    owner: (u32, u32),
    stat: Stat,
}

/// A file as it is to be.
#[derive(Debug)]
struct After {
    bytes: Arc<[u8]>,
    /// Absent: as the system makes new files.
    mode: Option<u32>,
    owner: Option<(u32, u32)>,
}

/// Looks at what a change is about, and whether that is what it expects.
fn plan(resolver: &Resolver, change: Change, slots: &mut Vec<Slot>) -> Result<(), CommitError> {
    let Change { path, expected, action } = change;
    let (place, before) = found(resolver, &path)?;
    let is_as_expected = match (&expected, &before) {
        (Expected::Absent, None) => true,
        (Expected::Content(content), Some(before)) => before.version.bytes == *content,
        (Expected::Absent, Some(_)) | (Expected::Content(_), None) => false,
    };
    if !is_as_expected {
        return Err(CommitError::Stale { path: place.name });
    }
    let like = |bytes: Vec<u8>, before: Option<&Before>| After {
        bytes: bytes.into(),
        mode: before.map(|before| before.version.mode),
        owner: before.map(|before| before.owner),
    };
    let after = match action {
        Action::Write(bytes) => Some(like(bytes, before.as_ref())),
        Action::Restore(Version { bytes, mode }) => {
            Some(After { bytes, mode: Some(mode), owner: before.as_ref().map(|before| before.owner) })
        }
        Action::Delete | Action::Move { .. } if before.is_none() => {
            return Err(FileError::NotFound { path: place.name }.into());
        }
        Action::Delete => None,
        Action::Move { to, bytes } => {
            let (place, replaced) = found(resolver, &to)?;
            slots.push(Slot { place, before: replaced, after: Some(like(bytes, before.as_ref())) });
            None
        }
    };
    slots.push(Slot { place, before, after });
    Ok(())
}

/// Where a file is, and what it is.
fn found(resolver: &Resolver, path: &Path) -> Result<(Place, Option<Before>), CommitError> {
    let place = resolver.place(path)?;
    if !place.missing.is_empty() {
        return Ok((place, None));
    }
    let failed = |error: io::Error| said(&place.name, error);
    let Some(stat) = look(&place.directory, &place.file_name).map_err(failed)? else {
        return Ok((place, None));
    };
    // Looked at before it is opened: opening a pipe or a device may already do something.
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(FileError::IsDirectory { path: place.name }.into()),
        kind => return Err(FileError::NotAFile { path: place.name, kind: unusual(kind) }.into()),
    }
    // Replacing a file needs no right to write to it, but whoever took that right away meant something by it.
    accessat(&place.directory, &place.file_name, Access::WRITE_OK, AtFlags::empty())
        .map_err(|error| failed(error.into()))?;
    let file = to_read_at(&place.directory, &place.file_name).map_err(failed)?;
    let before = read(File::from(file), &place.name)?;
    Ok((place, Some(before)))
}

fn unusual(kind: FileType) -> FileKind {
    match kind {
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        FileType::RegularFile | FileType::Directory | FileType::Unknown => FileKind::Other,
    }
}

fn read(file: File, name: &Path) -> Result<Before, CommitError> {
    let failed = |error: io::Error| said(name, error);
    let stat = fstat(&file).map_err(|error| failed(error.into()))?;
    let metadata = file.metadata().map_err(failed)?;
    let kind = kind_of(metadata.file_type());
    if kind != FileKind::File {
        return Err(FileError::NotAFile { path: name.to_owned(), kind }.into());
    }
    let mut bytes =
        Vec::with_capacity(usize::try_from(metadata.len().min(LIMIT_BYTES)).unwrap_or_default() + 1);
    file.take(LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT_BYTES {
        let bytes = metadata.len().max(LIMIT_BYTES + 1);
        return Err(CommitError::TooLarge { path: name.to_owned(), bytes, limit_bytes: LIMIT_BYTES });
    }
    let version = Version { bytes: bytes.into(), mode: metadata.mode() & 0o7777 };
    Ok(Before { version, owner: (metadata.uid(), metadata.gid()), stat })
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
    slots: Vec<Slot>,
    /// One for each slot.
    traces: Vec<Trace>,
    note: Option<Note>,
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
        for at in 0..self.slots.len() {
            self.make_folders(at)?;
            self.stage(at)?;
        }
        self.ready()?;
        for at in 0..self.slots.len() {
            self.swap(at)?;
        }
        let changed: Vec<_> = self.slots.iter().map(Slot::changed).collect();
        if let Some(archive) = self.archive {
            let kept = self.steps.take().and_then(|()| archive.keep(call, &changed));
            kept.map_err(|error| self.failed("keep for an undo", 0)(error))?;
        }
        if let Some(note) = &mut self.note {
            let done = note.done(self.steps);
            done.map_err(|error| self.failed("note the end of the change of", 0)(error))?;
        }
        Ok(changed)
    }

    fn begin(&mut self) -> Result<(), CommitError> {
        let Some(archive) = self.archive else { return Ok(()) };
        let folders = self.folders();
        let note = Note::begin(archive.notes(), &self.unique, &folders, &self.traces, self.steps);
        self.note = Some(note.map_err(self.failed("note the change of", 0))?);
        Ok(())
    }

    /// Every directory that has to be made, from the outside in.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for Slot { place, .. } in &self.slots {
            let above = place.real.ancestors().skip(1).take(place.missing.len());
            let missing: Vec<_> = above.filter(|folder| !folders.iter().any(|each| each == folder)).collect();
            folders.extend(missing.into_iter().rev().map(Path::to_owned));
        }
        folders
    }

    fn make_folders(&mut self, at: usize) -> Result<(), CommitError> {
        let missing = std::mem::take(&mut self.slots[at].place.missing);
        let mut folder: PathBuf = {
            let parent = self.slots[at].place.real.parent().unwrap_or(Path::new("/"));
            parent.ancestors().nth(missing.len()).unwrap_or(Path::new("/")).to_owned()
        };
        for name in missing {
            folder.push(&name);
            let made = self.steps.take().and_then(|()| self.make_folder(at, &name));
            if made.map_err(self.failed("make the directory of", at))? {
                self.made.push(folder.clone());
            }
        }
        Ok(())
    }

    /// Makes a directory, unless another file of the same change needed it before, and goes into it.
    fn make_folder(&mut self, at: usize, name: &OsString) -> io::Result<bool> {
        let directory = &mut self.slots[at].place.directory;
        let made = match mkdirat(&*directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        *directory = to_name_in_at(directory, name)?;
        Ok(made)
    }

    fn stage(&mut self, at: usize) -> Result<(), CommitError> {
        let (slot, steps) = (&self.slots[at], self.steps);
        let Some(after) = &slot.after else { return Ok(()) };
        let staged = after.stage(&mut self.traces[at], &slot.place.directory, steps);
        staged.map_err(self.failed("write", at))
    }

    fn ready(&mut self) -> Result<(), CommitError> {
        let Some(note) = &mut self.note else { return Ok(()) };
        // A single file changes in one step, with or without a note; then it only says what to clean up.
        let is_single = self.slots.len() == 1 && self.made.is_empty();
        let ready = note.ready(&self.traces, self.steps);
        let ready = ready.and_then(|()| if is_single { Ok(()) } else { note.sync(self.steps) });
        ready.map_err(|error| self.failed("note the change of", 0)(error))
    }

    fn swap(&self, at: usize) -> Result<(), CommitError> {
        let (slot, trace, steps) = (&self.slots[at], &self.traces[at], self.steps);
        let directory = &slot.place.directory;
        let stale = || CommitError::Stale { path: slot.place.name.clone() };
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
        for (slot, trace) in self.slots.iter().zip(&self.traces).rev() {
            if trace.put_back(&slot.place.directory, self.steps).is_err() {
                stuck = Some(slot.place.name.clone());
            }
        }
        remove_folders(&self.made, self.steps);
        match (stuck, error) {
            (None, error) => {
                if let Some(note) = &self.note {
                    // Left behind, it only makes the next start look again.
                    let _left = note.remove(self.steps);
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
        for (slot, trace) in self.slots.iter().zip(&self.traces) {
            is_clear &= trace.clear(&slot.place.directory, self.steps).is_ok();
        }
        if let Some(note) = self.note.as_ref().filter(|_| is_clear) {
            let _left = note.remove(self.steps);
        }
    }

    /// Turns a system error into ours; for `map_err`.
    fn failed(&self, step: &'static str, at: usize) -> impl FnOnce(io::Error) -> CommitError + use<> {
        let path = self.slots.get(at).map(|slot| slot.place.name.clone()).unwrap_or_default();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => FileError::NoPermission { path }.into(),
            _ => CommitError::Failed { step, path, source },
        }
    }
}

impl Slot {
    fn changed(&self) -> Changed {
        let found = || look(&self.place.directory, &self.place.file_name).ok().flatten();
        let new_mode =
            || found().map_or(0o644, |found| Mode::from_raw_mode(found.st_mode).as_raw_mode() as _);
        Changed {
            path: self.place.real.clone(),
            before: self.before.as_ref().map(|before| before.version.clone()),
            after: self.after.as_ref().map(|after| Version {
                bytes: Arc::clone(&after.bytes),
                mode: after.mode.unwrap_or_else(new_mode),
            }),
        }
    }
}

impl After {
    /// Writes the new content where it waits, with the mode it is to have.
    fn stage(&self, trace: &mut Trace, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        let mode = if self.mode.is_some() { 0o600 } else { 0o666 };
        let mut file = trace.stage(directory, Mode::from_raw_mode(mode), steps)?;
        steps.take()?;
        file.write_all(&self.bytes)?;
        if let Some((user, group)) = self.owner {
            let metadata = file.metadata()?;
            if (metadata.uid(), metadata.gid()) != (user, group) {
                // Only root may give files away. Everyone else gets a file of their own, as from any editor.
                let _ours = fchown(&file, Some(user), Some(group));
            }
        }
        if let Some(mode) = self.mode {
            // After the owner: giving a file away takes some bits from it.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        steps.take()?;
        file.sync_data()
    }
}

#[cfg(test)]
mod tests;
