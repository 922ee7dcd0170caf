//! Carries the changes of a layer over to its roots: all of them, or none.
//!
//! Everything is checked first. Then the journal says what is about to be done, new entries are
//! renamed into their places, what they replace and what was removed goes to `undo`, and modes and
//! times of directories are set from the inside out. What fails on the way is taken back. What was
//! there before goes to the archive before the change counts.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use windlass_contract::{Archive, CallId, EditRecord};

use super::{
    Layer, LayerChange, LayerChangeKind, LayerChanges, REFUSED, RootLayer, UNDO, UPPER,
    changes::{MetadataChange, ModeAndTime, ProtectedCheck, parent},
    inode::{self, LayerEntry, MAX_ENTRIES, NodeType, set_metadata_if, set_mode},
    journal::{ApplyOperation, FileSignature, OperationKind},
    take_back::{LayerPlace, LeftAsIs, exchange_checked, has_changed_since, move_entry},
    undo_copies::UndoCopies,
};
use crate::{
    DirHandle, EntryKind, EntryStat,
    checked_rename::{EntryPlace, remove_file, take_away},
    commit::unique,
    fail_points::FailPoints,
};

/// Why a layer was not applied. Nothing was changed, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Someone else changed files meanwhile.
    #[error("nothing was applied: {} changed meanwhile", conflicting(.0))]
    Conflict(Vec<PathBuf>),
    /// The layer is not what was shown.
    #[error(
        "nothing was applied: since the changes were shown, files or directories here were renamed, removed or changed; run \
         the command again"
    )]
    NotAsShown,
    /// It was taken back, but for files that someone changed while it was applied.
    #[error("{reason}; {}", in_words(.left))]
    Left {
        /// The reason.
        reason: Box<Self>,
        /// These files, with where their earlier content is.
        left: Vec<(PathBuf, Option<PathBuf>)>,
    },
    /// The system refused on the way. Everything is as it was.
    #[error("nothing was applied: cannot {step} `{path}`")]
    Failed {
        /// What could not be done.
        step: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The system refused on the way, and again when it was to be taken back.
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
    /// How many changes there were.
    pub count: usize,
    /// How many of the files the archive has, so that they can be put back.
    pub kept: usize,
    /// What it does not have, with the reason.
    pub not_kept: Vec<(PathBuf, &'static str)>,
    /// Files that had other names (hard links), which keep the old content.
    pub other_names: Vec<PathBuf>,
}

impl Layer {
    /// Applies what was shown. All commands must be gone.
    pub fn apply(
        mut self,
        shown: &LayerChanges,
        protected: ProtectedCheck<'_>,
        archive: Option<(&dyn Archive, &CallId)>,
    ) -> Result<AppliedLayer, ApplyError> {
        let applied = self.apply_with_fail_points(shown, protected, archive, &FailPoints::default());
        if !matches!(applied, Err(ApplyError::Stuck { .. })) {
            let is_applied = applied.is_ok();
            // What stays is removed at the next start.
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
    ) -> Result<AppliedLayer, ApplyError> {
        let top = self.roots.first().map(|root| root.path.clone()).unwrap_or_default();
        let failed = |step| {
            let path = top.clone();
            move |source| ApplyError::Failed { step, path, source }
        };
        let found = self.changes(protected).map_err(failed("look through the layer on"))?;
        if !found.conflicts.is_empty() {
            return Err(ApplyError::Conflict(found.conflicts.into_iter().map(|each| each.path).collect()));
        }
        if found != *shown {
            return Err(ApplyError::NotAsShown);
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
        let gone = self.journal.go(&operations, &metadata, since_ns, fail_points);
        gone.map_err(failed("note the changes of"))?;
        let made = self.make(&operations, &metadata, fail_points).and_then(|()| {
            self.sync(fail_points).map_err(failed("write to disk"))?;
            self.journal.done(fail_points).map_err(failed("note the end of the changes of"))
        });
        // The changes count by now. An edit in the log that was taken back would be worse than one
        // that is missing there.
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
            Err(error) => Err(self.take_back(error, &operations, &metadata, since_ns, fail_points)),
        }
    }

    /// Takes out of new directories what must not come along, and the attributes of the overlay off
    /// everything.
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

    /// Writes everything to disk, and returns the time after that.
    fn sync(&self, fail_points: &FailPoints) -> io::Result<i64> {
        let mut since_ns = 0;
        for root in &self.roots {
            fail_points.hit()?;
            since_ns = root.mark()?.max(since_ns);
            inode::sync_file_system(&root.root)?;
        }
        Ok(since_ns)
    }

    /// Waits for a later time of the file systems, so that whatever changes from now on can be told
    /// by it.
    fn wait_until_after(&self, now_ns: i64) -> io::Result<i64> {
        self.roots.iter().try_for_each(|root| root.tick_after(now_ns).map(drop))?;
        Ok(now_ns)
    }

    fn make(
        &self,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
        fail_points: &FailPoints,
    ) -> Result<(), ApplyError> {
        for (at, operation) in operations.iter().enumerate() {
            let root = &self.roots[operation.root];
            let path = root.path.join(&operation.relative);
            let made = fail_points.hit().and_then(|()| root.carry_out(operation, at, fail_points));
            match made {
                Ok(true) => {}
                Ok(false) => return Err(ApplyError::Conflict(vec![path])),
                Err(error) if is_someones(&error) => return Err(ApplyError::Conflict(vec![path])),
                Err(source) => return Err(ApplyError::Failed { step: "change", path, source }),
            }
        }
        for change in metadata.iter().filter(|change| !change.relative.as_os_str().is_empty()) {
            let root = &self.roots[change.root];
            let path = root.path.join(&change.relative);
            match fail_points.hit().and_then(|()| root.set_metadata(change)) {
                Ok(true) => {}
                Ok(false) => return Err(ApplyError::Conflict(vec![path])),
                Err(error) if is_someones(&error) => return Err(ApplyError::Conflict(vec![path])),
                Err(source) => {
                    return Err(ApplyError::Failed { step: "set mode and time of", path, source });
                }
            }
        }
        Ok(())
    }

    fn take_back(
        &self,
        error: ApplyError,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
        since_ns: i64,
        fail_points: &FailPoints,
    ) -> ApplyError {
        let mut left = Vec::new();
        for (number, root) in self.roots.iter().enumerate() {
            let place = LayerPlace {
                path: &root.path,
                root: &root.root,
                layer: &root.directory,
                since_ns,
                fail_points,
            };
            match fail_points.hit().and_then(|()| place.take_back(number, operations, metadata)) {
                Ok(some) => left.extend(some.into_iter().map(|LeftAsIs { path, before }| (path, before))),
                Err(source) => return ApplyError::Stuck { path: root.path.clone(), source },
            }
        }
        if left.is_empty() { error } else { ApplyError::Left { reason: Box::new(error), left } }
    }

    /// Removes the layer, and gives each root its time.
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
    /// Carries an operation out; false if what is there is not what was looked at.
    fn carry_out(&self, operation: &ApplyOperation, at: usize, fail_points: &FailPoints) -> io::Result<bool> {
        let (directory, name) = parent(&self.root, &operation.relative)?;
        let upper = self.directory.open_dir(Path::new(UPPER))?;
        let undo = self.directory.open_dir(Path::new(UNDO))?;
        let (target, saved_name) = ((&directory, name), OsString::from(at.to_string()));
        let saved = (&undo, &*saved_name);
        let now = LayerEntry::find(&directory, name)?;
        if now.map(|entry| FileSignature::from(&entry.stat)) != operation.old {
            return Ok(false);
        }
        // Any program can set the other time. That of a file with several names changes when one of
        // them does.
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

    /// Tells whether what was taken away is what was looked at: whoever changed it in between keeps
    /// their work.
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
        // What has the time of the beginning was changed since.
        Ok(!has_changed_since(&directory.open_dir(Path::new(name))?, self.begun_ns - 1)?)
    }

    /// Sets a mode and a time; false if what is there is not what was looked at.
    fn set_metadata(&self, change: &MetadataChange) -> io::Result<bool> {
        let (directory, name) = parent(&self.root, &change.relative)?;
        let MetadataChange { before, after, .. } = change;
        // The time of a directory is another one by now, since its entries are.
        let is_expected = |now: &EntryStat| match now.kind {
            EntryKind::Directory => [before.mode, after.mode].contains(&now.permissions),
            _ => ModeAndTime::from(now) == *before,
        };
        set_metadata_if(&directory, name, is_expected, *after)
    }
}

/// Tells whether an error says that someone made, moved or removed the entry or a directory above
/// it.
fn is_someones(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound};
    matches!(error.kind(), AlreadyExists | NotFound | NotADirectory)
}

/// Tells whether an entry of the upper directory is renamed into the root.
fn is_moved_in(change: &LayerChange) -> bool {
    !change.is_inside && change.after.is_some() && change.kind != LayerChangeKind::Metadata
}

/// Lists what is to be done: first what comes, then what goes.
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

/// Lists the modes and times to be set, from the inside out.
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

/// Takes the attributes of the overlay off a tree, and whiteouts out of it: there is nothing that
/// they could hide.
fn strip_tree(directory: &DirHandle, name: &OsStr) -> io::Result<()> {
    let Some(entry) = LayerEntry::find(directory, name)? else { return Ok(()) };
    if entry.node == NodeType::Whiteout {
        return remove_file(directory, name);
    }
    inode::strip(directory, name, &entry)?;
    if entry.is_directory() {
        let inside = directory.open_dir(Path::new(name))?;
        for name in inside.list(MAX_ENTRIES)? {
            strip_tree(&inside, &name)?;
        }
    }
    Ok(())
}
