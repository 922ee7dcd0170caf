//! Rolls back the application of a layer to a root, however far it came. It can be repeated.
//!
//! The signatures of the entries show whether an operation was done. An entry that someone has
//! changed since stays, and its earlier content is saved beside it.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use super::{
    UNDO, UPPER,
    changes::{MetadataChange, parent},
    inode::{LayerEntry, MAX_ENTRIES, remove_tree, set_metadata_if, set_mode, set_mtime},
    journal::{ApplyOperation, FileSignature, OperationKind, RootRecord},
};
use crate::{
    DirHandle, EntryKind, EntryStat,
    checked_rename::{self, CheckedExchange, EntryPlace, rename_to_free, take_away},
    fail_points::FailPoints,
};

/// A layer that a dead process has left, as read from its journal.
#[derive(Debug, Default)]
pub(super) struct AbandonedLayer {
    pub(super) roots: Vec<RootRecord>,
    pub(super) operations: Vec<ApplyOperation>,
    pub(super) metadata: Vec<MetadataChange>,
    pub(super) since_ns: i64,
    pub(super) is_begun: bool,
    pub(super) is_done: bool,
}

/// A file that was not restored.
#[derive(Debug)]
pub(super) struct UnrestoredFile {
    pub(super) path: PathBuf,
    /// The path of its earlier content.
    pub(super) before: Option<PathBuf>,
}

/// A root and the directory of its layer, open.
#[derive(Debug)]
pub(super) struct OpenLayer<'a> {
    pub(super) path: &'a Path,
    pub(super) root: &'a DirHandle,
    pub(super) layer: &'a DirHandle,
    /// The time before anything was applied.
    pub(super) since_ns: i64,
    pub(super) fail_points: &'a FailPoints,
}

impl AbandonedLayer {
    /// Rolls everything back, or removes a layer that was applied. The error names the root.
    pub(super) fn recover(&self) -> Result<Vec<UnrestoredFile>, (PathBuf, io::Error)> {
        let mut left = Vec::new();
        for (number, record) in self.roots.iter().enumerate() {
            left.extend(self.recover_root(number, record).map_err(|error| (record.path.clone(), error))?);
        }
        Ok(left)
    }

