//! The index of calls for `stats`, `history` and tool selection: one SQLite file below the home
//! directory.
//!
//! The index can be deleted at any time. Everything in it comes from the session files: numbers,
//! names, hashes, and the offsets of the records. It has no contents of calls, so it exposes no
//! secret that is not elsewhere.
//!
//! [`Calls::catch_up`] reads the lines that were added to session files. During a session
//! [`IndexedSession`] does that in the background, otherwise the next process that queries the
//! index. Every file is read on from where the last committed transaction ended. So no call is
//! counted twice, and none is lost when a process ends.

mod call;
mod error;
mod indexed_session;
mod indexer;
mod limits;
mod requests;
mod schema;
mod stats;
mod store;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

pub use call::{Call, CallFilter, CallRecord};
pub use error::CallIndexError;
pub use indexed_session::IndexedSession;
pub use limits::Keep;
pub use requests::SuccessfulRequest;
pub use stats::{CallGroup, CallGrouping, ToolReliability};

use crate::{ChainHead, SessionError, ThreadFolder, session_paths};
use error::SqliteResultExt;

/// Maximum time to wait for another process that has locked the index.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

/// The index of calls, open.
#[derive(Debug)]
pub struct Calls {
    db: Connection,
    home: PathBuf,
    path: PathBuf,
    keep: Keep,
}

impl Calls {
    /// Opens the index below a home directory, and creates it if there is none. An unusable index
    /// is left as it is.
    pub fn open(home: &Path, keep: Keep) -> Result<Self, CallIndexError> {
        Self::open_with_timeout(home, keep, MAX_LOCK_WAIT)
    }

    fn open_with_timeout(home: &Path, keep: Keep, max_wait: Duration) -> Result<Self, CallIndexError> {
        let path = Self::index_path(home);
        let db = store::open(&path, max_wait)?;
        Ok(Self { db, home: home.to_owned(), path, keep })
    }

    /// Creates an index in memory, for when the one on disk cannot be used or nothing is to be
    /// kept.
    pub fn in_memory(home: &Path, keep: Keep) -> Result<Self, CallIndexError> {
        let path = PathBuf::from(":memory:");
        let db = store::prepare(Connection::open_in_memory().at_path(&path)?, &path)?;
        Ok(Self { db, home: home.to_owned(), path, keep })
    }

    /// Indexes all session files again. A damaged index is renamed first; its new name is returned.
    pub fn rebuild(home: &Path, keep: Keep) -> Result<(Self, Option<PathBuf>), CallIndexError> {
        match Self::open(home, keep).and_then(Self::rescan) {
            Ok(calls) => Ok((calls, None)),
            Err(CallIndexError::Damaged { path }) => {
                let aside = store::put_aside(&path)?;
                let mut calls = Self::open(home, keep)?;
                calls.catch_up()?;
                Ok((calls, Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes all calls and reads them again. The heads of files stay, because otherwise a
    /// truncated file would not be noticed.
    fn rescan(mut self) -> Result<Self, CallIndexError> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate).at_path(&self.path)?;
        let start = ChainHead::start();
        all.execute("DELETE FROM calls", []).at_path(&self.path)?;
        all.execute(
            "UPDATE files SET asked = 0, last_turn_at = NULL, read_lines = 0, read_bytes = 0, read_link = ?1",
            [start.link.to_string()],
        )
        .at_path(&self.path)?;
        all.commit().at_path(&self.path)?;
        self.catch_up()?;
        Ok(self)
    }

    /// Checks the index below a home directory, without changing it. A missing one has no fault.
    pub fn check(home: &Path) -> Result<(), CallIndexError> {
        let path = Self::index_path(home);
        if !path.exists() {
            return Ok(());
        }
        let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).at_path(&path)?;
        db.busy_timeout(MAX_LOCK_WAIT).at_path(&path)?;
        let found: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).at_path(&path)?;
        if found == "ok" { Ok(()) } else { Err(CallIndexError::Damaged { path }) }
    }

    /// Returns the path of the index of a home directory, which need not exist.
    pub fn index_path(home: &Path) -> PathBuf {
        home.join("calls.sqlite")
    }

    /// Reads the lines that were added to the files of sessions and calls, and deletes calls that
    /// are too old.
    pub fn catch_up(&mut self) -> Result<(), CallIndexError> {
        self.catch_up_while(|| true)
    }

    /// Does the same, file by file, while `go_on` returns true.
    fn catch_up_while(&mut self, go_on: impl Fn() -> bool) -> Result<(), CallIndexError> {
        let oldest = self.keep.oldest(Timestamp::now());
        let known = self.read_so_far()?;
        for folder in [ThreadFolder::Sessions, ThreadFolder::Calls] {
            for file in session_paths::newest_first(&self.home, folder)? {
                if !go_on() {
                    return Ok(());
                }
                let Some((bytes, changed)) = size(&file.path)? else { continue };
                let thread = file.id.to_string();
                if changed >= oldest && known.get(&thread) != Some(&bytes) {
                    self.read(folder, &thread, &file.path)?;
                }
            }
        }
        self.delete_old(oldest)
    }

    /// Deletes the calls of a thread whose file was removed.
    pub fn forget(&mut self, thread: &str) -> Result<(), CallIndexError> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate).at_path(&self.path)?;
        all.execute("DELETE FROM calls WHERE file IN (SELECT id FROM files WHERE thread = ?1)", [thread])
            .at_path(&self.path)?;
        all.execute("DELETE FROM files WHERE thread = ?1", [thread]).at_path(&self.path)?;
        all.commit().at_path(&self.path)
    }

    /// Returns the last known head of a file.
    pub fn head(&self, thread: &str) -> Result<Option<ChainHead>, CallIndexError> {
        store::head(&self.db, thread).at_path(&self.path)
    }
}

/// Returns the size and modification time of a file; none if it is gone or not a regular file.
fn size(path: &Path) -> Result<Option<(u64, Timestamp)>, SessionError> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => Ok(None),
        Ok(about) => {
            let changed = about.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
            Ok(Some((about.len(), changed.unwrap_or(Timestamp::MAX))))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(crate::error::cannot("look at", path)(error)),
    }
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

#[cfg(test)]
mod tests;
