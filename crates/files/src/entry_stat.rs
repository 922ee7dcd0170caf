//! The metadata of a directory entry that a change to the entry would alter.

use std::{ffi::OsStr, os::fd::AsFd};

use rustix::{fs::FileType, io};

/// Metadata of a directory entry itself; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryStat {
    /// The file system.
    pub dev: u64,
    /// The inode on it.
    pub ino: u64,
    /// The birth time in nanoseconds since 1970, or 0 if the file system has none. It is compared
    /// because inode numbers are reused.
    pub btime_ns: i64,
    /// The file type.
    pub kind: EntryKind,
    /// The permission bits.
    pub permissions: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The number of names this file has.
    pub nlink: u64,
    /// The length in bytes.
    pub size: u64,
    /// The last change of the content, in nanoseconds since 1970. Any program can set it.
    pub mtime_ns: i64,
    /// The last change of content or metadata, in nanoseconds since 1970. Only the kernel sets it.
    pub ctime_ns: i64,
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device: opening it may block or have an effect.
    Special,
}

impl From<FileType> for EntryKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

impl EntryStat {
    /// Returns true if both are the same file, whatever changed in it.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.dev, self.ino, self.btime_ns) == (other.dev, other.ino, other.btime_ns)
    }

    /// Returns true if this metadata comes from a directory listing: it has the type of the file,
    /// but not its identity.
    pub fn is_from_listing(&self) -> bool {
        self.ctime_ns == 0
    }

    /// Makes the metadata that a directory listing gives without a further system call.
    pub(crate) fn from_listing(dev: u64, ino: u64, kind: EntryKind) -> Self {
        let (permissions, uid, gid, nlink, size) = (0, 0, 0, 0, 0);
        let (btime_ns, mtime_ns, ctime_ns) = (0, 0, 0);
        Self { dev, ino, btime_ns, kind, permissions, uid, gid, nlink, size, mtime_ns, ctime_ns }
    }

    /// Reads the metadata of an entry of a directory; of the directory itself for an empty name.
    #[cfg(target_os = "linux")]
    pub(crate) fn read(directory: impl AsFd, name: &OsStr) -> io::Result<Self> {
        use rustix::fs::{AtFlags, StatxFlags, statx};

        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
        let found = statx(directory, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        Ok(Self::from_statx(&found))
    }

    /// Converts the result of `statx`.
    #[cfg(target_os = "linux")]
    pub(crate) fn from_statx(found: &rustix::fs::Statx) -> Self {
        use rustix::fs::makedev;

        Self {
            dev: makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            btime_ns: nanoseconds(found.stx_btime.tv_sec, found.stx_btime.tv_nsec.into()),
            kind: FileType::from_raw_mode(found.stx_mode.into()).into(),
            permissions: found.stx_mode & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            nlink: found.stx_nlink.into(),
            size: found.stx_size,
            mtime_ns: nanoseconds(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec.into()),
            ctime_ns: nanoseconds(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec.into()),
        }
    }

    /// Reads the metadata of an entry of a directory; of the directory itself for an empty name.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read(directory: impl AsFd, name: &OsStr) -> io::Result<Self> {
        use rustix::fs::{AtFlags, fstat, statat};

        let found = if name.is_empty() {
            fstat(directory)?
        } else {
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?
        };
        Ok(Self {
            dev: found.st_dev as _,
            ino: found.st_ino,
            btime_ns: 0,
            kind: FileType::from_raw_mode(found.st_mode).into(),
            permissions: found.st_mode as u16 & 0o7777,
            uid: found.st_uid,
            gid: found.st_gid,
            nlink: found.st_nlink.into(),
            size: u64::try_from(found.st_size).unwrap_or(0),
            mtime_ns: nanoseconds(found.st_mtime, found.st_mtime_nsec),
            ctime_ns: nanoseconds(found.st_ctime, found.st_ctime_nsec),
        })
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
