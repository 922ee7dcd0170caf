//! The current state of an entry.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use windlass_contract::snapshot::{ContentDigest, EntryContent};

use super::place_of;
use crate::{
    EntryKind, EntryStat,
    handle::{lstat, open_directory, open_read_at},
    sha256::read_sha256,
};

/// Maximum size of a file in the archive; a larger one cannot match.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// The result of looking up an entry by its path.
#[derive(Debug)]
pub(super) enum EntryLookup {
    /// The entry exists.
    Found(ObservedEntry),
    /// The entry does not exist.
    Absent,
    /// A file or a link is in place of a directory above the entry.
    Behind {
        /// The path of the file or link.
        obstacle: PathBuf,
        is_link: bool,
    },
}

impl EntryLookup {
    /// Looks up an entry by its path without following links.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let (parent, name) = place_of(path)?;
        let directory = match open_directory(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Absent),
            Err(error) if is_unreachable(&error) => return Ok(Self::behind(parent)),
            directory => directory?,
        };
        Ok(ObservedEntry::look_in(&directory, name)?.map_or(Self::Absent, Self::Found))
    }

    fn behind(parent: &Path) -> Self {
        let mut above: Vec<_> = parent.ancestors().collect();
        above.reverse();
        let found = above.into_iter().find_map(|part| {
            let found = lstat(part).ok().filter(|found| !found.is_dir())?;
            Some(Self::Behind { obstacle: part.to_owned(), is_link: found.is_symlink() })
        });
        found.unwrap_or(Self::Absent)
    }
}

/// The metadata and content of an entry.
#[derive(Debug)]
pub(super) struct ObservedEntry {
    pub(super) stat: EntryStat,
    /// `None` if the content cannot be one in the archive.
    content: Option<EntryContent>,
}

impl ObservedEntry {
    pub(super) fn look_in(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Self>> {
        let stat = match EntryStat::read(directory, name) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            stat => stat?,
        };
        let content = match stat.kind {
            EntryKind::File if stat.size > MAX_BYTES => None,
            // A file that cannot be read cannot be identified.
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

    pub(super) fn mode(&self) -> u32 {
        self.stat.permissions.into()
    }

    pub(super) fn owner(&self) -> (u32, u32) {
        (self.stat.uid, self.stat.gid)
    }

    /// Returns true if it has this type and content.
    pub(super) fn holds(&self, content: &EntryContent) -> bool {
        self.content.as_ref() == Some(content)
    }

    /// Returns true if `now` is the same file and was not written to since. The change time is not
    /// compared, because a rename sets it.
    pub(super) fn is_same(&self, now: &EntryStat) -> bool {
        // The entries and the mode of a directory may have changed during the undo.
        if self.stat.kind == EntryKind::Directory {
            return self.stat.is_same_file(now);
        }
        let metadata = |stat: &EntryStat| (stat.size, stat.mtime_ns, stat.permissions, stat.uid, stat.gid);
        self.stat.is_same_file(now) && metadata(&self.stat) == metadata(now)
    }
}

/// Returns true if an error means that there is no such directory, or that a file or a link is in
/// its place.
pub(super) fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

fn read_digest(directory: &OwnedFd, name: &OsStr, stat: &EntryStat) -> io::Result<ContentDigest> {
    let file = File::from(open_read_at(directory, name)?).take(MAX_BYTES);
    let opened = EntryStat::read(file.get_ref(), OsStr::new(""))?;
    if !opened.is_same_file(stat) || opened.kind != EntryKind::File {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    read_sha256(file, stat.size)
}
