//! Flushes a session file to the disk: before an effect, and otherwise in the background.
//!
//! One `fdatasync` serves everyone who waits for it. The thread starts with the first record that
//! is not on the disk. It ends when no record came for a while.

use std::{
    fmt,
    fs::File,
    io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::edits::durable::{flush_directory, ignore_unsupported};

/// Maximum time until a record is flushed that no caller waits for.
const MAX_DIRTY_TIME: Duration = Duration::from_secs(1);

/// Maximum time that the thread waits for a record before it ends.
const MAX_IDLE_TIME: Duration = Duration::from_secs(5);

/// The time at which records are flushed to the disk. Without a flush they survive the end of the
/// process, but not a crash of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DurabilityMode {
    /// After every record.
    Always,
    /// Before a call that may change something, at the end of a turn, and otherwise within a
    /// second.
    #[default]
    Effects,
    /// Whenever the kernel writes them back.
    Never,
}

/// Flushes everything that was written so far.
pub(crate) type FlushOperation = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Flushes a file and, the first time, the directories that were changed to create it.
pub(crate) fn flush_operation(file: File, directories: Vec<PathBuf>) -> FlushOperation {
    let directories = Mutex::new(directories);
    Box::new(move || {
        ignore_unsupported(file.sync_data())?;
        let mut directories = directories.lock().unwrap_or_else(PoisonError::into_inner);
        for directory in directories.iter() {
            flush_directory(directory)?;
        }
        directories.clear();
        Ok(())
    })
}

/// Flushes one file. Dropping it flushes the rest and waits for that.
#[derive(Debug)]
pub(crate) struct BackgroundFlusher {
    shared: Arc<FlushShared>,
    thread: Option<JoinHandle<()>>,
}

struct FlushShared {
    operation: FlushOperation,
    state: Mutex<FlushState>,
    changed: Condvar,
}

/// The state that is shared with the thread. Records are counted from 1.
#[derive(Debug, Default)]
struct FlushState {
    written: u64,
    flushed: u64,
    /// The last record that a caller waits for.
    wanted: u64,
    /// The time of the oldest record that is not flushed.
    dirty_since: Option<Instant>,
    is_running: bool,
    is_closing: bool,
    /// Never cleared: after a failed flush it is unknown what is on the disk.
    failed: Option<io::ErrorKind>,
    waiting: Vec<Waker>,
}

impl BackgroundFlusher {
    pub(crate) fn new(operation: FlushOperation) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(FlushShared { operation, state, changed }), thread: None }
    }

    /// Flushes on the calling thread.
    pub(crate) fn flush_now(&self) -> io::Result<()> {
        (self.shared.operation)()
    }

    /// Leaves the records so far to the kernel's write-back.
    pub(crate) fn leave_to_kernel(&self) {
        self.shared.lock().dirty_since = None;
    }

    /// Counts a record, which is flushed later. Fails if an earlier flush has failed.
    pub(crate) fn count_record(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        if let Some(kind) = state.failed {
            return Err(kind.into());
        }
        state.written += 1;
        let is_first = state.dirty_since.is_none();
        state.dirty_since.get_or_insert_with(Instant::now);
        if is_first {
            self.shared.changed.notify_one();
        }
        drop(state);
        self.ensure_thread();
        Ok(())
    }

    /// Starts to flush every record so far. The returned future is ready when that is done.
    pub(crate) fn flush(&mut self) -> PendingFlush {
        let mut state = self.shared.lock();
        let record = state.written;
        if state.flushed < record {
            state.wanted = record;
            self.shared.changed.notify_one();
        }
        drop(state);
        self.ensure_thread();
        PendingFlush { shared: Arc::clone(&self.shared), record }
    }

    /// Starts the thread if there is work and no thread. If it cannot be started, flushes on the
    /// calling thread.
    fn ensure_thread(&mut self) {
        let mut state = self.shared.lock();
        if state.is_running || state.dirty_since.is_none() {
            return;
        }
        state.is_running = true;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let spawned = thread::Builder::new().name("flush".to_owned()).spawn(move || shared.run());
        if let Ok(thread) = spawned {
            // The previous thread, if any, has ended.
            self.thread = Some(thread);
        } else {
            self.shared.flush_once(self.shared.lock()).is_running = false;
        }
    }
}

impl Drop for BackgroundFlusher {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic, and if it did, nothing could be done about it here.
            let _ended = thread.join();
        }
    }
}

impl FlushShared {
    fn lock(&self) -> MutexGuard<'_, FlushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            let wait = match state.dirty_since {
                _ if state.failed.is_some() => break,
                Some(_) if state.is_closing || state.wanted > state.flushed => Duration::ZERO,
                Some(since) => MAX_DIRTY_TIME.saturating_sub(since.elapsed()),
                None if state.is_closing => break,
                None => MAX_IDLE_TIME,
            };
            if wait.is_zero() {
                state = self.flush_once(state);
                continue;
            }
            let was_dirty = state.dirty_since.is_some();
            let (woken, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && !was_dirty && state.dirty_since.is_none() {
                break;
            }
        }
        state.is_running = false;
    }

    /// Flushes every record so far and wakes the waiting futures.
    fn flush_once<'a>(&'a self, mut state: MutexGuard<'a, FlushState>) -> MutexGuard<'a, FlushState> {
        let record = state.written;
        state.dirty_since = None;
        drop(state);
        let flushed = (self.operation)();
        let mut state = self.lock();
        match flushed {
            Ok(()) => state.flushed = record,
            Err(error) => state.failed = Some(error.kind()),
        }
        state.waiting.drain(..).for_each(Waker::wake);
        state
    }
}

impl fmt::Debug for FlushShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlushShared").field("state", &self.state).finish_non_exhaustive()
    }
}

/// A future that is ready when a record is on the disk. Dropping it does not stop the flush.
pub(crate) struct PendingFlush {
    shared: Arc<FlushShared>,
    record: u64,
}

impl Future for PendingFlush {
    type Output = Result<(), io::ErrorKind>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.lock();
        if state.flushed >= self.record {
            return Poll::Ready(Ok(()));
        }
        if let Some(kind) = state.failed {
            return Poll::Ready(Err(kind));
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
