//! An entry as it is now.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Path, PathBuf},
};

use ring::digest::{Context, SHA256};
use rustix::io::Errno;
use windlass_contract::{ContentDigest, EntryContent};

use super::place_of;
use crate::{
    EntryKind, EntryStat,
    handle::{to_name_in, to_read_at},
};

/// How much is read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// The largest file that can be one that was kept.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// An entry that was found.
#[derive(Debug)]
pub(super) struct ObservedEntry {
    pub(super) stat: EntryStat,
    /// Absent if it is none that could have been kept.
    content: Option<EntryContent>,
}

impl ObservedEntry {
    /// Looks at an entry by its path, of which no directory may be a link. None, if there is nothing.
    pub(super) fn look(path: &Path) -> io::Result<Option<Self>> {
        let (parent, name) = place_of(path)?;
        let directory = match to_name_in(parent) {
            Err(error) if is_absent(&error) => return Ok(None),
            directory => directory?,
        };
        Self::look_in(&directory, name)
    }

    pub(super) fn look_in(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Self>> {
        let stat = match EntryStat::read(directory, name) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            stat => stat?,
        };
        let content = match stat.kind {
            EntryKind::File if stat.size > MAX_BYTES => None,
            // What cannot be read is not known to be what it was.
            EntryKind::File => read_digest(directory, name, &stat).ok().map(EntryContent::File),
            EntryKind::Symlink => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes();
                Some(EntryContent::Symlink(PathBuf::from(std::ffi::OsString::from_vec(target))))
            }
            EntryKind::Directory => Some(EntryContent::Directory),
            EntryKind::Special => None,
        };
        Ok(Some(Self { stat, content }))
    }

    pub(super) fn holds(&self, content: &EntryContent) -> bool {
        self.content.as_ref() == Some(content)
    }

    /// Tells whether a file is the one that was looked at, and was not written to since. A rename moves the time of the last
    /// change, so that does not count.
    pub(super) fn is_same(&self, now: &EntryStat) -> bool {
        self.stat.is_same_file(now) && (self.stat.size, self.stat.mtime_ns) == (now.size, now.mtime_ns)
    }
}

/// Tells whether an error says that there is no such directory.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read_digest(directory: &OwnedFd, name: &OsStr, stat: &EntryStat) -> io::Result<ContentDigest> {
    let mut file = File::from(to_read_at(directory, name)?).take(MAX_BYTES);
    let opened = EntryStat::read(file.get_ref(), OsStr::new(""))?;
    if !opened.is_same_file(stat) || opened.kind != EntryKind::File {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK_BYTES.min(usize::try_from(stat.size).unwrap_or(CHUNK_BYTES) + 1)];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => context.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    Ok(digest)
}