    fn recover_root(&self, number: usize, record: &RootRecord) -> io::Result<Vec<UnrestoredFile>> {
        let root = match DirHandle::open(&record.path) {
            // The root was removed, and the layer in it.
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
            let (path, since_ns, fail_points) = (&record.path, self.since_ns, &FailPoints::default());
            let place = OpenLayer { path, root: &root, layer: &layer, since_ns, fail_points };
            left = place.roll_back(number, &self.operations, &self.metadata)?;
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

impl OpenLayer<'_> {
    /// Rolls back the operations that were done on this root.
    pub(super) fn roll_back(
        &self,
        number: usize,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
    ) -> io::Result<Vec<UnrestoredFile>> {
        let undo = self.layer.open_dir(Path::new(UNDO))?;
        let upper = self.layer.open_dir(Path::new(UPPER))?;
        let mut left = Vec::new();
        for (at, operation) in operations.iter().enumerate().rev() {
            if operation.root == number {
                let saved = OsString::from(at.to_string());
                let back = OperationRollback { place: self, undo: &undo, upper: &upper, saved: &saved };
                left.extend(back.operation(operation)?);
            }
        }
        for change in metadata.iter().filter(|change| change.root == number) {
            self.restore_metadata(change)?;
        }
        Ok(left)
    }

    /// Restores mode and time, unless someone has set them since.
    fn restore_metadata(&self, change: &MetadataChange) -> io::Result<()> {
        // The time of the root itself is set when the layer is removed.
        let Ok((directory, name)) = parent(self.root, &change.relative) else {
            let now = self.root.stat()?;
            let is_ours = now.permissions == change.after.mode && change.before.mode != change.after.mode;
            return if is_ours { set_mode(self.root, OsStr::new(""), change.before.mode) } else { Ok(()) };
        };
        let Some(now) = LayerEntry::find(&directory, name)? else { return Ok(()) };
        let (before, after) = (change.before, change.after);
        let is_ours = |now: &EntryStat| {
            let is_directory = now.kind == EntryKind::Directory;
            [before.mode, after.mode].contains(&now.permissions)
                && (is_directory || [before.mtime_ns, after.mtime_ns].contains(&now.mtime_ns))
        };
        if !set_metadata_if(&directory, name, is_ours, before)? && now.is_directory() {
            set_mtime(&directory, name, before.mtime_ns)?;
        }
        Ok(())
    }
}

/// Rolls one operation back.
struct OperationRollback<'a> {
    place: &'a OpenLayer<'a>,
    undo: &'a DirHandle,
    upper: &'a DirHandle,
    /// The name in `undo`.
    saved: &'a OsStr,
}

impl OperationRollback<'_> {
    fn operation(&self, operation: &ApplyOperation) -> io::Result<Option<UnrestoredFile>> {
        let (directory, name) = match parent(self.place.root, &operation.relative) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return self.without_directory(operation);
            }
            Err(error) => return Err(error),
        };
        let at = (&directory, name);
        let target = LayerEntry::find(&directory, name)?;
        match operation.kind {
            OperationKind::Create => self.create(operation, at, target),
            OperationKind::Exchange => self.exchange(operation, at, target),
            OperationKind::Delete => self.delete(operation, at, target),
        }
    }

    fn create(
        &self,
        operation: &ApplyOperation,
        at: EntryPlace<'_, DirHandle>,
        target: Option<LayerEntry>,
    ) -> io::Result<Option<UnrestoredFile>> {
        let saved = (self.undo, self.saved);
        if let Some(taken) = LayerEntry::find(self.undo, self.saved)? {
            // It was moved away already, before it was checked.
            let is_ours = self.is_untouched(operation.new, &taken, saved)?;
            return if is_ours { Ok(None) } else { self.give_back(saved, operation, at, target) };
        }
        let Some(target) = target.filter(|target| has_inode(operation.new, target)) else { return Ok(None) };
        let is_ours = |entry: &LayerEntry, at| self.is_untouched(operation.new, entry, at).unwrap_or(false);
        let is_same =
            || matches!(LayerEntry::find(self.undo, self.saved), Ok(Some(it)) if is_ours(&it, saved));
        if is_ours(&target, at) && take_away(at, saved, |from, to| self.rename(from, to), is_same)? {
            return Ok(None);
        }
        Ok(Some(self.left(operation, None)))
    }

    fn exchange(
        &self,
        operation: &ApplyOperation,
        at: EntryPlace<'_, DirHandle>,
        target: Option<LayerEntry>,
    ) -> io::Result<Option<UnrestoredFile>> {
        let (upper, name) = parent(self.upper, &operation.relative)?;
        let ours = (&upper, name);
        // Not exchanged, or exchanged back already.
        let Some(in_upper) = LayerEntry::find(&upper, name)?.filter(|it| !has_inode(operation.new, it))
        else {
            return Ok(None);
        };
        let is_ours = |entry: &LayerEntry, at| self.is_untouched(operation.new, entry, at).unwrap_or(false);
        let came_out = || Ok(LayerEntry::find(&upper, name)?.is_some_and(|entry| is_ours(&entry, ours)));
        if target.is_some_and(|target| is_ours(&target, at))
            && exchange_checked(at, ours, came_out, self.place.fail_points)?
        {
            return Ok(None);
        }
        if has_inode(operation.old, &in_upper) {
            return self.save_beside(ours, operation, at).map(Some);
        }
        self.give_back(ours, operation, at, LayerEntry::find(at.0, at.1)?)
    }

    fn delete(
        &self,
        operation: &ApplyOperation,
        at: EntryPlace<'_, DirHandle>,
        target: Option<LayerEntry>,
    ) -> io::Result<Option<UnrestoredFile>> {
        if LayerEntry::find(self.undo, self.saved)?.is_none() {
            return Ok(None);
        }
        self.give_back((self.undo, self.saved), operation, at, target)
    }

    /// Puts back an entry that was moved away, or saves it beside the entry that is there by now.
    fn give_back(
        &self,
        from: EntryPlace<'_, DirHandle>,
        operation: &ApplyOperation,
        at: EntryPlace<'_, DirHandle>,
        target: Option<LayerEntry>,
    ) -> io::Result<Option<UnrestoredFile>> {
        match target.map_or_else(|| self.rename(from, at), |_| Err(io::ErrorKind::AlreadyExists.into())) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.save_beside(from, operation, at).map(Some)
            }
            back => back.map(|()| None),
        }
    }

    fn rename(&self, from: EntryPlace<'_, DirHandle>, to: EntryPlace<'_, DirHandle>) -> io::Result<()> {
        self.place.fail_points.hit()?;
        move_entry(from, to)
    }

    /// Saves the earlier content in the root, because the directory of the entry was removed.
    fn without_directory(&self, operation: &ApplyOperation) -> io::Result<Option<UnrestoredFile>> {
        let name = operation.relative.file_name().unwrap_or_default();
        if LayerEntry::find(self.undo, self.saved)?.is_none() || operation.kind == OperationKind::Create {
            return Ok(None);
        }
        self.save_beside((self.undo, self.saved), operation, (self.place.root, name)).map(Some)
    }

    /// Returns true if an entry is the one that was applied, and nothing in it has changed since.
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
        Ok(!has_changed_since(&directory.open_dir(Path::new(name))?, self.place.since_ns)?)
    }

    /// Renames an earlier content to a free name beside its own.
    fn save_beside(
        &self,
        from: EntryPlace<'_, DirHandle>,
        operation: &ApplyOperation,
        at: EntryPlace<'_, DirHandle>,
    ) -> io::Result<UnrestoredFile> {
        let free = checked_rename::save_beside(from, at, |from, to| self.rename(from, to))?;
        let path = self.place.path.join(&operation.relative);
        Ok(self.left(operation, Some(path.with_file_name(free))))
    }

    fn left(&self, operation: &ApplyOperation, before: Option<PathBuf>) -> UnrestoredFile {
        UnrestoredFile { path: self.place.path.join(&operation.relative), before }
    }
}

