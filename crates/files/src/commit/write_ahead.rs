//! The write-ahead log of a change: what the next start reads if this process or the machine dies in the middle of it.
//!
//! It lies in a directory of Windlass, is flushed before the first change, and is locked while its writer lives. It says
//! what may have happened; whether the change counts, the edit log says.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the log is in a directory of Windlass itself, which no command can reach"
)]

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    Steps,
    flush::unsupported_is_fine,
    folders::MadeFolder,
    log_format::{LoggedChange, made_to_bytes},
};

pub(super) const EXTENSION: &str = "change";

/// The log of a change that is being made.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    file: File,
    path: PathBuf,
}

impl WriteAheadLog {
    /// Writes which directories and files are about to be made and changed. When it returns, that survives a loss of power.
    pub(super) fn begin(directory: &Path, change: &LoggedChange, steps: &Steps) -> io::Result<Self> {
        steps.take()?;
        make_private(directory)?;
        // Written and locked under another name first: a log that can be found is whole, and is locked as long as we live.
        let draft = directory.join(format!("{}.draft", change.transaction));
        let path = directory.join(format!("{}.{EXTENSION}", change.transaction));
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&draft)?;
        let written = file
            .try_lock()
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(&change.to_bytes()))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, &path))
            .and_then(|()| flush_directory(directory));
        if let Err(error) = written {
            drop((fs::remove_file(&draft), fs::remove_file(&path)));
            return Err(error);
        }
        Ok(Self { file, path })
    }

    /// Adds which directories were made.
    pub(super) fn note_made(&mut self, made: &[MadeFolder], steps: &Steps) -> io::Result<()> {
        steps.take()?;
        self.file.write_all(&made_to_bytes(made))?;
        self.file.sync_all()
    }

    /// Tests whether a file is on the same file system as the log.
    pub(super) fn shares_device_with(&self, device: u64) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().is_ok_and(|metadata| metadata.dev() == device)
    }

    /// There is nothing left to do.
    pub(super) fn remove(&self, steps: &Steps) -> io::Result<()> {
        steps.take()?;
        fs::remove_file(&self.path)
    }
}

/// Makes a directory of ours that lasts, and those above it.
fn make_private(directory: &Path) -> io::Result<()> {
    let create = || DirBuilder::new().mode(0o700).create(directory);
    let made = match create() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            directory.parent().map_or(Ok(()), make_private)?;
            create()
        }
        made => made,
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => directory.parent().map_or(Ok(()), flush_directory),
    }
}

fn flush_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all().or_else(unsupported_is_fine)
}
