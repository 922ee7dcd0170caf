//! Where the old and the new content of a file are while it is changed, and how to put the old one back from any point.
//!
//! The new content waits beside the file under a name of ours. Then the two names are exchanged in one step, so that the
//! file is never missing and its old self is still there, whole. Where a file system cannot exchange, the old one steps
//! aside first. A file that is removed only steps aside. Which of this has happened can be told by looking.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::OwnedFd,
    path::PathBuf,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, Stat, linkat, openat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use super::Steps;

/// What our names beside files begin with.
const PREFIX: &str = ".windlass-";

/// How to find both contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trace {
    /// The file.
    pub(super) real: PathBuf,
    /// Where the new content waits; after an exchange, where the old one is.
    pub(super) staged: OsString,
    /// Where the old content is after it has stepped aside.
    pub(super) saved: OsString,
    /// The number of the new content's inode, once there is one.
    pub(super) inode: Option<String>,
}

impl Trace {
    /// With names that nobody else uses: `unique` differs for every file of every change.
    pub(super) fn new(real: PathBuf, unique: &str) -> Self {
        let staged = OsString::from(format!("{PREFIX}{unique}.new"));
        let saved = OsString::from(format!("{PREFIX}{unique}.old"));
        Self { real, staged, saved, inode: None }
    }

    fn name(&self) -> &OsStr {
        self.real.file_name().unwrap_or_default()
    }

    /// Makes the file in which new content is to wait.
    pub(super) fn stage(&mut self, directory: &OwnedFd, mode: Mode, steps: &Steps) -> io::Result<File> {
        steps.take()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(directory, &self.staged, flags, mode)?);
        self.inode = look(directory, &self.staged)?.map(|found| found.st_ino.to_string());
        Ok(file)
    }

    /// Puts new content where there was nothing. Fails if there is something by now.
    pub(super) fn appear(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        steps.take()?;
        let name = self.name();
        match renameat_with(directory, &self.staged, directory, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(directory, &self.staged, directory, name, AtFlags::empty())?;
                remove(directory, &self.staged, steps)
            }
            result => Ok(result?),
        }
    }

    /// Puts new content in the place of the old, and says what the old really was.
    pub(super) fn exchange(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<Option<Stat>> {
        steps.take()?;
        let name = self.name();
        match renameat_with(directory, &self.staged, directory, name, RenameFlags::EXCHANGE) {
            Ok(()) => look(directory, &self.staged),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                let old = self.step_aside(directory, steps)?;
                rename(directory, &self.staged, name, steps)?;
                Ok(old)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the file away, and says what it really was.
    pub(super) fn step_aside(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<Option<Stat>> {
        rename(directory, self.name(), &self.saved, steps)?;
        look(directory, &self.saved)
    }

    /// Makes the file what it was, from wherever the change was left.
    pub(super) fn put_back(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        let name = self.name();
        let is_new = |found: &Stat| self.inode.as_ref() == Some(&found.st_ino.to_string());
        let here = look(directory, name)?;
        if look(directory, &self.saved)?.is_some() {
            if here.is_some_and(|found| !is_new(&found)) {
                // Someone has put a file of their own there meanwhile: both are kept.
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            rename(directory, &self.saved, name, steps)?;
        } else if here.is_some_and(|found| is_new(&found)) {
            match look(directory, &self.staged)? {
                Some(_) => rename(directory, &self.staged, name, steps)?,
                None => remove(directory, name, steps)?,
            }
        }
        remove(directory, &self.staged, steps)
    }

    /// Removes what is left beside the file once it is changed for good.
    pub(super) fn clear(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        remove(directory, &self.staged, steps)?;
        remove(directory, &self.saved, steps)
    }
}

/// Whether two looks saw the same file with nothing written to it in between.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino, one.st_size) == (other.st_dev, other.st_ino, other.st_size)
        && (one.st_mtime, one.st_mtime_nsec) == (other.st_mtime, other.st_mtime_nsec)
}

/// What stands under a name, if anything does.
pub(super) fn look(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn rename(directory: &OwnedFd, from: &OsStr, to: &OsStr, steps: &Steps) -> io::Result<()> {
    steps.take()?;
    Ok(renameat(directory, from, directory, to)?)
}

/// Removes a file that need not be there.
fn remove(directory: &OwnedFd, name: &OsStr, steps: &Steps) -> io::Result<()> {
    steps.take()?;
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
