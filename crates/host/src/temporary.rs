//! The temporary directory of a machine's commands: theirs alone, kept from one to the next, gone with the machine.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// Made when it is first needed.
#[derive(Debug)]
pub(crate) struct Temporary {
    keeps: bool,
    made: OnceLock<PathBuf>,
}

impl Temporary {
    /// One that keeps what commands leave there, or one that only exists where memory cannot take its place.
    pub(crate) fn new(keeps: bool) -> Self {
        Self { keeps, made: OnceLock::new() }
    }

    /// The directory, if it is to keep what is left there.
    pub(crate) fn lasting(&self) -> io::Result<Option<&Path>> {
        if self.keeps { self.path().map(Some) } else { Ok(None) }
    }

    /// The directory, if it was needed before.
    pub(crate) fn made(&self) -> Option<&Path> {
        self.made.get().map(PathBuf::as_path)
    }

    /// The directory.
    pub(crate) fn path(&self) -> io::Result<&Path> {
        if let Some(path) = self.made.get() {
            return Ok(path);
        }
        let path = make()?;
        // Another thread may have been faster; its directory counts then, and ours goes.
        if let Err(surplus) = self.made.set(path) {
            fs::remove_dir(surplus)?;
        }
        self.made.get().map(PathBuf::as_path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.made.get() {
            // What cannot be removed is the system's to clean.
            drop(fs::remove_dir_all(path));
        }
    }
}

/// Makes a directory nobody else can look into. Names are tried until one is free, so nobody can wait in one for us.
fn make() -> io::Result<PathBuf> {
    const TRIES: u32 = 100;
    let process = std::process::id();
    let mut last = io::ErrorKind::AlreadyExists.into();
    for number in 0..TRIES {
        let path = PathBuf::from(format!("/tmp/windlass-{process}-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) => last = error,
        }
    }
    Err(last)
}
