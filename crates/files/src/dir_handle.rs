//! An open directory, and access to the entries beneath it: no links, no magic links, no way out
//! (`RESOLVE_BENEATH`, `RESOLVE_NO_SYMLINKS`, `RESOLVE_NO_MAGICLINKS`).

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, openat, readlinkat, renameat, renameat_with, unlinkat},
    io::Errno,
};

use crate::{EntryKind, EntryStat};

/// Flags to open directories for listing and for `*at` calls.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags to open files without waiting for a writer, and without taking over a terminal.
const NEVER_BLOCKING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Maximum number of names tried until one is free.
const MAX_TRIES: usize = 16;

/// An open directory. It stays the same directory even if its path changes.
#[derive(Debug)]
pub struct DirHandle(OwnedFd);

impl DirHandle {
    /// Opens a directory by an absolute path, no component of which may be a symbolic link.
    pub fn open(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(opened) = openat2_without_links(path) {
            return opened.map(Self);
        }
        open_by_component(CWD, path).map(Self)
    }

    /// Opens a directory beneath this one. No component may be a symbolic link or lead out.
    pub fn open_dir(&self, relative: &Path) -> io::Result<Self> {
        if relative.as_os_str().is_empty() {
            return self.try_clone();
        }
        #[cfg(target_os = "linux")]
        if let Some(opened) = openat2_beneath(&self.0, relative) {
            return opened.map(Self);
        }
        open_by_component(self.0.as_fd(), relative).map(Self)
    }

    /// Returns another descriptor of the same directory.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Reads the metadata of the directory itself.
    pub fn stat(&self) -> io::Result<EntryStat> {
        Ok(EntryStat::read(&self.0, OsStr::new(""))?)
    }

    /// Reads the metadata of an entry, without following it.
    pub fn stat_entry(&self, name: &OsStr) -> io::Result<EntryStat> {
        Ok(EntryStat::read(&self.0, check_component(name)?)?)
    }

