//! Identifies a file by its content: from before a change, from after it, or the work of someone
//! else.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
};

use rustix::fs::{FileType, Stat, fstat};
use windlass_contract::edit::HashedContent;

use super::file_swap::{FileSwap, look};
use crate::{handle::open_read_at, sha256::read_sha256};

/// Digest and size of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentId {
    pub(super) sha256: [u8; 32],
    pub(super) size_bytes: u64,
}

/// Identifies a file as it was before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BeforeId {
    pub(super) content: ContentId,
    /// Used only if a change keeps the content and alters, for example, the mode.
    pub(super) inode: u64,
}

/// The side of a change that a content comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentOrigin {
    /// The content from before the change.
    Before,
    /// The content that the change writes.
    After,
    /// Neither: someone else's work.
    Foreign,
}

/// A file and the side of the change that its content comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdentifiedFile {
    pub(super) origin: ContentOrigin,
    pub(super) stat: Stat,
}

impl From<&HashedContent> for ContentId {
    fn from(content: &HashedContent) -> Self {
        Self { sha256: content.sha256, size_bytes: content.bytes.len() as u64 }
    }
}

/// Compares the content of a file with both sides of a change; `None` if the file does not exist.
pub(super) fn identify_file(
    swap: &FileSwap,
    directory: &OwnedFd,
    name: &OsStr,
) -> io::Result<Option<IdentifiedFile>> {
    let Some(found) = look(directory, name)? else { return Ok(None) };
    let foreign = IdentifiedFile { origin: ContentOrigin::Foreign, stat: found };
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || !has_known_size(swap, &found) {
        return Ok(Some(foreign));
    }
    let file = File::from(match open_read_at(directory, name) {
        // Removed, or replaced by a link, since the first look.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    });
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Some(foreign));
    }
    let size_bytes = u64::try_from(stat.st_size).unwrap_or_default();
    // One byte more: a file that grows while it is read is not a known one.
    let sha256 = read_sha256(file.take(size_bytes.saturating_add(1)), size_bytes)?;
    let is_before = swap.before.as_ref().is_some_and(|before| before.content.sha256 == sha256);
    let is_after = swap.after.as_ref().is_some_and(|after| after.sha256 == sha256);
    let is_same_file = swap.before.as_ref().is_some_and(|before| before.inode == stat.st_ino);
    let origin = match (is_before, is_after) {
        (true, true) if is_same_file => ContentOrigin::Before,
        (true, false) => ContentOrigin::Before,
        (_, true) => ContentOrigin::After,
        (false, false) => ContentOrigin::Foreign,
    };
    Ok(Some(IdentifiedFile { origin, stat }))
}

/// Returns true if a file has the size of a known content; otherwise it need not be read, however
/// large it is.
fn has_known_size(swap: &FileSwap, found: &Stat) -> bool {
    let size_bytes = u64::try_from(found.st_size).unwrap_or_default();
    let known = swap.before.iter().map(|before| &before.content).chain(&swap.after);
    known.into_iter().any(|content| content.size_bytes == size_bytes)
}
