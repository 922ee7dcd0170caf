//! Records of the files that the model was shown, so that it overwrites nothing it has not seen.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Distinguishes one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Last status change (`ctime`): seconds and nanoseconds. Unlike the modification time, it
    /// cannot be set back.
    #[serde(alias = "modified")]
    pub changed: (i64, i64),
}

/// A file in its current state.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Absolute, and without links.
    pub path: &'a Path,
    /// Stamp from when it was opened or written.
    pub stamp: Stamp,
    /// The whole content, if all of it was read.
    pub bytes: Option<&'a [u8]>,
}

/// A record of a file that the model was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Absolute, and without links.
    pub path: PathBuf,
    /// Its stamp at that time.
    pub stamp: Stamp,
    /// SHA-256 of its content in hexadecimal. Absent for large files, which are not read for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Change of a file since the model was shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The file tools never showed it. A command may have.
    NeverShown,
    /// It has not changed.
    Same,
    /// It has changed.
    Changed {
        /// Earlier content, if it is still known.
        was: Option<Vec<u8>>,
    },
}
