//! Files that survive a loss of power: flushed directories, flushed files, and append-only logs.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Maximum number of files that are flushed, and held open, at once.
pub(crate) const MAX_FLUSHED_AT_ONCE: usize = 8;

/// Maximum time to wait for another process that writes to the same log.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(20);

/// Time between two attempts to lock a file.
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// Creates a directory and its parents with mode 0700, and flushes them.
pub(crate) fn create_private_directory(directory: &Path) -> io::Result<()> {
    let create = || DirBuilder::new().mode(0o700).create(directory);
    let made = match create() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            directory.parent().map_or(Ok(()), create_private_directory)?;
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

/// Flushes a directory, if the file system supports it.
pub(crate) fn flush_directory(directory: &Path) -> io::Result<()> {
    ignore_unsupported(File::open(directory)?.sync_all())
}

/// Ignores the error of a file system that has no flush.
pub(crate) fn ignore_unsupported(flushed: io::Result<()>) -> io::Result<()> {
    match flushed {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        flushed => flushed,
    }
}

/// Flushes files in parallel. A disk takes about as long for several requests at once as for one.
pub(crate) fn flush_all(files: &[File]) -> io::Result<()> {
    let Some((first, others)) = files.split_first() else { return Ok(()) };
    thread::scope(|scope| {
        let others: Vec<_> = others
            .iter()
            .map(|file| thread::Builder::new().spawn_scoped(scope, || file.sync_all()).map_err(|_| file))
            .collect();
        let first = first.sync_all();
        let others = others.into_iter().map(|other| match other {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked"))),
            // The thread could not be started.
            Err(file) => file.sync_all(),
        });
        others.fold(first, io::Result::and)
    })
}

/// An append-only log, open and locked.
#[derive(Debug)]
pub(crate) struct AppendLog {
    file: File,
    is_new: bool,
}

impl AppendLog {
    /// Opens a log, and creates it with its directory if needed. Waits for another process that is
    /// appending to it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        path.parent().map_or(Ok(()), create_private_directory)?;
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        lock(&file)?;
        let is_new = file.metadata()?.len() == 0;
        Ok(Self { file, is_new })
    }

    /// Appends a line. If that fails, the log is unchanged. An earlier torn line stays separate
    /// from this one.
    pub(crate) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let length = self.file.seek(SeekFrom::End(0))?;
        let start: &[u8] = if self.ends_in_line_break(length)? { b"" } else { b"\n" };
        let bytes = [start, line, b"\n"].concat();
        self.file.write_all(&bytes).inspect_err(|_| self.truncate(length))
    }

    /// Flushes the log, and its directory if the log is new. If that fails, the log is cut to
    /// `length`.
    pub(crate) fn flush(&mut self, path: &Path, length: u64) -> io::Result<()> {
        let name = || path.parent().filter(|_| self.is_new).map_or(Ok(()), flush_directory);
        self.file.sync_all().and_then(|()| name()).inspect_err(|_| self.truncate(length))
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Rolls back an append. If that fails too, the next append starts on a new line.
    fn truncate(&self, length: u64) {
        let _torn = self.file.set_len(length).and_then(|()| self.file.sync_all());
    }

    fn ends_in_line_break(&mut self, length: u64) -> io::Result<bool> {
        let Some(last) = length.checked_sub(1) else { return Ok(true) };
        let mut byte = [0];
        self.file.seek(SeekFrom::Start(last))?;
        self.file.read_exact(&mut byte)?;
        Ok(byte == *b"\n")
    }
}

/// Locks a file, and waits at most [`MAX_LOCK_WAIT`] for another process that holds the lock.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < MAX_LOCK_WAIT => thread::sleep(LOCK_INTERVAL),
            locked => return locked.map_err(io::Error::from),
        }
    }
}
