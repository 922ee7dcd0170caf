//! The directories in which files change. They are held open, so that nobody can put others in their place; of very many,
//! only some are, and the rest must still be what they were when they are opened again.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::fstat;

use crate::handle::to_name_in;

/// How many are held open: a patch of a thousand files must not use up what a process may have open.
const MOST_HELD: usize = 16;

/// A directory, whatever happens to its name.
#[derive(Debug)]
pub(super) enum Directory {
    Held(Arc<OwnedFd>),
    Named { real: PathBuf, identity: (u64, u64) },
}

impl Directory {
    /// The directory to name things in.
    pub(super) fn open(&self) -> io::Result<Arc<OwnedFd>> {
        match self {
            Self::Held(handle) => Ok(Arc::clone(handle)),
            Self::Named { real, identity } => {
                let handle = to_name_in(real)?;
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

/// All directories of one change, each held once.
#[derive(Debug, Default)]
pub(super) struct Directories(HashMap<(u64, u64), Arc<OwnedFd>>);

impl Directories {
    /// Takes in a directory that is open, by its real name.
    pub(super) fn take(&mut self, handle: OwnedFd, real: &Path) -> io::Result<Directory> {
        let identity = identity_of(&handle)?;
        if let Some(held) = self.0.get(&identity) {
            return Ok(Directory::Held(Arc::clone(held)));
        }
        if self.0.len() >= MOST_HELD {
            return Ok(Directory::Named { real: real.to_owned(), identity });
        }
        let handle = Arc::new(handle);
        self.0.insert(identity, Arc::clone(&handle));
        Ok(Directory::Held(handle))
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
        let mut directories = Directories::default();
        let mut last = None;
        for at in 0..=MOST_HELD {
            let real = top.join(at.to_string());
            fs::create_dir(&real).unwrap();
            last = Some(directories.take(to_name_in(&real).unwrap(), &real).unwrap());
        }
        let last = last.unwrap();
        assert!(matches!(last, Directory::Named { .. }));
        last.open().unwrap();
        let real = top.join(MOST_HELD.to_string());
        fs::rename(&real, top.join("elsewhere")).unwrap();
        fs::create_dir(&real).unwrap();
        assert_eq!(last.open().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_same_one_is_held_once() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let mut directories = Directories::default();
        for _ in 0..3 {
            directories.take(to_name_in(&top).unwrap(), &top).unwrap();
        }
        assert_eq!(directories.0.len(), 1);
    }
}
