//! Counts what the processes of a sandbox use, and decides whether it is more than they may. Runs
//! in PID 1.
//!
//! It fails closed: what cannot be read counts as over the limit. Only a process that has ended
//! counts as nothing.

use super::{
    init::{now_micros, usage_of_collected},
    proc_files::{self, ProcReadError, unless_gone},
};
use crate::namespace_plan::UsageLimits;

pub(crate) mod process_status;
pub(crate) mod shared_memory;
mod sysv_ipc;

use process_status::ProcessStatus;
use shared_memory::SharedMemory;

/// Minimum time from one round to the next.
const MIN_INTERVAL_MILLIS: i64 = 5;

/// Maximum time from one round to the next.
const MAX_INTERVAL_MILLIS: i64 = 250;

/// Rounds take no more than one part in so many of the time: 2 %, and 20 % once half of a limit is
/// used. Glances, which tell when that is, take no more than 5 %: a few processes take 100 MB in 25
/// ms.
const SHARE_OF_TIME: i64 = 50;
const SHARE_NEAR_A_LIMIT: i64 = 5;
const SHARE_OF_GLANCES: i64 = 20;

/// Bytes of a block in `ru_oublock`, and of one in `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    Nothing = 0,
    Memory = 1,
    Processes = 2,
    Disk = 3,
    /// The usage could not be counted.
    Uncounted = 4,
    /// The usage could not be counted in time.
    TooMany = 5,
}

impl ExceededLimit {
    /// Returns the name of a limit by its number in the final report.
    pub(super) fn describe(number: u32) -> Option<&'static str> {
        [
            (Self::Memory, "memory"),
            (Self::Processes, "processes"),
            (Self::Disk, "disk"),
            (Self::Uncounted, crate::denials::UNCOUNTED),
            (Self::TooMany, crate::denials::TOO_MANY),
        ]
        .into_iter()
        .find_map(|(over, name)| (over as u32 == number).then_some(name))
    }
}

/// The sums over all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UsageTotals {
    memory_bytes: u64,
    processes: u64,
    disk_bytes: u64,
}

impl UsageTotals {
    /// Tells whether more than half of a limit is used.
    fn is_near(self, watch: UsageLimits) -> bool {
        let near = |used, limit| limit > 0 && used > limit / 2;
        near(self.memory_bytes, watch.memory_bytes)
            || near(self.processes, watch.processes)
            || near(self.disk_bytes, watch.disk_bytes)
    }
}

/// Counts the usage of a sandbox at intervals.
pub(super) struct UsageCounter {
    watch: UsageLimits,
    shared_memory: SharedMemory,
    page_bytes: u64,
    due: i64,
    /// The time of the next glance: a rough count that takes much less than a round.
    glance_due: i64,
}

impl UsageCounter {
    pub(super) fn new(watch: UsageLimits, now: i64) -> Self {
        let first = now.saturating_add(MIN_INTERVAL_MILLIS);
        let due = if watch.counts() { first } else { i64::MAX };
        let glance_due = due;
        Self { watch, shared_memory: SharedMemory::new(), page_bytes: page_bytes(), due, glance_due }
    }

    /// The time to count again.
    pub(super) fn due(&self) -> i64 {
        self.due.min(self.glance_due)
    }

    /// Counts what is due, and returns the limit that was exceeded.
    pub(super) fn count(&mut self, now: i64) -> ExceededLimit {
        if now < self.due {
            let (seen, took) = timed(|| self.glance());
            self.glance_due = now.saturating_add(interval(took, SHARE_OF_GLANCES));
            if seen.is_ok_and(|seen| !seen.is_near(self.watch)) {
                return ExceededLimit::Nothing;
            }
        }
        let (usage, took) = timed(|| self.usage());
        let share = if usage.is_ok_and(|usage| usage.is_near(self.watch)) {
            SHARE_NEAR_A_LIMIT
        } else {
            SHARE_OF_TIME
        };
        let end = now.saturating_add(took / 1000);
        self.due = end.saturating_add(interval(took, share));
        // A glance that sees more than there is must not lead to one round after the other.
        self.glance_due = self.due.min(end.saturating_add(interval(took, SHARE_NEAR_A_LIMIT)));
        decide(usage, self.watch)
    }

    /// Counts processes without their threads, memory as they have it, however many share it, and
    /// what they have written.
    fn glance(&self) -> Result<UsageTotals, ProcReadError> {
        let mut usage = UsageTotals::default();
        proc_files::each_living(|pid| {
            usage.processes += 1;
            if self.watch.memory_bytes > 0 {
                let resident = proc_files::number(pid, b"/statm", |text| proc_files::nth_number(text, 1));
                usage.memory_bytes += unless_gone(resident)? * self.page_bytes;
            }
            if self.watch.disk_bytes > 0 {
                usage.disk_bytes += unless_gone(written(pid))?;
            }
            Ok(())
        })?;
        Ok(usage)
    }

    fn usage(&mut self) -> Result<UsageTotals, ProcReadError> {
        let (mut usage, mut mapped_bytes) = (UsageTotals::default(), 0);
        let watch = self.watch;
        if watch.memory_bytes > 0 {
            self.shared_memory.begin()?;
        }
        proc_files::each_living(|pid| {
            let Some(status) = ProcessStatus::read(pid)? else { return Ok(()) };
            usage.processes += status.threads;
            usage.memory_bytes += status.own_bytes;
            if watch.memory_bytes > 0 {
                mapped_bytes += status.mapped_bytes;
                self.shared_memory.add_open_files(pid, status.threads)?;
            }
            if watch.disk_bytes > 0 {
                usage.disk_bytes += unless_gone(written(pid))?;
            }
            Ok(())
        })?;
        if watch.memory_bytes > 0 {
            let shared = self.shared_memory(mapped_bytes + usage.memory_bytes, usage.processes)?;
            usage.memory_bytes = usage.memory_bytes.saturating_add(shared);
        }
        if watch.disk_bytes > 0 {
            usage.disk_bytes += written_by_collected();
        }
        Ok(usage)
    }

