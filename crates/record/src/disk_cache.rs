//! A bounded cache on disk for bytes that can be computed again.
//!
//! An entry that cannot be read counts as absent. The oldest entries are evicted first.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use uuid::Uuid;

/// Maximum size of one entry, number of entries, and size of all entries.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
const MAX_FILES: usize = 8;
const MAX_TOTAL_BYTES: u64 = 128 * 1024 * 1024;

/// A cache directory below a home directory.
#[derive(Debug)]
pub struct DiskCache(PathBuf);

impl DiskCache {
    /// Returns the cache of this name. Its directory is created by the first [`put`](Self::put).
    pub fn new(home: &Path, name: &str) -> Self {
        Self(home.join("cache").join(name))
    }

    /// Returns the entry of a key, if there is one. The caller checks that its content is complete.
    pub fn get(&self, key: u64) -> Option<Vec<u8>> {
        let path = self.path(key);
        // Check the type before opening: opening a named pipe would block.
        path.symlink_metadata().ok().filter(|about| about.is_file() && about.len() <= MAX_FILE_BYTES)?;
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes the entry of a key, in place of an older one. Other processes see all of it or
    /// nothing. An entry that is too large is not kept.
    pub fn put(&self, key: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
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
            // Half an entry is useless. If it cannot be removed now, it is evicted later as the
            // oldest.
            let _left = fs::remove_file(&new);
        }
        written.and_then(|()| self.evict_oldest())
    }

    fn path(&self, key: u64) -> PathBuf {
        self.0.join(format!("{key:016x}"))
    }

    /// Removes the oldest entries until the cache is within its limits.
    fn evict_oldest(&self) -> io::Result<()> {
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
            if count <= MAX_FILES && bytes <= MAX_TOTAL_BYTES {
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
        let cache = DiskCache::new(home.path(), "things");
        assert_eq!(cache.get(1), None);
        for bytes in [&b"one"[..], b"another"] {
            cache.put(1, bytes).unwrap();
            assert_eq!(cache.get(1).as_deref(), Some(bytes));
        }
        assert_eq!(fs::read_dir(&cache.0).unwrap().count(), 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&cache.0), mode(&cache.path(1))), (0o700, 0o600));
    }

    #[test]
    fn the_oldest_make_room() {
        let home = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(home.path(), "things");
        for key in 0..20 {
            cache.put(key, b"x").unwrap();
            let age = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(key);
            File::open(cache.path(key)).unwrap().set_modified(age).unwrap();
        }
        cache.put(20, b"x").unwrap();
        let left: Vec<_> = (0..=20).filter(|key| cache.get(*key).is_some()).collect();
        assert_eq!(left, [13, 14, 15, 16, 17, 18, 19, 20]);
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_there() {
        let home = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(home.path(), "things");
        cache.put(1, b"x").unwrap();
        File::create(cache.path(2)).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        fs::create_dir(cache.path(3)).unwrap();
        assert_eq!((cache.get(2), cache.get(3)), (None, None));
        assert!(cache.put(3, b"x").is_err());
        assert_eq!(cache.get(1).as_deref(), Some(&b"x"[..]));
    }
}
