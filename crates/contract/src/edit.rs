//! Changes to files. A set of changes is atomic and can be undone.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    CallId,
    files::{FileError, Sight, Stamp},
};

/// One change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, relative to the grant's working directory.
    pub path: PathBuf,
    /// State of the path that the change requires.
    pub expected: Expected,
    /// Action to take.
    pub action: Action,
}

/// State of a path that a change requires. Compared by content, never by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// No file.
    Absent,
    /// A file with exactly this content: the one that was read when the change was planned.
    Content(Arc<[u8]>),
}

/// Action on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Creates the file or replaces its content. An existing file keeps its mode.
    Write(Vec<u8>),
    /// Restores the state before a change: content and modification time, and of mode, owner and
    /// extended attributes those that the change altered. Later changes to the others are kept.
    Restore {
        /// State to restore.
        before: Version,
        /// State after the change; absent if the file was removed.
        after: Option<Version>,
    },
    /// Removes the file, and the directories that were created for it, unless they contain
    /// something else.
    Delete {
        /// Absolute and without links, the outermost first.
        folders: Vec<PathBuf>,
    },
    /// Moves the file, replaces any file at the target, and sets its content. It keeps its mode.
    Move {
        /// Target path.
        to: PathBuf,
        /// Its content after the move.
        bytes: Vec<u8>,
    },
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Absolute, and without links.
    pub path: PathBuf,
    /// State before the change; absent if the file was created.
    pub before: Option<Version>,
    /// State after the change; absent if the file was removed.
    pub after: Option<Version>,
    /// Stamp after the change; absent if the file was removed.
    pub stamp: Option<Stamp>,
    /// Directories that were created for it, the outermost first.
    pub folders: Vec<PathBuf>,
    /// Number of other names (hard links) it had. They keep the old content.
    pub other_names: u64,
}

/// A file at some time.
#[derive(Clone, PartialEq, Eq)]
pub struct Version {
    /// Its content.
    pub bytes: Arc<[u8]>,
    /// Its permission bits.
    pub mode: u32,
    /// Its user and group. Absent if an earlier version of Windlass did not record them.
    pub owner: Option<(u32, u32)>,
    /// Last modification: seconds since 1970, negative before, and nanoseconds. Absent if an
    /// earlier version of Windlass did not record it.
    pub modified: Option<(i64, i64)>,
    /// Its extended attributes.
    pub attributes: Attributes,
}

/// Extended attributes of a file by name, including access control lists.
pub type Attributes = BTreeMap<String, Vec<u8>>;

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, mode {:o}", self.bytes.len(), self.mode)
    }
}

/// A content and its SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub struct HashedContent {
    /// The content.
    pub bytes: Arc<[u8]>,
    /// Its digest.
    pub sha256: [u8; 32],
}

impl fmt::Debug for HashedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

/// The contents of a file before and after a change. Absent where there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPair {
    /// Content before.
    pub before: Option<HashedContent>,
    /// Content after.
    pub after: Option<HashedContent>,
}

/// The names under which an archive keeps the contents of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptPair {
    /// Content before.
    pub before: Option<String>,
    /// Content after.
    pub after: Option<String>,
}

/// An edit for the log of an archive.
#[derive(Debug, Clone, Copy)]
pub struct EditRecord<'a> {
    /// Unique name of the transaction.
    pub transaction: &'a str,
    /// The call that changed the files.
    pub call: &'a CallId,
    /// The files.
    pub files: &'a [Changed],
    /// Their contents, in the same order.
    pub kept: &'a [KeptPair],
}

/// Stores the contents that files had before a tool changed them. Implemented by `record`, called
/// by `files` during a change and after a crash. A change is committed once its line is in the edit
/// log, and not before.
pub trait Archive: Send + Sync + fmt::Debug {
    /// Stores contents, before any file is changed. When it returns, they survive a loss of power.
    fn keep(&self, contents: &[ContentPair]) -> io::Result<Vec<KeptPair>>;

    /// Appends an edit to the log: the commit point. When it returns, the line survives a loss of
    /// power. After an error [`is_logged`](Self::is_logged) tells whether the line is there
    /// nevertheless.
    fn log(&self, edit: &EditRecord<'_>) -> io::Result<()>;

    /// Returns true if a transaction is in an edit log, which may be another log of the same user.
    /// A line that is found is flushed before this returns.
    fn is_logged(&self, log: &Path, transaction: &str) -> io::Result<bool>;

    /// Returns the path of the edit log, as [`is_logged`](Self::is_logged) takes it.
    fn log_path(&self) -> PathBuf;

    /// Records a file that the model was shown, for the case that the session is resumed.
    fn see(&self, sight: &Sight) -> io::Result<()>;

    /// Returns the files that the model was shown before this process began, the oldest first.
    fn seen(&self) -> io::Result<Vec<Sight>>;

    /// Returns a directory for notes about changes in progress. It is the same for all processes of
    /// a user.
    fn notes(&self) -> &Path;
}

/// Reason that files were not changed. Nothing was changed unless the message says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A file cannot be reached.
    #[error(transparent)]
    File(#[from] FileError),
    /// It changed since the change was planned.
    #[error(
        "`{path}` was changed meanwhile by someone else; nothing was written. Read it again, then try again"
    )]
    Stale {
        /// The file.
        path: PathBuf,
    },
    /// Two changes target one file.
    #[error("multiple operations target {path}")]
    Twice {
        /// The file.
        path: PathBuf,
    },
    /// One change creates a file where another needs a directory.
    #[error(
        "cannot make `{path}`: `{file}` is a file in the same call; a path cannot be both a file and a directory"
    )]
    Beneath {
        /// Path that cannot be created.
        path: PathBuf,
        /// File in its way.
        file: PathBuf,
    },
    /// It is too large for a tool to change and for the undo archive to store.
    #[error(
        "`{path}` has {bytes} bytes, more than the {limit_bytes} a file tool may change; use a command instead"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The disk has no room for the new contents.
    #[error(
        "no room on the disk of `{path}`: {needed_bytes} bytes are needed and {free_bytes} are free; nothing was written. \
         Free some space, or write less"
    )]
    NoRoom {
        /// First of the files on that disk.
        path: PathBuf,
        /// Space that all files on that disk would take.
        needed_bytes: u64,
        /// Space that is free.
        free_bytes: u64,
    },
    /// The system reported an error, and every file is as it was before.
    #[error("cannot {step} `{path}`: {source}; nothing was changed")]
    Failed {
        /// Step that failed.
        step: &'static str,
        /// File of that step.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system reported an error, and another one when the change was reverted.
    #[error("cannot {step} `{path}`: {source}; `{left}` could not be restored; the next start tries again")]
    Stuck {
        /// Step that failed.
        step: &'static str,
        /// File of that step.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// File that could not be restored.
        left: PathBuf,
    },
    /// The system reported an error. All files were restored, except one that someone else changed
    /// meanwhile.
    #[error(
        "cannot {step} `{path}`: {source}; `{left}` was changed by someone else meanwhile and is left as it is{}",
        before.as_ref().map(|before| format!("; its earlier content is in `{}`", before.display())).unwrap_or_default()
    )]
    Conflict {
        /// Step that failed.
        step: &'static str,
        /// File of that step.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// File that someone else changed.
        left: PathBuf,
        /// File with the content before the change.
        before: Option<PathBuf>,
    },
}
