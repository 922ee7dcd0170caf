//! Directories for one run.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A directory that is removed in the end.
pub(crate) struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    pub(crate) fn create(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}
