//! Room on the disk for the new contents of a change, looked at before anything is written. New contents are written beside
//! the old ones, so that each needs all of its size.

use std::{io, os::fd::AsFd, os::fd::BorrowedFd, path::PathBuf};

use rustix::fs::{fstat, fstatvfs};
use windlass_contract::edit::CommitError;

use super::plan::Slot;
use crate::resolve::said;

/// Refuses a change that its disk has no room for. `free` says how many bytes a file system has left, if it says so.
pub(super) fn check(
    slots: &[Slot],
    free: impl Fn(BorrowedFd<'_>) -> io::Result<Option<u64>>,
) -> Result<(), CommitError> {
    let mut disks: Vec<NeededRoom> = Vec::new();
    for slot in slots {
        let Some(bytes) = slot.after.as_ref().map(super::plan::After::size_bytes) else { continue };
        let looked = || -> io::Result<(u64, Option<u64>)> {
            let directory = slot.directory.open()?;
            Ok((fstat(&directory)?.st_dev as _, free(directory.as_fd())?))
        };
        let (device, free_bytes) = looked().map_err(|error| said(&slot.name, error))?;
        match disks.iter_mut().find(|disk| disk.device == device) {
            Some(disk) => disk.bytes += bytes,
            None => disks.push(NeededRoom { device, bytes, free_bytes, path: slot.name.clone() }),
        }
    }
    let full = disks.into_iter().find(|disk| disk.free_bytes.is_some_and(|free| disk.bytes > free));
    match full {
        Some(NeededRoom { path, bytes, free_bytes, .. }) => {
            Err(CommitError::NoRoom { path, needed_bytes: bytes, free_bytes: free_bytes.unwrap_or_default() })
        }
        None => Ok(()),
    }
}

/// What a change needs of one file system.
struct NeededRoom {
    device: u64,
    bytes: u64,
    free_bytes: Option<u64>,
    /// The first of its files.
    path: PathBuf,
}

/// How many bytes this user can still write. Some file systems do not count.
pub(super) fn free_bytes(directory: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let disk = fstatvfs(directory)?;
    Ok((disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize)))
}
