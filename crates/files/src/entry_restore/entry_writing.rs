//! Makes single entries: files with their metadata, and the directories above them.

use std::{
    ffi::OsStr,
    fs::{File, Permissions},
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{PermissionsExt, fchown},
    },
    path::Path,
};

use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, futimens, mkdirat, openat, unlinkat,
};
use windlass_contract::snapshot::EntryVersion;

use super::{entry_restorer::PlannedRestore, observed_entry::is_unreachable, place_of};
use crate::{
    EntryKind, EntryStat,
    commit::xattrs,
    handle::{open_directory, open_directory_at, open_read_at},
};

/// Writes a new file under a free name. Metadata that the change does not alter is copied from the
/// file it replaces.
pub(super) fn write_file(
    directory: &OwnedFd,
    (name, free): (&OsStr, &OsStr),
    bytes: &[u8],
    plan: &PlannedRestore<'_>,
    after: &EntryVersion,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, free, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    if let Some(now) = plan.predecessor() {
        let old = File::from(open_read_at(directory, name)?);
        xattrs::write(&xattrs::read(&old)?, &file)?;
        let _not_allowed = fchown(&file, Some(now.stat.uid), Some(now.stat.gid));
    }
    give_owner(&file, plan, after);
    file.set_permissions(Permissions::from_mode(plan.mode(after)))?;
    let (seconds, nanoseconds) = after.modified;
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Ok(futimens(&file, &Timestamps { last_access, last_modification: modified })?)
}

/// Restores the owner if the change altered it, as far as this user may.
pub(super) fn give_owner(file: &File, plan: &PlannedRestore<'_>, after: &EntryVersion) {
    if plan.change.before.as_ref().is_none_or(|before| before.owner != after.owner) {
        let (user, group) = after.owner;
        let _not_allowed = fchown(file, Some(user), Some(group));
    }
}

/// Removes an entry; a directory only if it is empty.
pub(super) fn remove_entry(directory: &OwnedFd, name: &OsStr, found: &EntryStat) -> io::Result<()> {
    let is_directory = found.kind == EntryKind::Directory;
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(unlinkat(directory, name, flags)?)
}

/// Opens a directory for `*at` calls, and makes it if it is missing.
pub(super) fn open_or_make(path: &Path) -> io::Result<OwnedFd> {
    match open_directory(path) {
        Err(error) if is_unreachable(&error) => {}
        opened => return opened,
    }
    let mut missing: Vec<&Path> = vec![path];
    for above in path.ancestors().skip(1) {
        match open_directory(above) {
            Ok(mut directory) => {
                for path in missing.into_iter().rev() {
                    let name = place_of(path)?.1;
                    mkdirat(&directory, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
                    directory = open_directory_at(&directory, name)?;
                }
                return Ok(directory);
            }
            Err(error) if is_unreachable(&error) => missing.push(above),
            Err(error) => return Err(error),
        }
    }
    open_directory(path)
}
