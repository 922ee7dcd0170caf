//! Directories of a cache that commands can write: opened by handle and without following links.
//! Nothing is written there but new directories, links and files.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, statat, symlinkat, unlinkat},
    io::Errno,
};

/// Opens the cache of a workspace.
pub(super) fn open_cache(cache: &Path) -> io::Result<OwnedFd> {
    Ok(open(cache, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a directory, and makes it if it is not there. A link is an error.
pub(super) fn enter(directory: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    match mkdirat(&directory, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?)
}

/// Makes a link, unless something has the name already.
pub(super) fn link(directory: &OwnedFd, name: &OsStr, target: &Path) -> io::Result<()> {
    match symlinkat(target, directory, name) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Copies a file, unless something has the name already that is not older.
pub(super) fn copy(directory: &OwnedFd, name: &OsStr, source: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut source = File::from(open(source, flags, Mode::empty())?);
    let found = source.metadata()?;
    if !found.is_file() {
        return Ok(());
    }
    let modified = found.mtime();
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(own) if own.st_mtime >= modified => return Ok(()),
        Ok(_) => unlinkat(directory, name, AtFlags::empty())?,
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copy = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    io::copy(&mut source, &mut File::from(copy)).map(drop)
}
