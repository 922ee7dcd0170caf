//! A file as it is found before it is changed.

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

use super::{attributes, trace::look};
use crate::{
    handle::to_read_at,
    resolve::{Place, kind_of, said},
};

/// The largest file that a tool changes: it is held in memory, and kept for an undo.
const LIMIT_BYTES: u64 = 256 * 1024 * 1024;

/// How much is compared at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// A file that exists.
#[derive(Debug, Clone)]
pub(super) struct Before {
    pub(super) version: Version,
    pub(super) stat: Stat,
}

impl Before {
    /// What is at a place, if it is what it should be.
    pub(super) fn expected(place: &Place, expected: &Expected) -> Result<Option<Self>, CommitError> {
        let stale = || CommitError::Stale { path: place.name.clone() };
        match (expected, open(place)?) {
            (Expected::Absent, None) => Ok(None),
            (Expected::Content(content), Some(file)) => {
                let before = Self::read(&file, &place.name, |mut file| match holds(&mut file, content) {
                    Ok(false) => Ok(None),
                    held => held.map(|_| Some(Arc::clone(content))),
                })?;
                before.map(Some).ok_or_else(stale)
            }
            (Expected::Absent, Some(_)) | (Expected::Content(_), None) => Err(stale()),
        }
    }

    /// What is at a place, whatever it is.
    pub(super) fn any(place: &Place) -> Result<Option<Self>, CommitError> {
        let Some(file) = open(place)? else { return Ok(None) };
        Self::read(&file, &place.name, |file| {
            let mut bytes = Vec::new();
            file.take(LIMIT_BYTES).read_to_end(&mut bytes)?;
            Ok(Some(bytes.into()))
        })
    }

    fn read(
        file: &File,
        name: &Path,
        content: impl FnOnce(&File) -> io::Result<Option<Arc<[u8]>>>,
    ) -> Result<Option<Self>, CommitError> {
        let failed = |error: io::Error| said(name, error);
        let stat = fstat(file).map_err(|error| failed(error.into()))?;
        let metadata = file.metadata().map_err(failed)?;
        let kind = kind_of(metadata.file_type());
        if kind != FileKind::File {
            return Err(FileError::NotAFile { path: name.to_owned(), kind }.into());
        }
        if metadata.len() > LIMIT_BYTES {
            let (path, bytes) = (name.to_owned(), metadata.len());
            return Err(CommitError::TooLarge { path, bytes, limit_bytes: LIMIT_BYTES });
        }
        let Some(bytes) = content(file).map_err(failed)? else { return Ok(None) };
        let attributes = attributes::of(file).map_err(failed)?;
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

/// Opens what is at a place to read, if anything is there and may be changed.
fn open(place: &Place) -> Result<Option<File>, FileError> {
    if !place.missing.is_empty() {
        return Ok(None);
    }
    let failed = |error: io::Error| said(&place.name, error);
    let Some(stat) = look(&place.directory, &place.file_name).map_err(failed)? else {
        return Ok(None);
    };
    // Looked at before it is opened: opening a pipe or a device may already do something.
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(FileError::IsDirectory { path: place.name.clone() }),
        kind => return Err(FileError::NotAFile { path: place.name.clone(), kind: unusual(kind) }),
    }
    // Replacing a file needs no right to write to it, but whoever took that right away meant something by it.
    accessat(&place.directory, &place.file_name, Access::WRITE_OK, AtFlags::empty())
        .map_err(|error| failed(error.into()))?;
    to_read_at(&place.directory, &place.file_name).map(|file| Some(file.into())).map_err(failed)
}

fn unusual(kind: FileType) -> FileKind {
    match kind {
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        FileType::RegularFile | FileType::Directory | FileType::Unknown => FileKind::Other,
    }
}

/// Whether a file holds just this.
fn holds(file: &mut impl Read, mut content: &[u8]) -> io::Result<bool> {
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
            assert_eq!(holds(&mut &*held, content).unwrap(), is_same);
        }
    }
}
