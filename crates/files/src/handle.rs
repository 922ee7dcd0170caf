//! Opens files and directories by real path: no link is followed (`RESOLVE_NO_SYMLINKS`, else
//! `O_NOFOLLOW` for each component), no open blocks or takes over a terminal.

use std::{
    ffi::OsStr,
    fs::Metadata,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, openat};

/// Flags for an open that does not wait for the writer of a pipe or for a slow device.
const NONBLOCKING: OFlags = OFlags::NONBLOCK.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Flags to open a directory for `*at` calls, without the permission to read it.
#[cfg(target_os = "linux")]
const DIRECTORY_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Returns a path with all links resolved. The result may be stale: open it without following
/// links.
#[expect(
    clippy::disallowed_methods,
    reason = "what it finds is checked, and opened by a call that follows no link"
)]
pub(super) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Reads the metadata of a path without following a link at its end.
#[expect(clippy::disallowed_methods, reason = "what it finds is looked at again when it is open")]
pub(super) fn lstat(path: &Path) -> io::Result<Metadata> {
    path.symlink_metadata()
}

/// Opens a file or directory for reading. Fails if a component is a link.
pub(super) fn open_read(real: &Path) -> io::Result<OwnedFd> {
    open(real, OFlags::RDONLY | NONBLOCKING)
}

/// Opens a directory to create, rename and remove entries in it. Fails if a component is a link.
pub(super) fn open_directory(real: &Path) -> io::Result<OwnedFd> {
    open(real, DIRECTORY_FLAGS)
}

/// Opens a directory inside an open one, to create, rename and remove entries in it.
pub(super) fn open_directory_at(directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(directory, name, DIRECTORY_FLAGS | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Opens an entry of a directory for reading. Fails if it is a link.
pub(super) fn open_read_at(directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(directory, name, OFlags::RDONLY | OFlags::NOFOLLOW | NONBLOCKING, Mode::empty())?)
}

#[cfg(target_os = "linux")]
fn open(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::{
        fs::{CWD, ResolveFlags, openat2},
        io::Errno,
    };

    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, real, flags, Mode::empty(), no_links) {
        // An old kernel, or a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(real, flags),
        result => Ok(result?),
    }
}

/// Opens each component in the one before, for kernels without `openat2`.
#[cfg(target_os = "linux")]
fn open_by_component(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::CWD;

    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = openat(CWD, "/", step, Mode::empty())?;
    let (Some(parent), Some(last)) = (real.parent(), real.file_name()) else {
        return Ok(openat(CWD, "/", flags, Mode::empty())?);
    };
    for part in parent.iter().skip(1) {
        directory = openat(&directory, part, step, Mode::empty())?;
    }
    Ok(openat(&directory, last, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Opens a path. Without `openat2`, only the last component is known not to be a link.
#[cfg(not(target_os = "linux"))]
fn open(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(real, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn no_part_of_a_path_may_be_a_link_with_and_without_the_call_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        fs::create_dir(top.join("real")).unwrap();
        fs::write(top.join("real/file"), "x").unwrap();
        symlink(top.join("real"), top.join("link")).unwrap();
        symlink(top.join("real/file"), top.join("last")).unwrap();
        for open in [open, open_by_component] {
            for flags in [OFlags::RDONLY | NONBLOCKING, DIRECTORY_FLAGS] {
                assert!(open(&top.join("real"), flags).is_ok());
                assert!(open(Path::new("/"), flags).is_ok());
                assert!(open(&top.join("link"), flags).is_err());
                assert!(open(&top.join("link/file"), flags).is_err());
                assert!(open(Path::new("/proc/self/cwd"), flags).is_err());
            }
            assert!(open(&top.join("real/file"), OFlags::RDONLY | NONBLOCKING).is_ok());
            assert!(open(&top.join("last"), OFlags::RDONLY | NONBLOCKING).is_err());
        }
    }
}
