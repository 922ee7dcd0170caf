//! Errors of the index of calls.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::SessionError;

/// The error of an operation on the index of calls. It costs no data: the index can be rebuilt from
/// the session files.
#[derive(Debug, thiserror::Error)]
pub enum CallIndexError {
    /// Another process held the lock for too long.
    #[error(
        "the index of calls `{path}` is in use by another process; it is brought up to date the next time"
    )]
    Locked {
        /// The index.
        path: PathBuf,
    },
    /// The file is not a database, or a damaged one.
    #[error(
        "the index of calls `{path}` is damaged and left as it is; `windlass stats --rebuild` makes a new one"
    )]
    Damaged {
        /// The index.
        path: PathBuf,
    },
    /// A newer version of Windlass created it.
    #[error(
        "the index of calls `{path}` is of a newer version of Windlass ({found}, and this one knows {known}) and left as it is; \
         use that version, or move the file away"
    )]
    Newer {
        /// The index.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The newest version that is supported.
        known: i64,
    },
    /// A system call or a query failed.
    #[error("cannot use the index of calls `{path}`: {problem}")]
    Unusable {
        /// The index.
        path: PathBuf,
        /// The error message.
        problem: String,
    },
    /// A session file cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Turns a database error into a [`CallIndexError`].
pub(super) trait SqliteResultExt<T> {
    /// Adds the path of the index to an error.
    fn at_path(self, path: &Path) -> Result<T, CallIndexError>;
}

impl<T> SqliteResultExt<T> for rusqlite::Result<T> {
    fn at_path(self, path: &Path) -> Result<T, CallIndexError> {
        self.map_err(|error| {
            let path = path.to_owned();
            match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CallIndexError::Locked { path },
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    CallIndexError::Damaged { path }
                }
                _ => CallIndexError::Unusable { path, problem: error.to_string() },
            }
        })
    }
}
