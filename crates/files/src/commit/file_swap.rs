//! Exchanges the old content of a file for the new one, and restores the old one from any point in
//! between.
//!
//! The new content is written to a `.part` file beside the file, flushed, and renamed to `.new`: a
//! file of that name is complete. Then the two names are exchanged with one `RENAME_EXCHANGE`, so
//! that the file is never missing and the old content is kept. If the file system cannot exchange,
//! the old file is renamed to `.old` first. A file that is removed is only renamed to `.old`.
//! Recovery compares contents to find out how far the change came. A content that is neither the
//! old nor the new one is someone else's work: it is never replaced and never removed.

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
    FailPoints,
    content_id::{BeforeId, ContentId, ContentOrigin, IdentifiedFile, identify_file},
};
use crate::checked_rename::{self, CheckedExchange, EntryPlace};

/// Prefix of the names of drafts beside files.
pub(super) const PREFIX: &str = ".windlass-";

/// A file and the names beside it that hold its old and its new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileSwap {
    /// The file.
    pub(super) real: PathBuf,
    /// Unique part of the names beside the file.
    pub(super) unique: String,
    /// The file before the change; `None` if it is created.
    pub(super) before: Option<BeforeId>,
    /// The content after the change; `None` if the file is removed.
    pub(super) after: Option<ContentId>,
}

/// The result of rolling a file back or forward.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SettledSwap {
    /// It is as it should be.
    Clear,
    /// It holds someone else's work, which was left. `before` is where its old content was saved,
    /// if it still existed.
    Conflict { before: Option<PathBuf> },
}

impl FileSwap {
    fn name(&self) -> &OsStr {
        self.real.file_name().unwrap_or_default()
    }

    fn part_name(&self) -> OsString {
        format!("{PREFIX}{}.part", self.unique).into()
    }

    /// Returns the name of the new content before the exchange, and of the old content after it.
    pub(super) fn staged_name(&self) -> OsString {
        format!("{PREFIX}{}.new", self.unique).into()
    }

    /// Returns the name of the old content after it was moved aside.
    pub(super) fn saved_name(&self) -> OsString {
        format!("{PREFIX}{}.old", self.unique).into()
    }

