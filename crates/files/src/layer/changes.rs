//! The list of changes that commands made on a layer, from a comparison of its upper directory with
//! the root.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use super::{OverlayLayer, upper_scan::UpperScan};
use crate::{DirHandle, EntryStat};

/// Changes that commands made on a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerChanges {
    /// Every entry to create, change or remove, sorted by path. Entries of a directory that is
    /// created or removed as a whole are included.
    pub changes: Vec<LayerChange>,
    /// Changes by someone else since the layer began. If there is any, nothing is applied.
    pub conflicts: Vec<LayerConflict>,
    /// Changes that are not applied.
    pub refused: Vec<LayerRefusal>,
    /// Directories on both sides whose mode or time must be set.
    pub(super) directories: Vec<MetadataChange>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChange {
    /// The entry, absolute.
    pub path: PathBuf,
    /// The change.
    pub kind: LayerChangeKind,
    /// The entry in the root; `None` if it does not exist.
    pub before: Option<EntryStat>,
    /// The entry in the layer; `None` if it is removed.
    pub after: Option<EntryStat>,
    /// Its root.
    pub(super) root: usize,
    /// Its path below the root.
    pub(super) relative: PathBuf,
    /// True if it is created or removed together with a directory above it.
    pub(super) is_inside: bool,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerChangeKind {
    /// The entry is new.
    Created,
    /// The content has changed.
    Modified,
    /// Only the mode or the time has changed.
    Metadata,
    /// The entry was replaced: by a link instead of a file, or by a directory that was emptied
    /// first.
    Replaced,
    /// The entry was deleted.
    Deleted,
}

impl LayerChangeKind {
    /// Returns the name for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Metadata => "metadata",
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
        }
    }
}

/// A path that someone else changed since the layer began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerConflict {
    /// The path.
    pub path: PathBuf,
    /// The change that was found.
    pub reason: &'static str,
}

/// A change that is not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerRefusal {
    /// The path.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    /// True if it is in a directory that is applied, and must be moved out of it first.
    pub(super) is_inside: bool,
}

/// A mode and a modification time to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetadataChange {
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    pub(super) before: ModeAndTime,
    pub(super) after: ModeAndTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModeAndTime {
    pub(super) mode: u16,
    pub(super) mtime_ns: i64,
}

impl From<&EntryStat> for ModeAndTime {
    fn from(stat: &EntryStat) -> Self {
        Self { mode: stat.permissions, mtime_ns: stat.mtime_ns }
    }
}

/// Returns the reason why a path below the root with this number may not be changed.
pub(super) type ProtectedCheck<'a> = &'a dyn Fn(usize, &Path) -> Option<String>;

impl OverlayLayer {
    /// Lists the changes of commands, all of which must have exited. `protected` returns the reason
    /// why a path below the root with this number may not be changed.
    pub fn changes(&self, protected: ProtectedCheck<'_>) -> io::Result<LayerChanges> {
        let mut found = LayerChanges::default();
        for (number, root) in self.roots.iter().enumerate() {
            let mut scan = UpperScan { number, root, protected, found: &mut found };
            let upper = root.upper()?;
            let after = upper.stat()?;
            let has_changes = scan.scan_merged(&upper, &root.root, &mut PathBuf::new(), 0)?;
            let (before, after) = (ModeAndTime::from(&root.before), ModeAndTime::from(&after));
            if has_changes || before != after {
                found.directories.push(MetadataChange {
                    root: number,
                    relative: PathBuf::new(),
                    before,
                    after,
                });
            }
        }
        Ok(found)
    }

    /// Reads a file as it is after a change. More than `max_bytes` is an error.
    pub fn read_after(&self, change: &LayerChange, max_bytes: u64) -> io::Result<Vec<u8>> {
        let upper = self.roots.get(change.root).ok_or(io::ErrorKind::NotFound)?.upper()?;
        read(&upper, &change.relative, max_bytes)
    }

    /// Reads a file as it is without a change. More than `max_bytes` is an error.
    pub fn read_before(&self, change: &LayerChange, max_bytes: u64) -> io::Result<Vec<u8>> {
        let root = &self.roots.get(change.root).ok_or(io::ErrorKind::NotFound)?.root;
        read(root, &change.relative, max_bytes)
    }

    /// Reads the target of a link after a change.
    pub fn link_after(&self, change: &LayerChange) -> io::Result<OsString> {
        let upper = self.roots.get(change.root).ok_or(io::ErrorKind::NotFound)?.upper()?;
        let (directory, name) = parent(&upper, &change.relative)?;
        directory.read_link(name)
    }
}

fn read(top: &DirHandle, relative: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let (directory, name) = parent(top, relative)?;
    directory.read_file(name, max_bytes)
}

/// Opens the parent directory of a path.
pub(super) fn parent<'a>(top: &DirHandle, relative: &'a Path) -> io::Result<(DirHandle, &'a OsStr)> {
    let name = relative.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok((top.open_dir(relative.parent().unwrap_or(Path::new("")))?, name))
}
