//! The write-ahead log of a change: what the next start reads if this process or the machine dies in the middle of it.
//!
//! It lies in a directory of Windlass, is flushed before the first change, and is locked while its writer lives. It says
//! what may have happened; whether the change counts, the edit log says.

use std::{io, path::Path};

use super::{
    Steps,
    folders::MadeFolder,
    log_format::{LoggedChange, made_to_bytes},
};
use crate::crash_note::CrashNote;

pub(super) const EXTENSION: &str = "change";

/// The log of a change that is being made.
#[derive(Debug)]
pub(super) struct WriteAheadLog(CrashNote);

impl WriteAheadLog {
    /// Writes which directories and files are about to be made and changed. When it returns, that survives a loss of power.
    pub(super) fn begin(directory: &Path, change: &LoggedChange, steps: &Steps) -> io::Result<Self> {
        steps.take()?;
        CrashNote::create(directory, &change.transaction, EXTENSION, &change.to_bytes()).map(Self)
    }

    /// Adds which directories were made.
    pub(super) fn note_made(&mut self, made: &[MadeFolder], steps: &Steps) -> io::Result<()> {
        steps.take()?;
        self.0.append(&made_to_bytes(made))?;
        self.0.flush()
    }

    /// Tests whether a file is on the same file system as the log.
    pub(super) fn shares_device_with(&self, device: u64) -> bool {
        self.0.shares_device_with(device)
    }

    /// There is nothing left to do.
    pub(super) fn remove(&self, steps: &Steps) -> io::Result<()> {
        steps.take()?;
        self.0.remove()
    }
}
