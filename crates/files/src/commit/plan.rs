//! What is to become of which file, worked out before anything is touched.

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
    files::{FileError, Stamp},
};

use super::{
    Steps, attributes,
    before::Before,
    content_id::sha256_of,
    directory::{Directories, Directory},
    trace::{Trace, look},
};
use crate::resolve::{Place, Resolver, said};

/// Everything that is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) slots: Vec<Slot>,
    pub(super) directories: Directories,
    /// To be removed in the end, if they are empty then.
    pub(super) unmade: Vec<PathBuf>,
}

/// A file before it is changed, and what is to become of it.
#[derive(Debug)]
pub(super) struct Slot {
    /// As it was asked for.
    pub(super) name: PathBuf,
    /// Without links.
    pub(super) real: PathBuf,
    /// The innermost directory that exists.
    pub(super) directory: Directory,
    /// How many directories are still to be made in it.
    pub(super) missing: usize,
    /// Directories that were made for it, from the outside in.
    pub(super) made: Vec<PathBuf>,
    pub(super) before: Option<Before>,
    pub(super) after: Option<After>,
}

/// A file as it is to be.
#[derive(Debug)]
pub(super) struct After {
    bytes: Arc<[u8]>,
    /// Absent: as the system makes new files.
    mode: Option<u32>,
    /// Absent: this user's.
    owner: Option<(u32, u32)>,
    /// Absent: now.
    modified: Option<(i64, i64)>,
    attributes: Attributes,
}

impl Plan {
    /// Looks at what a change is about, and whether that is what it expects.
    pub(super) fn add(&mut self, resolver: &Resolver, change: Change) -> Result<(), CommitError> {
        let Change { path, expected, action } = change;
        let place = resolver.place(&path)?;
        let before = Before::expected(&place, &expected)?;
        let like = |bytes: Vec<u8>, before: Option<&Before>| After {
            bytes: bytes.into(),
            mode: before.map(|before| before.version.mode),
            owner: before.and_then(|before| before.version.owner),
            modified: None,
            attributes: before.map(|before| before.version.attributes.clone()).unwrap_or_default(),
        };
        let after = match action {
            Action::Write(bytes) => Some(like(bytes, before.as_ref())),
            Action::Restore { before: old, after: made } => {
                Some(After::restored(old, made.as_ref(), before.as_ref().map(|now| &now.version)))
            }
            Action::Delete { .. } | Action::Move { .. } if before.is_none() => {
                return Err(FileError::NotFound { path: place.name }.into());
            }
            Action::Delete { folders } => {
                self.unmade.extend(folders);
                None
            }
            Action::Move { to, bytes } => {
                let place = resolver.place(&to)?;
                let replaced = Before::any(&place)?;
                self.push(place, replaced, Some(like(bytes, before.as_ref())))?;
                None
            }
        };
        self.push(place, before, after)
    }

    /// Hashes what the files are and are to be.
    pub(super) fn contents(&self) -> Vec<ContentPair> {
        let hashed = |bytes: &Arc<[u8]>| HashedContent { sha256: sha256_of(bytes), bytes: Arc::clone(bytes) };
        let pairs = self.slots.iter().map(|slot| ContentPair {
            before: slot.before.as_ref().map(|before| hashed(&before.version.bytes)),
            after: slot.after.as_ref().map(|after| hashed(&after.bytes)),
        });
        pairs.collect()
    }

    fn push(
        &mut self,
        place: Place,
        before: Option<Before>,
        after: Option<After>,
    ) -> Result<(), CommitError> {
        let Place { name, real, directory, missing, .. } = place;
        let missing = missing.len();
        let existing = real.ancestors().nth(missing + 1).unwrap_or(Path::new("/"));
        let directory = self.directories.take(directory, existing).map_err(|error| said(&name, error))?;
        self.slots.push(Slot { name, real, directory, missing, made: Vec::new(), before, after });
        Ok(())
    }

    /// No file may be meant twice, and none may be where another needs a directory.
    pub(super) fn check(&self) -> Result<(), CommitError> {
        let mut known = HashSet::new();
        if let Some(twice) = self.slots.iter().find(|slot| !known.insert(&*slot.real)) {
            return Err(CommitError::Twice { path: twice.name.clone() });
        }
        for slot in self.slots.iter().filter(|slot| slot.missing > 0) {
            if let Some(file) =
                slot.real.ancestors().skip(1).take(slot.missing).find(|above| known.contains(above))
            {
                return Err(CommitError::Beneath { path: slot.name.clone(), file: file.to_owned() });
            }
        }
        Ok(())
    }
}

impl Slot {
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

impl After {
    pub(super) fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Puts back what a file was. What the change has not altered stays as it is now.
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

    /// Writes the new content beside the file, with the mode and all else it is to have. It is not flushed yet.
    pub(super) fn write(&self, trace: &Trace, directory: &OwnedFd, steps: &Steps) -> io::Result<File> {
        let mode = if self.mode.is_some() { 0o600 } else { 0o666 };
        let mut file = trace.make_part(directory, Mode::from_raw_mode(mode), steps)?;
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
        attributes::give(&self.attributes, &file)?;
        if let Some((tv_sec, nanoseconds)) = self.modified {
            let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
            let last_modification = Timespec { tv_sec, tv_nsec: nanoseconds as _ };
            // A time that the file system cannot hold is cut by the kernel; one that makes no sense is not set.
            let _now = futimens(&file, &Timestamps { last_access: omitted, last_modification });
        }
        Ok(file)
    }
}