    /// Memory that belongs to no process alone. What is mapped is looked through only if it could
    /// make a difference.
    fn shared_memory(&mut self, mapped_bytes: u64, processes: u64) -> Result<u64, ProcReadError> {
        let mut bytes = sysv_ipc::bytes(processes)?;
        for path in self.watch.tmpfs() {
            bytes += shared_memory::in_tmpfs(path)?;
        }
        let shared = &mut self.shared_memory;
        let all = mapped_bytes.saturating_add(bytes).saturating_add(shared.bytes());
        if all > self.watch.memory_bytes || shared.has_unseen() {
            proc_files::each_living(|pid| shared.add_mappings(pid))?;
        }
        Ok(bytes.saturating_add(shared.bytes()))
    }
}

/// Decides whether something is over its limit. What could not be counted is.
fn decide(usage: Result<UsageTotals, ProcReadError>, watch: UsageLimits) -> ExceededLimit {
    let usage = match usage {
        Ok(usage) => usage,
        Err(ProcReadError::TooMany) => return ExceededLimit::TooMany,
        Err(ProcReadError::Gone | ProcReadError::Failed(_)) => return ExceededLimit::Uncounted,
    };
    let over = |used, limit| limit > 0 && used > limit;
    if over(usage.memory_bytes, watch.memory_bytes) {
        ExceededLimit::Memory
    } else if over(usage.processes, watch.processes) {
        ExceededLimit::Processes
    } else if over(usage.disk_bytes, watch.disk_bytes) {
        ExceededLimit::Disk
    } else {
        ExceededLimit::Nothing
    }
}

/// Does something, and measures how many microseconds it takes.
fn timed<T>(act: impl FnOnce() -> T) -> (T, i64) {
    let begin = now_micros();
    let result = act();
    (result, now_micros().saturating_sub(begin))
}

/// The pause after a round that took so long and may take this share of the time.
fn interval(round_micros: i64, share: i64) -> i64 {
    (round_micros.saturating_mul(share) / 1000).clamp(MIN_INTERVAL_MILLIS, MAX_INTERVAL_MILLIS)
}

/// Bytes that a process has written, and the children it has collected. A process that ends has no
/// memory any more, and then its files belong to root: what it wrote is counted when it is
/// collected.
fn written(pid: u32) -> Result<u64, ProcReadError> {
    let written = |text: &[u8]| proc_files::number_after(text, b"\nwrite_bytes: ");
    match proc_files::number(pid, b"/io", written) {
        Err(ProcReadError::Failed(libc::EACCES | libc::EPERM)) if is_ending(pid) => Ok(0),
        result => result,
    }
}

/// Tells whether a process has given up its memory already.
fn is_ending(pid: u32) -> bool {
    match proc_files::number(pid, b"/statm", |text| proc_files::nth_number(text, 0)) {
        Ok(size) => size == 0,
        Err(unread) => unread == ProcReadError::Gone,
    }
}

/// Bytes that those have written whom PID 1 has collected, orphans among them, and whom they have.
fn written_by_collected() -> u64 {
    usage_of_collected().ru_oublock.cast_unsigned() * BLOCK_BYTES
}

fn page_bytes() -> u64 {
    // SAFETY: takes and gives a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(page).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_counted_is_over_the_limit() {
        let watch = UsageLimits { processes: 5, ..UsageLimits::default() };
        assert_eq!(decide(Err(ProcReadError::Failed(libc::EMFILE)), watch), ExceededLimit::Uncounted);
        assert_eq!(decide(Err(ProcReadError::Gone), watch), ExceededLimit::Uncounted);
        assert_eq!(decide(Err(ProcReadError::TooMany), watch), ExceededLimit::TooMany);
        assert_eq!(
            decide(Ok(UsageTotals { processes: 5, ..UsageTotals::default() }), watch),
            ExceededLimit::Nothing
        );
        assert_eq!(
            decide(Ok(UsageTotals { processes: 6, ..UsageTotals::default() }), watch),
            ExceededLimit::Processes
        );
    }

    #[test]
    fn only_what_is_limited_can_be_over() {
        let usage = UsageTotals { memory_bytes: 9, processes: 9, disk_bytes: 9 };
        assert_eq!(decide(Ok(usage), UsageLimits::default()), ExceededLimit::Nothing);
        assert_eq!(
            decide(Ok(usage), UsageLimits { memory_bytes: 8, ..UsageLimits::default() }),
            ExceededLimit::Memory
        );
        assert_eq!(
            decide(Ok(usage), UsageLimits { disk_bytes: 8, ..UsageLimits::default() }),
            ExceededLimit::Disk
        );
    }

    #[test]
    fn counting_takes_no_more_than_its_share_of_the_time() {
        let interval_at = |share| [0, 100, 1000, 4000, 60_000].map(|took| interval(took, share));
        assert_eq!(interval_at(SHARE_OF_TIME), [5, 5, 50, 200, 250]);
        assert_eq!(interval_at(SHARE_NEAR_A_LIMIT), [5, 5, 5, 20, 250]);
        let watch = UsageLimits { memory_bytes: 100, ..UsageLimits::default() };
        let near = |memory_bytes| UsageTotals { memory_bytes, processes: 9, disk_bytes: 9 }.is_near(watch);
        assert!(!near(50) && near(51));
    }
}
