//! Files that survive a loss of power: directories that last, files that are flushed, and logs that only grow.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// How many files are flushed, and held open, at once.
pub(super) const MAX_FLUSHED_AT_ONCE: usize = 8;

/// How long to wait for another process that is writing to the same log.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(20);

/// How often to look whether it has finished.
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// Makes a directory that lasts, and those above it, for the user alone.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
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

/// Flushes a directory, where the file system can.
pub(super) fn flush_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        flushed => flushed,
    }
}

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
            // No more threads: then one after the other.
            Err(file) => file.sync_all(),
        });
        others.fold(first, io::Result::and)
    })
}

/// A log that only grows, open and locked. Opening makes it, with the directory it is in.
#[derive(Debug)]
pub(super) struct AppendLog {
    file: File,
    is_new: bool,
}

impl AppendLog {
    /// Opens a log, and waits for another process that is appending to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        path.parent().map_or(Ok(()), make_private)?;
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        lock(&file)?;
        let is_new = file.metadata()?.len() == 0;
        Ok(Self { file, is_new })
    }

    /// Adds a line. If that fails, the log is as it was. A line that was torn before stays apart from this one.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let length = self.file.seek(SeekFrom::End(0))?;
        let start: &[u8] = if self.ends_in_line_break(length)? { b"" } else { b"\n" };
        let bytes = [start, line, b"\n"].concat();
        self.file.write_all(&bytes).inspect_err(|_| self.cut(length))
    }

    /// Flushes the log, and its name if that is new. If that fails, the log is cut to so many bytes.
    pub(super) fn flush(&mut self, path: &Path, length: u64) -> io::Result<()> {
        let name = || path.parent().filter(|_| self.is_new).map_or(Ok(()), flush_directory);
        self.file.sync_all().and_then(|()| name()).inspect_err(|_| self.cut(length))
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Takes back what was written. If even that fails, whoever appends next starts on a line of its own.
    fn cut(&self, length: u64) {
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

/// Locks a file, and waits for whoever holds it, but not for ever.
pub(super) fn lock(file: &File) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < MAX_LOCK_WAIT => thread::sleep(LOCK_INTERVAL),
            locked => return locked.map_err(io::Error::from),
        }
    }
}
