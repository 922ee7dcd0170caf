//! Notes about unfinished work, which the next start reads if this process or the machine dies.
//!
//! They are in a directory of Windlass and are locked while their writer lives.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the notes are in a directory of Windlass itself, which no command can reach"
)]

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::commit::ignore_unsupported;

/// A note of this process, locked while it is open.
#[derive(Debug)]
pub(crate) struct CrashNote {
    file: File,
    path: PathBuf,
}

impl CrashNote {
    /// Writes a note. It survives a loss of power once this returns.
    pub(crate) fn create(directory: &Path, stem: &str, extension: &str, bytes: &[u8]) -> io::Result<Self> {
        make_private(directory)?;
        // Write and lock it under another name first: a note with the real name is complete, and
        // locked while we live.
        let draft = directory.join(format!("{stem}.draft"));
        let path = directory.join(format!("{stem}.{extension}"));
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&draft)?;
        let written = file
            .try_lock()
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, &path))
            .and_then(|()| flush_directory(directory));
        if let Err(error) = written {
            drop((fs::remove_file(&draft), fs::remove_file(&path)));
            return Err(error);
        }
        Ok(Self { file, path })
    }

    /// Appends to the note.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Flushes what was appended.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Returns true if `device` is the file system of the note.
    pub(crate) fn shares_device_with(&self, device: u64) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.dev() == device)
    }

    /// Removes the note, since there is nothing left to recover.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Calls `settle` with each note, and its content, that a dead process has left. The note is locked
/// during the call, and stays unless `settle` removes it.
pub(crate) fn for_each_abandoned(
    directory: &Path,
    extension: &str,
    mut settle: impl FnMut(PathBuf, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new(extension)) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        // Locked: its writer is alive and handles it.
        if file.try_lock().is_err() {
            continue;
        }
        let bytes = match fs::read(&path) {
            // Another process has just handled it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            bytes => bytes?,
        };
        settle(path, &bytes)?;
    }
    Ok(())
}

/// Makes a private directory and its parents, and flushes them.
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
    File::open(directory)?.sync_all().or_else(ignore_unsupported)
}
