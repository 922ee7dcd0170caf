//! A session file whose calls are added to the index by a background thread.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use windlass_contract::{
    BoxFuture, Journal,
    journal::{JournalError, Record},
};

use super::{CallIndexError, Calls, Keep};
use crate::{SessionFile, ThreadFolder, WarningHandler};

/// Maximum time that the thread waits for the lock of the index. At its end the session waits for
/// the thread.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(1);

/// A session file whose calls are indexed while it is written.
///
/// When the first call ends, a thread opens the index and reads the file. It reads on after every
/// further call, and for the last time when this is dropped, which waits for it. An error is
/// reported once and does not affect the session: the file is indexed at the next opportunity.
pub struct IndexedSession {
    file: SessionFile,
    indexer: Mutex<IndexerState>,
}

enum IndexerState {
    /// No call has ended yet. A session without calls does not open the database.
    Waiting(Option<Box<IndexerJob>>),
    Running {
        wake: SyncSender<()>,
        stopping: Arc<AtomicBool>,
        thread: JoinHandle<()>,
    },
}

struct IndexerJob {
    home: PathBuf,
    keep: Keep,
    path: PathBuf,
    on_warning: WarningHandler,
}

impl IndexedSession {
    /// Starts to index a session of this home directory.
    pub fn new(file: SessionFile, home: &Path, keep: Keep, on_warning: WarningHandler) -> Self {
        let work = IndexerJob { home: home.to_owned(), keep, path: file.path().to_owned(), on_warning };
        Self { file, indexer: Mutex::new(IndexerState::Waiting(Some(Box::new(work)))) }
    }

    fn wake(&self) {
        let mut indexer = self.indexer.lock().unwrap_or_else(PoisonError::into_inner);
        if let IndexerState::Waiting(work) = &mut *indexer
            && let Some(work) = work.take()
        {
            *indexer = work.start();
        }
        if let IndexerState::Running { wake, .. } = &*indexer {
            // If the channel is full, the thread will read anyway. If it is closed, the thread has
            // reported why.
            let _known = wake.try_send(());
        }
    }
}

impl Journal for IndexedSession {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        self.file.append(record)?;
        if matches!(record, Record::Outcome { .. }) {
            self.wake();
        }
        Ok(())
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        self.file.flush()
    }
}

impl Drop for IndexedSession {
    fn drop(&mut self) {
        let indexer = self.indexer.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let IndexerState::Running { wake, stopping, thread } =
            std::mem::replace(indexer, IndexerState::Waiting(None))
        {
            stopping.store(true, Ordering::Relaxed);
            drop(wake);
            // The thread does not panic, and if it did, nothing could be done about it here.
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for IndexedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("file", &self.file).finish_non_exhaustive()
    }
}

impl IndexerJob {
    fn start(self) -> IndexerState {
        let (wake, wakeups) = sync_channel(1);
        let stopping = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stopping);
        match thread::Builder::new().name("calls".to_owned()).spawn(move || self.run(&wakeups, &seen)) {
            Ok(thread) => IndexerState::Running { wake, stopping, thread },
            // Without a thread the file is indexed by the next process.
            Err(_) => IndexerState::Waiting(None),
        }
    }

    fn run(self, wakeups: &Receiver<()>, stopping: &AtomicBool) {
        if let Err(error) = self.follow(wakeups, stopping) {
            (self.on_warning)(error.to_string());
        }
    }

    fn follow(&self, wakeups: &Receiver<()>, stopping: &AtomicBool) -> Result<(), CallIndexError> {
        let mut calls = Calls::open_with_timeout(&self.home, self.keep, MAX_LOCK_WAIT)?;
        self.read(&mut calls)?;
        // Other sessions may have left records unread, for example when they were killed. This can
        // stop at any time.
        calls.catch_up_while(|| !stopping.load(Ordering::Relaxed))?;
        while wakeups.recv().is_ok() {
            match self.read(&mut calls) {
                // The lock may be free when the next call ends, or at the end.
                Err(CallIndexError::Locked { .. }) => {}
                read => read?,
            }
        }
        // Records after the last call belong to the head that is remembered.
        self.read(&mut calls)
    }

    fn read(&self, calls: &mut Calls) -> Result<(), CallIndexError> {
        let thread = self.path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        calls.read(ThreadFolder::Sessions, thread, &self.path)
    }
}
