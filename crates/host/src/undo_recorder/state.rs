//! The thread of the recorder: which commands run, and whose a change is.

use std::{
    io,
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
    time::Duration,
};

use tokio::sync::oneshot::Sender;
use windlass_contract::snapshot::CommandLog;

use super::{FirstSnapshot, RecordedCommand, UndoJob, UndoRoot, recorded_root::RecordedRoot};

/// Maximum delay of the scan after a command, so that it can serve the next command as well.
const MAX_WAIT_FOR_NEXT: Duration = Duration::from_millis(10);

/// The reason why a command that began early is recorded in part.
pub(super) const STILL_READING: &str = "the workspace was still being read when the command began";

/// The state of the thread.
pub(super) struct RecorderState {
    roots: Vec<RecordedRoot>,
    log: Arc<dyn CommandLog>,
    /// The commands that run, the newest last, each with a reason why it is recorded in part.
    active: Vec<(RecordedCommand, Option<&'static str>)>,
    /// Told at the next command: a call that has ended has its receipt.
    failures: Vec<String>,
}

impl RecorderState {
    pub(super) fn new(roots: Vec<UndoRoot>, log: Arc<dyn CommandLog>) -> Self {
        let roots = roots.into_iter().map(RecordedRoot::new).collect();
        Self { roots, log, active: Vec::new(), failures: Vec::new() }
    }

    /// Works until the last sender is gone.
    pub(super) fn run(mut self, inbox: &Receiver<UndoJob>, fill: &FirstSnapshot) {
        self.roots.iter_mut().for_each(|root| root.fill(&fill.stop));
        fill.is_there.store(true, Ordering::Release);
        let mut next = None;
        while let Some(job) = next.take().or_else(|| inbox.recv().ok()) {
            match job {
                UndoJob::BeforeCommit(reply) => {
                    if let Some((command, gap)) = self.active.last().cloned() {
                        self.record(&command, gap);
                    }
                    let _unread = reply.send(());
                }
                UndoJob::AfterCommit(reply) => {
                    if !self.active.is_empty() {
                        self.roots.iter_mut().for_each(RecordedRoot::update);
                    }
                    let _unread = reply.send(());
                }
                job => next = self.begin_and_end(job, inbox),
            }
        }
        self.roots.iter_mut().for_each(RecordedRoot::close);
    }

    /// Does all jobs that are about the begin or the end of a command with one scan. Returns the
    /// first that is not.
    fn begin_and_end(&mut self, first: UndoJob, inbox: &Receiver<UndoJob>) -> Option<UndoJob> {
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(job) = next.take() {
            match job {
                UndoJob::Begin { command, reply } => begun.push((command, reply)),
                UndoJob::End(number) => ended.push(number),
                other => {
                    next = Some(other);
                    break;
                }
            }
            // The next command often begins as soon as the answer to the one before is there.
            let wait = if begun.is_empty() { MAX_WAIT_FOR_NEXT } else { Duration::ZERO };
            next = inbox.recv_timeout(wait).ok();
        }
        if !(begun.is_empty() && ended.is_empty()) {
            self.scan(begun, &ended);
        }
        next
    }

    fn scan(&mut self, begun: Vec<(RecordedCommand, Sender<Vec<String>>)>, ended: &[u64]) {
        // Changes made while several commands ran are assigned to the newest; they cannot be
        // distinguished from a person's work.
        let owner = self.active.iter().rfind(|(command, _)| ended.contains(&command.number));
        match owner.or(self.active.last()).cloned() {
            Some((command, gap)) => self.record(&command, gap),
            None => self.roots.iter_mut().for_each(RecordedRoot::update),
        }
        self.active.retain(|(command, _)| !ended.contains(&command.number));
        for (command, reply) in begun {
            // A command that began while the workspace was still being read did not wait.
            let gap = reply.is_closed().then_some(STILL_READING);
            drop(reply.send(self.limits()));
            if ended.contains(&command.number) {
                self.note_failures(|root, log| root.log_gap(log, &command, STILL_READING));
            } else {
                self.active.push((command, gap));
            }
        }
    }

    fn record(&mut self, command: &RecordedCommand, gap: Option<&'static str>) {
        self.note_failures(|root, log| root.record(log, command, gap));
    }

    fn note_failures(&mut self, mut log: impl FnMut(&mut RecordedRoot, &dyn CommandLog) -> io::Result<()>) {
        for root in &mut self.roots {
            if let Err(error) = log(root, &*self.log) {
                self.failures
                    .push(format!("undo: the changes of an earlier command could not be kept: {error}"));
            }
        }
    }

    /// Describes the changes that cannot be undone.
    fn limits(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.failures);
        lines.extend(self.roots.iter_mut().filter_map(RecordedRoot::limits));
        lines
    }
}