    /// Creates the file to which the new content is written.
    pub(super) fn make_part(
        &self,
        directory: &OwnedFd,
        mode: Mode,
        fail_points: &FailPoints,
    ) -> io::Result<File> {
        fail_points.hit()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(directory, self.part_name(), flags, mode)?))
    }

    /// Renames the new content, complete and flushed, to its staged name.
    pub(super) fn stage(&self, directory: &OwnedFd, fail_points: &FailPoints) -> io::Result<()> {
        rename(directory, &self.part_name(), &self.staged_name(), fail_points)
    }

    /// Renames the new content to a file that did not exist. Fails if it exists by now.
    pub(super) fn rename_into_place(&self, directory: &OwnedFd, fail_points: &FailPoints) -> io::Result<()> {
        rename_to_free(directory, &self.staged_name(), self.name(), fail_points)
    }

    /// Exchanges the new content with the old file, and returns the metadata of the file that was
    /// replaced.
    pub(super) fn exchange(&self, directory: &OwnedFd, fail_points: &FailPoints) -> io::Result<Option<Stat>> {
        let staged = self.staged_name();
        if exchange(directory, &staged, self.name(), fail_points)? {
            return look(directory, &staged);
        }
        let old = self.move_aside(directory, fail_points)?;
        rename_to_free(directory, &staged, self.name(), fail_points)?;
        Ok(old)
    }

    /// Moves the file aside, and returns its metadata.
    pub(super) fn move_aside(
        &self,
        directory: &OwnedFd,
        fail_points: &FailPoints,
    ) -> io::Result<Option<Stat>> {
        let saved = self.saved_name();
        rename(directory, self.name(), &saved, fail_points)?;
        look(directory, &saved)
    }

    /// Removes the drafts beside the file after the change is committed.
    pub(super) fn clear(&self, directory: &OwnedFd, fail_points: &FailPoints) -> io::Result<()> {
        remove(directory, &self.staged_name(), fail_points)?;
        remove(directory, &self.saved_name(), fail_points)
    }

    /// Restores the old content, whatever point the change has reached, unless someone else has
    /// changed the file since.
    pub(super) fn roll_back(&self, directory: &OwnedFd, fail_points: &FailPoints) -> io::Result<SettledSwap> {
        remove(directory, &self.part_name(), fail_points)?;
        let (staged, saved) = (self.staged_name(), self.saved_name());
        let at_staged = identify_file(self, directory, &staged)?;
        let is_waiting = at_staged.is_some_and(|found| found.origin == ContentOrigin::After);
        let old = match (identify_file(self, directory, &saved)?, at_staged) {
            (Some(found), _) => Some((&saved, found)),
            (None, found) => found.filter(|_| !is_waiting).map(|found| (&staged, found)),
        };
        let here = identify_file(self, directory, self.name())?;
        let settled = match (old, here) {
            (Some((old, _)), None) if is_waiting || self.after.is_none() => {
                rename_to_free(directory, old, self.name(), fail_points)?;
                SettledSwap::Clear
            }
            (Some((old, found)), Some(here)) => self.settle(directory, (old, found), &here, fail_points)?,
            (Some((old, _)), None) => self.save_beside(directory, old, fail_points)?,
            (None, Some(here)) => {
                self.remove_created(directory, &here, at_staged.filter(|_| is_waiting), fail_points)?
            }
            (None, None) => SettledSwap::Clear,
        };
        if is_waiting {
            remove(directory, &staged, fail_points)?;
        }
        Ok(settled)
    }

    /// Decides between an old content beside the file and the content of the file.
    fn settle(
        &self,
        directory: &OwnedFd,
        (old, found): (&OsStr, IdentifiedFile),
        here: &IdentifiedFile,
        fail_points: &FailPoints,
    ) -> io::Result<SettledSwap> {
        match here.origin {
            ContentOrigin::After => self.swap_back(directory, old, here, fail_points),
            // Someone has restored the old content already.
            ContentOrigin::Before if found.origin == ContentOrigin::Before => {
                remove(directory, old, fail_points)?;
                Ok(SettledSwap::Clear)
            }
            ContentOrigin::Before | ContentOrigin::Foreign => self.save_beside(directory, old, fail_points),
        }
    }

    /// Exchanges the new content for the old one.
    fn swap_back(
        &self,
        directory: &OwnedFd,
        old: &OsStr,
        here: &IdentifiedFile,
        fail_points: &FailPoints,
    ) -> io::Result<SettledSwap> {
        let (name, staged) = (self.name(), self.staged_name());
        let back = CheckedExchange {
            exchange: &|| {
                fail_points.hit()?;
                checked_rename::exchange((directory, old), (directory, name))
            },
            put_back: &|| rename_to_free(directory, old, name, fail_points),
            look: &|| look(directory, old),
            is_same_file: |one, other| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        };
        // A file that was written to between the look and the exchange is someone else's work.
        let is_as_seen = |found: &Stat| is_same(found, &here.stat);
        let is_back = match back.run(is_as_seen) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let is_away = self.take_away(directory, &staged, here, fail_points)?;
                if is_away {
                    rename_to_free(directory, old, name, fail_points)?;
                    remove(directory, &staged, fail_points)?;
                }
                is_away
            }
            exchanged => {
                let is_back = exchanged?;
                if is_back {
                    remove(directory, old, fail_points)?;
                }
                is_back
            }
        };
        if is_back { Ok(SettledSwap::Clear) } else { self.save_beside(directory, old, fail_points) }
    }

    /// Renames the file to `aside`, if it is still the one that was identified.
    fn take_away(
        &self,
        directory: &OwnedFd,
        aside: &OsStr,
        here: &IdentifiedFile,
        fail_points: &FailPoints,
    ) -> io::Result<bool> {
        checked_rename::take_away(
            (directory, self.name()),
            (directory, aside),
            |from, to| rename_to_free(directory, from.1, to.1, fail_points),
            || matches!(look(directory, aside), Ok(Some(found)) if is_same(&found, &here.stat)),
        )
    }

    /// Removes the file if the change has created it; any other stays.
    fn remove_created(
        &self,
        directory: &OwnedFd,
        here: &IdentifiedFile,
        waiting: Option<IdentifiedFile>,
        fail_points: &FailPoints,
    ) -> io::Result<SettledSwap> {
        let is_ours = waiting.is_none_or(|waiting| waiting.stat.st_ino == here.stat.st_ino);
        match here.origin {
            ContentOrigin::Before => return Ok(SettledSwap::Clear),
            // The new content was never moved here, so what the file holds is not ours.
            _ if !is_ours => return Ok(SettledSwap::Clear),
            ContentOrigin::After if self.before.is_none() => {}
            ContentOrigin::After | ContentOrigin::Foreign => {
                return Ok(SettledSwap::Conflict { before: None });
            }
        }
        let staged = self.staged_name();
        remove(directory, &staged, fail_points)?;
        if !self.take_away(directory, &staged, here, fail_points)? {
            return Ok(SettledSwap::Conflict { before: None });
        }
        remove(directory, &staged, fail_points)?;
        Ok(SettledSwap::Clear)
    }

    /// Finishes a committed change: removes the drafts beside the file. A rename that the disk has
    /// lost is done again.
    pub(super) fn roll_forward(
        &self,
        directory: &OwnedFd,
        fail_points: &FailPoints,
    ) -> io::Result<SettledSwap> {
        remove(directory, &self.part_name(), fail_points)?;
        let staged = self.staged_name();
        let at_staged = identify_file(self, directory, &staged)?.map(|found| found.origin);
        let here = identify_file(self, directory, self.name())?.map(|found| found.origin);
        if at_staged == Some(ContentOrigin::After) {
            match (&self.before, here) {
                (Some(_), Some(ContentOrigin::Before)) => drop(self.exchange(directory, fail_points)?),
                (None, None) => self.rename_into_place(directory, fail_points)?,
                _ => {}
            }
        }
        let mut settled = SettledSwap::Clear;
        for name in [staged, self.saved_name()] {
            match identify_file(self, directory, &name)?.map(|found| found.origin) {
                Some(ContentOrigin::Foreign) => settled = self.save_beside(directory, &name, fail_points)?,
                Some(ContentOrigin::Before | ContentOrigin::After) => remove(directory, &name, fail_points)?,
                None => {}
            }
        }
        Ok(settled)
    }

    /// Renames a content beside the file to a name that tells the user what it is.
    fn save_beside(
        &self,
        directory: &OwnedFd,
        from: &OsStr,
        fail_points: &FailPoints,
    ) -> io::Result<SettledSwap> {
        let (from, beside) = ((directory, from), (directory, self.name()));
        let rename = |from: EntryPlace<'_, _>, to: EntryPlace<'_, _>| {
            rename_to_free(directory, from.1, to.1, fail_points)
        };
        let free = checked_rename::save_beside(from, beside, rename)?;
        Ok(SettledSwap::Conflict { before: Some(self.real.with_file_name(free)) })
    }
}

