//! Why a session could not be begun, found or read.

use std::{io, path::PathBuf};

use windlass_contract::journal::JournalError;

/// Why a session could not be begun, found or read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The id was not made by [`new_thread_id`](crate::new_thread_id).
    #[error("`{id}` is not a session id; ids are UUIDs of version 7, as printed when a session starts")]
    BadId {
        /// What was given.
        id: String,
    },
    /// No file has this id.
    #[error("there is no session `{id}`: `{path}` does not exist")]
    NotFound {
        /// The id.
        id: String,
        /// Where its file would be.
        path: PathBuf,
    },
    /// There is no session at all.
    #[error("there is no session to resume in `{home}`")]
    NoneYet {
        /// The home directory of Windlass.
        home: PathBuf,
    },
    /// No session was started there.
    #[error("no session was started in `{cwd}`; name one by its id to resume it from here")]
    NoneIn {
        /// The directory.
        cwd: PathBuf,
    },
    /// Someone else is writing it.
    #[error("the session file `{path}` is in use by another process; end that one first")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Something else has its name. Reading it might never end.
    #[error("`{path}` is no regular file")]
    NoFile {
        /// The name.
        path: PathBuf,
    },
    /// The file does not say what session it is.
    #[error("`{path}`, line 1: not the beginning of a session ({problem}); the file cannot be resumed")]
    NoMeta {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        problem: String,
    },
    /// The file no longer has what the index says it has.
    #[error("`{path}` is no longer what was read from it: call `{call}` is not where it was")]
    Changed {
        /// The file.
        path: PathBuf,
        /// The call that was looked for.
        call: String,
    },
    /// The system said no.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The first line or a repair could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Turns a system error into ours; for `map_err`.
pub(crate) fn cannot(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> SessionError {
    let path = path.into();
    move |source| SessionError::Io { action, path, source }
}
