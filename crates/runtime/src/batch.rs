//! Runs many calls: those that change nothing overlap; a call that may change something runs alone.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::task::JoinSet;
use tracing::{Instrument, Span};
use windlass_contract::ToolCall;

use crate::{FinishedCall, PreparedCall, Stop, Toolbox};

/// Maximum number of calls that run in parallel. More would not be faster, and a model that asks
/// for a thousand calls must not get a thousand processes.
const MAX_PARALLEL_CALLS: usize = 32;

/// The calls of one answer, in strict order: a call waits for earlier calls that it must not
/// overlap with, never for later ones. Dropping a batch drops its calls.
#[derive(Debug)]
pub struct Batch {
    toolbox: Arc<Toolbox>,
    stop: Stop,
    calls: Vec<ToolCall>,
    finished: HashMap<usize, FinishedCall>,
    waiting: VecDeque<(usize, PreparedCall)>,
    running: JoinSet<(usize, FinishedCall)>,
    /// The running call must be alone.
    alone: bool,
    /// The parent span of the calls: the turn, not the answer that may still be arriving.
    span: Span,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new(toolbox: Arc<Toolbox>, stop: Stop) -> Self {
        Self {
            toolbox,
            stop,
            calls: Vec::new(),
            finished: HashMap::new(),
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            alone: false,
            span: Span::current(),
        }
    }

    /// Adds a call, and starts it if no earlier call blocks it.
    pub fn submit(&mut self, call: ToolCall) {
        let at = self.calls.len();
        self.calls.push(call.clone());
        self.waiting.push_back((at, self.toolbox.prepare(call)));
        self.start_ready();
    }

    /// Returns the number of calls added.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns true if no call was added.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns true if every call has its outcome.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Waits for one call to end and starts the calls that waited for it. Returns at once when
    /// idle. Cancel safe.
    pub async fn step(&mut self) {
        let Some(joined) = self.running.join_next().await else { return };
        if let Ok((at, finished)) = joined {
            self.finished.insert(at, finished);
        }
        if self.running.is_empty() {
            self.alone = false;
        }
        self.start_ready();
    }

    /// Waits for all calls, and returns them in the order they were added, each with its outcome.
    pub async fn finish(mut self) -> Vec<FinishedCall> {
        while !self.is_idle() {
            self.step().await;
        }
        let (mut finished, toolbox) = (self.finished, self.toolbox);
        let calls = self.calls.into_iter().enumerate();
        calls.map(|(at, call)| finished.remove(&at).unwrap_or_else(|| toolbox.lost(call))).collect()
    }

    fn start_ready(&mut self) {
        while let Some((_, next)) = self.waiting.front() {
            let overlaps = next.may_overlap;
            let room = self.running.len() < MAX_PARALLEL_CALLS;
            let blocked = if overlaps { self.alone || !room } else { !self.running.is_empty() };
            if blocked {
                return;
            }
            let Some((at, prepared)) = self.waiting.pop_front() else { return };
            self.alone = !overlaps;
            let (toolbox, stop) = (Arc::clone(&self.toolbox), self.stop.clone());
            let run = async move { (at, toolbox.run(prepared, &stop).await) };
            self.running.spawn(run.instrument(self.span.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
