//! Puts a root back that a layer was being applied to, whatever of it was done. Can be repeated.
//!
//! Each operation is told to be done or not by the signatures of what is there. What someone has changed since stays, and
//! what was there before is saved beside it.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use super::{
    UNDO, UPPER,
    changes::{MetadataChange, parent},
    inode::{self, LayerEntry, MAX_ENTRIES, remove_tree, set_mode, set_mtime},
    journal::{ApplyOperation, FileSignature, OperationKind, RootRecord},
};
use crate::DirHandle;

/// What is added to the name of an earlier content that could not be put back.
const BESIDE: &str = "windlass-before";

/// How many names are tried for it.
const MAX_NAMES: usize = 64;

/// A layer that a process has left, as its journal has it.
#[derive(Debug, Default)]
pub(super) struct AbandonedLayer {
    pub(super) roots: Vec<RootRecord>,
    pub(super) operations: Vec<ApplyOperation>,
    pub(super) metadata: Vec<MetadataChange>,
    pub(super) since_ns: i64,
    pub(super) is_begun: bool,
    pub(super) is_done: bool,
}

/// A file that is not as it was.
#[derive(Debug)]
pub(super) struct LeftAsIs {
    pub(super) path: PathBuf,
    /// Where its earlier content is.
    pub(super) before: Option<PathBuf>,
}

/// A root and the directory of its layer, open.
#[derive(Debug)]
pub(super) struct LayerPlace<'a> {
    pub(super) path: &'a Path,
    pub(super) root: &'a DirHandle,
    pub(super) layer: &'a DirHandle,
}

impl AbandonedLayer {
    /// Takes everything back, or clears up. An error names the root.
    pub(super) fn recover(&self) -> Result<Vec<LeftAsIs>, (PathBuf, io::Error)> {
        let mut left = Vec::new();
        for (number, record) in self.roots.iter().enumerate() {
            left.extend(self.recover_root(number, record).map_err(|error| (record.path.clone(), error))?);
        }
        Ok(left)
    }

    fn recover_root(&self, number: usize, record: &RootRecord) -> io::Result<Vec<LeftAsIs>> {
        let root = match DirHandle::open(&record.path) {
            // The root has gone, and the layer in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            root => root?,
        };
        let found = root.stat()?;
        if (found.dev, found.ino) != (record.dev, record.ino) {
            return Ok(Vec::new());
        }
        let layer = match root.open_dir(Path::new(&record.name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            layer => layer?,
        };
        let mut left = Vec::new();
        if self.is_begun && !self.is_done {
            let place = LayerPlace { path: &record.path, root: &root, layer: &layer };
            left = place.take_back(number, &self.operations, &self.metadata, self.since_ns)?;
        }
        let is_root =
            |change: &&MetadataChange| change.root == number && change.relative.as_os_str().is_empty();
        let applied = self.metadata.iter().find(is_root).filter(|_| self.is_done);
        if let Some(change) = applied.filter(|change| change.before.mode != change.after.mode) {
            set_mode(&root, OsStr::new(""), change.after.mode)?;
        }
        remove_tree(&root, &record.name)?;
        set_mtime(&root, OsStr::new(""), applied.map_or(record.mtime_ns, |change| change.after.mtime_ns))?;
        Ok(left)
    }
}

impl LayerPlace<'_> {
    /// Takes back what was done of the operations on this root.
    pub(super) fn take_back(
        &self,
        number: usize,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
        since_ns: i64,
    ) -> io::Result<Vec<LeftAsIs>> {
        let undo = self.layer.open_dir(Path::new(UNDO))?;
        let upper = self.layer.open_dir(Path::new(UPPER))?;
        let mut left = Vec::new();
        for (at, operation) in operations.iter().enumerate().rev() {
            if operation.root == number {
                let saved = OsString::from(at.to_string());
                let back = TakeBack { place: self, undo: &undo, upper: &upper, saved: &saved, since_ns };
                left.extend(back.operation(operation)?);
            }
        }
        for change in metadata.iter().filter(|change| change.root == number) {
            self.restore_metadata(change)?;
        }
        Ok(left)
    }

