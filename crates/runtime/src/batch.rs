//! Many calls at once: those that change nothing overlap, one that may change something runs alone.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::task::JoinSet;
use tracing::{Instrument, Span};
use windlass_contract::ToolCall;

use crate::{FinishedCall, PreparedCall, Stop, Toolbox};

/// How many calls run at once. More would not be faster, and a model that asks for a thousand must not get a thousand
/// processes.
const MOST_AT_ONCE: usize = 32;

/// The calls of one answer. Strictly first come, first served: a call waits for those before it that it must not
/// overlap with, never for those after it. Dropping a batch drops its calls.
#[derive(Debug)]
pub struct Batch {
    toolbox: Arc<Toolbox>,
    stop: Stop,
    calls: Vec<ToolCall>,
    finished: HashMap<usize, FinishedCall>,
    waiting: VecDeque<(usize, PreparedCall)>,
    running: JoinSet<(usize, FinishedCall)>,
    /// Whether the one call that is running must be alone.
    alone: bool,
    /// What the calls are part of: the turn, not the answer that is still being heard when they start.
    span: Span,
}

impl Batch {
    /// An empty batch.
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

    /// Adds a call and starts it, if its turn has come.
    pub fn submit(&mut self, call: ToolCall) {
        let at = self.calls.len();
        self.calls.push(call.clone());
        self.waiting.push_back((at, self.toolbox.prepare(call)));
        self.start_what_may_start();
    }

    /// How many calls were added.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether every call has its outcome.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Waits for one call to end and starts what waited for it. Returns at once when idle. Safe to drop and call again.
    pub async fn step(&mut self) {
        let Some(joined) = self.running.join_next().await else { return };
        if let Ok((at, finished)) = joined {
            self.finished.insert(at, finished);
        }
        if self.running.is_empty() {
            self.alone = false;
        }
        self.start_what_may_start();
    }

    /// Waits for all calls, and gives them back in the order they came, each with its one outcome.
    pub async fn finish(mut self) -> Vec<FinishedCall> {
        while !self.is_idle() {
            self.step().await;
        }
        let (mut finished, toolbox) = (self.finished, self.toolbox);
        let calls = self.calls.into_iter().enumerate();
        calls.map(|(at, call)| finished.remove(&at).unwrap_or_else(|| toolbox.lost(call))).collect()
    }

    fn start_what_may_start(&mut self) {
        while let Some((_, next)) = self.waiting.front() {
            let overlaps = next.may_overlap;
            let room = self.running.len() < MOST_AT_ONCE;
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
