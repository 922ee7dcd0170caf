//! The rules for opening and writing files.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
};

/// Decides what a call may read and write. Implemented by the host, with the rules of its sandboxed
/// commands, and by a fake in tests. Called by [`ConfinedFiles`](crate::ConfinedFiles) on a thread
/// that may block. An error counts as a denial.
pub trait FileRules: Debug + Send + Sync {
    /// Returns the writable paths as requested: absolute or relative to the working directory.
    fn writable(&self) -> &[PathBuf];

    /// Returns the real paths that may not be read. `roots` are the real paths that may be written.
    /// Called once.
    fn hidden(&self, roots: &[PathBuf]) -> Vec<PathBuf>;

    /// Returns the real paths inside hidden ones that may be read. Called once.
    fn shown(&self, hidden: &[PathBuf]) -> Vec<PathBuf>;

    /// Returns the directory that commands see as `/tmp`, if it exists by now.
    fn private_tmp(&self) -> Option<PathBuf>;

    /// Returns true if other programs execute or trust a real path in one of these roots. The error
    /// is the reason why this cannot be decided.
    fn is_protected(&self, real: &Path, roots: &[PathBuf]) -> Result<bool, String>;
}

/// Fixed rules for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct FixedFileRules {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) shown: Vec<PathBuf>,
    pub(crate) private_tmp: Option<PathBuf>,
    /// A protected file name; an empty one makes the check fail.
    pub(crate) protected_name: Option<String>,
}

#[cfg(test)]
impl FileRules for FixedFileRules {
    fn writable(&self) -> &[PathBuf] {
        &self.writable
    }

    fn hidden(&self, _roots: &[PathBuf]) -> Vec<PathBuf> {
        self.hidden.clone()
    }

    fn shown(&self, _hidden: &[PathBuf]) -> Vec<PathBuf> {
        self.shown.clone()
    }

    fn private_tmp(&self) -> Option<PathBuf> {
        self.private_tmp.clone()
    }

    fn is_protected(&self, real: &Path, _roots: &[PathBuf]) -> Result<bool, String> {
        match self.protected_name.as_deref() {
            Some("") => Err("the workspace cannot be read".to_owned()),
            name => Ok(name.is_some_and(|name| real.iter().any(|part| part == name))),
        }
    }
}
