//! Tells by content whether a file is what it was before a change, what the change made of it, or the work of someone else.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
};

use ring::digest::{Context, SHA256, digest};
use rustix::fs::{FileType, Stat, fstat};
use windlass_contract::edit::HashedContent;

use super::trace::{Trace, look};
use crate::handle::to_read_at;

/// How much is read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Stands for a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentId {
    pub(super) sha256: [u8; 32],
    pub(super) size_bytes: u64,
}

/// Stands for a file as it was before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BeforeId {
    pub(super) content: ContentId,
    /// Decides only where a change leaves the content as it is, and alters the mode, say.
    pub(super) inode: u64,
}

/// A file in the light of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It holds what it held before.
    Before,
    /// It holds what the change writes.
    After,
    /// Neither: someone else's work.
    Foreign,
}

/// A file that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed {
    pub(super) standing: Standing,
    pub(super) stat: Stat,
}

impl From<&HashedContent> for ContentId {
    fn from(content: &HashedContent) -> Self {
        Self { sha256: content.sha256, size_bytes: content.bytes.len() as u64 }
    }
}

/// Computes the SHA-256 of a content.
pub(crate) fn sha256_of(bytes: &[u8]) -> [u8; 32] {
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sha256
}

/// Looks at what stands under a name, and compares its content with both sides of a change.
pub(super) fn observe(trace: &Trace, directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Observed>> {
    let Some(found) = look(directory, name)? else { return Ok(None) };
    let foreign = Observed { standing: Standing::Foreign, stat: found };
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || !has_known_size(trace, &found) {
        return Ok(Some(foreign));
    }
    let mut file = File::from(match to_read_at(directory, name) {
        // Removed, or made a link, since it was looked at.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    });
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Some(foreign));
    }
    let sha256 =
        read_sha256(&mut file, CHUNK_BYTES as u64 + u64::try_from(stat.st_size).unwrap_or_default())?;
    let is_before = trace.before.as_ref().is_some_and(|before| before.content.sha256 == sha256);
    let is_after = trace.after.as_ref().is_some_and(|after| after.sha256 == sha256);
    let is_same_file = trace.before.as_ref().is_some_and(|before| before.inode == stat.st_ino);
    let standing = match (is_before, is_after) {
        (true, true) if is_same_file => Standing::Before,
        (true, false) => Standing::Before,
        (_, true) => Standing::After,
        (false, false) => Standing::Foreign,
    };
    Ok(Some(Observed { standing, stat }))
}

/// Tests whether a file can be a known one; if not, it need not be read, however large it is.
fn has_known_size(trace: &Trace, found: &Stat) -> bool {
    let size_bytes = u64::try_from(found.st_size).unwrap_or_default();
    let known = trace.before.iter().map(|before| &before.content).chain(&trace.after);
    known.into_iter().any(|content| content.size_bytes == size_bytes)
}

/// Reads no more than so much: a file that grows meanwhile is not a known one.
fn read_sha256(file: &mut File, limit_bytes: u64) -> io::Result<[u8; 32]> {
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut limited = file.take(limit_bytes);
    loop {
        match limited.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => context.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(context.finish().as_ref());
    Ok(sha256)
}
