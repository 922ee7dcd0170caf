//! Files as a tool may use them.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, CallId, Denial,
    edit::{Change, Changed, CommitError},
};

mod sight;

pub use sight::{Seen, Sight, Since, Stamp};

/// The files of a machine, confined to one [`Grant`](crate::Grant). Implemented by `host` (and by
/// fakes in tests), used by tools through [`Host::files`](crate::Host::files). Paths are relative
/// to the grant's working directory.
///
/// An implementation must not read anything that a confined command could not read, through any
/// name, link or race. No method waits for a pipe or a device, and every result is bounded.
pub trait Files: Send + Sync {
    /// Opens a regular file for reading. The handle stays on the same file even if its name
    /// changes.
    fn open<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Box<dyn OpenFile>, FileError>>;

    /// Lists a directory. Symbolic links are listed, never followed.
    fn list<'a>(
        &'a self,
        listing: &'a Listing,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Listed, FileError>>;

    /// Finds files whose content matches a pattern. Unreadable and binary files are skipped.
    fn search<'a>(
        &'a self,
        search: &'a Search,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Found, FileError>>;

    /// Changes all of the files or none, whatever fails and whenever this process ends. The old
    /// contents are stored under the call's id if there is an archive. A commit that has begun is
    /// finished even if the future is dropped.
    fn commit<'a>(
        &'a self,
        call: &'a CallId,
        changes: Vec<Change>,
    ) -> BoxFuture<'a, Result<Vec<Changed>, CommitError>>;

    /// Records that the model knows a file in this state, because it was shown or wrote it. The
    /// record holds for the session and is kept when it is resumed.
    fn show(&self, seen: Seen<'_>);

    /// Compares a file with the state that was last shown to the model.
    fn since(&self, now: Seen<'_>) -> Since;
}

/// A file that is open for reading.
pub trait OpenFile: Send + Sync + fmt::Debug {
    /// Returns the requested path, made absolute and without `.` and `..`.
    fn path(&self) -> &Path;

    /// Returns the path without links.
    fn real_path(&self) -> &Path;

    /// Returns its stamp at the time it was opened.
    fn stamp(&self) -> Stamp;

    /// Returns its size at the time it was opened.
    fn size_bytes(&self) -> u64 {
        self.stamp().size_bytes
    }

    /// Reads at most this many bytes from an offset. Returns fewer only at the end of the file.
    fn read_at(&self, offset: u64, limit_bytes: usize) -> BoxFuture<'_, Result<Vec<u8>, FileError>>;
}

/// A request to list a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The directory.
    pub path: PathBuf,
    /// Depth to descend to; 1 is the directory itself.
    pub depth: usize,
    /// Treatment of entries that ignore files hide.
    pub ignored: Ignored,
    /// Maximum number of entries to return.
    pub limit: usize,
}

/// Treatment of entries that ignore files (`.gitignore`, `.ignore`) hide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ignored {
    /// They are included.
    #[default]
    Shown,
    /// They are skipped.
    Hidden,
}

/// Content of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Requested path of the directory, made absolute and without `.` and `..`.
    pub path: PathBuf,
    /// Entries, in no particular order.
    pub entries: Vec<Entry>,
    /// True if there are more entries than the limit.
    pub more: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the directory that was listed.
    pub path: PathBuf,
    /// Type of the entry.
    pub kind: FileKind,
}

/// Type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Something else.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "a special file",
        })
    }
}

/// A request to search files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// A regular expression.
    pub pattern: String,
    /// Directory or file to search.
    pub path: PathBuf,
    /// Globs that a file's path must match, or must not match with a leading `!`.
    pub globs: Vec<String>,
    /// File type, such as `rust`.
    pub file_type: Option<String>,
    /// True if the search ignores case.
    pub case_insensitive: bool,
    /// True if the pattern may match across lines.
    pub multiline: bool,
    /// True if hidden files are searched too.
    pub hidden: bool,
    /// Information to return about each file.
    pub wanted: Wanted,
    /// Maximum number of files to return, or of lines if lines are wanted.
    pub limit: usize,
}

/// Information to return about each file that matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Its name only.
    #[default]
    Names,
    /// The matching lines.
    Lines {
        /// Number of context lines before each.
        before: usize,
        /// Number of context lines after each.
        after: usize,
    },
    /// The number of matching lines.
    Counts,
}

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The files, most recently changed first.
    pub files: Vec<FoundFile>,
    /// True if there are more than the limit.
    pub more: bool,
    /// Total number of files that match, and of their matching lines.
    pub total: (u64, u64),
    /// Number of files and directories that were skipped because they may not be read.
    pub denied: u64,
}

/// A file that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Absolute path.
    pub path: PathBuf,
    /// Last modification.
    pub modified: SystemTime,
    /// Number of matching lines; 1 if only names were wanted.
    pub count: u64,
    /// The matching lines, if they were wanted.
    pub lines: Vec<FoundLine>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLine {
    /// Line number, from 1.
    pub number: u64,
    /// True if the line matches; false for a context line.
    pub fits: bool,
    /// Text without its line ending. A very long line is cut.
    pub text: String,
}

/// Reason that files could not be read, listed or searched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path does not exist.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The path is a directory, not a file.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The path is not a regular file; reading it might never end.
    #[error("`{path}` is {kind}, not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// Its type.
        kind: FileKind,
    },
    /// The sandbox does not allow it.
    #[error("the sandbox does not allow it: {} ({})", .0.what, .0.rule)]
    Denied(Box<Denial>),
    /// The call declared that it uses no files.
    #[error("may not use `{path}`: the call declared that it uses no files")]
    NotGranted {
        /// The path.
        path: PathBuf,
    },
    /// The user has no permission.
    #[error("no permission for `{path}`")]
    NoPermission {
        /// The path.
        path: PathBuf,
    },
    /// A path cannot contain a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The path is longer than the system allows.
    #[error("the path is too long: {length_bytes} bytes")]
    TooLong {
        /// Its length.
        length_bytes: usize,
    },
    /// A link leads back to itself, or there are too many links.
    #[error("`{path}` leads through a loop of links, or too many of them")]
    Loop {
        /// The path.
        path: PathBuf,
    },
    /// The file was removed or replaced during the operation.
    #[error("`{path}` was removed or replaced meanwhile; try again")]
    Gone {
        /// The path.
        path: PathBuf,
    },
    /// A pattern, glob or type is invalid. The text names the position and the remedy.
    #[error("{0}")]
    Pattern(String),
    /// The operation was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Any other error of the system.
    #[error("`{path}`: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The files of a host that has none.
pub(crate) struct NoFiles;

impl Files for NoFiles {
    fn open<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Box<dyn OpenFile>, FileError>> {
        Box::pin(async { Err(not_granted(path)) })
    }

    fn list<'a>(
        &'a self,
        listing: &'a Listing,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Listed, FileError>> {
        Box::pin(async { Err(not_granted(&listing.path)) })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Found, FileError>> {
        Box::pin(async { Err(not_granted(&search.path)) })
    }

    fn commit<'a>(
        &'a self,
        _call: &'a CallId,
        changes: Vec<Change>,
    ) -> BoxFuture<'a, Result<Vec<Changed>, CommitError>> {
        let path = changes.first().map_or_else(PathBuf::new, |change| change.path.clone());
        Box::pin(async move { Err(not_granted(&path).into()) })
    }

    fn show(&self, _seen: Seen<'_>) {}

    fn since(&self, _now: Seen<'_>) -> Since {
        Since::NeverShown
    }
}

fn not_granted(path: &Path) -> FileError {
    FileError::NotGranted { path: path.to_owned() }
}
