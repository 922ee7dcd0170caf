//! Errors of finding, reading and writing session files.

use std::{io, path::PathBuf};

use windlass_contract::journal::JournalError;

use crate::SessionHolder;

/// The error of an operation on a session file.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The id was not made by [`new_thread_id`](crate::new_thread_id).
    #[error("`{id}` is not a session id; ids are UUIDs of version 7, as printed when a session starts")]
    BadId {
        /// The text that was given as an id.
        id: String,
    },
    /// No file has this id.
    #[error("there is no session `{id}`: `{path}` does not exist")]
    NotFound {
        /// The id.
        id: String,
        /// The path its file would have.
        path: PathBuf,
    },
    /// There is no session at all.
    #[error("there is no session to resume in `{home}`")]
    NoneYet {
        /// The home directory of Windlass.
        home: PathBuf,
    },
    /// No session was started in this directory.
    #[error("no session was started in `{cwd}`; name one by its id to resume it from here")]
    NoneIn {
        /// The directory.
        cwd: PathBuf,
    },
    /// Another process is writing it.
    #[error("the session file `{path}` is in use by {}; end that one first", holder_in_words(holder.as_ref()))]
    Busy {
        /// The file.
        path: PathBuf,
        /// The process, if it is known.
        holder: Option<SessionHolder>,
    },
    /// The path is not a regular file. Reading it might never end.
    #[error("`{path}` is no regular file")]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The first line does not describe a session.
    #[error("`{path}`, line 1: not the beginning of a session ({problem}); the file cannot be resumed")]
    NoMeta {
        /// The file.
        path: PathBuf,
        /// The reason, in a few words.
        problem: String,
    },
    /// The file no longer contains what the index recorded.
    #[error("`{path}` is no longer what was read from it: call `{call}` is not where it was")]
    Changed {
        /// The file.
        path: PathBuf,
        /// The call that was looked for.
        call: String,
    },
    /// A system call failed.
    #[error("cannot {action} `{path}`")]
    Io {
        /// The operation that was tried.
        action: &'static str,
        /// The path it was tried on.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The first line or a repair could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn holder_in_words(holder: Option<&SessionHolder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), SessionHolder::to_string)
}

/// Returns a function for `map_err` that turns a system error into a [`SessionError`].
pub(crate) fn cannot(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> SessionError {
    let path = path.into();
    move |source| SessionError::Io { action, path, source }
}
