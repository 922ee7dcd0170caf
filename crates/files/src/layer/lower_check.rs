//! The check of a root before it becomes the lower layer: no entry may have a special meaning in an
//! overlay, and commands must be able to change all of them.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    LayerError, NAME_PREFIX,
    inode::{LayerEntry, MAX_ENTRIES, NodeType, overlay_attributes},
};
use crate::DirHandle;

/// Maximum depth of a root: each level keeps a descriptor open.
pub(super) const MAX_DEPTH: usize = 128;

/// Checks all entries of a root.
pub(super) struct LowerCheck<'a> {
    pub(super) root: &'a Path,
    /// Returns true if a user and a group exist in the user namespace of commands.
    pub(super) is_mapped: &'a dyn Fn(u32, u32) -> bool,
    /// The latest change time that was found.
    pub(super) latest_ns: i64,
}

impl LowerCheck<'_> {
    pub(super) fn run(&mut self, root: &DirHandle) -> Result<i64, LayerError> {
        let mut path = self.root.to_owned();
        let top = LayerEntry::find(root, ".".as_ref()).map_err(|error| unreadable(&path, &error))?;
        let device = top.map_or(0, |top| top.stat.dev);
        if let Some(top) = top {
            self.owner(&path, &top)?;
        }
        self.directory(root, device, &mut path, 0)?;
        Ok(self.latest_ns)
    }

    fn directory(
        &mut self,
        directory: &DirHandle,
        device: u64,
        path: &mut PathBuf,
        depth: usize,
    ) -> Result<(), LayerError> {
        if depth > MAX_DEPTH {
            return Err(refused(path, format!("is more than {MAX_DEPTH} directories deep")));
        }
        let attributes = overlay_attributes(directory, "".as_ref());
        if !attributes.map_err(|error| unreadable(path, &error))?.is_empty() {
            return Err(refused(path, "has attributes of an overlay, which would act in a layer"));
        }
        let names = directory.list(MAX_ENTRIES).map_err(|error| unreadable(path, &error))?;
        for name in names {
            path.push(&name);
            if name.as_encoded_bytes().starts_with(NAME_PREFIX.as_bytes()) {
                return Err(refused(path, "belongs to another preview: only one can be open here"));
            }
            let entry = LayerEntry::find(directory, &name).map_err(|error| unreadable(path, &error))?;
            if let Some(entry) = entry {
                // Other file systems are shown read-only.
                if entry.stat.dev == device {
                    self.latest_ns = self.latest_ns.max(entry.stat.ctime_ns);
                    self.owner(path, &entry)?;
                    if entry.is_directory() {
                        let inside = directory.open_dir(Path::new(&name));
                        let inside = inside.map_err(|error| unreadable(path, &error))?;
                        self.directory(&inside, device, path, depth + 1)?;
                    }
                }
                if entry.node == NodeType::Whiteout {
                    return Err(refused(path, "is a device with the number 0:0, which a layer would hide"));
                }
            }
            path.pop();
        }
        Ok(())
    }

    fn owner(&self, path: &Path, entry: &LayerEntry) -> Result<(), LayerError> {
        let (user, group) = (entry.stat.uid, entry.stat.gid);
        if (self.is_mapped)(user, group) {
            return Ok(());
        }
        let reason =
            format!("belongs to user {user} and group {group}: a layer can change files of your own only");
        Err(refused(path, reason))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> LayerError {
    refused(path, format!("cannot be looked through: {error}"))
}

fn refused(path: &Path, reason: impl Into<String>) -> LayerError {
    LayerError::Refused { path: path.to_owned(), reason: reason.into() }
}
