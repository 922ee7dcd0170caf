//! Opening by a real name: no link on the way, no waiting, no terminal taken over.

use std::{
    ffi::OsStr,
    fs::Metadata,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, openat};

/// A pipe without a writer or a slow device must not hold us up.
const NEVER_WAITING: OFlags = OFlags::NONBLOCK.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Enough to name things in a directory, without having to read it.
#[cfg(target_os = "linux")]
const TO_NAME_IN: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const TO_NAME_IN: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Returns a path without links, as it is now. Only what is then opened without following any link is used.
#[expect(
    clippy::disallowed_methods,
    reason = "what it finds is checked, and opened by a call that follows no link"
)]
pub(super) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Looks at a path without following a link at its end. Nothing is opened by what it says.
#[expect(clippy::disallowed_methods, reason = "what it finds is looked at again when it is open")]
pub(super) fn lstat(path: &Path) -> io::Result<Metadata> {
    path.symlink_metadata()
}

/// Opens a file or directory to read, none of whose parts is a link.
pub(super) fn to_read(real: &Path) -> io::Result<OwnedFd> {
    open(real, OFlags::RDONLY | NEVER_WAITING)
}

/// Opens a directory to make, rename and remove things in it, none of whose parts is a link.
pub(super) fn to_name_in(real: &Path) -> io::Result<OwnedFd> {
    open(real, TO_NAME_IN)
}

/// The same for a directory inside one that is open.
pub(super) fn to_name_in_at(directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(directory, name, TO_NAME_IN | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Opens what is in a directory to read, unless it is a link.
pub(super) fn to_read_at(directory: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(directory, name, OFlags::RDONLY | OFlags::NOFOLLOW | NEVER_WAITING, Mode::empty())?)
}

#[cfg(target_os = "linux")]
fn open(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::{
        fs::{CWD, ResolveFlags, openat2},
        io::Errno,
    };

    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, real, flags, Mode::empty(), no_links) {
        // An old kernel, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(real, flags),
        result => Ok(result?),
    }
}

/// The same for systems without a call for it.
#[cfg(target_os = "linux")]
fn step_by_step(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
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

/// Where the system has nothing better, only the last part is known to be no link.
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
        for open in [open, step_by_step] {
            for flags in [OFlags::RDONLY | NEVER_WAITING, TO_NAME_IN] {
                assert!(open(&top.join("real"), flags).is_ok());
                assert!(open(Path::new("/"), flags).is_ok());
                assert!(open(&top.join("link"), flags).is_err());
                assert!(open(&top.join("link/file"), flags).is_err());
                assert!(open(Path::new("/proc/self/cwd"), flags).is_err());
            }
            assert!(open(&top.join("real/file"), OFlags::RDONLY | NEVER_WAITING).is_ok());
            assert!(open(&top.join("last"), OFlags::RDONLY | NEVER_WAITING).is_err());
        }
    }
}
