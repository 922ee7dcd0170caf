//! Checks that the disk has space for the new contents of a change before anything is written. New
//! contents are written beside the old ones, so that each needs its full size.

use std::{io, os::fd::AsFd, os::fd::BorrowedFd, path::PathBuf};

use rustix::fs::{fstat, fstatvfs};
use windlass_contract::edit::CommitError;

use super::plan::PlannedFile;
use crate::resolve::file_error;

/// Refuses a change that its file system has no space for. `free` returns the free bytes of a file
/// system, if it reports them.
pub(super) fn check(
    files: &[PlannedFile],
    free: impl Fn(BorrowedFd<'_>) -> io::Result<Option<u64>>,
) -> Result<(), CommitError> {
    let mut disks: Vec<SpaceRequirement> = Vec::new();
    for planned in files {
        let Some(bytes) = planned.after.as_ref().map(super::plan::FileAfter::size_bytes) else { continue };
        let looked = || -> io::Result<(u64, Option<u64>)> {
            let directory = planned.directory.open()?;
            Ok((fstat(&directory)?.st_dev as _, free(directory.as_fd())?))
        };
        let (device, free_bytes) = looked().map_err(|error| file_error(&planned.name, error))?;
        match disks.iter_mut().find(|disk| disk.device == device) {
            Some(disk) => disk.bytes += bytes,
            None => disks.push(SpaceRequirement { device, bytes, free_bytes, path: planned.name.clone() }),
        }
    }
    let full = disks.into_iter().find(|disk| disk.free_bytes.is_some_and(|free| disk.bytes > free));
    match full {
        Some(SpaceRequirement { path, bytes, free_bytes, .. }) => {
            Err(CommitError::NoRoom { path, needed_bytes: bytes, free_bytes: free_bytes.unwrap_or_default() })
        }
        None => Ok(()),
    }
}

/// The bytes that a change needs on one file system.
struct SpaceRequirement {
    device: u64,
    bytes: u64,
    free_bytes: Option<u64>,
    /// The first file of the change on it.
    path: PathBuf,
}

/// Returns the number of bytes this user can still write; `None` if the file system does not report
/// it.
pub(super) fn free_bytes(directory: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let disk = fstatvfs(directory)?;
    Ok((disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize)))
}
