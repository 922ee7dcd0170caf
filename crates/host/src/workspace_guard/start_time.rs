//! Start times of commands, and the changes that a command may have made.

use std::time::{Duration, Instant, SystemTime};

use windlass_files::{Change, WorkspaceScan};

/// Resolution of the kernel's clock for file times, and of file systems that keep whole seconds or
/// two.
const CLOCK_STEP: Duration = Duration::from_millis(20);
const COARSE_CLOCK_STEP: Duration = Duration::from_millis(2100);

/// The start of a command by two clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTime {
    pub(super) realtime: SystemTime,
    pub(super) monotonic: Instant,
}

impl StartTime {
    pub(super) fn now() -> Self {
        Self { realtime: SystemTime::now(), monotonic: Instant::now() }
    }

    /// Lists the changes between two scans that may have been made since then.
    pub(super) fn changes_made<'a>(
        &self,
        (before, after): (&'a WorkspaceScan, &'a WorkspaceScan),
        is_trusted: bool,
    ) -> Vec<Change<'a>> {
        let changes = before.changes_to(after).into_iter();
        changes.filter(|change| self.may_have_made(change, after, is_trusted)).collect()
    }

    /// Tells whether a change may have been made since then. Earlier changes are the user's own.
    /// The ctime cannot be set, so an older one is proof, unless the clock was set back.
    fn may_have_made(&self, change: &Change<'_>, after: &WorkspaceScan, is_trusted: bool) -> bool {
        if !is_trusted || self.was_set_back() {
            return true;
        }
        let node = match change.after {
            Some(node) => Some(node),
            None => change.path.parent().and_then(|above| after.find(above)),
        };
        node.is_none_or(|node| self.is_before(node.stat.ctime_ns))
    }

    /// Returns true if a ctime may be later than the start. An unknown time may be.
    pub(super) fn is_before(&self, ctime_ns: i64) -> bool {
        if ctime_ns <= 0 {
            return true;
        }
        let step = if ctime_ns % 1_000_000_000 == 0 { COARSE_CLOCK_STEP } else { CLOCK_STEP };
        let begun =
            self.realtime.checked_sub(step).and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        begun.is_none_or(|begun| i64::try_from(begun.as_nanos()).is_ok_and(|begun| ctime_ns >= begun))
    }

    fn was_set_back(&self) -> bool {
        let expected = self.realtime.checked_add(self.monotonic.elapsed());
        expected.is_none_or(|expected| SystemTime::now() + CLOCK_STEP < expected)
    }
}
