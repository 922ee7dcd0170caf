//! The time that all commands of a machine may take together: by the clock, and of the processors.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use windlass_contract::{grant::Limits, host::HostError};

/// Both times. Copies of it count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spending {
    pub(crate) wall: Account,
    pub(crate) cpu: Account,
}

impl Spending {
    /// What is left by the clock; an error if nothing is of either. Commands that run at the same time are each given
    /// all of it.
    pub(crate) fn left(&self) -> Result<Duration, HostError> {
        if self.cpu.left().is_zero() {
            return Err(HostError::CpuUsedUp { limit: self.cpu.limit });
        }
        let left = self.wall.left();
        if left.is_zero() { Err(HostError::TimeUsedUp { limit: self.wall.limit }) } else { Ok(left) }
    }

    /// Limits under which no single process can take more of the processors than is left. The kernel keeps whole
    /// seconds.
    pub(crate) fn within(&self, limits: &Limits) -> Limits {
        let mut limits = limits.clone();
        if self.cpu.limit < Duration::MAX {
            let left = self.cpu.left().as_secs().saturating_add(1);
            limits.quota.cpu_seconds = Some(limits.quota.cpu_seconds.map_or(left, |limit| limit.min(left)));
        }
        limits
    }
}

/// How much may be taken, and how much has been.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) limit: Duration,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    settled: Duration,
    /// Since when time is being taken, once for each who does.
    running: Vec<Instant>,
}

impl Account {
    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> Duration {
        let used = self.used();
        let running: Duration = used.running.iter().map(Instant::elapsed).sum();
        self.limit.saturating_sub(used.settled.saturating_add(running))
    }

    /// Counts by the clock, from now on until it is dropped.
    pub(crate) fn count(&self) -> Meter {
        let meter = self.count_later();
        self.used().running.push(meter.begun);
        meter
    }

    /// Counts in the end: only then is it known how much it was.
    pub(crate) fn count_later(&self) -> Meter {
        Meter { account: self.clone(), begun: Instant::now(), known: None }
    }
}

impl Default for Account {
    fn default() -> Self {
        Self { limit: Duration::MAX, used: Arc::default() }
    }
}

/// Time that is being taken.
#[derive(Debug)]
pub(crate) struct Meter {
    account: Account,
    begun: Instant,
    known: Option<Duration>,
}

impl Meter {
    /// It was so much, if that is known. Else, as when it is just dropped, all that has passed counts.
    pub(crate) fn settle(mut self, known: Option<Duration>) {
        self.known = known;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let taken = self.known.unwrap_or_else(|| self.begun.elapsed());
        let mut used = self.account.used();
        used.settled = used.settled.saturating_add(taken);
        if let Some(at) = used.running.iter().position(|begun| *begun == self.begun) {
            used.running.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::grant::Quota;

    use super::*;

    #[test]
    fn what_is_not_known_counts_by_the_clock() {
        let account = || Account { limit: Duration::from_nanos(1), ..Account::default() };
        let (known, unknown, dropped) = (account(), account(), account());
        known.count_later().settle(Some(Duration::ZERO));
        unknown.count_later().settle(None);
        drop(dropped.count_later());
        assert_eq!([known, unknown, dropped].map(|account| account.left().is_zero()), [false, true, true]);
    }

    #[test]
    fn time_by_the_clock_counts_while_it_is_taken_and_once() {
        let account = Account { limit: Duration::from_secs(3600), ..Account::default() };
        let before = account.left();
        let (one, other) = (account.count(), account.count());
        while account.left() == before {}
        drop((one, other));
        let after = account.left();
        assert!(after < before);
        assert_eq!(account.left(), after, "nobody takes any more");
    }

    #[test]
    fn a_process_is_limited_to_what_is_left_unless_it_is_limited_to_less() {
        let spending = |seconds| {
            let limit = Duration::from_secs(seconds);
            Spending { cpu: Account { limit, ..Account::default() }, ..Spending::default() }
        };
        let quota =
            |cpu_seconds| Limits { quota: Quota { cpu_seconds, ..Quota::default() }, ..Limits::default() };
        assert_eq!(Spending::default().within(&quota(None)), quota(None));
        assert_eq!(spending(5).within(&quota(None)), quota(Some(6)));
        assert_eq!(spending(5).within(&quota(Some(3))), quota(Some(3)));
    }
}
