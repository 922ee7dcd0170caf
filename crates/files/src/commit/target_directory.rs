//! The directories in which files change. They are held open, so that they cannot be replaced.
//! Beyond a maximum they are opened again when needed, and must then be the same directories.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::fstat;

use crate::handle::open_directory;

/// Maximum number held open: a patch of a thousand files must not use up the file descriptors.
const MAX_OPEN_DIRECTORIES: usize = 16;

/// A directory that is identified independently of its name.
#[derive(Debug)]
pub(super) enum TargetDirectory {
    Held(Arc<OwnedFd>),
    Named { real: PathBuf, identity: (u64, u64) },
}

impl TargetDirectory {
    /// Returns the open directory, or opens it again and checks that it is the same one.
    pub(super) fn open(&self) -> io::Result<Arc<OwnedFd>> {
        match self {
            Self::Held(handle) => Ok(Arc::clone(handle)),
            Self::Named { real, identity } => {
                let handle = open_directory(real)?;
                if identity_of(&handle)? != *identity {
                    return Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        "its directory was exchanged meanwhile",
                    ));
                }
                Ok(Arc::new(handle))
            }
        }
    }
}

/// All directories of one change, each opened once.
#[derive(Debug, Default)]
pub(super) struct TargetDirectories(HashMap<(u64, u64), Arc<OwnedFd>>);

impl TargetDirectories {
    /// Adds an open directory; `real` is its path without links.
    pub(super) fn take(&mut self, handle: OwnedFd, real: &Path) -> io::Result<TargetDirectory> {
        let identity = identity_of(&handle)?;
        if let Some(held) = self.0.get(&identity) {
            return Ok(TargetDirectory::Held(Arc::clone(held)));
        }
        if self.0.len() >= MAX_OPEN_DIRECTORIES {
            return Ok(TargetDirectory::Named { real: real.to_owned(), identity });
        }
        let handle = Arc::new(handle);
        self.0.insert(identity, Arc::clone(&handle));
        Ok(TargetDirectory::Held(handle))
    }
}

fn identity_of(handle: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(handle)?;
    Ok((stat.st_dev as _, stat.st_ino))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_that_was_exchanged_is_not_used() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let mut directories = TargetDirectories::default();
        let mut last = None;
        for at in 0..=MAX_OPEN_DIRECTORIES {
            let real = top.join(at.to_string());
            fs::create_dir(&real).unwrap();
            last = Some(directories.take(open_directory(&real).unwrap(), &real).unwrap());
        }
        let last = last.unwrap();
        assert!(matches!(last, TargetDirectory::Named { .. }));
        last.open().unwrap();
        let real = top.join(MAX_OPEN_DIRECTORIES.to_string());
        fs::rename(&real, top.join("elsewhere")).unwrap();
        fs::create_dir(&real).unwrap();
        assert_eq!(last.open().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_same_one_is_held_once() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let mut directories = TargetDirectories::default();
        for _ in 0..3 {
            directories.take(open_directory(&top).unwrap(), &top).unwrap();
        }
        assert_eq!(directories.0.len(), 1);
    }
}
