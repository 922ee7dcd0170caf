//! Changes to files: all of them or none, and so that they can be undone.

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

/// One thing to do with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, relative to the grant's working directory.
    pub path: PathBuf,
    /// What must be there for the change to be made.
    pub expected: Expected,
    /// What to do.
    pub action: Action,
}

/// What must be at a path for a change to be made. Compared by content, never by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Absent,
    /// A file with just this in it: what was read when the change was made up.
    Content(Arc<[u8]>),
}

/// What to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Makes it, or puts this in place of what it holds. A file that exists keeps its mode.
    Write(Vec<u8>),
    /// Puts back what it was before a change: the content, the time of its modification, and of mode, owner and
    /// extended attributes whatever the change altered. What became of the others since is kept.
    Restore {
        /// What it was.
        before: Version,
        /// What the change made of it; absent if it was removed.
        after: Option<Version>,
    },
    /// Removes it, and directories that were made for it, from the outside in, unless something else is in them.
    Delete {
        /// Absolute, and without links.
        folders: Vec<PathBuf>,
    },
    /// Moves it, in place of whatever file is there, and puts this in it. It keeps its mode.
    Move {
        /// Where to.
        to: PathBuf,
        /// What it holds then.
        bytes: Vec<u8>,
    },
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Absolute, and without links.
    pub path: PathBuf,
    /// What it was; absent if it was made.
    pub before: Option<Version>,
    /// What it is; absent if it was removed.
    pub after: Option<Version>,
    /// How it is; absent if it was removed.
    pub stamp: Option<Stamp>,
    /// Directories that were made for it, from the outside in.
    pub folders: Vec<PathBuf>,
    /// How many other names (hard links) it had. They keep the old content.
    pub other_names: u64,
}

/// A file at some time.
#[derive(Clone, PartialEq, Eq)]
pub struct Version {
    /// What it holds.
    pub bytes: Arc<[u8]>,
    /// Its permission bits.
    pub mode: u32,
    /// Its user and group. Absent where an earlier version did not keep them.
    pub owner: Option<(u32, u32)>,
    /// When it was modified last: seconds since 1970, negative before, and nanoseconds beyond them. Absent where an
    /// earlier version did not keep it.
    pub modified: Option<(i64, i64)>,
    /// What else it has.
    pub attributes: Attributes,
}

/// Extended attributes of a file by their names, access lists among them.
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
    /// What it holds before.
    pub before: Option<HashedContent>,
    /// What it holds after.
    pub after: Option<HashedContent>,
}

/// The names under which an archive keeps the contents of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptPair {
    /// What it held before.
    pub before: Option<String>,
    /// What it holds after.
    pub after: Option<String>,
}

/// An edit for the log of an archive.
#[derive(Debug, Clone, Copy)]
pub struct EditRecord<'a> {
    /// The name of the transaction, which no other has.
    pub transaction: &'a str,
    /// The call that changed the files.
    pub call: &'a CallId,
    /// The files.
    pub files: &'a [Changed],
    /// Their contents, in the same order.
    pub kept: &'a [KeptPair],
}

/// Keeps what files held before a tool changed them. Implemented by `record`, called by `files` while a change is made and
/// after a crash. A change counts from the moment its line is in the edit log, and not before.
pub trait Archive: Send + Sync + fmt::Debug {
    /// Keeps contents, before any file is changed. When it returns, they survive a loss of power.
    fn keep(&self, contents: &[ContentPair]) -> io::Result<Vec<KeptPair>>;

    /// Appends an edit to the log: the commit point. When it returns, the line survives a loss of power. After an error
    /// [`is_logged`](Self::is_logged) says whether the line is there nevertheless.
    fn log(&self, edit: &EditRecord<'_>) -> io::Result<()>;

    /// Tests whether a transaction is in an edit log, which may be another one of the same user. A line that is found is
    /// flushed before this returns.
    fn is_logged(&self, log: &Path, transaction: &str) -> io::Result<bool>;

    /// The file of the edit log, as [`is_logged`](Self::is_logged) takes it.
    fn log_path(&self) -> PathBuf;

    /// Keeps what the model was shown, for whoever goes on with the session. That may be nobody.
    fn see(&self, sight: &Sight) -> io::Result<()>;

    /// What the model was shown before this process began, the oldest first.
    fn seen(&self) -> io::Result<Vec<Sight>>;

    /// A directory for notes about changes that are being made, the same for all processes of a user.
    fn notes(&self) -> &Path;
}

/// Why files were not changed. Nothing was, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A file cannot be reached.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not what it was when the change was made up.
    #[error(
        "`{path}` was changed meanwhile by someone else; nothing was written. Read it again, then try again"
    )]
    Stale {
        /// The file.
        path: PathBuf,
    },
    /// Two changes are about one file.
    #[error("multiple operations target {path}")]
    Twice {
        /// The file.
        path: PathBuf,
    },
    /// One change makes a file where another needs a directory.
    #[error(
        "cannot make `{path}`: `{file}` is a file in the same call; a path cannot be both a file and a directory"
    )]
    Beneath {
        /// What cannot be made.
        path: PathBuf,
        /// What is in its way.
        file: PathBuf,
    },
    /// Too large to be changed by a tool, and kept for an undo.
    #[error(
        "`{path}` has {bytes} bytes, more than the {limit_bytes} a file tool may change; use a command instead"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it is.
        bytes: u64,
        /// What the limit is.
        limit_bytes: u64,
    },
    /// The disk has no room for the new contents.
    #[error(
        "no room on the disk of `{path}`: {needed_bytes} bytes are needed and {free_bytes} are free; nothing was written. \
         Free some space, or write less"
    )]
    NoRoom {
        /// The first of the files there.
        path: PathBuf,
        /// How much all files there would take.
        needed_bytes: u64,
        /// How much there is.
        free_bytes: u64,
    },
    /// The system said no on the way. Everything is as it was.
    #[error("cannot {step} `{path}`: {source}; nothing was changed")]
    Failed {
        /// What could not be done.
        step: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system said no on the way, and again when it was to be taken back.
    #[error(
        "cannot {step} `{path}`: {source}; `{left}` could not be put back and is tried again at the next start"
    )]
    Stuck {
        /// What could not be done.
        step: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// The file that is not as it was.
        left: PathBuf,
    },
    /// The system said no on the way. Everything was taken back, but for a file that someone else changed meanwhile.
    #[error(
        "cannot {step} `{path}`: {source}; `{left}` was changed by someone else meanwhile and is left as it is{}",
        before.as_ref().map(|before| format!("; what it was before is in `{}`", before.display())).unwrap_or_default()
    )]
    Conflict {
        /// What could not be done.
        step: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// The file that someone else changed.
        left: PathBuf,
        /// Where its content from before the change is.
        before: Option<PathBuf>,
    },
}
