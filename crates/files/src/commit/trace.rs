//! Where the old and the new content of a file are while it is changed, and how to put the old one back from any point.
//!
//! The new content is written to a `.part` file beside the file, flushed, and renamed to `.new`: what has that name is whole.
//! Then the names of the two are exchanged in one step, so that the file is never missing and its old self is still there.
//! Where a file system cannot exchange, the old one steps aside first, to `.old`. A file that is removed only steps aside.
//! Which of this has happened is told by the contents. What is neither the old nor the new content is someone else's work:
//! it is never replaced and never removed.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, Stat, linkat, openat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use super::{
    Steps,
    content_id::{BeforeId, ContentId, Observed, Standing, observe},
};

/// The beginning of our names beside files.
pub(super) const PREFIX: &str = ".windlass-";

/// The end of the name under which a content from before a change is saved for the user.
const BEFORE_SUFFIX: &str = ".windlass-before";

/// How many names for a saved content are tried.
const MAX_TRIES: usize = 1000;

/// The longest name of a file, less what is added here.
const MAX_NAME_BYTES: usize = 255 - BEFORE_SUFFIX.len() - 5;

/// How to find both contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trace {
    /// The file.
    pub(super) real: PathBuf,
    /// Part of our names beside the file; nobody else uses it.
    pub(super) unique: String,
    /// The file before; absent if it is made.
    pub(super) before: Option<BeforeId>,
    /// Its content after; absent if it is removed.
    pub(super) after: Option<ContentId>,
}

/// What became of a file that was to be put back or finished.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is as it should be.
    Clear,
    /// It holds someone else's work, which was left. What it was before is saved here, if we still had it.
    Conflict { before: Option<PathBuf> },
}

impl Trace {
    fn name(&self) -> &OsStr {
        self.real.file_name().unwrap_or_default()
    }

    fn part(&self) -> OsString {
        format!("{PREFIX}{}.part", self.unique).into()
    }

    /// Where the new content waits; after an exchange, where the old one is.
    pub(super) fn staged(&self) -> OsString {
        format!("{PREFIX}{}.new", self.unique).into()
    }

    /// Where the old content is after it has stepped aside.
    pub(super) fn saved(&self) -> OsString {
        format!("{PREFIX}{}.old", self.unique).into()
    }

