//! The thread of the recorder: which commands run, and whose a change is.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::Receiver,
};

use windlass_contract::CommandLog;

use super::{RecordedCommand, UndoJob, UndoRoot, recorded_root::RecordedRoot};

/// The reason why a command that began early is recorded in part.
pub(super) const STILL_READING: &str = "the workspace was still being read when the command began";

/// What the thread knows.
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
    pub(super) fn run(mut self, inbox: &Receiver<UndoJob>, is_filled: &AtomicBool) {
        self.roots.iter_mut().for_each(RecordedRoot::fill);
        is_filled.store(true, Ordering::Release);
        while let Ok(job) = inbox.recv() {
            match job {
                UndoJob::Begin { command, reply } => {
                    let gap = reply.is_closed().then_some(STILL_READING);
                    self.begin(command, gap);
                    // The command may not have waited.
                    drop(reply.send(self.limits()));
                }
                UndoJob::End(number) => self.end(number),
                UndoJob::BeforeCommit(reply) => {
                    self.attribute_to_newest();
                    let _unread = reply.send(());
                }
                UndoJob::AfterCommit(reply) => {
                    if !self.active.is_empty() {
                        self.roots.iter_mut().for_each(RecordedRoot::update);
                    }
                    let _unread = reply.send(());
                }
            }
        }
        self.roots.iter_mut().for_each(RecordedRoot::close);
    }

    fn begin(&mut self, command: RecordedCommand, gap: Option<&'static str>) {
        // What has happened while others ran is theirs; nobody can tell it from a person's work.
        self.attribute_to_newest();
        self.roots.iter_mut().for_each(RecordedRoot::update);
        self.active.push((command, gap));
    }

    fn end(&mut self, number: u64) {
        let Some(at) = self.active.iter().position(|(command, _)| command.number == number) else { return };
        let (command, gap) = self.active.remove(at);
        self.record(&command, gap);
    }

    fn attribute_to_newest(&mut self) {
        if let Some((command, gap)) = self.active.last().cloned() {
            self.record(&command, gap);
        }
    }

    fn record(&mut self, command: &RecordedCommand, gap: Option<&'static str>) {
        for root in &mut self.roots {
            if let Err(error) = root.record(&*self.log, command, gap) {
                self.failures
                    .push(format!("undo: the changes of an earlier command could not be kept: {error}"));
            }
        }
    }

    /// What cannot be undone.
    fn limits(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.failures);
        lines.extend(self.roots.iter_mut().filter_map(RecordedRoot::limits));
        lines
    }
}
