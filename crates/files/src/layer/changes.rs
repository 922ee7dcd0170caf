//! The list of what commands changed on a layer, found by comparing its upper directory with the
//! root.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use super::{Layer, upper_scan::UpperScan};
use crate::{DirHandle, EntryStat};

/// Changes that commands made on a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerChanges {
    /// Every entry that is to be made, changed or removed, in the order of paths. Those in a
    /// directory that comes or goes as a whole are listed, too.
    pub changes: Vec<LayerChange>,
    /// What someone else changed meanwhile. With any, nothing is applied.
    pub conflicts: Vec<LayerConflict>,
    /// What is left out.
    pub refused: Vec<LayerRefusal>,
    /// Directories on both sides whose mode or time is to be set.
    pub(super) directories: Vec<MetadataChange>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChange {
    /// The entry, absolute.
    pub path: PathBuf,
    /// The change.
    pub kind: LayerChangeKind,
    /// The entry in the root; absent if there is none.
    pub before: Option<EntryStat>,
    /// The entry in the layer; absent if it is removed.
    pub after: Option<EntryStat>,
    /// Its root.
    pub(super) root: usize,
    /// Its path below the root.
    pub(super) relative: PathBuf,
    /// It comes or goes with a directory above it.
    pub(super) is_inside: bool,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerChangeKind {
    /// There was nothing.
    Created,
    /// The content is another one.
    Modified,
    /// Only the mode or the time is another one.
    Metadata,
    /// It is something else now: a link instead of a file, or a directory that was emptied first.
    Replaced,
    /// It is gone.
    Deleted,
}

impl LayerChangeKind {
    /// The name for programs.
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
    /// What happened.
    pub reason: &'static str,
}

/// A path that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerRefusal {
    /// The path.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    /// It lies in a directory that is applied, and is taken out of it first.
    pub(super) is_inside: bool,
}

/// A mode and a time to be set.
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

/// Says why a path below a root, by its number, may not be changed.
pub(super) type ProtectedCheck<'a> = &'a dyn Fn(usize, &Path) -> Option<String>;

impl Layer {
    /// Lists what commands changed. All of them must be gone. `protected` says why a path below the
    /// root with that number may not be changed.
    pub fn changes(&self, protected: ProtectedCheck<'_>) -> io::Result<LayerChanges> {
        let mut found = LayerChanges::default();
        for (number, root) in self.roots.iter().enumerate() {
            let mut scan = UpperScan { number, root, protected, found: &mut found };
            let upper = root.upper()?;
            let after = upper.stat()?;
            let has_changes = scan.merged(&upper, &root.root, &mut PathBuf::new(), 0)?;
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

    /// Reads a file as a change leaves it, at most so many bytes.
    pub fn read_after(&self, change: &LayerChange, max_bytes: u64) -> io::Result<Vec<u8>> {
        let upper = self.roots.get(change.root).ok_or(io::ErrorKind::NotFound)?.upper()?;
        read(&upper, &change.relative, max_bytes)
    }

    /// Reads a file as it is without a change, at most so many bytes.
    pub fn read_before(&self, change: &LayerChange, max_bytes: u64) -> io::Result<Vec<u8>> {
        let root = &self.roots.get(change.root).ok_or(io::ErrorKind::NotFound)?.root;
        read(root, &change.relative, max_bytes)
    }

    /// Reads where a link leads as a change leaves it.
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

/// Opens the directory that a path is in.
pub(super) fn parent<'a>(top: &DirHandle, relative: &'a Path) -> io::Result<(DirHandle, &'a OsStr)> {
    let name = relative.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok((top.open_dir(relative.parent().unwrap_or(Path::new("")))?, name))
}
