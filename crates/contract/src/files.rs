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

/// The files of a machine, held to one [`Grant`](crate::Grant). Implemented by `host` (and by fakes in tests), used by
/// tools through [`Host::files`](crate::Host::files). Paths are relative to the grant's working directory; what a
/// confined command could not read, an implementation must not read either, by whatever name, link or race. No answer
/// waits for a pipe or a device, and every answer has a bound.
pub trait Files: Send + Sync {
    /// Opens a regular file to read. What is opened stays the same file, whatever happens to its name.
    fn open<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Box<dyn OpenFile>, FileError>>;

    /// What is in a directory. Links are told, never followed.
    fn list<'a>(
        &'a self,
        listing: &'a Listing,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Listed, FileError>>;

    /// Which files hold what fits a pattern. Files that may not be read and binary ones are passed over.
    fn search<'a>(
        &'a self,
        search: &'a Search,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Found, FileError>>;

    /// Changes files, all of them or none, whatever fails on the way and whenever this process ends. What they were is
    /// kept under the call's id, if there is an archive. Once begun it is finished, even if nobody waits for it any more.
    fn commit<'a>(
        &'a self,
        call: &'a CallId,
        changes: Vec<Change>,
    ) -> BoxFuture<'a, Result<Vec<Changed>, CommitError>>;

    /// Remembers that the model knows a file as it is here, because it was shown it or wrote it. Holds for the session,
    /// and for whoever goes on with it.
    fn show(&self, seen: Seen<'_>);

    /// What became of a file since it was last shown to the model.
    fn since(&self, now: Seen<'_>) -> Since;
}

/// A file that is open to read.
pub trait OpenFile: Send + Sync + fmt::Debug {
    /// Its name: absolute and without `.` and `..`, as it was asked for.
    fn path(&self) -> &Path;

    /// Its name without links.
    fn real_path(&self) -> &Path;

    /// How it was when it was opened.
    fn stamp(&self) -> Stamp;

    /// How large it was when it was opened.
    fn size_bytes(&self) -> u64 {
        self.stamp().size_bytes
    }

    /// At most so many bytes from a place on; fewer only at its end.
    fn read_at(&self, offset: u64, limit_bytes: usize) -> BoxFuture<'_, Result<Vec<u8>, FileError>>;
}

/// A question for what is in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The directory.
    pub path: PathBuf,
    /// How deep to look; 1 is the directory itself.
    pub depth: usize,
    /// What ignore files hide.
    pub ignored: Ignored,
    /// How many entries to give back at most.
    pub limit: usize,
}

/// What becomes of that which ignore files (`.gitignore`, `.ignore`) hide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ignored {
    /// It is seen like everything else.
    #[default]
    Shown,
    /// It is passed over.
    Hidden,
}

/// What is in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The directory's name: absolute and without `.` and `..`, as it was asked for.
    pub path: PathBuf,
    /// In no particular order.
    pub entries: Vec<Entry>,
    /// Whether there is more than the limit.
    pub more: bool,
}

/// Something in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the directory that was listed.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
}

/// What stands at a path.
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
            Self::Other => "no regular file",
        })
    }
}

/// A question for files that hold something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// A regular expression.
    pub pattern: String,
    /// The directory or file to look through.
    pub path: PathBuf,
    /// Globs a file's path must fit, or with a leading `!` must not.
    pub globs: Vec<String>,
    /// A type of files, such as `rust`.
    pub file_type: Option<String>,
    /// Whether capital letters and small ones are the same.
    pub case_insensitive: bool,
    /// Whether the pattern may fit across lines.
    pub multiline: bool,
    /// Whether hidden files are looked through as well.
    pub hidden: bool,
    /// What is wanted of each file.
    pub wanted: Wanted,
    /// How many files (or, for their lines, how many lines) to give back at most.
    pub limit: usize,
}

/// What is wanted of each file that holds something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Its name alone.
    #[default]
    Names,
    /// The lines.
    Lines {
        /// How many lines before each.
        before: usize,
        /// How many lines after each.
        after: usize,
    },
    /// How many lines.
    Counts,
}

/// What a search has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The files, the one that changed last first.
    pub files: Vec<FoundFile>,
    /// Whether there is more than the limit.
    pub more: bool,
    /// How many files there are in all, and how many of their lines fit.
    pub total: (u64, u64),
    /// How many files and directories were passed over because they may not be read.
    pub denied: u64,
}

/// A file that holds what was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Absolute.
    pub path: PathBuf,
    /// When it changed last.
    pub modified: SystemTime,
    /// How many lines fit; 1 if only names were wanted.
    pub count: u64,
    /// The lines, if they were wanted.
    pub lines: Vec<FoundLine>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLine {
    /// Its number, from 1.
    pub number: u64,
    /// Whether it fits, or only stands near one that does.
    pub fits: bool,
    /// What it says, without its ending, cut where it is very long.
    pub text: String,
}

/// Why files could not be read, listed or searched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is nothing of that name.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The name.
        path: PathBuf,
    },
    /// A directory stands where a file should.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// Something else stands where a directory should.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// The name.
        path: PathBuf,
    },
    /// What stands there is no regular file; reading it might never end.
    #[error("`{path}` is {kind}, not a regular file")]
    NotAFile {
        /// The name.
        path: PathBuf,
        /// What it is.
        kind: FileKind,
    },
    /// The sandbox does not let it.
    #[error("the sandbox does not allow it: {} ({})", .0.what, .0.rule)]
    Denied(Box<Denial>),
    /// The call declared that it uses no files.
    #[error("may not use `{path}`: the call declared that it uses no files")]
    NotGranted {
        /// The name.
        path: PathBuf,
    },
    /// The system does not let this user.
    #[error("no permission for `{path}`")]
    NoPermission {
        /// The name.
        path: PathBuf,
    },
    /// No path holds a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The system takes no path this long.
    #[error("the path is too long: {length_bytes} bytes")]
    TooLong {
        /// How long it is.
        length_bytes: usize,
    },
    /// A link leads back to itself, or there are too many.
    #[error("`{path}` leads through a loop of links, or too many of them")]
    Loop {
        /// The name.
        path: PathBuf,
    },
    /// It was removed or replaced while it was looked at.
    #[error("`{path}` was removed or replaced meanwhile; try again")]
    Gone {
        /// The name.
        path: PathBuf,
    },
    /// A pattern, glob or type makes no sense. The text names the place and what to do.
    #[error("{0}")]
    Pattern(String),
    /// Nobody wants to know any more.
    #[error("cancelled")]
    Cancelled,
    /// Anything else the system said.
    #[error("`{path}`: {source}")]
    Io {
        /// The name.
        path: PathBuf,
        /// What the system said.
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
