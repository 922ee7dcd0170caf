//! Bytes that could be made again, kept to save the time. Few, bounded, and worth nothing: whatever is wrong with one, it is as
//! if it were not there, and the oldest make room for the newest.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use uuid::Uuid;

/// The largest that is kept, how many there are at most, and how much they may take together.
const LARGEST_BYTES: u64 = 64 * 1024 * 1024;
const MOST_FILES: usize = 8;
const MOST_BYTES: u64 = 128 * 1024 * 1024;

/// A place below a home directory.
#[derive(Debug)]
pub struct Shelf(PathBuf);

impl Shelf {
    /// The shelf of this name, which is made when something is put on it.
    pub fn new(home: &Path, name: &str) -> Self {
        Self(home.join("cache").join(name))
    }

    /// What was put there under a number, if it is still there. Whether it is whole is for the reader to see.
    pub fn get(&self, key: u64) -> Option<Vec<u8>> {
        let path = self.path(key);
        // Looked at before it is opened: a pipe of that name would make whoever opens it wait.
        path.symlink_metadata().ok().filter(|about| about.is_file() && about.len() <= LARGEST_BYTES)?;
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(LARGEST_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Puts something there in the place of what was there under the same number. Others see all of it or nothing; what is
    /// too large is not kept.
    pub fn put(&self, key: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > LARGEST_BYTES {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let new = self.0.join(format!("{}.new", Uuid::now_v7()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&new, self.path(key)));
        if written.is_err() {
            // Half of it is of no use to anyone; if it cannot be removed, it will be as the oldest.
            let _left = fs::remove_file(&new);
        }
        written.and_then(|()| self.make_room())
    }

    fn path(&self, key: u64) -> PathBuf {
        self.0.join(format!("{key:016x}"))
    }

    /// Removes the oldest, as long as there are too many or they take too much.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // Another process may have removed it by now.
            let Ok(about) = entry.metadata() else { continue };
            let changed = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((changed, about.len(), entry.path()));
        }
        files.sort();
        let (mut count, mut bytes) = (files.len(), files.iter().map(|(_, bytes, _)| bytes).sum::<u64>());
        for (_, size, path) in files {
            if count <= MOST_FILES && bytes <= MOST_BYTES {
                break;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => (count, bytes) = (count - 1, bytes - size),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_put_there_is_there_and_for_its_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(home.path(), "things");
        assert_eq!(shelf.get(1), None);
        for bytes in [&b"one"[..], b"another"] {
            shelf.put(1, bytes).unwrap();
            assert_eq!(shelf.get(1).as_deref(), Some(bytes));
        }
        assert_eq!(fs::read_dir(&shelf.0).unwrap().count(), 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&shelf.0), mode(&shelf.path(1))), (0o700, 0o600));
    }

    #[test]
    fn the_oldest_make_room() {
        let home = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(home.path(), "things");
        for key in 0..20 {
            shelf.put(key, b"x").unwrap();
            let age = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(key);
            File::open(shelf.path(key)).unwrap().set_modified(age).unwrap();
        }
        shelf.put(20, b"x").unwrap();
        let left: Vec<_> = (0..=20).filter(|key| shelf.get(*key).is_some()).collect();
        assert_eq!(left, [13, 14, 15, 16, 17, 18, 19, 20]);
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_there() {
        let home = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(home.path(), "things");
        shelf.put(1, b"x").unwrap();
        File::create(shelf.path(2)).unwrap().set_len(LARGEST_BYTES + 1).unwrap();
        fs::create_dir(shelf.path(3)).unwrap();
        assert_eq!((shelf.get(2), shelf.get(3)), (None, None));
        assert!(shelf.put(3, b"x").is_err());
        assert_eq!(shelf.get(1).as_deref(), Some(&b"x"[..]));
    }
}
