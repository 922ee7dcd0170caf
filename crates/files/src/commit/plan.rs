//! The plan of a commit: the old and new state of each file, built before anything is changed.

use std::{
    collections::HashSet,
    fs::{File, Permissions},
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt, fchown},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, Stat, Timespec, Timestamps, UTIME_OMIT, futimens};
use windlass_contract::{
    edit::{Action, Attributes, Change, Changed, CommitError, ContentPair, HashedContent, Version},
    files::{FileError, FileKind, Stamp},
};

use super::{
    FailPoints,
    file_before::FileBefore,
    file_swap::{FileSwap, look},
    target_directory::{TargetDirectories, TargetDirectory},
    xattrs,
};
use crate::{
    resolve::{PathResolver, WriteTarget, file_error},
    sha256::sha256_of,
};

/// All files and directories of a commit.
#[derive(Debug, Default)]
pub(super) struct CommitPlan {
    pub(super) files: Vec<PlannedFile>,
    pub(super) directories: TargetDirectories,
    /// Directories to remove at the end, if they are empty.
    pub(super) removed_folders: Vec<PathBuf>,
}

/// A file before it is changed, and its new state.
#[derive(Debug)]
pub(super) struct PlannedFile {
    /// The path as it was requested.
    pub(super) name: PathBuf,
    /// The path without links.
    pub(super) real: PathBuf,
    /// The innermost directory that exists; the rest is still to be made.
    pub(super) directory: TargetDirectory,
    /// Number of directories still to be made in it.
    pub(super) missing: usize,
    /// Directories that were made for it, parents first.
    pub(super) made: Vec<PathBuf>,
    pub(super) before: Option<FileBefore>,
    pub(super) after: Option<FileAfter>,
}

/// A file after the change.
#[derive(Debug)]
pub(super) struct FileAfter {
    bytes: Arc<[u8]>,
    /// `None`: the default mode of new files.
    mode: Option<u32>,
    /// `None`: this user.
    owner: Option<(u32, u32)>,
    /// `None`: now.
    modified: Option<(i64, i64)>,
    attributes: Attributes,
}

impl CommitPlan {
    /// Adds a change, after checking that the file is as the change expects.
    pub(super) fn add(&mut self, resolver: &PathResolver, change: Change) -> Result<(), CommitError> {
        let Change { path, expected, action } = change;
        let target = resolver.write_target(&path)?;
        // Removing or moving what a link leads to would leave the link behind, and is seldom meant.
        if matches!(action, Action::Delete { .. } | Action::Move { .. })
            && crate::handle::lstat(&target.name).is_ok_and(|found| found.is_symlink())
        {
            return Err(FileError::NotAFile { path: target.name, kind: FileKind::Link }.into());
        }
        let before = FileBefore::read_expected(&target, &expected)?;
        let like = |bytes: Vec<u8>, before: Option<&FileBefore>| FileAfter {
            bytes: bytes.into(),
            mode: before.map(|before| before.version.mode),
            owner: before.and_then(|before| before.version.owner),
            modified: None,
            attributes: before.map(|before| before.version.attributes.clone()).unwrap_or_default(),
        };
        let after = match action {
            Action::Write(bytes) => Some(like(bytes, before.as_ref())),
            Action::Restore { before: old, after: made } => {
                Some(FileAfter::restored(old, made.as_ref(), before.as_ref().map(|now| &now.version)))
            }
            Action::Delete { .. } | Action::Move { .. } if before.is_none() => {
                return Err(FileError::NotFound { path: target.name }.into());
            }
            Action::Delete { folders } => {
                self.removed_folders.extend(folders);
                None
            }
            Action::Move { to, bytes } => {
                let target = resolver.write_target(&to)?;
                let replaced = FileBefore::read_any(&target)?;
                self.push(target, replaced, Some(like(bytes, before.as_ref())))?;
                None
            }
        };
        self.push(target, before, after)
    }

    /// Hashes the old and the new content of each file.
    pub(super) fn contents(&self) -> Vec<ContentPair> {
        let hashed = |bytes: &Arc<[u8]>| HashedContent { sha256: sha256_of(bytes), bytes: Arc::clone(bytes) };
        let pairs = self.files.iter().map(|planned| ContentPair {
            before: planned.before.as_ref().map(|before| hashed(&before.version.bytes)),
            after: planned.after.as_ref().map(|after| hashed(&after.bytes)),
        });
        pairs.collect()
    }

