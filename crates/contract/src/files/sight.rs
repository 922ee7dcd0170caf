//! What the model was shown of files, so that nothing is overwritten that it has not seen.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// On which device it is.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How large it is.
    pub size_bytes: u64,
    /// When anything about it changed last: seconds, and nanoseconds beyond them. Unlike the time of the last writing it
    /// cannot be set back.
    #[serde(alias = "modified")]
    pub changed: (i64, i64),
}

/// A file as someone has it before them.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Absolute, and without links.
    pub path: &'a Path,
    /// How it was when it was opened, or written.
    pub stamp: Stamp,
    /// All of it, if all of it was read.
    pub bytes: Option<&'a [u8]>,
}

/// What is remembered of a file that the model was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Absolute, and without links.
    pub path: PathBuf,
    /// How it was then.
    pub stamp: Stamp,
    /// The SHA-256 of its content as hexadecimal digits; absent for large files, which are not read for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What became of a file since the model was shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// It was never shown it, as far as is known: commands may have.
    NeverShown,
    /// Nothing.
    Same,
    /// It has changed.
    Changed {
        /// What it was, if that is still known.
        was: Option<Vec<u8>>,
    },
}
