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
    os::fd::OwnedFd,
    path::PathBuf,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, Stat, openat, renameat, statat},
    io::Errno,
};

use super::{
    Steps,
    content_id::{BeforeId, ContentId, Observed, Standing, observe},
};
use crate::checked_rename::{self, CheckedExchange, EntryPlace};

/// The beginning of our names beside files.
pub(super) const PREFIX: &str = ".windlass-";

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
        let (name, staged) = (self.name(), self.staged());
        let back = CheckedExchange {
            exchange: &|| {
                steps.take()?;
                checked_rename::exchange((directory, old), (directory, name))
            },
            put_back: &|| rename_to_free(directory, old, name, steps),
            look: &|| look(directory, old),
            is_same_file: |one, other| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        };
        // Written to between the look and the exchange: then it is someone else's work.
        let is_as_seen = |found: &Stat| is_same(found, &here.stat);
        let is_back = match back.run(is_as_seen) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let is_away = self.take_away(directory, &staged, here, steps)?;
                if is_away {
                    rename_to_free(directory, old, name, steps)?;
                    remove(directory, &staged, steps)?;
                }
                is_away
            }
            exchanged => {
                let is_back = exchanged?;
                if is_back {
                    remove(directory, old, steps)?;
                }
                is_back
            }
        };
        if is_back { Ok(Settled::Clear) } else { self.save_beside(directory, old, steps) }
    }

    /// Renames the file to a name of ours, if it is still what was looked at.
    fn take_away(
        &self,
        directory: &OwnedFd,
        aside: &OsStr,
        here: &Observed,
        steps: &Steps,
    ) -> io::Result<bool> {
        checked_rename::take_away(
            (directory, self.name()),
            (directory, aside),
            |from, to| rename_to_free(directory, from.1, to.1, steps),
            || matches!(look(directory, aside), Ok(Some(found)) if is_same(&found, &here.stat)),
        )
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
        let staged = self.staged();
        remove(directory, &staged, steps)?;
        if !self.take_away(directory, &staged, here, steps)? {
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
        let (from, beside) = ((directory, from), (directory, self.name()));
        let rename =
            |from: EntryPlace<'_, _>, to: EntryPlace<'_, _>| rename_to_free(directory, from.1, to.1, steps);
        let free = checked_rename::save_beside(from, beside, rename)?;
        Ok(Settled::Conflict { before: Some(self.real.with_file_name(free)) })
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
    checked_rename::rename_to_free((directory, from), (directory, to))
}

/// Exchanges two names; false where the file system cannot.
fn exchange(directory: &OwnedFd, one: &OsStr, other: &OsStr, steps: &Steps) -> io::Result<bool> {
    steps.take()?;
    match checked_rename::exchange((directory, one), (directory, other)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        exchanged => exchanged.map(|()| true),
    }
}

/// Removes a file that need not be there.
fn remove(directory: &OwnedFd, name: &OsStr, steps: &Steps) -> io::Result<()> {
    steps.take()?;
    checked_rename::remove_file(directory, name)
}