    /// Sets mode and time as they were, unless someone has set them since.
    fn restore_metadata(&self, change: &MetadataChange) -> io::Result<()> {
        // The root itself gets its time when the layer is gone.
        let Ok((directory, name)) = parent(self.root, &change.relative) else {
            let now = self.root.stat()?;
            let is_ours = now.permissions == change.after.mode && change.before.mode != change.after.mode;
            return if is_ours { set_mode(self.root, OsStr::new(""), change.before.mode) } else { Ok(()) };
        };
        let Some(now) = LayerEntry::find(&directory, name)? else { return Ok(()) };
        if now.stat.permissions == change.after.mode && change.before.mode != change.after.mode {
            set_mode(&directory, name, change.before.mode)?;
        }
        if now.is_directory() || now.stat.mtime_ns == change.after.mtime_ns {
            set_mtime(&directory, name, change.before.mtime_ns)?;
        }
        Ok(())
    }
}

/// Takes one operation back.
struct TakeBack<'a> {
    place: &'a LayerPlace<'a>,
    undo: &'a DirHandle,
    upper: &'a DirHandle,
    /// The name in `undo`.
    saved: &'a OsStr,
    since_ns: i64,
}

impl TakeBack<'_> {
    fn operation(&self, operation: &ApplyOperation) -> io::Result<Option<LeftAsIs>> {
        let (directory, name) = match parent(self.place.root, &operation.relative) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.without_directory(operation);
            }
            Err(error) => return Err(error),
        };
        let at = (&directory, name);
        let target = LayerEntry::find(&directory, name)?;
        match operation.kind {
            OperationKind::Create => self.create(operation, at, target),
            OperationKind::Replace => self.replace(operation, at, target),
            OperationKind::Exchange => self.exchange(operation, at, target),
            OperationKind::Delete => self.delete(operation, at, target),
        }
    }

    fn create(
        &self,
        operation: &ApplyOperation,
        at: (&DirHandle, &OsStr),
        target: Option<LayerEntry>,
    ) -> io::Result<Option<LeftAsIs>> {
        let Some(target) = target.filter(|target| has_inode(operation.new, target)) else { return Ok(None) };
        if self.is_untouched(operation.new, &target, at)? {
            return move_entry(at, (self.undo, self.saved)).map(|()| None);
        }
        Ok(Some(self.left(operation, None)))
    }

    fn replace(
        &self,
        operation: &ApplyOperation,
        at: (&DirHandle, &OsStr),
        target: Option<LayerEntry>,
    ) -> io::Result<Option<LeftAsIs>> {
        let Some(saved) = LayerEntry::find(self.undo, self.saved)? else { return Ok(None) };
        match target {
            Some(target) if has_inode(Some((&saved.stat).into()), &target) => {
                // Only its second name was made.
                inode::remove_file(self.undo, self.saved)?;
                Ok(None)
            }
            Some(target) if self.is_untouched(operation.new, &target, at)? => {
                writable(at.0, || inode::rename_over((self.undo, self.saved), at))?;
                Ok(None)
            }
            _ => self.save_beside((self.undo, self.saved), operation, at).map(Some),
        }
    }

    fn exchange(
        &self,
        operation: &ApplyOperation,
        at: (&DirHandle, &OsStr),
        target: Option<LayerEntry>,
    ) -> io::Result<Option<LeftAsIs>> {
        let (upper, name) = parent(self.upper, &operation.relative)?;
        let in_upper = LayerEntry::find(&upper, name)?;
        if !in_upper.is_some_and(|entry| has_inode(operation.old, &entry)) {
            return Ok(None);
        }
        match target {
            Some(target) if self.is_untouched(operation.new, &target, at)? => {
                exchange_entries(at, (&upper, name)).map(|()| None)
            }
            _ => self.save_beside((&upper, name), operation, at).map(Some),
        }
    }

    fn delete(
        &self,
        operation: &ApplyOperation,
        at: (&DirHandle, &OsStr),
        target: Option<LayerEntry>,
    ) -> io::Result<Option<LeftAsIs>> {
        if LayerEntry::find(self.undo, self.saved)?.is_none() {
            return Ok(None);
        }
        match target {
            None => move_entry((self.undo, self.saved), at).map(|()| None),
            Some(_) => self.save_beside((self.undo, self.saved), operation, at).map(Some),
        }
    }

    /// The directory of the entry has gone: what was in it before is saved in the root.
    fn without_directory(&self, operation: &ApplyOperation) -> io::Result<Option<LeftAsIs>> {
        let name = operation.relative.file_name().unwrap_or_default();
        if LayerEntry::find(self.undo, self.saved)?.is_none() || operation.kind == OperationKind::Create {
            return Ok(None);
        }
        self.save_beside((self.undo, self.saved), operation, (self.place.root, name)).map(Some)
    }

    /// Tells whether an entry is what was applied, and nothing in it has changed since.
    fn is_untouched(
        &self,
        applied: Option<FileSignature>,
        target: &LayerEntry,
        (directory, name): (&DirHandle, &OsStr),
    ) -> io::Result<bool> {
        if applied != Some((&target.stat).into()) {
            return Ok(false);
        }
        if !target.is_directory() {
            return Ok(true);
        }
        Ok(!has_changed_since(&directory.open_dir(Path::new(name))?, self.since_ns)?)
    }

    /// Renames an earlier content to a free name beside its own.
    fn save_beside(
        &self,
        from: (&DirHandle, &OsStr),
        operation: &ApplyOperation,
        (directory, name): (&DirHandle, &OsStr),
    ) -> io::Result<LeftAsIs> {
        for attempt in 0..MAX_NAMES {
            let mut free = name.to_owned();
            free.push(format!(".{BESIDE}"));
            if attempt > 0 {
                free.push(format!("-{attempt}"));
            }
            match move_entry(from, (directory, &free)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                moved => {
                    moved?;
                    let path = self.place.path.join(&operation.relative);
                    return Ok(self.left(operation, Some(path.with_file_name(free))));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn left(&self, operation: &ApplyOperation, before: Option<PathBuf>) -> LeftAsIs {
        LeftAsIs { path: self.place.path.join(&operation.relative), before }
    }
}

/// Tells whether an entry is the file of a signature, whatever is in it.
fn has_inode(signature: Option<FileSignature>, entry: &LayerEntry) -> bool {
    signature.is_some_and(|signature| signature.is_same_file(&(&entry.stat).into()))
}

/// Tells whether anything below a directory has changed since.
pub(super) fn has_changed_since(directory: &DirHandle, since_ns: i64) -> io::Result<bool> {
    for name in directory.list(MAX_ENTRIES)? {
        let Some(entry) = LayerEntry::find(directory, &name)? else { continue };
        if entry.stat.ctime_ns > since_ns {
            return Ok(true);
        }
        if entry.is_directory() && has_changed_since(&directory.open_dir(Path::new(&name))?, since_ns)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Acts on entries of a directory, where its mode forbids it with that mode widened for a moment.
pub(super) fn writable<T>(directory: &DirHandle, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    directory.with_write_permission(act)
}

/// Renames an entry to a free name in another directory. A directory must be writable itself for that.
pub(super) fn move_entry(from: (&DirHandle, &OsStr), to: (&DirHandle, &OsStr)) -> io::Result<()> {
    let rename = || writable(from.0, || writable(to.0, || inode::rename_new(from, to)));
    let denied = match rename() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        result => return result,
    };
    let entry = LayerEntry::find(from.0, from.1)?.filter(LayerEntry::is_directory);
    let Some(mode) = entry.map(|entry| entry.stat.permissions).filter(|mode| mode & 0o200 == 0) else {
        return Err(denied);
    };
    set_mode(from.0, from.1, mode | 0o200)?;
    match rename() {
        Ok(()) => set_mode(to.0, to.1, mode),
        Err(error) => set_mode(from.0, from.1, mode).and(Err(error)),
    }
}

/// Has two entries of different directories change places.
pub(super) fn exchange_entries(one: (&DirHandle, &OsStr), other: (&DirHandle, &OsStr)) -> io::Result<()> {
    let exchange = || writable(one.0, || writable(other.0, || inode::exchange(one, other)));
    let denied = match exchange() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        result => return result,
    };
    let shut = |at: (&DirHandle, &OsStr)| -> io::Result<Option<u16>> {
        let entry = LayerEntry::find(at.0, at.1)?.filter(LayerEntry::is_directory);
        Ok(entry.map(|entry| entry.stat.permissions).filter(|mode| mode & 0o200 == 0))
    };
    let modes = (shut(one)?, shut(other)?);
    if modes == (None, None) {
        return Err(denied);
    }
    let set =
        |at: (&DirHandle, &OsStr), mode: Option<u16>| mode.map_or(Ok(()), |mode| set_mode(at.0, at.1, mode));
    set(one, modes.0.map(|mode| mode | 0o200))?;
    set(other, modes.1.map(|mode| mode | 0o200))?;
    match exchange() {
        Ok(()) => set(other, modes.0).and_then(|()| set(one, modes.1)),
        Err(error) => set(one, modes.0).and_then(|()| set(other, modes.1)).and(Err(error)),
    }
}
