//! Lists one directory: its entries with their metadata, sorted by name.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    sync::Arc,
};

use rustix::{
    fs::{Access, AtFlags, FileType, Mode, OFlags, accessat, openat},
    io::Errno,
};

use super::ScanNode;
use crate::{DirHandle, EntryKind, EntryStat};

/// The entries of one directory.
pub(crate) struct DirectoryListing {
    pub(crate) nodes: Vec<ScanNode>,
    /// True if no entry was left out.
    pub(crate) is_complete: bool,
}

impl DirectoryListing {
    pub(crate) fn read(
        directory: &OwnedFd,
        dev: u64,
        names_only: bool,
        max_entries: usize,
    ) -> io::Result<Self> {
        let mut listing = Self { nodes: Vec::new(), is_complete: true };
        for_each_entry(directory, |name, ino, file_type| {
            if listing.nodes.len() == max_entries {
                listing.is_complete = false;
                return false;
            }
            listing.nodes.extend(node(directory, dev, names_only, (name, ino, file_type)));
            true
        })?;
        listing.nodes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listing)
    }
}

/// Returns an entry that the kernel lists, or `None` if it was removed by now.
fn node(
    directory: &OwnedFd,
    dev: u64,
    names_only: bool,
    (name, ino, file_type): (&OsStr, u64, FileType),
) -> Option<ScanNode> {
    // A name with a leading dot may be one that other programs trust, so its times matter.
    let is_plain = !name.as_bytes().starts_with(b".") && name != "HEAD" && name != "config";
    let known = file_type == FileType::RegularFile;
    let stat = if names_only && is_plain && known {
        EntryStat::from_listing(dev, ino, file_type.into())
    } else {
        EntryStat::read(directory, name).ok()?
    };
    Some(ScanNode { name: OsString::from(name), stat, children: Arc::default() })
}

/// Calls `visit` for each entry except `.` and `..`, until it returns false.
#[cfg(target_os = "linux")]
fn for_each_entry(
    directory: &OwnedFd,
    mut visit: impl FnMut(&OsStr, u64, FileType) -> bool,
) -> io::Result<()> {
    use std::mem::MaybeUninit;

    use rustix::fs::RawDir;

    let mut buffer = [const { MaybeUninit::uninit() }; 16 * 1024];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && !visit(name, entry.ino(), entry.file_type()) {
            break;
        }
    }
    Ok(())
}

/// Calls `visit` for each entry except `.` and `..`, until it returns false.
#[cfg(not(target_os = "linux"))]
fn for_each_entry(
    directory: &OwnedFd,
    mut visit: impl FnMut(&OsStr, u64, FileType) -> bool,
) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && !visit(name, entry.ino(), entry.file_type()) {
            break;
        }
    }
    Ok(())
}

/// Opens an open directory again, to list it from its start.
pub(crate) fn reopen(directory: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(directory, ".", flags, Mode::empty())?)
}

/// Opens a directory to list it. Returns `None` if it was removed, is of another type by now, or
/// can be neither listed nor written by this user.
pub(crate) fn open_directory(above: &OwnedFd, name: &OsStr, stat: &EntryStat) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(above, name, flags, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(Errno::ACCESS) if stat.uid == rustix::process::geteuid().as_raw() => {
            open_with_permission(above, name, stat, flags).map(Some)
        }
        Err(Errno::ACCESS) => {
            let writable = accessat(above, name, Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty());
            if writable.is_err() { Ok(None) } else { Err(Errno::ACCESS.into()) }
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory of this user whose mode forbids listing. The mode is the same afterwards.
#[cfg(target_os = "linux")]
fn open_with_permission(
    above: &OwnedFd,
    name: &OsStr,
    stat: &EntryStat,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{CWD, chmodat, fchmod};

    let path_only = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(above, name, path_only, Mode::empty())?;
    if !EntryStat::read(&held, OsStr::new(""))?.is_same_file(stat) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let before = Mode::from_bits_truncate(stat.permissions.into());
    // By descriptor: a name could have been replaced.
    let itself = format!("/proc/self/fd/{}", held.as_raw_fd());
    chmodat(CWD, &itself, before | Mode::RWXU, AtFlags::empty())?;
    let opened = openat(CWD, &itself, flags.difference(OFlags::NOFOLLOW), Mode::empty());
    match opened {
        Ok(opened) => {
            fchmod(&opened, before)?;
            Ok(opened)
        }
        Err(error) => {
            chmodat(CWD, &itself, before, AtFlags::empty())?;
            Err(error.into())
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn open_with_permission(_: &OwnedFd, _: &OsStr, _: &EntryStat, _: OFlags) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Returns true if the file system sets the change time itself, by the clock of this machine, also
/// for a rename.
#[cfg(target_os = "linux")]
pub(crate) fn has_trusted_ctime(directory: &DirHandle) -> bool {
    const EXT4_SUPER_MAGIC: i64 = 0xef53;
    const XFS_SUPER_MAGIC: i64 = 0x5846_5342;
    const BTRFS_SUPER_MAGIC: i64 = 0x9123_683e;
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;
    const F2FS_SUPER_MAGIC: i64 = 0xf2f5_2010;
    const MAGICS: [i64; 6] = [
        EXT4_SUPER_MAGIC,
        XFS_SUPER_MAGIC,
        BTRFS_SUPER_MAGIC,
        TMPFS_MAGIC,
        OVERLAYFS_SUPER_MAGIC,
        F2FS_SUPER_MAGIC,
    ];
    rustix::fs::fstatfs(directory).is_ok_and(|found| MAGICS.contains(&found.f_type))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_trusted_ctime(_directory: &DirHandle) -> bool {
    false
}

impl ScanNode {
    /// Returns true if this is a directory.
    pub fn is_directory(&self) -> bool {
        self.stat.kind == EntryKind::Directory
    }
}
