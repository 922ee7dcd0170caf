//! The session file while it is being written.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{self, BufReader, Write},
    ops::Range,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use jiff::Timestamp;
use windlass_contract::{Journal, JournalError, Record, SessionMeta, ThreadId};

use crate::{
    Folder, Session, SessionError,
    chain::Link,
    error::cannot,
    line::{self, Lines, Next},
    place,
    replay::{Replayed, replay},
};

/// A session file, open for writing. While it is, no other process can open it so.
///
/// Every record is one `write` to a file opened for appending, so a record that was appended survives the death of this
/// process. It is not flushed to the disk: that would help only against the death of the whole machine, and costs 155 µs
/// on a fast virtual disk and milliseconds on a real one, against 1 µs for a record of 200 bytes (`benches/append.rs`).
/// After such a death the file may lack its last records, and loads all the same.
#[derive(Debug)]
pub struct SessionFile {
    path: PathBuf,
    writer: Mutex<Writer>,
}

/// Which session to take up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// This one.
    Id(ThreadId),
    /// The newest that was started in this directory, so that a session of another project is never taken up by accident.
    LastIn(PathBuf),
    /// The newest, wherever it was started.
    Last,
}

impl SessionFile {
    /// Begins a session.
    pub fn create(home: &Path, meta: &SessionMeta) -> Result<Self, SessionError> {
        Self::create_in(home, Folder::Sessions, meta)
    }

    pub(crate) fn create_in(home: &Path, folder: Folder, meta: &SessionMeta) -> Result<Self, SessionError> {
        let path = folder.path_of(home, meta.id.as_str())?;
        if let Some(day) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(day).map_err(cannot("create", day))?;
        }
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(cannot("create", &path))?;
        lock(&file, &path)?;
        let session = Self::over(file, path, Link::start());
        session.append(&Record::SessionMeta(meta))?;
        Ok(session)
    }

    /// Takes up a session. What [`Session::repaired`] reports is also mended in the file, as far as it can be.
    pub fn resume(home: &Path, which: &Which) -> Result<(Self, Session), SessionError> {
        let path = find(home, which)?;
        let file = place::open(&path, OpenOptions::new().read(true).append(true));
        let file = file.map_err(|error| match (error, which) {
            (SessionError::Io { source, path, .. }, Which::Id(id))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                SessionError::NotFound { id: id.to_string(), path }
            }
            (error, _) => error,
        })?;
        lock(&file, &path)?;
        let replayed = replay(&path, BufReader::new(&file))?;
        let session = Self::after(file, path, &replayed.last_line)?;
        session.mend(&replayed)?;
        Ok((session, replayed.session))
    }

    /// Opens a file to add a word to it. What its session lacks stays so: that is for whoever resumes it.
    pub(crate) fn reopen(path: PathBuf) -> Result<Self, SessionError> {
        let file = place::open(&path, OpenOptions::new().read(true).append(true))?;
        lock(&file, &path)?;
        let mut lines = Lines::new(BufReader::new(&file));
        while let Next::Whole(_) = lines.next().map_err(cannot("read", &path))? {}
        let last_line = lines.last_at..lines.whole_bytes;
        Self::after(file, path, &last_line)
    }

    /// Goes on after the last whole line.
    fn after(file: File, path: PathBuf, at: &Range<u64>) -> Result<Self, SessionError> {
        // A torn line must go before anything is appended to it.
        file.set_len(at.end).map_err(cannot("mend", &path))?;
        let last = last_line(&file, at).map_err(cannot("read", &path))?;
        Ok(Self::over(file, path, Link::of(&last)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn over(file: File, path: PathBuf, prev: Link) -> Self {
        Self { path, writer: Mutex::new(Writer { file, prev, line: Vec::new(), failed: None }) }
    }

    /// Writes down the outputs that were given to calls without one, so that they stay what they are.
    fn mend(&self, replayed: &Replayed) -> Result<(), JournalError> {
        if replayed.settled.is_empty() {
            return Ok(());
        }
        for (call, substitute) in &replayed.settled {
            if let Some(outcome) = &substitute.outcome() {
                self.append(&Record::Outcome { call, outcome })?;
            }
        }
        let calls: Vec<_> = replayed.settled.iter().map(|(call, _)| call.clone()).collect();
        self.append(&Record::Outputs { calls: &calls })
    }
}

impl Journal for SessionFile {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = match writer.failed {
            Some(kind) => kind,
            None => match writer.append(record) {
                Ok(()) => return Ok(()),
                Err(error) => error.kind(),
            },
        };
        writer.failed = Some(kind);
        Err(JournalError { path: self.path.clone(), kind })
    }
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// The line that was written last.
    prev: Link,
    /// Kept between records to spare allocations.
    line: Vec<u8>,
    /// Set for good by the first failure: the file may end in half a line, and nothing may follow that.
    failed: Option<io::ErrorKind>,
}

impl Writer {
    /// How large a buffer is kept for the next record.
    const KEPT_BYTES: usize = 64 * 1024;

    fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        self.line.shrink_to(Self::KEPT_BYTES);
        line::write(record, Timestamp::now(), self.prev, &mut self.line)?;
        self.file.write_all(&self.line)?;
        self.prev = Link::of(&self.line);
        Ok(())
    }
}

fn last_line(file: &File, at: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut line = vec![0; usize::try_from(at.end - at.start).map_err(io::Error::other)?];
    file.read_exact_at(&mut line, at.start)?;
    Ok(line)
}

fn find(home: &Path, which: &Which) -> Result<PathBuf, SessionError> {
    match which {
        Which::Id(id) => place::path_of(home, id.as_str()),
        Which::LastIn(cwd) => place::newest(home, |entry| entry.cwd == *cwd)?
            .ok_or_else(|| SessionError::NoneIn { cwd: cwd.clone() }),
        Which::Last => {
            place::newest(home, |_| true)?.ok_or_else(|| SessionError::NoneYet { home: home.to_owned() })
        }
    }
}

/// How often a lock is tried. Whoever was killed has processes that die a moment after it, and hold its files so long.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    for _ in 1..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(cannot("lock", path)(source)),
        }
    }
    Err(SessionError::Busy { path: path.to_owned() })
}

#[cfg(test)]
mod tests;