/// Returns true if an entry is the file of a signature, whatever its content.
fn has_inode(signature: Option<FileSignature>, entry: &LayerEntry) -> bool {
    signature.is_some_and(|signature| signature.is_same_file(&(&entry.stat).into()))
}

/// Returns true if anything below a directory has changed since this time.
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

/// Renames an entry to a free name in another directory. To be moved, a directory must itself be
/// writable.
pub(super) fn move_entry(from: (&DirHandle, &OsStr), to: (&DirHandle, &OsStr)) -> io::Result<()> {
    let rename = || from.0.with_write_permission(|| to.0.with_write_permission(|| rename_to_free(from, to)));
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

/// Exchanges an entry of a layer with one in a root, if the entry that comes out is the expected
/// one.
pub(super) fn exchange_checked(
    target: EntryPlace<'_, DirHandle>,
    ours: EntryPlace<'_, DirHandle>,
    is_expected: impl FnOnce() -> io::Result<bool>,
    fail_points: &FailPoints,
) -> io::Result<bool> {
    let exchanging = CheckedExchange {
        exchange: &|| {
            fail_points.hit()?;
            exchange_entries(target, ours)
        },
        put_back: &|| move_entry(ours, target),
        look: &|| LayerEntry::find(ours.0, ours.1),
        is_same_file: |one, other| one.stat.is_same_file(&other.stat),
    };
    exchanging.run(|_| is_expected().unwrap_or(false))
}

/// Exchanges two entries of different directories.
fn exchange_entries(one: (&DirHandle, &OsStr), other: (&DirHandle, &OsStr)) -> io::Result<()> {
    let exchange = || {
        one.0.with_write_permission(|| other.0.with_write_permission(|| checked_rename::exchange(one, other)))
    };
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
