//! How much the index may keep: calls that are too old, or too many, are forgotten, some at a time.

use std::time::Duration;

use jiff::Timestamp;

use super::{Calls, CallsError, error::Attempt, store::pragma};

/// How long and how much the index keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Calls for so many days.
    pub days: u32,
    /// At most so large a file.
    pub megabytes: u32,
}

impl Default for Keep {
    fn default() -> Self {
        Self { days: 90, megabytes: 200 }
    }
}

/// So many calls are forgotten at once, so that nobody waits for it. A session that makes more calls than this in the time of a
/// session 90 days ago falls behind for a while, which costs some space.
const AT_ONCE: u32 = 5000;
/// So many pages are given back at once.
const PAGES_AT_ONCE: u32 = 2000;

impl Keep {
    /// What is older is not kept.
    pub(super) fn oldest(self, now: Timestamp) -> Timestamp {
        let age = Duration::from_secs(u64::from(self.days) * 24 * 60 * 60);
        now.checked_sub(age).unwrap_or(Timestamp::MIN)
    }
}

impl Calls {
    /// Forgets calls that are older, and the oldest of the others if there are too many; and files nobody has changed since.
    pub(super) fn forget(&mut self, oldest: Timestamp) -> Result<(), CallsError> {
        let path = self.path.clone();
        self.try_to_forget(oldest.as_millisecond()).at(&path)
    }

    fn try_to_forget(&mut self, oldest: i64) -> rusqlite::Result<()> {
        let is_too_large = self.used_bytes()? > i64::from(self.keep.megabytes) * 1_000_000;
        let some = "SELECT id FROM calls ORDER BY time LIMIT ?1";
        // The oldest first: as long as even that is young enough, this looks at one row.
        let forgotten = if is_too_large {
            self.db.execute(&format!("DELETE FROM calls WHERE id IN ({some})"), [AT_ONCE])?
        } else {
            let old = "SELECT id FROM calls WHERE time < ?1 ORDER BY time LIMIT ?2";
            self.db.execute(&format!("DELETE FROM calls WHERE id IN ({old})"), (oldest, AT_ONCE))?
        };
        let unused = "changed < ?1 AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.file = files.id)";
        let files = self.db.execute(&format!("DELETE FROM files WHERE {unused}"), [oldest])?;
        if forgotten + files > 0 {
            self.db.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))?;
        }
        Ok(())
    }

    /// The size of what is in use.
    fn used_bytes(&self) -> rusqlite::Result<i64> {
        let pages = pragma(&self.db, "page_count")? - pragma(&self.db, "freelist_count")?;
        Ok(pages * pragma(&self.db, "page_size")?)
    }
}
