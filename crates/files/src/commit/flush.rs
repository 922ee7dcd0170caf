//! Flushes files and directories to the disk.

use std::{
    collections::HashSet,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    thread,
};

use rustix::{
    fs::{Mode, OFlags, fstat, openat},
    io::Errno,
};

use crate::handle::open_read;

/// Maximum number of files that are flushed, and held open, at once.
pub(super) const MAX_FLUSHED_AT_ONCE: usize = 8;

/// Flushes files. A disk takes about as long for several requests at once as for one.
pub(super) fn flush_all(files: &[File]) -> io::Result<()> {
    let Some((first, others)) = files.split_first() else { return Ok(()) };
    thread::scope(|scope| {
        let others: Vec<_> = others
            .iter()
            .map(|file| thread::Builder::new().spawn_scoped(scope, || file.sync_all()).map_err(|_| file))
            .collect();
        let first = first.sync_all();
        let others = others.into_iter().map(|other| match other {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked"))),
            // No more threads: flush one after the other.
            Err(file) => file.sync_all(),
        });
        others.fold(first, io::Result::and)
    })
}

/// Directories whose entries have changed, each of them once.
#[derive(Debug, Default)]
pub(super) struct TouchedDirectories {
    known: HashSet<(u64, u64)>,
    opened: Vec<File>,
}

impl TouchedDirectories {
    /// Adds an open directory; an `O_PATH` descriptor is enough.
    pub(super) fn take(&mut self, directory: &OwnedFd) -> io::Result<()> {
        let stat = fstat(directory)?;
        if !self.known.insert((stat.st_dev as _, stat.st_ino)) {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(directory.as_fd(), ".", flags, Mode::empty()) {
            Ok(opened) => self.opened.push(opened.into()),
            // Removed by now, or not readable: a directory without read permission cannot be
            // flushed.
            Err(Errno::NOENT | Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
        if self.opened.len() >= MAX_FLUSHED_AT_ONCE { self.flush() } else { Ok(()) }
    }

    /// Adds the parent directories of these paths, which are without links.
    pub(super) fn take_parents<'a>(&mut self, paths: impl Iterator<Item = &'a PathBuf>) -> io::Result<()> {
        for parent in paths.filter_map(|path| path.parent()) {
            match open_read(parent) {
                Ok(directory) => self.take(&directory)?,
                Err(error) if is_out_of_reach(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Flushes the directories that were added.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        flush_all(&std::mem::take(&mut self.opened)).or_else(ignore_unsupported)
    }
}

/// Ignores the error of a file system that cannot flush directories.
pub(crate) fn ignore_unsupported(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    }
}

fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}
