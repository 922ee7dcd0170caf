//! Changing files: all of it or nothing, and so that it can be undone.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{CallId, FileError, Sight, Stamp};

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
    /// Puts back what it was, its mode too.
    Restore(Version),
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

/// Keeps what files held before a tool changed them. Implemented by `record`, called by `host` while a change is made: if
/// it cannot be kept, the change is taken back.
pub trait Archive: Send + Sync + fmt::Debug {
    /// Keeps a change. When it returns, the change survives the death of this process.
    fn keep(&self, call: &CallId, files: &[Changed]) -> io::Result<()>;

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
}
