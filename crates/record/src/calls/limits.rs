//! Limits on the index. Calls that are too old or too many are deleted, some at a time.

use std::time::Duration;

use jiff::Timestamp;

use super::{CallIndexError, Calls, error::SqliteResultExt, store::pragma};

/// Limits on the age and the size of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Maximum age of a call.
    pub days: u32,
    /// Maximum size of the file.
    pub megabytes: u32,
}

impl Default for Keep {
    fn default() -> Self {
        Self { days: 90, megabytes: 200 }
    }
}

/// Maximum number of calls that are deleted at once, so that no caller has to wait. If a session
/// makes more calls than this, the index may exceed its limits for a while.
const MAX_CALLS_AT_ONCE: u32 = 5000;
/// Maximum number of pages that are freed at once.
const MAX_PAGES_AT_ONCE: u32 = 2000;

impl Keep {
    /// Returns the oldest time that is kept.
    pub(super) fn oldest(self, now: Timestamp) -> Timestamp {
        let age = Duration::from_secs(u64::from(self.days) * 24 * 60 * 60);
        now.checked_sub(age).unwrap_or(Timestamp::MIN)
    }
}

impl Calls {
    /// Deletes calls before `oldest`, or the oldest calls if the index is too large. Also deletes
    /// unused files.
    pub(super) fn delete_old(&mut self, oldest: Timestamp) -> Result<(), CallIndexError> {
        let path = self.path.clone();
        self.try_delete_old(oldest.as_millisecond()).at_path(&path)
    }

    fn try_delete_old(&mut self, oldest: i64) -> rusqlite::Result<()> {
        let is_too_large = self.used_bytes()? > i64::from(self.keep.megabytes) * 1_000_000;
        let some = "SELECT id FROM calls ORDER BY time LIMIT ?1";
        // Ordered by time: while the oldest call is young enough, this reads one row.
        let deleted = if is_too_large {
            self.db.execute(&format!("DELETE FROM calls WHERE id IN ({some})"), [MAX_CALLS_AT_ONCE])?
        } else {
            let old = "SELECT id FROM calls WHERE time < ?1 ORDER BY time LIMIT ?2";
            self.db.execute(&format!("DELETE FROM calls WHERE id IN ({old})"), (oldest, MAX_CALLS_AT_ONCE))?
        };
        let unused = "changed < ?1 AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.file = files.id)";
        let files = self.db.execute(&format!("DELETE FROM files WHERE {unused}"), [oldest])?;
        if deleted + files > 0 {
            self.db.execute_batch(&format!("PRAGMA incremental_vacuum({MAX_PAGES_AT_ONCE})"))?;
        }
        Ok(())
    }

    /// Returns the size of the pages in use.
    fn used_bytes(&self) -> rusqlite::Result<i64> {
        let pages = pragma(&self.db, "page_count")? - pragma(&self.db, "freelist_count")?;
        Ok(pages * pragma(&self.db, "page_size")?)
    }
}
