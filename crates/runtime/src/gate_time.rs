//! The time that a call waits at the gate, which is no running time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// The time that a call has spent at the gate: mostly a person who reads the question.
#[derive(Debug, Default)]
pub(crate) struct GateTime {
    nanoseconds: AtomicU64,
}

impl GateTime {
    /// Waits for a decision of the gate, and counts the time.
    pub(crate) async fn count<T>(&self, decision: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let decided = decision.await;
        let taken = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(taken, Ordering::Relaxed);
        decided
    }

    /// Returns the running time of a call that began then.
    pub(crate) fn running_time(&self, began: Instant) -> Duration {
        began.elapsed().saturating_sub(Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)))
    }
}
