//! Runs many calls at once, as far as their declared effects allow.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::task::{self, JoinSet};
use tracing::{Instrument, Span};
use windlass_contract::ToolCall;

use crate::{FinishedCall, PreparedCall, Stop, Toolbox, schedule::CallPlace};

/// Maximum number of calls that run in parallel. More would not be faster, and a model that asks
/// for a thousand calls must not get a thousand processes.
const MAX_PARALLEL_CALLS: usize = 32;

/// The calls of one answer. A call waits for earlier calls that it conflicts with, never for later
/// ones: two calls on one path keep their order, and a call that may change anything runs alone.
/// Dropping a batch drops its calls.
#[derive(Debug)]
pub struct Batch {
    toolbox: Arc<Toolbox>,
    stop: Stop,
    calls: Vec<ToolCall>,
    finished: HashMap<usize, FinishedCall>,
    waiting: VecDeque<(usize, PreparedCall)>,
    running: JoinSet<(usize, FinishedCall)>,
    /// The places of the running calls.
    places: HashMap<task::Id, CallPlace>,
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
            places: HashMap::new(),
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
        let Some(joined) = self.running.join_next_with_id().await else { return };
        let task = match joined {
            Ok((task, (at, finished))) => {
                self.finished.insert(at, finished);
                task
            }
            Err(error) => error.id(),
        };
        self.places.remove(&task);
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
        let mut next = 0;
        while next < self.waiting.len() && self.running.len() < MAX_PARALLEL_CALLS {
            if self.must_wait(next) {
                next += 1;
                continue;
            }
            let Some((at, prepared)) = self.waiting.remove(next) else { return };
            let place = prepared.place.clone();
            let (toolbox, stop) = (Arc::clone(&self.toolbox), self.stop.clone());
            let run = async move { (at, toolbox.run(prepared, &stop).await) };
            let started = self.running.spawn(run.instrument(self.span.clone()));
            self.places.insert(started.id(), place);
        }
    }

    /// Returns true if an earlier call, or the limit of its kind, holds up a waiting call.
    fn must_wait(&self, position: usize) -> bool {
        let Some((_, call)) = self.waiting.get(position) else { return false };
        let waiting = self.waiting.iter().take(position).map(|(_, earlier)| &earlier.place);
        let mut earlier = self.places.values().chain(waiting);
        earlier.any(|earlier| call.place.conflicts_with(earlier)) || call.place.is_full(self.places.values())
    }
}

#[cfg(test)]
mod tests;