    /// Reads a whole regular file. Another file type, or more than `max_bytes`, is an error.
    pub fn read_file(&self, name: &OsStr, max_bytes: u64) -> io::Result<Vec<u8>> {
        let (bytes, _size) = self.read_start(name, max_bytes.saturating_add(1))?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {max_bytes} bytes")));
        }
        Ok(bytes)
    }

    /// Reads the first `max_bytes` of a regular file. Returns them with the size of the file.
    pub fn read_start(&self, name: &OsStr, max_bytes: u64) -> io::Result<(Vec<u8>, u64)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | NEVER_BLOCKING;
        // Opening a device may have an effect, so the type is checked before and after.
        check_regular(&self.stat_entry(name)?)?;
        let file = openat(&self.0, check_component(name)?, flags, Mode::empty())?;
        check_regular(&EntryStat::read(&file, OsStr::new(""))?)?;
        let file = File::from(file);
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok((bytes, size))
    }

    /// Reads the target of a symbolic link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        use std::os::unix::ffi::OsStringExt;
        Ok(OsString::from_vec(readlinkat(&self.0, check_component(name)?, Vec::new())?.into_bytes()))
    }

    /// Opens the directories of a path beneath this one, and makes those that are missing.
    pub fn make_dir(&self, relative: &Path) -> io::Result<Self> {
        let mut directory = self.try_clone()?;
        for name in relative {
            match rustix::fs::mkdirat(
                &directory.0,
                check_component(name)?,
                Mode::RWXU | Mode::RGRP | Mode::XGRP,
            ) {
                Ok(()) | Err(Errno::EXIST) => directory = directory.open_dir(Path::new(name))?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(directory)
    }

    /// Removes a symbolic link, if it is the one expected.
    pub fn remove_link(&self, name: &OsStr, expected: &EntryStat) -> io::Result<()> {
        let found = self.stat_entry(name)?;
        if found.kind != EntryKind::Symlink || !found.is_same_file(expected) {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        Ok(unlinkat(&self.0, check_component(name)?, AtFlags::empty())?)
    }

    /// Makes a symbolic link; fails if the name is taken.
    pub fn symlink(&self, target: &OsStr, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, check_component(name)?)?)
    }

    /// Lists the names in the directory. More than `max_entries` is an error.
    pub fn list(&self, max_entries: usize) -> io::Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if names.len() == max_entries {
                return Err(io::Error::other(format!("more than {max_entries} entries")));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// Creates or replaces a regular file with this content. Fails if the entry is of another type.
    pub fn replace_file(&self, name: &OsStr, bytes: &[u8], permissions: u16) -> io::Result<()> {
        let name = check_component(name)?;
        let (temporary, mut file) = self.create_temporary(name, permissions)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| match self.stat_entry(name) {
            Ok(found) => {
                check_regular(&found).and_then(|()| Ok(renameat(&self.0, &temporary, &self.0, name)?))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(renameat_with(&self.0, &temporary, &self.0, name, RenameFlags::NOREPLACE)?)
            }
            Err(error) => Err(error),
        });
        if renamed.is_err() {
            unlinkat(&self.0, &temporary, AtFlags::empty())?;
        }
        renamed
    }

    /// Renames an entry of any type to a free name that starts with its own, and returns that name.
    /// If the mode of the directory forbids it, the owner gets write permission for the rename.
    pub fn move_aside(&self, name: &OsStr, expected: &EntryStat, suffix: &str) -> io::Result<OsString> {
        let name = check_component(name)?;
        if !self.stat_entry(name)?.is_same_file(expected) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is another file by now"));
        }
        self.with_write_permission(|| {
            for attempt in 0..MAX_TRIES {
                // No command can have taken all names in advance.
                let random =
                    if attempt == 0 { String::new() } else { format!("-{:016x}", fastrand::u64(..)) };
                let free = with_suffix(name, &format!(".{suffix}{random}"));
                match renameat_with(&self.0, name, &self.0, &free, RenameFlags::NOREPLACE) {
                    Err(Errno::EXIST) => {}
                    renamed => return Ok(renamed.map(|()| free)?),
                }
            }
            Err(io::ErrorKind::AlreadyExists.into())
        })
    }

    /// Gives the owner all permissions on a directory beneath this one, if it is the one expected:
    /// without them it could be neither read nor changed.
    #[cfg(target_os = "linux")]
    pub fn give_owner_access(&self, relative: &Path, expected: &EntryStat) -> io::Result<()> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{AtFlags, ResolveFlags};

        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let directory = rustix::fs::openat2(&self.0, relative, flags, Mode::empty(), resolve)?;
        if !EntryStat::read(&directory, OsStr::new(""))?.is_same_file(expected) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is another file by now"));
        }
        let mode = Mode::from_bits_truncate(expected.permissions.into()) | Mode::RWXU;
        // By descriptor: a name could have been replaced.
        let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Ok(rustix::fs::chmodat(CWD, itself, mode, AtFlags::empty())?)
    }

    /// Gives the owner all permissions on a directory beneath this one, if it is the one expected.
    #[cfg(not(target_os = "linux"))]
    pub fn give_owner_access(&self, relative: &Path, expected: &EntryStat) -> io::Result<()> {
        let (above, name) = relative.parent().zip(relative.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let above = self.open_dir(above)?;
        if !above.stat_entry(name)?.is_same_file(expected) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let mode = Mode::from_bits_truncate(expected.permissions.into()) | Mode::RWXU;
        Ok(rustix::fs::chmodat(&above.0, name, mode, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Flushes the file system of the directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn sync_file_system(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.0)?)
    }

    /// Flushes the directory and all file systems: there is no call for one alone.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn sync_file_system(&self) -> io::Result<()> {
        rustix::fs::sync();
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// Calls `act`, and once more with all permissions for the owner if the mode of the directory
    /// forbids it.
    pub(crate) fn with_write_permission<T>(&self, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let denied = match act() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
            result => return result,
        };
        let before = Mode::from_bits_truncate(self.stat()?.permissions.into());
        if before.contains(Mode::RWXU) {
            return Err(denied);
        }
        rustix::fs::fchmod(&self.0, before | Mode::RWXU)?;
        let result = act();
        rustix::fs::fchmod(&self.0, before)?;
        result
    }

    fn create_temporary(&self, name: &OsStr, permissions: u16) -> io::Result<(OsString, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | NEVER_BLOCKING;
        let mode = Mode::from_bits_truncate((permissions & 0o777).into());
        for _ in 0..MAX_TRIES {
            let free = with_suffix(name, &format!(".windlass-new-{:016x}", fastrand::u64(..)));
            match openat(&self.0, &free, flags, mode) {
                Err(Errno::EXIST) => {}
                opened => return Ok((free, opened?.into())),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl AsFd for DirHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for DirHandle {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

/// Returns the name if it is a single path component.
fn check_component(name: &OsStr) -> io::Result<&OsStr> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(component)), None) if component == name => Ok(name),
        _ => Err(io::ErrorKind::InvalidFilename.into()),
    }
}

fn check_regular(found: &EntryStat) -> io::Result<()> {
    if found.kind == EntryKind::File {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// Appends a suffix to a name, which is cut to fit the file system.
fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    /// Maximum length of a name (`NAME_MAX`), less the suffix.
    const MAX_NAME_BYTES: usize = 255 - 48;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = name.as_bytes();
    let mut free = bytes[..bytes.len().min(MAX_NAME_BYTES)].to_vec();
    free.extend_from_slice(suffix.as_bytes());
    OsString::from_vec(free)
}

/// Opens a directory without following links; `None` if the kernel or a seccomp filter lacks the
/// call.
#[cfg(target_os = "linux")]
fn openat2_without_links(path: &Path) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;
    openat2(CWD, path, ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

#[cfg(target_os = "linux")]
fn openat2_beneath(directory: &OwnedFd, relative: &Path) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(directory.as_fd(), relative, resolve)
}

#[cfg(target_os = "linux")]
fn openat2(
    directory: BorrowedFd<'_>,
    path: &Path,
    resolve: rustix::fs::ResolveFlags,
) -> Option<io::Result<OwnedFd>> {
    match rustix::fs::openat2(directory, path, DIRECTORY, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        opened => Some(opened.map_err(io::Error::from)),
    }
}

/// Opens each component in the one before, for systems without `openat2`.
fn open_by_component(directory: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    let mut opened: Option<OwnedFd> = None;
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::RootDir if opened.is_none() => OsStr::new("/"),
            Component::CurDir => continue,
            _ => return Err(io::ErrorKind::InvalidFilename.into()),
        };
        let at = opened.as_ref().map_or(directory, AsFd::as_fd);
        opened = Some(openat(at, name, flags, Mode::empty())?);
    }
    opened.ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, DirHandle) {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let handle = DirHandle::open(&top).unwrap();
        (place, top, handle)
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn neither_links_nor_parents_lead_out_with_and_without_openat2() {
        let (_place, top, handle) = place();
        fs::create_dir_all(top.join("real/in")).unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        assert!(handle.open_dir(Path::new("real/in")).is_ok());
        let by_component = |path: &str| open_by_component(handle.as_fd(), Path::new(path));
        assert!(by_component("real/in").is_ok());
        for path in ["link", "link/in", "..", "real/../real", "/", "real/in/../../.."] {
            assert!(handle.open_dir(Path::new(path)).is_err() || path == "real/../real", "{path}");
            assert!(by_component(path).is_err() || path == "/", "{path}");
        }
        assert!(DirHandle::open(&top.join("link")).is_err());
        assert!(DirHandle::open(&top.join("link/in")).is_err());
    }

    #[test]
    fn only_regular_files_are_read_and_only_so_much() {
        let (_place, top, handle) = place();
        fs::write(top.join("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", top.join("link")).unwrap();
        rustix::fs::mknodat(CWD, top.join("fifo"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(handle.read_file(name("file"), 5).unwrap(), b"12345");
        assert_eq!(handle.read_start(name("file"), 2).unwrap(), (b"12".to_vec(), 5));
        assert!(handle.read_file(name("file"), 4).is_err());
        for other in ["link", "fifo", "missing", "../x", "a/b", ""] {
            assert!(handle.read_file(name(other), 5).is_err(), "{other}");
        }
    }

    #[test]
    fn a_file_is_replaced_and_neither_a_link_nor_what_it_leads_to() {
        let (_place, top, handle) = place();
        fs::write(top.join("victim"), "mine").unwrap();
        std::os::unix::fs::symlink("victim", top.join("link")).unwrap();
        handle.replace_file(name("new"), b"text", 0o640).unwrap();
        handle.replace_file(name("new"), b"more", 0o640).unwrap();
        assert_eq!(fs::read(top.join("new")).unwrap(), b"more");
        assert!(handle.replace_file(name("link"), b"text", 0o640).is_err());
        assert_eq!(fs::read(top.join("victim")).unwrap(), b"mine");
        assert_eq!(handle.list(9).unwrap().len(), 3, "no temporary file is left");
    }

    #[test]
    fn an_entry_is_moved_aside_also_from_a_directory_that_forbids_it() {
        let (_place, top, handle) = place();
        fs::write(top.join(".envrc"), "evil").unwrap();
        let found = handle.stat_entry(name(".envrc")).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o555)).unwrap();
        let aside = handle.move_aside(name(".envrc"), &found, "refused").unwrap();
        assert_eq!(fs::metadata(&top).unwrap().permissions().mode() & 0o777, 0o555);
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!top.join(".envrc").exists());
        assert_eq!(fs::read(top.join(aside)).unwrap(), b"evil");
        fs::write(top.join(".envrc"), "other").unwrap();
        let moved = handle.move_aside(name(".envrc"), &found, "refused");
        assert!(moved.is_err(), "what is there now is not what was looked at");
    }
}