/// Returns true if both are the same file with nothing written to it in between.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino, one.st_size) == (other.st_dev, other.st_ino, other.st_size)
        && (one.st_mtime, one.st_mtime_nsec) == (other.st_mtime, other.st_mtime_nsec)
}

/// Returns the metadata of an entry, if it exists.
pub(super) fn look(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn rename(directory: &OwnedFd, from: &OsStr, to: &OsStr, fail_points: &FailPoints) -> io::Result<()> {
    fail_points.hit()?;
    Ok(renameat(directory, from, directory, to)?)
}

/// Renames a file to a name that is free; fails if it is taken.
fn rename_to_free(directory: &OwnedFd, from: &OsStr, to: &OsStr, fail_points: &FailPoints) -> io::Result<()> {
    fail_points.hit()?;
    checked_rename::rename_to_free((directory, from), (directory, to))
}

/// Exchanges two names; returns false if the file system cannot.
fn exchange(directory: &OwnedFd, one: &OsStr, other: &OsStr, fail_points: &FailPoints) -> io::Result<bool> {
    fail_points.hit()?;
    match checked_rename::exchange((directory, one), (directory, other)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        exchanged => exchanged.map(|()| true),
    }
}

/// Removes a file, if it exists.
fn remove(directory: &OwnedFd, name: &OsStr, fail_points: &FailPoints) -> io::Result<()> {
    fail_points.hit()?;
    checked_rename::remove_file(directory, name)
}
