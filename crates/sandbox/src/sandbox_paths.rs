//! The paths that every mechanism needs to know before it can make a plan.

use std::path::{Path, PathBuf};

use crate::hidden_paths::HiddenPathHandles;

/// The reason why a sandbox cannot be planned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlanError(pub(crate) String);

/// Paths of the machine and the session that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SandboxPaths<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) cwd: &'a Path,
    pub(crate) temporary: Option<&'a Path>,
    pub(crate) sockets: Option<&'a Path>,
    /// Cache directory for package managers: writable, and not searched for protected names.
    pub(crate) package_cache: Option<&'a Path>,
    /// Paths that were hidden from earlier commands of the session.
    pub(crate) hidden: Option<&'a HiddenPathHandles>,
    /// Paths that stay to be seen where they lie in the system's temporary directories.
    pub(crate) named: &'a [PathBuf],
}
