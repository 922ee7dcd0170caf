//! The index of calls: what `stats`, `history` and learning ask, in one SQLite file below the home directory.
//!
//! It holds nothing that is not in the session files, and no content of theirs: numbers, names, hashes, and where in which
//! file the rest is. So it can be thrown away at any time, and no secret can be in it that is not elsewhere. It is brought up
//! to date by reading what session files have gained since ([`Calls::catch_up`]), by whoever gets to it first: while a session
//! goes on by [`Followed`], otherwise by whoever asks. Every file is read on from where the last reader's transaction ended, so
//! nothing is counted twice and no end of a process can lose anything.

mod bounds;
mod call;
mod error;
mod follow;
mod read;
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

pub use bounds::Keep;
pub use call::{Call, Recorded, Wanted};
pub use error::CallsError;
pub use follow::Followed;
pub use requests::Asked;
pub use stats::{By, Group, Standing};

use crate::{Folder, Head, SessionError, place};
use error::Attempt;

/// How long another process may keep the index to itself before it is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The index of calls, open.
#[derive(Debug)]
pub struct Calls {
    db: Connection,
    home: PathBuf,
    path: PathBuf,
    keep: Keep,
}

impl Calls {
    /// Opens the index below a home directory; makes it if there is none. What cannot be used is left as it is.
    pub fn open(home: &Path, keep: Keep) -> Result<Self, CallsError> {
        Self::open_within(home, keep, PATIENCE)
    }

    fn open_within(home: &Path, keep: Keep, patience: Duration) -> Result<Self, CallsError> {
        let path = Self::place(home);
        let db = store::open(&path, patience)?;
        Ok(Self { db, home: home.to_owned(), path, keep })
    }

    /// An index of its own, in memory: for when the one on disk cannot be used, or there is nothing to keep.
    pub fn in_memory(home: &Path, keep: Keep) -> Result<Self, CallsError> {
        let path = PathBuf::from(":memory:");
        let db = store::prepared(Connection::open_in_memory().at(&path)?, &path)?;
        Ok(Self { db, home: home.to_owned(), path, keep })
    }

    /// Counts everything anew. A damaged index is put aside first; its new name is returned.
    pub fn rebuild(home: &Path, keep: Keep) -> Result<(Self, Option<PathBuf>), CallsError> {
        match Self::open(home, keep).and_then(Self::emptied) {
            Ok(calls) => Ok((calls, None)),
            Err(CallsError::Damaged { path }) => {
                let aside = store::put_aside(&path)?;
                let mut calls = Self::open(home, keep)?;
                calls.catch_up()?;
                Ok((calls, Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets all calls and reads them again. Where files once ended stays known: else one that was cut would pass.
    fn emptied(mut self) -> Result<Self, CallsError> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate).at(&self.path)?;
        let start = Head::start();
        all.execute("DELETE FROM calls", []).at(&self.path)?;
        all.execute(
            "UPDATE files SET asked = 0, last_turn_at = NULL, read_lines = 0, read_bytes = 0, read_link = ?1",
            [start.link.to_string()],
        )
        .at(&self.path)?;
        all.commit().at(&self.path)?;
        self.catch_up()?;
        Ok(self)
    }

    /// Where the index of a home directory is, whether or not there is one.
    pub fn place(home: &Path) -> PathBuf {
        home.join("calls.sqlite")
    }

    /// Reads what files of sessions and calls have gained, and forgets what is too old.
    pub fn catch_up(&mut self) -> Result<(), CallsError> {
        self.catch_up_while(|| true)
    }

    /// The same, one file after the other, as long as there is time.
    fn catch_up_while(&mut self, go_on: impl Fn() -> bool) -> Result<(), CallsError> {
        let oldest = self.keep.oldest(Timestamp::now());
        let known = self.read_so_far()?;
        for folder in [Folder::Sessions, Folder::Calls] {
            for file in place::newest_first(&self.home, folder)? {
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
        self.forget(oldest)
    }

    /// Where a file once ended, as far as anyone has looked.
    pub fn head(&self, thread: &str) -> Result<Option<Head>, CallsError> {
        store::head(&self.db, thread).at(&self.path)
    }
}

/// How large a file is and when it was changed last; none if it is gone, or something else.
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
