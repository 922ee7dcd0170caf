//! Records what commands change in a workspace, so that it can be undone.
//!
//! One thread per session keeps a snapshot of the workspace. Before a command starts, the snapshot
//! is brought up to date, so that what a person changed meanwhile is not the command's. When the
//! command and all it started are gone, the thread looks again and hands what changed to the edit
//! log. The answer to the model does not wait for that; the next command and the next change by a
//! tool do.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::oneshot;
use windlass_contract::{
    CallId,
    snapshot::{CommandLog, ContentStore},
};
use windlass_files::{CommitObserver, SnapshotLimits};

mod recorded_root;
mod state;

use state::RecorderState;

/// Maximum time that all commands of a session together wait for the first snapshot.
const MAX_FILL_WAIT: Duration = Duration::from_millis(250);

/// Maximum time that a command or a change by a tool waits for a scan. It takes longer only if the
/// disk does not answer.
const MAX_SCAN_WAIT: Duration = Duration::from_secs(10);

/// Maximum time that the end of the session waits for pending records.
const MAX_END_WAIT: Duration = Duration::from_secs(30);

/// A workspace whose changes are recorded.
#[derive(Debug, Clone)]
pub struct UndoRoot {
    /// The directory, absolute and without links.
    pub path: PathBuf,
    /// Its contents.
    pub store: Arc<dyn ContentStore>,
    /// Directories that are left out.
    pub left_out: Vec<PathBuf>,
    /// The bounds on what is kept.
    pub limits: SnapshotLimits,
}

/// Records the changes of all commands of a session.
#[derive(Debug)]
pub struct UndoRecorder {
    roots: Vec<UndoRoot>,
    log: Arc<dyn CommandLog>,
    thread: Mutex<Option<RecorderThread>>,
    first: Arc<FirstSnapshot>,
    /// A command has begun, so there may be something to record.
    has_begun: AtomicBool,
    next: AtomicU64,
    /// Held during a commit.
    commits: Mutex<()>,
}

/// The first snapshot of a session, which reads the whole workspace.
#[derive(Debug, Default)]
struct FirstSnapshot {
    is_there: AtomicBool,
    /// Set when the session ends: the snapshot is given up.
    stop: Arc<AtomicBool>,
    /// The time until which commands wait for it, set by the first one.
    wait_until: OnceLock<Instant>,
}

impl FirstSnapshot {
    /// Returns how long a command waits for the thread.
    fn wait(&self) -> Duration {
        if self.is_there.load(Ordering::Acquire) {
            return MAX_SCAN_WAIT;
        }
        let now = Instant::now();
        self.wait_until.get_or_init(|| now + MAX_FILL_WAIT).saturating_duration_since(now)
    }
}

#[derive(Debug)]
struct RecorderThread {
    jobs: Sender<UndoJob>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

/// A job for the thread. They are done in order.
#[derive(Debug)]
enum UndoJob {
    /// A command is about to start.
    Begin { command: RecordedCommand, reply: oneshot::Sender<Vec<String>> },
    /// A command and all it started are gone.
    End(u64),
    /// A tool is about to change files.
    BeforeCommit(mpsc::Sender<()>),
    /// A tool has changed files.
    AfterCommit(mpsc::Sender<()>),
}

/// A command whose changes are recorded.
#[derive(Debug, Clone)]
struct RecordedCommand {
    number: u64,
    call: CallId,
    line: String,
    begun: SystemTime,
}

/// Stands for a command that runs. Dropping it says that the command is gone.
#[derive(Debug)]
pub(crate) struct CommandTicket {
    number: u64,
    jobs: Sender<UndoJob>,
}

impl Drop for CommandTicket {
    fn drop(&mut self) {
        // Without the thread nothing is recorded.
        drop(self.jobs.send(UndoJob::End(self.number)));
    }
}

impl UndoRecorder {
    /// A recorder that reads the workspace when the first command comes.
    pub fn new(roots: Vec<UndoRoot>, log: Arc<dyn CommandLog>) -> Self {
        Self {
            roots,
            log,
            thread: Mutex::default(),
            first: Arc::default(),
            commits: Mutex::default(),
            has_begun: AtomicBool::new(false),
            next: AtomicU64::new(0),
        }
    }

    /// Begins to read the workspace, in the background.
    pub fn start(&self) -> io::Result<()> {
        self.jobs().map(drop)
    }

    /// Waits until the changes of commands so far are recorded, up to a limit.
    pub fn settle(&self) {
        self.wait_for(UndoJob::BeforeCommit);
    }

    /// Brings the snapshot up to date before a command starts. Returns what cannot be undone of it.
    pub(crate) async fn begin(&self, call: CallId, line: String) -> (Option<CommandTicket>, Vec<String>) {
        let jobs = match self.jobs() {
            Ok(jobs) => jobs,
            Err(error) => return (None, vec![format!("undo: not available: {error}")]),
        };
        self.has_begun.store(true, Ordering::Release);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let command = RecordedCommand { number, call, line, begun: SystemTime::now() };
        if jobs.send(UndoJob::Begin { command, reply }).is_err() {
            return (None, vec!["undo: not available: its thread has ended".to_owned()]);
        }
        let limits = match tokio::time::timeout(self.first.wait(), answer).await {
            Ok(limits) => limits.unwrap_or_default(),
            Err(_) => vec![format!("undo: in part only: {}", state::STILL_READING)],
        };
        (Some(CommandTicket { number, jobs }), limits)
    }

    fn jobs(&self) -> io::Result<Sender<UndoJob>> {
        let mut running = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*running {
            return Ok(thread.jobs.clone());
        }
        let (jobs, inbox) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let state = RecorderState::new(self.roots.clone(), Arc::clone(&self.log));
        let first = Arc::clone(&self.first);
        thread::Builder::new().name("windlass-undo".to_owned()).spawn(move || {
            state.run(&inbox, &first);
            drop(end);
        })?;
        *running = Some(RecorderThread { jobs: jobs.clone(), ended });
        Ok(jobs)
    }

    /// Does a job and waits for it, if there is anything to record.
    fn wait_for(&self, job: impl FnOnce(mpsc::Sender<()>) -> UndoJob) {
        if !self.has_begun.load(Ordering::Acquire) {
            return;
        }
        let (reply, answer) = mpsc::channel();
        if self.jobs().is_ok_and(|jobs| jobs.send(job(reply)).is_ok()) {
            // In time or not: the change is made, and at worst counts as the command's.
            let _done = answer.recv_timeout(MAX_SCAN_WAIT);
        }
    }
}

impl CommitObserver for UndoRecorder {
    fn observe(&self, commit: &mut dyn FnMut()) {
        // The changes of one commit must not be taken for those of a command during another.
        let _alone = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        self.settle();
        commit();
        self.wait_for(UndoJob::AfterCommit);
    }
}

impl Drop for UndoRecorder {
    /// Waits until everything is recorded. A first snapshot that is not there yet is given up: what
    /// commands changed before it cannot be known.
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(RecorderThread { jobs, ended }) = thread else { return };
        drop(jobs);
        if !self.first.is_there.load(Ordering::Acquire) {
            self.first.stop.store(true, Ordering::Relaxed);
        }
        let _ended = ended.recv_timeout(MAX_END_WAIT);
    }
}