    fn push(
        &mut self,
        target: WriteTarget,
        before: Option<FileBefore>,
        after: Option<FileAfter>,
    ) -> Result<(), CommitError> {
        let WriteTarget { name, real, directory, missing, .. } = target;
        let missing = missing.len();
        let existing = real.ancestors().nth(missing + 1).unwrap_or(Path::new("/"));
        let directory =
            self.directories.take(directory, existing).map_err(|error| file_error(&name, error))?;
        self.files.push(PlannedFile { name, real, directory, missing, made: Vec::new(), before, after });
        Ok(())
    }

    /// Fails if a file appears twice, or is where another needs a directory.
    pub(super) fn check(&self) -> Result<(), CommitError> {
        let mut known = HashSet::new();
        if let Some(twice) = self.files.iter().find(|planned| !known.insert(&*planned.real)) {
            return Err(CommitError::Twice { path: twice.name.clone() });
        }
        for planned in self.files.iter().filter(|planned| planned.missing > 0) {
            if let Some(file) =
                planned.real.ancestors().skip(1).take(planned.missing).find(|above| known.contains(above))
            {
                return Err(CommitError::Beneath { path: planned.name.clone(), file: file.to_owned() });
            }
        }
        Ok(())
    }
}

impl PlannedFile {
    pub(super) fn changed(&self) -> Changed {
        let name = self.real.file_name().unwrap_or_default();
        let found = self.directory.open().and_then(|directory| look(&directory, name)).ok().flatten();
        let found = found.filter(|_| self.after.is_some());
        let new_mode = || found.map_or(0o644, |found| Mode::from_raw_mode(found.st_mode).as_raw_mode() as _);
        Changed {
            path: self.real.clone(),
            before: self.before.as_ref().map(|before| before.version.clone()),
            after: self.after.as_ref().map(|after| Version {
                bytes: Arc::clone(&after.bytes),
                mode: after.mode.unwrap_or_else(new_mode),
                owner: found.map(|found| (found.st_uid, found.st_gid)),
                modified: found.as_ref().map(modified),
                attributes: after.attributes.clone(),
            }),
            stamp: found.as_ref().map(stamp),
            folders: self.made.clone(),
            other_names: self.before.as_ref().map_or(0, |before| before.stat.st_nlink.saturating_sub(1) as _),
        }
    }
}

fn modified(found: &Stat) -> (i64, i64) {
    (found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or_default())
}

fn stamp(found: &Stat) -> Stamp {
    Stamp {
        device: found.st_dev as _,
        inode: found.st_ino,
        size_bytes: u64::try_from(found.st_size).unwrap_or_default(),
        changed: (found.st_ctime, i64::try_from(found.st_ctime_nsec).unwrap_or_default()),
    }
}

impl FileAfter {
    pub(super) fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Restores an old version. Metadata that the change has not altered stays as it is now.
    fn restored(old: Version, made: Option<&Version>, now: Option<&Version>) -> Self {
        let Version { bytes, mode, owner, modified, attributes } = old;
        let kept = |is_altered: bool| now.filter(|_| !is_altered);
        Self {
            bytes,
            mode: Some(kept(made.is_none_or(|made| made.mode != mode)).map_or(mode, |now| now.mode)),
            owner: match kept(owner.is_some() && made.is_none_or(|made| made.owner != owner)) {
                Some(now) => now.owner,
                None => owner,
            },
            modified,
            attributes: match kept(made.is_none_or(|made| made.attributes != attributes)) {
                Some(now) => now.attributes.clone(),
                None => attributes,
            },
        }
    }

    /// Writes the new content beside the file, with its mode and other metadata. It is not flushed
    /// yet.
    pub(super) fn write(
        &self,
        swap: &FileSwap,
        directory: &OwnedFd,
        fail_points: &FailPoints,
    ) -> io::Result<File> {
        let mode = if self.mode.is_some() { 0o600 } else { 0o666 };
        let mut file = swap.make_part(directory, Mode::from_raw_mode(mode), fail_points)?;
        fail_points.hit()?;
        file.write_all(&self.bytes)?;
        if let Some((user, group)) = self.owner {
            let metadata = file.metadata()?;
            if (metadata.uid(), metadata.gid()) != (user, group) {
                // Only root may change the owner. For other users the new file is their own, as
                // with any editor.
                let _ours = fchown(&file, Some(user), Some(group));
            }
        }
        if let Some(mode) = self.mode {
            // After the owner: `fchown` clears the set-user-ID and set-group-ID bits.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        xattrs::write(&self.attributes, &file)?;
        if let Some((tv_sec, nanoseconds)) = self.modified {
            let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
            let last_modification = Timespec { tv_sec, tv_nsec: nanoseconds as _ };
            // The kernel clamps a time that the file system cannot store; an invalid one is not
            // set.
            let _now = futimens(&file, &Timestamps { last_access: omitted, last_modification });
        }
        Ok(file)
    }
}
