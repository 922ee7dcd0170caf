//! The state of a file before a change, read and compared with what the change expects.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
};

use rustix::fs::{Access, AtFlags, FileType, Stat, accessat, fstat};
use windlass_contract::{
    edit::{CommitError, Expected, Version},
    files::{FileError, FileKind},
};

use super::{file_swap::look, xattrs};
use crate::{
    handle::open_read_at,
    resolve::{WriteTarget, file_error, file_kind},
};

/// Maximum size of a file that a tool changes: it is held in memory, and archived for an undo.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Number of bytes compared at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// An existing file, before it is changed.
#[derive(Debug, Clone)]
pub(super) struct FileBefore {
    pub(super) version: Version,
    pub(super) stat: Stat,
}

impl FileBefore {
    /// Reads the file at a path and fails if it is not as expected.
    pub(super) fn read_expected(
        target: &WriteTarget,
        expected: &Expected,
    ) -> Result<Option<Self>, CommitError> {
        let stale = || CommitError::Stale { path: target.name.clone() };
        match (expected, open(target)?) {
            (Expected::Absent, None) => Ok(None),
            (Expected::Content(content), Some(file)) => {
                let before =
                    Self::read(&file, &target.name, |mut file| match has_content(&mut file, content) {
                        Ok(false) => Ok(None),
                        held => held.map(|_| Some(Arc::clone(content))),
                    })?;
                before.map(Some).ok_or_else(stale)
            }
            (Expected::Absent, Some(_)) | (Expected::Content(_), None) => Err(stale()),
        }
    }

    /// Reads the file at a path, if there is one.
    pub(super) fn read_any(target: &WriteTarget) -> Result<Option<Self>, CommitError> {
        let Some(file) = open(target)? else { return Ok(None) };
        Self::read(&file, &target.name, |file| {
            let mut bytes = Vec::new();
            file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
            Ok(Some(bytes.into()))
        })
    }

    fn read(
        file: &File,
        name: &Path,
        content: impl FnOnce(&File) -> io::Result<Option<Arc<[u8]>>>,
    ) -> Result<Option<Self>, CommitError> {
        let failed = |error: io::Error| file_error(name, error);
        let stat = fstat(file).map_err(|error| failed(error.into()))?;
        let metadata = file.metadata().map_err(failed)?;
        let kind = file_kind(metadata.file_type());
        if kind != FileKind::File {
            return Err(FileError::NotAFile { path: name.to_owned(), kind }.into());
        }
        if metadata.len() > MAX_FILE_BYTES {
            let (path, bytes) = (name.to_owned(), metadata.len());
            return Err(CommitError::TooLarge { path, bytes, limit_bytes: MAX_FILE_BYTES });
        }
        let Some(bytes) = content(file).map_err(failed)? else { return Ok(None) };
        let attributes = xattrs::read(file).map_err(failed)?;
        let version = Version {
            bytes,
            mode: metadata.mode() & 0o7777,
            owner: Some((metadata.uid(), metadata.gid())),
            modified: Some((metadata.mtime(), metadata.mtime_nsec())),
            attributes,
        };
        Ok(Some(Self { version, stat }))
    }
}

/// Opens the file at a path for reading, if it exists and may be changed.
fn open(target: &WriteTarget) -> Result<Option<File>, FileError> {
    if !target.missing.is_empty() {
        return Ok(None);
    }
    let failed = |error: io::Error| file_error(&target.name, error);
    let Some(stat) = look(&target.directory, &target.file_name).map_err(failed)? else {
        return Ok(None);
    };
    // Check the type before opening: opening a pipe or a device may have an effect.
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(FileError::IsDirectory { path: target.name.clone() }),
        kind => return Err(FileError::NotAFile { path: target.name.clone(), kind: special_kind(kind) }),
    }
    // Replacing a file needs no write permission on it, but a file was made read-only for a reason.
    accessat(&target.directory, &target.file_name, Access::WRITE_OK, AtFlags::empty())
        .map_err(|error| failed(error.into()))?;
    open_read_at(&target.directory, &target.file_name).map(|file| Some(file.into())).map_err(failed)
}

fn special_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        FileType::RegularFile | FileType::Directory | FileType::Unknown => FileKind::Other,
    }
}

/// Returns true if a file holds exactly this content.
fn has_content(file: &mut impl Read, mut content: &[u8]) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK_BYTES.min(content.len() + 1)];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(content.is_empty()),
            Ok(read) => match content.strip_prefix(&chunk[..read]) {
                Some(rest) => content = rest,
                None => return Ok(false),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_compared_to_its_last_byte() {
        let long = vec![7; 2 * CHUNK_BYTES];
        let other = [&long[..], &[8]].concat();
        for (held, content, is_same) in [
            (&b""[..], &b""[..], true),
            (b"", b"x", false),
            (b"x", b"", false),
            (b"xy", b"x", false),
            (&long, &long, true),
            (&long, &other, false),
            (&other, &long, false),
        ] {
            assert_eq!(has_content(&mut &*held, content).unwrap(), is_same);
        }
    }
}