    /// Makes the file in which new content is written.
    pub(super) fn make_part(&self, directory: &OwnedFd, mode: Mode, steps: &Steps) -> io::Result<File> {
        steps.take()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(directory, self.part(), flags, mode)?))
    }

    /// Gives new content, whole and flushed, the name under which it waits.
    pub(super) fn stage(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        rename(directory, &self.part(), &self.staged(), steps)
    }

    /// Puts new content where there was nothing. Fails if there is something by now.
    pub(super) fn appear(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        rename_to_free(directory, &self.staged(), self.name(), steps)
    }

    /// Puts new content in the place of the old, and returns what the old really was.
    pub(super) fn exchange(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<Option<Stat>> {
        let staged = self.staged();
        if exchange(directory, &staged, self.name(), steps)? {
            return look(directory, &staged);
        }
        let old = self.step_aside(directory, steps)?;
        rename_to_free(directory, &staged, self.name(), steps)?;
        Ok(old)
    }

    /// Takes the file away, and returns what it really was.
    pub(super) fn step_aside(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<Option<Stat>> {
        let saved = self.saved();
        rename(directory, self.name(), &saved, steps)?;
        look(directory, &saved)
    }

    /// Removes what is left beside the file once it is changed for good.
    pub(super) fn clear(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<()> {
        remove(directory, &self.staged(), steps)?;
        remove(directory, &self.saved(), steps)
    }

    /// Makes the file what it was, from wherever the change was left, unless someone else has changed it since.
    pub(super) fn roll_back(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<Settled> {
        remove(directory, &self.part(), steps)?;
        let (staged, saved) = (self.staged(), self.saved());
        let at_staged = observe(self, directory, &staged)?;
        let is_waiting = at_staged.is_some_and(|found| found.standing == Standing::After);
        let old = match (observe(self, directory, &saved)?, at_staged) {
            (Some(found), _) => Some((&saved, found)),
            (None, found) => found.filter(|_| !is_waiting).map(|found| (&staged, found)),
        };
        let here = observe(self, directory, self.name())?;
        let settled = match (old, here) {
            (Some((old, _)), None) if is_waiting || self.after.is_none() => {
                rename_to_free(directory, old, self.name(), steps)?;
                Settled::Clear
            }
            (Some((old, found)), Some(here)) => self.settle(directory, (old, found), &here, steps)?,
            (Some((old, _)), None) => self.save_beside(directory, old, steps)?,
            (None, Some(here)) => self.unmake(directory, &here, at_staged.filter(|_| is_waiting), steps)?,
            (None, None) => Settled::Clear,
        };
        if is_waiting {
            remove(directory, &staged, steps)?;
        }
        Ok(settled)
    }

    /// Decides between an old content that is kept beside the file, and what the file holds.
    fn settle(
        &self,
        directory: &OwnedFd,
        (old, found): (&OsStr, Observed),
        here: &Observed,
        steps: &Steps,
    ) -> io::Result<Settled> {
        match here.standing {
            Standing::After => self.swap_back(directory, old, here, steps),
            // Someone has put the old content back already.
            Standing::Before if found.standing == Standing::Before => {
                remove(directory, old, steps)?;
                Ok(Settled::Clear)
            }
            Standing::Before | Standing::Foreign => self.save_beside(directory, old, steps),
        }
    }

    /// Puts an old content in the place of the new one.
    fn swap_back(
        &self,
        directory: &OwnedFd,
        old: &OsStr,
        here: &Observed,
        steps: &Steps,
    ) -> io::Result<Settled> {
        let name = self.name();
        let aside = if exchange(directory, old, name, steps)? {
            old.to_owned()
        } else {
            let staged = self.staged();
            rename_to_free(directory, name, &staged, steps)?;
            rename_to_free(directory, old, name, steps)?;
            staged
        };
        // Written to between the look and the exchange: then it is someone else's work.
        if !look(directory, &aside)?.is_some_and(|found| is_same(&found, &here.stat)) {
            exchange(directory, &aside, name, steps)?;
            return self.save_beside(directory, &aside, steps);
        }
        remove(directory, &aside, steps)?;
        Ok(Settled::Clear)
    }

    /// Takes away a file that the change has made; any other stays.
    fn unmake(
        &self,
        directory: &OwnedFd,
        here: &Observed,
        waiting: Option<Observed>,
        steps: &Steps,
    ) -> io::Result<Settled> {
        let is_ours = waiting.is_none_or(|waiting| waiting.stat.st_ino == here.stat.st_ino);
        match here.standing {
            Standing::Before => return Ok(Settled::Clear),
            // It never had its new content; whatever it holds by now, it got elsewhere.
            _ if !is_ours => return Ok(Settled::Clear),
            Standing::After if self.before.is_none() => {}
            Standing::After | Standing::Foreign => return Ok(Settled::Conflict { before: None }),
        }
        let (name, staged) = (self.name(), self.staged());
        remove(directory, &staged, steps)?;
        rename_to_free(directory, name, &staged, steps)?;
        if !look(directory, &staged)?.is_some_and(|found| is_same(&found, &here.stat)) {
            rename_to_free(directory, &staged, name, steps)?;
            return Ok(Settled::Conflict { before: None });
        }
        remove(directory, &staged, steps)?;
        Ok(Settled::Clear)
    }

    /// Finishes a change that counts: removes what is left beside the file. A change that the disk has lost is made again.
    pub(super) fn roll_forward(&self, directory: &OwnedFd, steps: &Steps) -> io::Result<Settled> {
        remove(directory, &self.part(), steps)?;
        let staged = self.staged();
        let at_staged = observe(self, directory, &staged)?.map(|found| found.standing);
        let here = observe(self, directory, self.name())?.map(|found| found.standing);
        if at_staged == Some(Standing::After) {
            match (&self.before, here) {
                (Some(_), Some(Standing::Before)) => drop(self.exchange(directory, steps)?),
                (None, None) => self.appear(directory, steps)?,
                _ => {}
            }
        }
        let mut settled = Settled::Clear;
        for name in [staged, self.saved()] {
            match observe(self, directory, &name)?.map(|found| found.standing) {
                Some(Standing::Foreign) => settled = self.save_beside(directory, &name, steps)?,
                Some(Standing::Before | Standing::After) => remove(directory, &name, steps)?,
                None => {}
            }
        }
        Ok(settled)
    }

    /// Gives a content that is kept beside the file a name under which the user finds it.
    fn save_beside(&self, directory: &OwnedFd, from: &OsStr, steps: &Steps) -> io::Result<Settled> {
        let name = self.name().as_bytes();
        let name = &name[..name.len().min(MAX_NAME_BYTES)];
        for at in 1..=MAX_TRIES {
            let number = if at == 1 { String::new() } else { format!("-{at}") };
            let free = OsString::from_vec([name, BEFORE_SUFFIX.as_bytes(), number.as_bytes()].concat());
            match rename_to_free(directory, from, &free, steps) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => {
                    renamed?;
                    return Ok(Settled::Conflict { before: Some(self.real.with_file_name(free)) });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Tests whether two looks saw the same file with nothing written to it in between.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino, one.st_size) == (other.st_dev, other.st_ino, other.st_size)
        && (one.st_mtime, one.st_mtime_nsec) == (other.st_mtime, other.st_mtime_nsec)
}

/// Returns what stands under a name, if anything does.
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

/// Renames a file to a name that nothing has; fails if something has it.
fn rename_to_free(directory: &OwnedFd, from: &OsStr, to: &OsStr, steps: &Steps) -> io::Result<()> {
    steps.take()?;
    match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(directory, from, directory, to, AtFlags::empty())?;
            remove(directory, from, steps)
        }
        result => Ok(result?),
    }
}

/// Exchanges two names; false where the file system cannot.
fn exchange(directory: &OwnedFd, one: &OsStr, other: &OsStr, steps: &Steps) -> io::Result<bool> {
    steps.take()?;
    match renameat_with(directory, one, directory, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a file that need not be there.
fn remove(directory: &OwnedFd, name: &OsStr, steps: &Steps) -> io::Result<()> {
    steps.take()?;
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
