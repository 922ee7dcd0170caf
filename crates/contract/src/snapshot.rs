//! Changes made by commands, recorded so that they can be undone.

use std::{collections::HashSet, fmt, fs::File, io, path::PathBuf, time::SystemTime};

use crate::CallId;

/// The SHA-256 of a content.
pub type ContentDigest = [u8; 32];

/// Stores the contents of the files of one workspace. Implemented by `record`, called by `host`
/// through `files` on a thread of its own. It is a cache of the current state, so nothing in it is
/// flushed.
pub trait ContentStore: Send + Sync + fmt::Debug {
    /// Stores the content of an open regular file and returns its digest. Reads at most
    /// `max_bytes`; a longer file is an error of the kind `FileTooLarge`.
    fn keep_content(&self, file: &File, max_bytes: u64) -> io::Result<ContentDigest>;

    /// Creates a file with a stored content, by a hard link if possible.
    fn export_content(&self, digest: &ContentDigest, to: &std::path::Path) -> io::Result<()>;

    /// Reads the last saved listing of the workspace, if it is valid.
    fn load_listing(&self) -> Option<Vec<u8>>;

    /// Saves a listing of the workspace.
    fn save_listing(&self, listing: &[u8]) -> io::Result<()>;

    /// Removes contents that are not used, unless another process uses the store.
    fn remove_unused(&self, used: &HashSet<ContentDigest>) -> io::Result<()>;
}

/// Records the changes made by commands. Implemented by `record`, called by `host` when a command
/// has ended.
pub trait CommandLog: Send + Sync + fmt::Debug {
    /// Copies the contents from the store and appends the change to the edit log. When it returns,
    /// both survive a loss of power.
    fn log_command(&self, edit: &CommandEdit<'_>, store: &dyn ContentStore) -> io::Result<()>;
}

/// The changes of one command.
#[derive(Debug, Clone, Copy)]
pub struct CommandEdit<'a> {
    /// The call that ran it.
    pub call: &'a CallId,
    /// The command line.
    pub line: &'a str,
    /// Start time of the command.
    pub begun: SystemTime,
    /// Changed entries that can be restored, in the order of paths.
    pub changes: &'a [EntryChange],
    /// Changed entries that cannot be restored.
    pub unkept: &'a [UnkeptEntry],
    /// Reason that there may be further changes.
    pub gap: Option<&'a str>,
}

/// One entry of a directory that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    /// Absolute, and without links.
    pub path: PathBuf,
    /// The entry before; absent if it is new.
    pub before: Option<EntryVersion>,
    /// The entry after; absent if it is gone.
    pub after: Option<EntryVersion>,
}

impl EntryChange {
    /// Returns the change that reverts this one.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { path: self.path.clone(), before: self.after.clone(), after: self.before.clone() }
    }
}

/// An entry of a directory at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryVersion {
    /// Its type and content.
    pub content: EntryContent,
    /// Its permission bits.
    pub mode: u32,
    /// Its user and group.
    pub owner: (u32, u32),
    /// The last modification: seconds since 1970 and nanoseconds.
    pub modified: (i64, i64),
}

/// The type and content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent {
    /// A regular file.
    File(ContentDigest),
    /// A symbolic link, with its target.
    Symlink(PathBuf),
    /// A directory.
    Directory,
}

impl EntryContent {
    /// Returns true if both are the same type of file.
    pub fn has_same_type(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// An entry that changed and cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnkeptEntry {
    /// Absolute, and without links.
    pub path: PathBuf,
    /// The reason.
    pub reason: UnkeptReason,
}

/// Reason that an entry was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnkeptReason {
    /// The file is larger than the limit for one file.
    TooLarge,
    /// All files together are larger than the limit.
    OverLimit,
    /// It cannot be read.
    Unreadable,
    /// It changed while it was read.
    Changing,
    /// A FIFO, socket or device.
    Special,
    /// The name is not UTF-8.
    Name,
    /// Nothing in the directory is stored.
    NotKept,
}

impl UnkeptReason {
    /// Returns the reason in a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too large",
            Self::OverLimit => "over the limit for all files",
            Self::Unreadable => "unreadable",
            Self::Changing => "changed while it was read",
            Self::Special => "not a regular file",
            Self::Name => "name not UTF-8",
            Self::NotKept => "nothing is kept here",
        }
    }
}
