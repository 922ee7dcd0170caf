//! Files that MCP keeps between sessions: private to the user, bounded, and replaced as a whole.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::OFlags;

/// Makes the names of temporary files unique within the process.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// Reads a file of at most `max_bytes`. `None` if there is none. A link, a file of another user, or
/// one that others can write is an error.
pub(crate) fn read_state(path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let metadata = file.metadata()?;
    let refuse = |reason| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if !metadata.is_file() {
        return refuse("not a regular file");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse("the file belongs to another user");
    }
    if metadata.mode() & 0o022 != 0 {
        return refuse("others can write the file (chmod 600)");
    }
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(Some(bytes))
}

/// Replaces a file, or creates it with mode 0600 in a directory with mode 0700. A reader sees the
/// old content or the new one.
pub(crate) fn replace_state(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = create_parent(path)?;
    let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".new-{}-{number}", process::id()));
    let replaced = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if replaced.is_err() {
        // The error that counts is the first; the temporary file may not exist.
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Opens a lock file, and creates it if necessary.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    create_parent(path)?;
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

fn create_parent(path: &Path) -> io::Result<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Left by a process with the same id that was killed.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_private_and_replaced_as_a_whole() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("mcp/state.json");
        assert_eq!(read_state(&path, 10).unwrap(), None);
        replace_state(&path, b"first").unwrap();
        replace_state(&path, b"second").unwrap();
        assert_eq!(read_state(&path, 10).unwrap().unwrap(), b"second");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "no temporary file is left");
    }

    #[test]
    fn links_and_files_that_others_can_write_or_that_are_too_large_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state");
        replace_state(&path, b"0123456789").unwrap();
        assert!(read_state(&path, 10).is_ok());
        assert!(read_state(&path, 9).is_err());
        symlink(&path, home.path().join("link")).unwrap();
        assert!(read_state(&home.path().join("link"), 10).is_err());
        assert!(read_state(home.path(), 10).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(read_state(&path, 10).is_err());
    }
}
