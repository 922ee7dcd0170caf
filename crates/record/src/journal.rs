//! The session file while it is being written.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    future,
    io::{self, BufReader, Seek, SeekFrom, Write},
    ops::Range,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use jiff::Timestamp;
use windlass_contract::{
    BoxFuture, Event, Journal,
    id::ThreadId,
    journal::{JournalError, Record, Rewind, SessionMeta},
};

use crate::{
    DurabilityMode, LoadedSession, SessionError, SessionHolder, SessionRepair, ThreadFolder,
    chain::LineHash,
    error::cannot,
    flush::{BackgroundFlusher, flush_operation},
    replay::{ReplayedSession, replay},
    session_line::{self, LineRead, LineReader},
    session_paths,
};

/// Size of the buffer for reading a session file.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// Maximum number of files with damaged records beside one session file.
const MAX_SET_ASIDE: u32 = 1000;

/// A session file, open for writing and locked: no other process can open it for writing.
///
/// Every record is one `write` to a file opened for appending, so it survives the end of this
/// process. [`DurabilityMode`] says when it survives a crash of the machine. After a crash the file
/// may lack its last records, and can still be loaded.
#[derive(Debug)]
pub struct SessionFile {
    path: PathBuf,
    writer: Mutex<SessionWriter>,
}

/// Selects the session to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The session with this id.
    Id(ThreadId),
    /// The newest session that was started in this directory, so that one of another project is
    /// never resumed by accident. Sessions of sub-agents are left out, here and in `Last`.
    LastIn(PathBuf),
    /// The newest session of all directories.
    Last,
}

impl SessionFile {
    /// Creates the file of a new session.
    pub fn create(home: &Path, meta: &SessionMeta) -> Result<Self, SessionError> {
        Self::create_in(home, ThreadFolder::Sessions, meta)
    }

    pub(crate) fn create_in(
        home: &Path,
        folder: ThreadFolder,
        meta: &SessionMeta,
    ) -> Result<Self, SessionError> {
        let path = folder.path_of(home, meta.id.as_str())?;
        let directories = create_directories(&path)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(cannot("create", &path))?;
        lock(&file, &path)?;
        let session = Self::with_file(file, path, LineHash::start(), directories)?;
        session.append(&Record::SessionMeta(meta))?;
        Ok(session)
    }

    /// Resumes a session. The problems in [`LoadedSession::repaired`] are also repaired in the
    /// file, as far as possible.
    pub fn resume(home: &Path, which: &Which) -> Result<(Self, LoadedSession), SessionError> {
        let path = find(home, which)?;
        let file = session_paths::open(&path, OpenOptions::new().read(true).append(true));
        let file = file.map_err(|error| match (error, which) {
            (SessionError::Io { source, path, .. }, Which::Id(id))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                SessionError::NotFound { id: id.to_string(), path }
            }
            (error, _) => error,
        })?;
        lock(&file, &path)?;
        let mut replayed = replay(&path, BufReader::with_capacity(READ_BYTES, &file))?;
        for repair in &mut replayed.session.repaired {
            if let SessionRepair::CutOff { kept, .. } = repair {
                *kept = Some(set_aside(&file, &path, replayed.end.bytes)?);
            }
        }
        let session = Self::truncated_to(file, path, replayed.end.bytes, replayed.end.link)?;
        session.record_substitutes(&replayed)?;
        Ok((session, replayed.session))
    }

    /// Opens a file to append to it, without repairing its session. [`resume`](Self::resume) does
    /// that.
    pub(crate) fn reopen(path: PathBuf) -> Result<Self, SessionError> {
        let file = session_paths::open(&path, OpenOptions::new().read(true).append(true))?;
        lock(&file, &path)?;
        let mut lines = LineReader::new(BufReader::new(&file));
        while let LineRead::Whole(_) = lines.next().map_err(cannot("read", &path))? {}
        let (last_at, end) = (lines.last_at, lines.whole_bytes);
        let last = last_line(&file, &(last_at..end)).map_err(cannot("read", &path))?;
        Self::truncated_to(file, path, end, LineHash::new(&last))
    }

    /// Cuts the file after a complete line, whose hash is `last`, and opens it for appending.
    fn truncated_to(file: File, path: PathBuf, end: u64, last: LineHash) -> Result<Self, SessionError> {
        // A torn line must go before anything is appended to it.
        file.set_len(end).map_err(cannot("mend", &path))?;
        Self::with_file(file, path, last, Vec::new())
    }

    /// Sets when records are flushed to the disk.
    #[must_use]
    pub fn with_durability(self, durability: DurabilityMode) -> Self {
        let mut writer = self.writer();
        writer.durability = durability;
        if durability == DurabilityMode::Never {
            writer.flusher.leave_to_kernel();
        }
        drop(writer);
        self
    }

    /// Records that the conversation goes back to an earlier turn. Nothing is removed from the
    /// file, and no file of the user is changed.
    pub fn rewind(&self, rewind: &Rewind) -> Result<(), JournalError> {
        self.append(&Record::Rewound(rewind))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn with_file(
        file: File,
        path: PathBuf,
        prev: LineHash,
        directories: Vec<PathBuf>,
    ) -> Result<Self, SessionError> {
        let same_file = file.try_clone().map_err(cannot("use", &path))?;
        let flusher = BackgroundFlusher::new(flush_operation(same_file, directories));
        let writer = SessionWriter {
            file,
            prev,
            line: Vec::new(),
            durability: DurabilityMode::default(),
            flusher,
            failed: None,
        };
        Ok(Self { path, writer: Mutex::new(writer) })
    }

    fn writer(&self) -> MutexGuard<'_, SessionWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outputs that replace missing ones, so that later loads return the same.
    fn record_substitutes(&self, replayed: &ReplayedSession) -> Result<(), JournalError> {
        if replayed.substituted.is_empty() {
            return Ok(());
        }
        for (call, substitute) in &replayed.substituted {
            if let Some(outcome) = &substitute.outcome() {
                self.append(&Record::Outcome { call, outcome: outcome.as_ref() })?;
            }
        }
        let calls: Vec<_> = replayed.substituted.iter().map(|(call, _)| call.clone()).collect();
        self.append(&Record::Outputs { calls: &calls })
    }
}

