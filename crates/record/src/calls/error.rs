//! Why the index of calls cannot be used.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::SessionError;

/// Why the index of calls cannot be used. Nothing is lost by it: the session files are the truth.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    /// Someone else had it to themselves for too long.
    #[error(
        "the index of calls `{path}` is in use by another process; it is brought up to date the next time"
    )]
    Locked {
        /// The index.
        path: PathBuf,
    },
    /// It is no database, or a broken one.
    #[error(
        "the index of calls `{path}` is damaged and left as it is; `windlass stats --rebuild` makes a new one"
    )]
    Damaged {
        /// The index.
        path: PathBuf,
    },
    /// A newer version of Windlass has made it.
    #[error(
        "the index of calls `{path}` is of a newer version of Windlass ({found}, and this one knows {known}) and left as it is; \
         use that version, or move the file away"
    )]
    Newer {
        /// The index.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The system said no.
    #[error("cannot use the index of calls `{path}`: {problem}")]
    Unusable {
        /// The index.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// A session file cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Turns a database's error into ours.
pub(super) trait Attempt<T> {
    /// What was attempted, was so on this file.
    fn at(self, path: &Path) -> Result<T, CallsError>;
}

impl<T> Attempt<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Result<T, CallsError> {
        self.map_err(|error| {
            let path = path.to_owned();
            match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CallsError::Locked { path },
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => CallsError::Damaged { path },
                _ => CallsError::Unusable { path, problem: error.to_string() },
            }
        })
    }
}
