//! Applies the changes of a layer to its roots: all of them or none.
//!
//! Everything is checked first. Then the operations are written to the journal, and new entries are
//! renamed into place. Replaced and removed entries go to `undo`. Modes and times of directories
//! are set from the inside out. An error rolls everything back. The old contents go to the archive
//! before the change is committed.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use windlass_contract::{
    CallId,
    edit::{Archive, EditRecord},
};

use super::{
    LayerChange, LayerChangeKind, LayerChanges, OverlayLayer, REFUSED, RootLayer, UNDO, UPPER,
    changes::{MetadataChange, ModeAndTime, ProtectedCheck, parent},
    inode::{self, LayerEntry, MAX_ENTRIES, NodeType, set_metadata_if, set_mode},
    journal::{ApplyOperation, FileSignature, OperationKind},
    rollback::{OpenLayer, UnrestoredFile, exchange_checked, has_changed_since, move_entry},
    undo_copies::UndoCopies,
};
use crate::{
    DirHandle, EntryKind, EntryStat,
    checked_rename::{EntryPlace, remove_file, take_away},
    commit::unique,
    fail_points::FailPoints,
};

/// The reason why a layer was not applied. Nothing was changed, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum LayerApplyError {
    /// Someone else changed files since the layer began.
    #[error("nothing was applied: {} changed meanwhile", conflicting(.0))]
    Conflict(Vec<PathBuf>),
    /// The layer differs from the changes that were shown.
    #[error(
        "nothing was applied: since the changes were shown, files or directories here were renamed, removed or changed; run \
         the command again"
    )]
    NotAsShown,
    /// It was rolled back, except files that someone changed while it was applied.
    #[error("{reason}; {}", in_words(.left))]
    Left {
        /// The reason.
        reason: Box<Self>,
        /// These files, with the path of their earlier content.
        left: Vec<(PathBuf, Option<PathBuf>)>,
    },
    /// A system call failed. Everything is as it was.
    #[error("nothing was applied: cannot {step} `{path}`")]
    Failed {
        /// The operation that failed.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A system call failed, and another one during the rollback.
    #[error(
        "cannot apply all, and not take back what was applied in `{path}`; it is tried again at the next start"
    )]
    Stuck {
        /// The root.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

fn conflicting(paths: &[PathBuf]) -> String {
    let first = paths.first().map(|path| format!("`{}`", path.display())).unwrap_or_default();
    if paths.len() > 1 {
        format!("{first} and {} more were", paths.len() - 1)
    } else {
        format!("{first} was")
    }
}

fn in_words(left: &[(PathBuf, Option<PathBuf>)]) -> String {
    let one = |(path, before): &(PathBuf, Option<PathBuf>)| match before {
        Some(before) => format!(
            "`{}` was changed meanwhile and stays, what it was before is in `{}`",
            path.display(),
            before.display()
        ),
        None => format!("`{}` was changed meanwhile and stays", path.display()),
    };
    left.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A layer that was applied.
#[derive(Debug, Default)]
pub struct AppliedLayer {
    /// Number of changes.
    pub count: usize,
    /// Number of files in the archive, which can be restored.
    pub kept: usize,
    /// Files that are not in the archive, with the reason.
    pub not_kept: Vec<(PathBuf, &'static str)>,
    /// Files that had other names (hard links), which keep the old content.
    pub other_names: Vec<PathBuf>,
}

impl OverlayLayer {
    /// Applies the changes that were shown. All commands must have exited.
    pub fn apply(
        mut self,
        shown: &LayerChanges,
        protected: ProtectedCheck<'_>,
        archive: Option<(&dyn Archive, &CallId)>,
    ) -> Result<AppliedLayer, LayerApplyError> {
        let applied = self.apply_with_fail_points(shown, protected, archive, &FailPoints::default());
        if !matches!(applied, Err(LayerApplyError::Stuck { .. })) {
            let is_applied = applied.is_ok();
            // A directory that stays is removed at the next start.
            let _left = self.clear(shown, is_applied, &FailPoints::default());
        }
        applied
    }

    pub(super) fn apply_with_fail_points(
        &mut self,
        shown: &LayerChanges,
        protected: ProtectedCheck<'_>,
        archive: Option<(&dyn Archive, &CallId)>,
        fail_points: &FailPoints,
    ) -> Result<AppliedLayer, LayerApplyError> {
        let top = self.roots.first().map(|root| root.path.clone()).unwrap_or_default();
        let failed = |step| {
            let path = top.clone();
            move |source| LayerApplyError::Failed { step, path, source }
        };
        let found = self.changes(protected).map_err(failed("look through the layer on"))?;
        if !found.conflicts.is_empty() {
            return Err(LayerApplyError::Conflict(
                found.conflicts.into_iter().map(|each| each.path).collect(),
            ));
        }
        if found != *shown {
            return Err(LayerApplyError::NotAsShown);
        }
        let mut copies = archive.map(|_| UndoCopies::read(self, &found)).unwrap_or_default();
        let archive = archive.filter(|_| !copies.kept.is_empty());
        let contents = archive.map(|(archive, _)| fail_points.hit().and_then(|()| copies.keep(archive)));
        let contents = contents.transpose().map_err(failed("keep for an undo what was in"))?;
        self.prepare(&found, fail_points).map_err(failed("prepare the layer on"))?;
        let operations = operations(&found);
        let metadata = metadata(&found);
        let since_ns = self.sync(fail_points).and_then(|now_ns| self.wait_until_after(now_ns));
        let since_ns = since_ns.map_err(failed("write to disk"))?;
        let gone = self.journal.write_operations(&operations, &metadata, since_ns, fail_points);
        gone.map_err(failed("note the changes of"))?;
        let made = self.make(&operations, &metadata, fail_points).and_then(|()| {
            self.sync(fail_points).map_err(failed("write to disk"))?;
            self.journal.write_done(fail_points).map_err(failed("note the end of the changes of"))
        });
        // The changes are committed by now. An edit in the log that was rolled back would be worse
        // than a missing one.
        if let (Ok(()), Some((archive, call))) = (&made, archive) {
            let (transaction, kept) = (unique(), contents.unwrap_or_default());
            let edit = EditRecord { transaction: &transaction, call, files: &copies.kept, kept: &kept };
            if fail_points.hit().and_then(|()| archive.log(&edit)).is_err() {
                let lost =
                    copies.kept.drain(..).map(|changed| (changed.path, "the log of edits cannot be written"));
                copies.not_kept.extend(lost);
            }
        }
        match made {
            Ok(()) => Ok(AppliedLayer {
                count: found.changes.len(),
                kept: copies.kept.len(),
                not_kept: copies.not_kept,
                other_names: other_names(&found),
            }),
            Err(error) => Err(self.roll_back(error, &operations, &metadata, since_ns, fail_points)),
        }
    }

    /// Moves refused entries out of new directories, and removes the attributes of the overlay.
    fn prepare(&self, found: &LayerChanges, fail_points: &FailPoints) -> io::Result<()> {
        for (number, refusal) in found.refused.iter().filter(|refusal| refusal.is_inside).enumerate() {
            fail_points.hit()?;
            let root = &self.roots[refusal.root];
            let (directory, name) = parent(&root.upper()?, &refusal.relative)?;
            let refused = root.directory.open_dir(Path::new(REFUSED))?;
            move_entry((&directory, name), (&refused, OsStr::new(&number.to_string())))?;
        }
        for change in found.changes.iter().filter(|change| is_moved_in(change)) {
            fail_points.hit()?;
            let (directory, name) = parent(&self.roots[change.root].upper()?, &change.relative)?;
            strip_tree(&directory, name)?;
        }
        Ok(())
    }

    /// Flushes the file systems, and returns the time of the flush.
    fn sync(&self, fail_points: &FailPoints) -> io::Result<i64> {
        let mut since_ns = 0;
        for root in &self.roots {
            fail_points.hit()?;
            since_ns = root.clock()?.max(since_ns);
            root.root.sync_file_system()?;
        }
        Ok(since_ns)
    }

    /// Waits until the clocks of the file systems are later, so that later changes have a later
    /// time.
    fn wait_until_after(&self, now_ns: i64) -> io::Result<i64> {
        self.roots.iter().try_for_each(|root| root.clock_after(now_ns).map(drop))?;
        Ok(now_ns)
    }

    fn make(
        &self,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
        fail_points: &FailPoints,
    ) -> Result<(), LayerApplyError> {
        for (at, operation) in operations.iter().enumerate() {
            let root = &self.roots[operation.root];
            let path = root.path.join(&operation.relative);
            let made = fail_points.hit().and_then(|()| root.apply_operation(operation, at, fail_points));
            match made {
                Ok(true) => {}
                Ok(false) => return Err(LayerApplyError::Conflict(vec![path])),
                Err(error) if is_concurrent_change(&error) => {
                    return Err(LayerApplyError::Conflict(vec![path]));
                }
                Err(source) => return Err(LayerApplyError::Failed { step: "change", path, source }),
            }
        }
        for change in metadata.iter().filter(|change| !change.relative.as_os_str().is_empty()) {
            let root = &self.roots[change.root];
            let path = root.path.join(&change.relative);
            match fail_points.hit().and_then(|()| root.set_metadata(change)) {
                Ok(true) => {}
                Ok(false) => return Err(LayerApplyError::Conflict(vec![path])),
                Err(error) if is_concurrent_change(&error) => {
                    return Err(LayerApplyError::Conflict(vec![path]));
                }
                Err(source) => {
                    return Err(LayerApplyError::Failed { step: "set mode and time of", path, source });
                }
            }
        }
        Ok(())
    }

    fn roll_back(
        &self,
        error: LayerApplyError,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
        since_ns: i64,
        fail_points: &FailPoints,
    ) -> LayerApplyError {
        let mut left = Vec::new();
        for (number, root) in self.roots.iter().enumerate() {
            let place = OpenLayer {
                path: &root.path,
                root: &root.root,
                layer: &root.directory,
                since_ns,
                fail_points,
            };
            match fail_points.hit().and_then(|()| place.roll_back(number, operations, metadata)) {
                Ok(some) => {
                    left.extend(some.into_iter().map(|UnrestoredFile { path, before }| (path, before)))
                }
                Err(source) => return LayerApplyError::Stuck { path: root.path.clone(), source },
            }
        }
        if left.is_empty() { error } else { LayerApplyError::Left { reason: Box::new(error), left } }
    }

    /// Removes the layer, and sets the modification time of each root.
    pub(super) fn clear(
        &self,
        shown: &LayerChanges,
        is_applied: bool,
        fail_points: &FailPoints,
    ) -> io::Result<()> {
        for (number, root) in self.roots.iter().enumerate() {
            fail_points.hit()?;
            let is_root =
                |change: &&MetadataChange| change.root == number && change.relative.as_os_str().is_empty();
            let after = shown.directories.iter().find(is_root).filter(|_| is_applied);
            if let Some(after) = after.filter(|change| change.before.mode != change.after.mode) {
                set_mode(&root.root, OsStr::new(""), after.after.mode)?;
            }
            root.remove(after.map_or(root.before.mtime_ns, |change| change.after.mtime_ns))?;
        }
        fail_points.hit()?;
        self.journal.remove()
    }
}

impl RootLayer {
    /// Applies an operation; returns false if the entry is not the one that was scanned.
    fn apply_operation(
        &self,
        operation: &ApplyOperation,
        at: usize,
        fail_points: &FailPoints,
    ) -> io::Result<bool> {
        let (directory, name) = parent(&self.root, &operation.relative)?;
        let upper = self.directory.open_dir(Path::new(UPPER))?;
        let undo = self.directory.open_dir(Path::new(UNDO))?;
        let (target, saved_name) = ((&directory, name), OsString::from(at.to_string()));
        let saved = (&undo, &*saved_name);
        let now = LayerEntry::find(&directory, name)?;
        if now.map(|entry| FileSignature::from(&entry.stat)) != operation.old {
            return Ok(false);
        }
        // The change time is checked too, because any program can set the modification time. A file
        // with several names is not checked: its change time is set when a name is added or
        // removed.
        let is_written = |entry: LayerEntry| entry.stat.nlink == 1 && entry.stat.ctime_ns >= self.begun_ns;
        if now.is_some_and(|entry| !entry.is_directory() && is_written(entry)) {
            return Ok(false);
        }
        fail_points.hit()?;
        match operation.kind {
            OperationKind::Create => {
                let (source, name) = parent(&upper, &operation.relative)?;
                move_entry((&source, name), target).map(|()| true)
            }
            OperationKind::Exchange => {
                let (source, name) = parent(&upper, &operation.relative)?;
                let ours = (&source, name);
                exchange_checked(target, ours, || self.is_as_before(operation, ours), fail_points)
            }
            OperationKind::Delete => {
                let rename = |from: EntryPlace<'_, _>, to: EntryPlace<'_, _>| {
                    fail_points.hit()?;
                    move_entry(from, to)
                };
                take_away(target, saved, rename, || self.is_as_before(operation, saved).unwrap_or(false))
            }
        }
    }

    /// Returns true if the entry that was moved away is the one that was scanned: a change in
    /// between must not be lost.
    fn is_as_before(
        &self,
        operation: &ApplyOperation,
        (directory, name): (&DirHandle, &OsStr),
    ) -> io::Result<bool> {
        let Some(entry) = LayerEntry::find(directory, name)? else { return Ok(false) };
        if operation.old != Some((&entry.stat).into()) {
            return Ok(false);
        }
        if !entry.is_directory() {
            return Ok(true);
        }
        // An entry with the time of the start was changed since.
        Ok(!has_changed_since(&directory.open_dir(Path::new(name))?, self.begun_ns - 1)?)
    }

    /// Sets a mode and a time; returns false if the entry is not the one that was scanned.
    fn set_metadata(&self, change: &MetadataChange) -> io::Result<bool> {
        let (directory, name) = parent(&self.root, &change.relative)?;
        let MetadataChange { before, after, .. } = change;
        // The time of a directory has changed with its entries.
        let is_expected = |now: &EntryStat| match now.kind {
            EntryKind::Directory => [before.mode, after.mode].contains(&now.permissions),
            _ => ModeAndTime::from(now) == *before,
        };
        set_metadata_if(&directory, name, is_expected, *after)
    }
}

/// Returns true if an error means that someone made, moved or removed the entry or a directory
/// above it.
fn is_concurrent_change(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound};
    matches!(error.kind(), AlreadyExists | NotFound | NotADirectory)
}

/// Returns true if an entry of the upper directory is renamed into the root.
fn is_moved_in(change: &LayerChange) -> bool {
    !change.is_inside && change.after.is_some() && change.kind != LayerChangeKind::Metadata
}

/// Lists the operations: creations and exchanges first, then deletions.
fn operations(found: &LayerChanges) -> Vec<ApplyOperation> {
    let whole = found.changes.iter().filter(|change| !change.is_inside);
    let operation = |change: &LayerChange| {
        let kind = match change.kind {
            LayerChangeKind::Metadata => return None,
            LayerChangeKind::Created => OperationKind::Create,
            LayerChangeKind::Deleted => OperationKind::Delete,
            LayerChangeKind::Modified | LayerChangeKind::Replaced => OperationKind::Exchange,
        };
        let signature = |stat: &Option<EntryStat>| stat.as_ref().map(FileSignature::from);
        let (old, new) = (signature(&change.before), signature(&change.after));
        Some(ApplyOperation { root: change.root, relative: change.relative.clone(), kind, old, new })
    };
    let mut operations: Vec<_> = whole.filter_map(operation).collect();
    operations.sort_by_key(|operation| operation.kind == OperationKind::Delete);
    operations
}

/// Lists the modes and times to set, from the inside out.
fn metadata(found: &LayerChanges) -> Vec<MetadataChange> {
    let files =
        found.changes.iter().filter(|change| change.kind == LayerChangeKind::Metadata && !change.is_inside);
    let files = files.filter_map(|change| {
        let (before, after) = (change.before.as_ref()?.into(), change.after.as_ref()?.into());
        Some(MetadataChange { root: change.root, relative: change.relative.clone(), before, after })
    });
    files.chain(found.directories.iter().cloned()).collect()
}

fn other_names(found: &LayerChanges) -> Vec<PathBuf> {
    let linked = |change: &&LayerChange| {
        change.kind == LayerChangeKind::Modified && change.before.is_some_and(|stat| stat.nlink > 1)
    };
    found.changes.iter().filter(linked).map(|change| change.path.clone()).collect()
}

/// Removes the attributes of the overlay and the whiteouts from a tree: there is nothing below that
/// they could hide.
fn strip_tree(directory: &DirHandle, name: &OsStr) -> io::Result<()> {
    let Some(entry) = LayerEntry::find(directory, name)? else { return Ok(()) };
    if entry.node == NodeType::Whiteout {
        return remove_file(directory, name);
    }
    inode::remove_overlay_attributes(directory, name, &entry)?;
    if entry.is_directory() {
        let inside = directory.open_dir(Path::new(name))?;
        for name in inside.list(MAX_ENTRIES)? {
            strip_tree(&inside, &name)?;
        }
    }
    Ok(())
}
