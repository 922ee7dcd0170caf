//! Operations on single entries of a layer: type, attributes of the overlay, mode, time and
//! removal. All go by the descriptor of the directory.

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, Timespec, Timestamps, UTIME_OMIT, unlinkat},
    io::Errno,
};

use super::changes::ModeAndTime;
use crate::{
    DirHandle, EntryKind, EntryStat,
    checked_rename::{remove_file, rename_to_free},
};

/// Prefix of the attributes that the kernel sets in an overlay with the mount option `userxattr`.
const OVERLAY_PREFIX: &[u8] = b"user.overlay.";
const ORIGIN: &str = "user.overlay.origin";
const OPAQUE: &str = "user.overlay.opaque";

/// Maximum size of the list of attributes in the kernel (`XATTR_LIST_MAX`).
const MAX_XATTR_LIST_BYTES: usize = 64 * 1024;

/// Maximum number of entries that are read in one directory.
pub(super) const MAX_ENTRIES: usize = 1_000_000;

/// Maximum depth at which a tree is removed in place; deeper trees are moved up first, since each
/// level keeps a descriptor open.
const MAX_REMOVE_DEPTH: usize = 64;

/// An entry of a layer or of its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LayerEntry {
    pub(super) stat: EntryStat,
    pub(super) node: NodeType,
}

/// The type of an entry in an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeType {
    File,
    Directory,
    Symlink,
    /// A FIFO or socket.
    Pipe,
    /// A character device with the number 0:0: the entry of this name was deleted.
    Whiteout,
    /// Any other device.
    Device,
}

impl LayerEntry {
    /// Reads the metadata of an entry without following it; `None` if it does not exist.
    pub(super) fn find(directory: &DirHandle, name: &OsStr) -> io::Result<Option<Self>> {
        match read(directory, name) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.node == NodeType::Directory
    }
}

#[cfg(target_os = "linux")]
fn read(directory: &DirHandle, name: &OsStr) -> rustix::io::Result<LayerEntry> {
    use rustix::fs::{FileType, StatxFlags, statx};

    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(directory, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
    let node = match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::RegularFile => NodeType::File,
        FileType::Directory => NodeType::Directory,
        FileType::Symlink => NodeType::Symlink,
        FileType::Fifo | FileType::Socket => NodeType::Pipe,
        FileType::CharacterDevice if (found.stx_rdev_major, found.stx_rdev_minor) == (0, 0) => {
            NodeType::Whiteout
        }
        _ => NodeType::Device,
    };
    Ok(LayerEntry { stat: EntryStat::from_statx(&found), node })
}

#[cfg(not(target_os = "linux"))]
fn read(directory: &DirHandle, name: &OsStr) -> rustix::io::Result<LayerEntry> {
    let stat = EntryStat::read(directory, name)?;
    let node = match stat.kind {
        EntryKind::File => NodeType::File,
        EntryKind::Directory => NodeType::Directory,
        EntryKind::Symlink => NodeType::Symlink,
        EntryKind::Special => NodeType::Device,
    };
    Ok(LayerEntry { stat, node })
}

