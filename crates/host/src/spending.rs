//! The time that all commands of a machine may take together.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use windlass_contract::HostError;

/// How much may be taken, and how much has been.
#[derive(Debug)]
pub(crate) struct Spending {
    limit: Duration,
    used: Mutex<Duration>,
}

impl Spending {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, used: Mutex::default() }
    }

    /// What is left; an error if nothing is. Commands that run at the same time are each given all of it.
    pub(crate) fn left(&self) -> Result<Duration, HostError> {
        let left = self.limit.saturating_sub(*self.used.lock().unwrap_or_else(PoisonError::into_inner));
        if left.is_zero() { Err(HostError::TimeUsedUp { limit: self.limit }) } else { Ok(left) }
    }

    /// Counts until it is dropped.
    pub(crate) fn count(&self) -> Meter<'_> {
        Meter { spending: self, begun: Instant::now() }
    }
}

/// Time that is being taken.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    spending: &'a Spending,
    begun: Instant,
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let mut used = self.spending.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.saturating_add(self.begun.elapsed());
    }
}
