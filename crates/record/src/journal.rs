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
    journal::{JournalError, Record, SessionMeta},
};

use crate::{
    Durability, Folder, Repair, Session, SessionError,
    chain::Link,
    error::cannot,
    flush::{Flusher, flush_operation},
    line::{self, Lines, Next},
    place,
    replay::{Replayed, replay},
};

/// How much of a session file is read at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// How often records of one session may be set aside.
const MAX_SET_ASIDE: u32 = 1000;

/// A session file, open for writing. While it is, no other process can open it so.
///
/// Every record is one `write` to a file opened for appending, so a record that was appended
/// survives the death of this process. [`Durability`] says when it survives the death of the
/// machine. After such a death the file may lack its last records, and loads all the same.
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
        let directories = create_directories(&path)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(cannot("create", &path))?;
        lock(&file, &path)?;
        let session = Self::over(file, path, Link::start(), directories)?;
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
        let mut replayed = replay(&path, BufReader::with_capacity(READ_BYTES, &file))?;
        for repair in &mut replayed.session.repaired {
            if let Repair::CutOff { kept, .. } = repair {
                *kept = Some(set_aside(&file, &path, replayed.end.bytes)?);
            }
        }
        let session = Self::after(file, path, replayed.end.bytes, replayed.end.link)?;
        session.mend(&replayed)?;
        Ok((session, replayed.session))
    }

    /// Opens a file to add a word to it. What its session lacks stays so: that is for whoever resumes it.
    pub(crate) fn reopen(path: PathBuf) -> Result<Self, SessionError> {
        let file = place::open(&path, OpenOptions::new().read(true).append(true))?;
        lock(&file, &path)?;
        let mut lines = Lines::new(BufReader::new(&file));
        while let Next::Whole(_) = lines.next().map_err(cannot("read", &path))? {}
        let (last_at, end) = (lines.last_at, lines.whole_bytes);
        let last = last_line(&file, &(last_at..end)).map_err(cannot("read", &path))?;
        Self::after(file, path, end, Link::of(&last))
    }

    /// Goes on after a whole line, with which the file ends from now on.
    fn after(file: File, path: PathBuf, end: u64, last: Link) -> Result<Self, SessionError> {
        // A torn line must go before anything is appended to it.
        file.set_len(end).map_err(cannot("mend", &path))?;
        Self::over(file, path, last, Vec::new())
    }

    /// Sets when records are flushed to the disk.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        let mut writer = self.writer();
        writer.durability = durability;
        if durability == Durability::Never {
            writer.flusher.forget();
        }
        drop(writer);
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn over(file: File, path: PathBuf, prev: Link, directories: Vec<PathBuf>) -> Result<Self, SessionError> {
        let same_file = file.try_clone().map_err(cannot("use", &path))?;
        let flusher = Flusher::new(flush_operation(same_file, directories));
        let writer =
            Writer { file, prev, line: Vec::new(), durability: Durability::default(), flusher, failed: None };
        Ok(Self { path, writer: Mutex::new(writer) })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
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
        if writer.durability != Durability::Effects {
            return Box::pin(future::ready(Ok(())));
        }
        let (flushed, path) = (writer.flusher.flush(), self.path.clone());
        Box::pin(async move { flushed.await.map_err(|kind| JournalError { path, kind }) })
    }
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// The line that was written last.
    prev: Link,
    /// Kept between records to spare allocations.
    line: Vec<u8>,
    durability: Durability,
    flusher: Flusher,
    /// Set for good by the first failure: the file may end in half a line, and nothing may follow that.
    failed: Option<io::ErrorKind>,
}

impl Writer {
    /// How large a buffer is kept for the next record.
    const KEPT_BYTES: usize = 64 * 1024;

    fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        self.line.shrink_to(Self::KEPT_BYTES);
        let link = line::write(record, Timestamp::now(), self.prev, &mut self.line)?;
        self.file.write_all(&self.line)?;
        self.prev = link;
        match self.durability {
            Durability::Always => self.flusher.flush_now()?,
            Durability::Effects => {
                self.flusher.note_record()?;
                if let Record::Event(Event::TurnCompleted { .. } | Event::TurnFailed { .. }) = record {
                    // Nobody waits for it.
                    drop(self.flusher.flush());
                }
            }
            Durability::Never => {}
        }
        Ok(())
    }
}

/// Creates the directory of a session file. Returns the directories to flush for the file to be found.
fn create_directories(path: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let Some(day) = path.parent() else { return Ok(Vec::new()) };
    let new = day.ancestors().take_while(|directory| !directory.exists());
    let parents = new.filter_map(Path::parent).map(Path::to_owned);
    let directories = [day.to_owned()].into_iter().chain(parents).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(day).map_err(cannot("create", day))?;
    Ok(directories)
}

/// Copies everything from an offset on to a new file beside the session file.
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
            // On the disk, with its name, before it is cut from the session file.
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
