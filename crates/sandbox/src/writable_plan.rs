//! The directories that a command may write, and what in them must not change. Plain data, which
//! the host fills in.

use std::{
    ffi::OsStr,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use crate::ProtectedPaths;

/// A directory that a command may write, held open.
#[derive(Debug, Clone, Copy)]
pub struct WritableRoot<'a> {
    /// Its path without links, as it was when it was opened.
    pub path: &'a Path,
    /// The directory itself. Where the path leads to another one by now, nothing is started.
    pub directory: BorrowedFd<'a>,
    /// The directory for an overlay, if what the command writes goes there.
    pub layer: Option<LayerMount<'a>>,
}

/// An overlay on a writable root: the root is its lower layer, and stays as it is. Only mounts can
/// provide it: without namespaces nothing is started.
#[derive(Debug, Clone, Copy)]
pub struct LayerMount<'a> {
    /// A directory in the root with the directories [`UPPER_NAME`] and [`WORK_NAME`]. Letters,
    /// digits, `.` and `-` only.
    pub name: &'a str,
}

/// The directory of a layer that holds what commands wrote.
pub const UPPER_NAME: &str = "upper";

/// The directory of a layer that the kernel works in.
pub const WORK_NAME: &str = "work";

/// A file of which the command writes a copy. A symbolic link to the copy is mounted on the file.
#[derive(Debug, Clone, Copy)]
pub struct PrivateFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// The directory with the copy, which only this command may write. All are in one directory.
    pub directory: &'a Path,
    /// The name of the copy in its directory.
    pub name: &'a OsStr,
}

impl PrivateFile<'_> {
    /// The directory where a command finds the copies that it writes.
    pub(crate) const SANDBOX_DIRECTORY: &'static str = "/dev/.git-config";

    /// Returns the path of the copy as the command sees it.
    pub fn path_in_sandbox(&self) -> PathBuf {
        let directory = self.directory.file_name().unwrap_or_default();
        Path::new(Self::SANDBOX_DIRECTORY).join(directory).join(self.name)
    }
}

/// The directories that a command may write, and the paths in them that must not change.
#[derive(Debug, Clone, Copy)]
pub struct WritablePlan<'a> {
    /// The directories; none lies in another one.
    pub roots: &'a [WritableRoot<'a>],
    /// Paths in the roots that must not change.
    pub protected: &'a ProtectedPaths,
    /// Only mounts can provide them: without namespaces there must be none.
    pub private_files: &'a [PrivateFile<'a>],
}

impl WritablePlan<'_> {
    /// Tells whether any root has a layer.
    pub(crate) fn has_layers(&self) -> bool {
        self.roots.iter().any(|root| root.layer.is_some())
    }
}

impl WritablePlan<'static> {
    /// Returns a plan that allows no writes.
    pub const fn nothing() -> Self {
        static NOTHING: ProtectedPaths = ProtectedPaths::nothing();
        Self { roots: &[], protected: &NOTHING, private_files: &[] }
    }
}
