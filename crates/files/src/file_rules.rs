//! The rules that files are opened and written by.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
};

/// Says what a call may read and write. Implemented by the host, for what its sandboxed commands are held to, and by a
/// fake in tests; called by [`ConfinedFiles`](crate::ConfinedFiles) on a thread that may block. An error counts as a
/// denial.
pub trait FileRules: Debug + Send + Sync {
    /// Returns what may be written, as it was asked for: absolute or relative to the working directory.
    fn writable(&self) -> &[PathBuf];

    /// Returns what may not be read, by real paths, given the real paths of what may be written. Called once.
    fn hidden(&self, roots: &[PathBuf]) -> Vec<PathBuf>;

    /// Returns what may be read inside what is hidden, by real paths. Called once.
    fn shown(&self, hidden: &[PathBuf]) -> Vec<PathBuf>;

    /// Returns the directory that commands find as their `/tmp`, if there is one by now.
    fn private_tmp(&self) -> Option<PathBuf>;

    /// Tells whether a real path in one of these roots is one that other programs execute or trust, or the reason why
    /// that cannot be told.
    fn is_protected(&self, real: &Path, roots: &[PathBuf]) -> Result<bool, String>;
}

/// Rules that are data, for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct FixedFileRules {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) shown: Vec<PathBuf>,
    pub(crate) private_tmp: Option<PathBuf>,
    /// A file name; an empty one cannot be told.
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