/// Makes a whiteout, which hides a name of the lower layer.
#[cfg(target_os = "linux")]
pub(super) fn make_whiteout(directory: &DirHandle, name: &OsStr) -> io::Result<()> {
    use rustix::fs::{FileType, mknodat};
    Ok(mknodat(directory, name, FileType::CharacterDevice, Mode::empty(), 0)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn make_whiteout(_directory: &DirHandle, _name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns a path to an entry through `/proc/self/fd`, for system calls that take no directory
/// descriptor.
fn proc_fd_path(directory: &DirHandle, name: &OsStr) -> io::Result<CString> {
    let mut path = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(if name.is_empty() { b"." } else { name.as_bytes() });
    CString::new(path).map_err(|_| io::ErrorKind::InvalidFilename.into())
}

/// Lists the names of the attributes of an entry; of the directory itself for an empty name.
fn attributes(directory: &DirHandle, name: &OsStr) -> io::Result<Vec<Vec<u8>>> {
    let path = proc_fd_path(directory, name)?;
    // Ask for the size first: it is nearly always 0.
    match rustix::fs::llistxattr_query(&*path) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Ok(_) | Err(Errno::RANGE) => {}
        Err(error) => return Err(error.into()),
    }
    let mut list = vec![0; MAX_XATTR_LIST_BYTES];
    let length = rustix::fs::llistxattr(&*path, &mut list[..])?;
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}

/// Lists the attributes of an overlay that an entry has.
pub(super) fn overlay_attributes(directory: &DirHandle, name: &OsStr) -> io::Result<Vec<Vec<u8>>> {
    let mut names = attributes(directory, name)?;
    names.retain(|name| name.starts_with(OVERLAY_PREFIX));
    Ok(names)
}

/// Lists the attributes of an entry that do not belong to an overlay.
pub(super) fn own_attributes(directory: &DirHandle, name: &OsStr) -> io::Result<Vec<Vec<u8>>> {
    let mut names = attributes(directory, name)?;
    names.retain(|name| !name.starts_with(OVERLAY_PREFIX));
    names.sort();
    Ok(names)
}

/// Returns true if the kernel copied an entry up from the lower layer.
pub(super) fn was_copied_up(directory: &DirHandle, name: &OsStr) -> io::Result<bool> {
    Ok(overlay_attributes(directory, name)?.iter().any(|name| name == ORIGIN.as_bytes()))
}

/// Returns true if a directory of the upper layer is opaque: it hides the entries of the lower one.
pub(super) fn is_opaque(directory: &DirHandle, name: &OsStr) -> io::Result<bool> {
    let mut value = [0; 8];
    match rustix::fs::lgetxattr(&*proc_fd_path(directory, name)?, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(&value[..length] == b"y"),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if the file system supports `user.*` attributes: without them an overlay cannot
/// replace a directory.
pub(super) fn has_user_attributes(directory: &DirHandle) -> io::Result<bool> {
    const TEST: &str = "user.windlass.test";
    let path = proc_fd_path(directory, OsStr::new(""))?;
    match rustix::fs::lsetxattr(&*path, TEST, b"1", rustix::fs::XattrFlags::empty()) {
        Ok(()) => Ok(rustix::fs::lremovexattr(&*path, TEST).is_ok()),
        Err(Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes the attributes of the overlay from an entry. The owner gets write permission for it if
/// needed.
pub(super) fn remove_overlay_attributes(
    directory: &DirHandle,
    name: &OsStr,
    entry: &LayerEntry,
) -> io::Result<()> {
    let attributes = overlay_attributes(directory, name)?;
    if attributes.is_empty() {
        return Ok(());
    }
    let path = proc_fd_path(directory, name)?;
    let mode = entry.stat.permissions;
    let is_unreadable = mode & 0o200 == 0;
    if is_unreadable {
        set_mode(directory, name, mode | 0o200)?;
    }
    for attribute in attributes {
        match rustix::fs::lremovexattr(&*path, &attribute[..]) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if is_unreadable { set_mode(directory, name, mode) } else { Ok(()) }
}

/// Sets the mode of a file or directory; a link is an error.
#[cfg(target_os = "linux")]
pub(super) fn set_mode(directory: &DirHandle, name: &OsStr, mode: u16) -> io::Result<()> {
    let (itself, found) = open_path(directory, name)?;
    if found.kind == EntryKind::Symlink {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    chmod_descriptor(&itself, mode)
}

/// Opens an entry with `O_PATH`, and reads its metadata.
#[cfg(target_os = "linux")]
fn open_path(directory: &DirHandle, name: &OsStr) -> io::Result<(std::os::fd::OwnedFd, EntryStat)> {
    use rustix::fs::{OFlags, openat};

    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = if name.is_empty() { OsStr::new(".") } else { name };
    let itself = openat(directory, name, flags, Mode::empty())?;
    let found = EntryStat::read(&itself, OsStr::new(""))?;
    Ok((itself, found))
}

/// Sets the mode by descriptor: a name could have been replaced.
#[cfg(target_os = "linux")]
fn chmod_descriptor(itself: &std::os::fd::OwnedFd, mode: u16) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", itself.as_raw_fd());
    Ok(rustix::fs::chmodat(rustix::fs::CWD, path, Mode::from_bits_truncate(mode.into()), AtFlags::empty())?)
}

/// Sets mode and time of a file or directory, if it is the expected one; returns false if not.
#[cfg(target_os = "linux")]
pub(super) fn set_metadata_if(
    directory: &DirHandle,
    name: &OsStr,
    is_expected: impl FnOnce(&EntryStat) -> bool,
    ModeAndTime { mode, mtime_ns }: ModeAndTime,
) -> io::Result<bool> {
    let (itself, found) = open_path(directory, name)?;
    if found.kind == EntryKind::Symlink || !is_expected(&found) {
        return Ok(false);
    }
    if found.permissions != mode {
        chmod_descriptor(&itself, mode)?;
    }
    let path = format!("/proc/self/fd/{}", itself.as_raw_fd());
    rustix::fs::utimensat(rustix::fs::CWD, path, &times(mtime_ns), AtFlags::empty())?;
    Ok(true)
}

/// Sets mode and time of a file or directory, if it is the expected one; returns false if not.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_metadata_if(
    directory: &DirHandle,
    name: &OsStr,
    is_expected: impl FnOnce(&EntryStat) -> bool,
    ModeAndTime { mode, mtime_ns }: ModeAndTime,
) -> io::Result<bool> {
    if !is_expected(&EntryStat::read(directory, name)?) {
        return Ok(false);
    }
    set_mode(directory, name, mode)?;
    set_mtime(directory, name, mtime_ns).map(|()| true)
}

/// Sets the mode of a file or directory.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_mode(directory: &DirHandle, name: &OsStr, mode: u16) -> io::Result<()> {
    let name = if name.is_empty() { OsStr::new(".") } else { name };
    let mode = Mode::from_bits_truncate(mode.into());
    Ok(rustix::fs::chmodat(directory, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Sets the modification time of an entry.
pub(super) fn set_mtime(directory: &DirHandle, name: &OsStr, mtime_ns: i64) -> io::Result<()> {
    let name = if name.is_empty() { OsStr::new(".") } else { name };
    Ok(rustix::fs::utimensat(directory, name, &times(mtime_ns), AtFlags::SYMLINK_NOFOLLOW)?)
}

fn times(mtime_ns: i64) -> Timestamps {
    const SECOND: i64 = 1_000_000_000;
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification =
        Timespec { tv_sec: mtime_ns.div_euclid(SECOND), tv_nsec: mtime_ns.rem_euclid(SECOND) };
    Timestamps { last_access, last_modification }
}

/// Removes an entry and everything below it, if it exists. Links are not followed, and no other
/// file system is entered.
pub(super) fn remove_tree(directory: &DirHandle, name: &OsStr) -> io::Result<()> {
    let Some(top) = LayerEntry::find(directory, name)? else { return Ok(()) };
    if !top.is_directory() {
        return remove_file(directory, name);
    }
    let inside = open_with_owner_access(directory, name, &top)?;
    let mut moved_up = 0;
    remove_entries(&inside, &inside, 0, &mut moved_up)?;
    let mut done = 0;
    while done < moved_up {
        let deep = deep_name(done);
        if let Some(entry) = LayerEntry::find(&inside, &deep)? {
            let deeper = open_with_owner_access(&inside, &deep, &entry)?;
            remove_entries(&inside, &deeper, 0, &mut moved_up)?;
            unlinkat(&inside, &deep, AtFlags::REMOVEDIR)?;
        }
        done += 1;
    }
    Ok(unlinkat(directory, name, AtFlags::REMOVEDIR)?)
}

fn deep_name(number: usize) -> OsString {
    OsString::from(format!(".windlass-deep-{number}"))
}

fn remove_entries(
    top: &DirHandle,
    directory: &DirHandle,
    depth: usize,
    moved_up: &mut usize,
) -> io::Result<()> {
    for name in directory.list(MAX_ENTRIES)? {
        let Some(entry) = LayerEntry::find(directory, &name)? else { continue };
        if !entry.is_directory() {
            remove_file(directory, &name)?;
        } else if depth >= MAX_REMOVE_DEPTH {
            if entry.stat.permissions & 0o700 != 0o700 {
                // To be renamed into another directory, a directory must be writable.
                set_mode(directory, &name, entry.stat.permissions | 0o700)?;
            }
            rename_to_free((directory, &name), (top, &deep_name(*moved_up)))?;
            *moved_up += 1;
        } else {
            let inside = open_with_owner_access(directory, &name, &entry)?;
            remove_entries(top, &inside, depth + 1, moved_up)?;
            unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(())
}

/// Opens a directory after giving the owner all permissions on it.
fn open_with_owner_access(directory: &DirHandle, name: &OsStr, entry: &LayerEntry) -> io::Result<DirHandle> {
    if entry.stat.kind != EntryKind::Directory {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    if entry.stat.permissions & 0o700 != 0o700 {
        set_mode(directory, name, entry.stat.permissions | 0o700)?;
    }
    directory.open_dir(Path::new(name))
}
