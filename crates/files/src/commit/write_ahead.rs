//! The write-ahead log of a change. The next start reads it if this process or the machine dies
//! before the change is complete.
//!
//! It is in a directory of Windlass, is flushed before the first change, and is locked while its
//! writer lives. It lists what may have happened; the edit log decides whether the change is
//! committed.

use std::{io, path::Path};

use super::{
    FailPoints,
    folders::MadeFolder,
    log_format::{LoggedChange, made_to_bytes},
};
use crate::crash_note::CrashNote;

pub(super) const EXTENSION: &str = "change";

/// The log of a change that is being made.
#[derive(Debug)]
pub(super) struct WriteAheadLog(CrashNote);

impl WriteAheadLog {
    /// Writes which directories and files will be made and changed. The log survives a loss of
    /// power once this returns.
    pub(super) fn begin(
        directory: &Path,
        change: &LoggedChange,
        fail_points: &FailPoints,
    ) -> io::Result<Self> {
        fail_points.hit()?;
        CrashNote::create(directory, &change.transaction, EXTENSION, &change.to_bytes()).map(Self)
    }

    /// Appends the directories that were made.
    pub(super) fn note_made(&mut self, made: &[MadeFolder], fail_points: &FailPoints) -> io::Result<()> {
        fail_points.hit()?;
        self.0.append(&made_to_bytes(made))?;
        self.0.flush()
    }

    /// Returns true if `device` is the file system of the log.
    pub(super) fn shares_device_with(&self, device: u64) -> bool {
        self.0.shares_device_with(device)
    }

    /// Removes the log, since there is nothing left to recover.
    pub(super) fn remove(&self, fail_points: &FailPoints) -> io::Result<()> {
        fail_points.hit()?;
        self.0.remove()
    }
}
