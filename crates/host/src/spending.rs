//! Accounts for the wall time and CPU time of all commands of a machine.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use windlass_contract::{grant::Limits, host::HostError};

/// Wall time and CPU time. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandSpending {
    pub(crate) wall: TimeAccount,
    pub(crate) cpu: TimeAccount,
}

impl CommandSpending {
    /// Returns the remaining wall time, or an error if wall time or CPU time is used up. Commands
    /// that run at the same time may each use all of it.
    pub(crate) fn left(&self) -> Result<Duration, HostError> {
        if self.cpu.left().is_zero() {
            return Err(HostError::CpuUsedUp { limit: self.cpu.limit });
        }
        let left = self.wall.left();
        if left.is_zero() { Err(HostError::TimeUsedUp { limit: self.wall.limit }) } else { Ok(left) }
    }

    /// Lowers the CPU limit of a process to the remaining CPU time. The kernel counts whole
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

/// A limit, and the time used so far.
#[derive(Debug, Clone)]
pub(crate) struct TimeAccount {
    pub(crate) limit: Duration,
    used: Arc<Mutex<UsedTime>>,
}

#[derive(Debug, Default)]
struct UsedTime {
    settled: Duration,
    /// Start times of the meters that are running.
    running: Vec<Instant>,
}

impl TimeAccount {
    fn used(&self) -> MutexGuard<'_, UsedTime> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> Duration {
        let used = self.used();
        let running: Duration = used.running.iter().map(Instant::elapsed).sum();
        self.limit.saturating_sub(used.settled.saturating_add(running))
    }

    /// Counts wall time from now until the meter is dropped.
    pub(crate) fn count(&self) -> TimeMeter {
        let meter = self.count_later();
        self.used().running.push(meter.begun);
        meter
    }

    /// Counts nothing until the meter is settled, when the time is known.
    pub(crate) fn count_later(&self) -> TimeMeter {
        TimeMeter { account: self.clone(), begun: Instant::now(), known: None }
    }
}

impl Default for TimeAccount {
    fn default() -> Self {
        Self { limit: Duration::MAX, used: Arc::default() }
    }
}

/// Counts the time of one command.
#[derive(Debug)]
pub(crate) struct TimeMeter {
    account: TimeAccount,
    begun: Instant,
    known: Option<Duration>,
}

impl TimeMeter {
    /// Settles on the known time. If it is unknown, the wall time since the start counts, as on
    /// drop.
    pub(crate) fn settle(mut self, known: Option<Duration>) {
        self.known = known;
    }
}

impl Drop for TimeMeter {
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
        let account = || TimeAccount { limit: Duration::from_nanos(1), ..TimeAccount::default() };
        let (known, unknown, dropped) = (account(), account(), account());
        known.count_later().settle(Some(Duration::ZERO));
        unknown.count_later().settle(None);
        drop(dropped.count_later());
        assert_eq!([known, unknown, dropped].map(|account| account.left().is_zero()), [false, true, true]);
    }

    #[test]
    fn time_by_the_clock_counts_while_it_is_taken_and_once() {
        let account = TimeAccount { limit: Duration::from_hours(1), ..TimeAccount::default() };
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
            CommandSpending {
                cpu: TimeAccount { limit, ..TimeAccount::default() },
                ..CommandSpending::default()
            }
        };
        let quota =
            |cpu_seconds| Limits { quota: Quota { cpu_seconds, ..Quota::default() }, ..Limits::default() };
        assert_eq!(CommandSpending::default().within(&quota(None)), quota(None));
        assert_eq!(spending(5).within(&quota(None)), quota(Some(6)));
        assert_eq!(spending(5).within(&quota(Some(3))), quota(Some(3)));
    }
}
