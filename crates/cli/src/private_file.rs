//! Files that only their owner can read: configuration and credentials.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Replaces a file as a whole, with mode 0600. After a crash it has the old or the new contents. A
/// missing directory is created with mode 0700.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The target of a link is replaced, not the link: people keep configuration files elsewhere.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    create_directory(directory)?;
    let new = temporary_name(&path);
    let written = write_new(&new, text).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // It may not exist.
        let _gone = fs::remove_file(&new);
    }
    written?;
    File::open(directory)?.sync_all()
}

/// Creates a directory for private files, unless it exists.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Locks changes of a file against those of other processes, until the result is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lock = path.with_file_name(format!(".{name}.lock"));
    create_directory(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)?;
    lock.lock()?;
    Ok(lock)
}

fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    // Left behind by a process that crashed and had our id.
    let _gone = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_private_from_the_beginning_and_nothing_is_left_behind() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("home/config.toml");
        replace(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let root = tempfile::tempdir().unwrap();
        let (target, link) = (root.path().join("target"), root.path().join("link"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        replace(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }
}