impl Drop for SessionFile {
    fn drop(&mut self) {
        // The file is still open, and with it the lock is held.
        SessionHolder::withdraw(&self.path);
    }
}

impl Journal for SessionFile {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        let mut writer = self.writer();
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

    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        let mut writer = self.writer();
        if writer.durability != DurabilityMode::Effects {
            return Box::pin(future::ready(Ok(())));
        }
        let (flushed, path) = (writer.flusher.flush(), self.path.clone());
        Box::pin(async move { flushed.await.map_err(|kind| JournalError { path, kind }) })
    }
}

#[derive(Debug)]
struct SessionWriter {
    file: File,
    /// The hash of the last line.
    prev: LineHash,
    /// A buffer that is reused to avoid allocations.
    line: Vec<u8>,
    durability: DurabilityMode,
    flusher: BackgroundFlusher,
    /// Set by the first failure and never cleared: the file may end in half a line, and nothing may
    /// follow that.
    failed: Option<io::ErrorKind>,
}

impl SessionWriter {
    /// Maximum size of the buffer that is kept for the next record.
    const MAX_KEPT_BYTES: usize = 64 * 1024;

    fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        self.line.shrink_to(Self::MAX_KEPT_BYTES);
        let link = session_line::write(record, Timestamp::now(), self.prev, &mut self.line)?;
        self.file.write_all(&self.line)?;
        self.prev = link;
        match self.durability {
            DurabilityMode::Always => self.flusher.flush_now()?,
            DurabilityMode::Effects => {
                self.flusher.count_record()?;
                if let Record::Event(event) = record
                    && matches!(**event, Event::TurnCompleted { .. } | Event::TurnFailed { .. })
                {
                    // No caller waits for this flush.
                    drop(self.flusher.flush());
                }
            }
            DurabilityMode::Never => {}
        }
        Ok(())
    }
}

/// Creates the directory of a session file. Returns the directories to flush so that the file is
/// found after a crash.
fn create_directories(path: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let Some(day) = path.parent() else { return Ok(Vec::new()) };
    let new = day.ancestors().take_while(|directory| !directory.exists());
    let parents = new.filter_map(Path::parent).map(Path::to_owned);
    let directories = [day.to_owned()].into_iter().chain(parents).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(day).map_err(cannot("create", day))?;
    Ok(directories)
}

/// Copies everything after an offset to a new file beside the session file.
fn set_aside(mut file: &File, path: &Path, from: u64) -> Result<PathBuf, SessionError> {
    let names = (1..=MAX_SET_ASIDE).map(|number| match number {
        1 => path.with_extension("jsonl.damaged"),
        _ => path.with_extension(format!("jsonl.damaged-{number}")),
    });
    for name in names {
        let made = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made,
        };
        let copied = made.and_then(|mut made| {
            file.seek(SeekFrom::Start(from))?;
            io::copy(&mut file, &mut made)?;
            // Flush the copy and its name before the records are cut from the session file.
            flush_operation(made, name.parent().map(Path::to_owned).into_iter().collect())()
        });
        return copied.map_err(cannot("set aside damaged records in", &name)).map(|()| name);
    }
    let source = io::ErrorKind::AlreadyExists.into();
    Err(SessionError::Io { action: "set aside damaged records of", path: path.to_owned(), source })
}

fn last_line(file: &File, at: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut line = vec![0; usize::try_from(at.end - at.start).map_err(io::Error::other)?];
    file.read_exact_at(&mut line, at.start)?;
    Ok(line)
}

fn find(home: &Path, which: &Which) -> Result<PathBuf, SessionError> {
    match which {
        Which::Id(id) => session_paths::path_of(home, id.as_str()),
        Which::LastIn(cwd) => {
            session_paths::newest(home, |entry| entry.cwd == *cwd && !entry.is_of_sub_agent())?
                .ok_or_else(|| SessionError::NoneIn { cwd: cwd.clone() })
        }
        Which::Last => session_paths::newest(home, |entry| !entry.is_of_sub_agent())?
            .ok_or_else(|| SessionError::NoneYet { home: home.to_owned() }),
    }
}

/// Maximum number of attempts to lock a file. The children of a killed process hold its files for a
/// moment longer.
const MAX_LOCK_TRIES: u32 = 20;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    for _ in 1..MAX_LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY_INTERVAL),
            Ok(()) => {
                SessionHolder::announce(path);
                return Ok(());
            }
            Err(TryLockError::Error(source)) => return Err(cannot("lock", path)(source)),
        }
    }
    Err(SessionError::Busy { path: path.to_owned(), holder: SessionHolder::of(path) })
}

#[cfg(test)]
mod tests;
