//! Contents of the current files of a workspace, each stored once under its SHA-256 and shared by
//! all sessions.
//!
//! The store is a cache: nothing is flushed, and after a restart of the machine a content is
//! compared before it is used. The contents that a command changed are linked into the archive of
//! its session, which is flushed.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use ring::digest::{Context, SHA256, digest};
use windlass_contract::snapshot::{ContentDigest, ContentStore};

use crate::{edits::durable::create_private_directory, hex::to_hex};

/// Minimum size of files that are stored by reflink, where the file system can do that.
const MIN_REFLINK_BYTES: u64 = 256 * 1024;

/// Size of the buffer for reading.
const CHUNK_BYTES: usize = 256 * 1024;

/// Maximum time that an unused store is kept.
const MAX_UNUSED: Duration = Duration::from_hours(720);

/// The store of one workspace.
#[derive(Debug)]
pub struct SnapshotStore {
    directory: PathBuf,
    /// A shared lock, held while the store is used.
    lock: File,
    /// Set if the contents were written since the machine started, so that they match their names.
    is_trusted: AtomicBool,
    has_reflinks: AtomicBool,
}

/// The state of a store, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotStoreState {
    /// The directory.
    pub directory: PathBuf,
    /// The number of contents.
    pub contents: u64,
    /// Their total size on the disk.
    pub bytes: u64,
    /// The time at which the last scan was saved.
    pub scanned: Option<SystemTime>,
}

impl SnapshotStore {
    /// Opens the store of a workspace, and creates it if there is none.
    pub fn open(home: &Path, workspace: &Path) -> io::Result<Self> {
        let directory = directory_of(home, workspace);
        create_private_directory(&directory.join("contents"))?;
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(directory.join("lock"))?;
        lock.try_lock_shared().map_err(io::Error::from)?;
        // For people, who cannot tell the workspace from the name of the directory.
        let note = directory.join("workspace");
        if !note.exists() {
            fs::write(&note, format!("{}\n", workspace.display()))?;
        }
        Ok(Self {
            directory,
            lock,
            is_trusted: AtomicBool::new(false),
            has_reflinks: AtomicBool::new(cfg!(target_os = "linux")),
        })
    }

    /// Returns the state of the store of a workspace, if there is one.
    pub fn state(home: &Path, workspace: &Path) -> io::Result<Option<SnapshotStoreState>> {
        let directory = directory_of(home, workspace);
        if !directory.is_dir() {
            return Ok(None);
        }
        let (mut contents, mut bytes) = (0, 0);
        for_each_content(&directory, |path, _| {
            if let Ok(found) = fs::symlink_metadata(path) {
                contents += 1;
                bytes += found.blocks().saturating_mul(512);
            }
        })?;
        let scanned = fs::metadata(directory.join("listing")).and_then(|found| found.modified()).ok();
        Ok(Some(SnapshotStoreState { directory, contents, bytes, scanned }))
    }

    fn path_of(&self, digest: &ContentDigest) -> PathBuf {
        // One flat directory: ext4 spreads directories over the disk, and 1,000 contents in 256 of
        // them took 20 times as long.
        self.directory.join("contents").join(to_hex(digest))
    }

    /// Returns true if a content is already stored.
    fn has(&self, path: &Path, length: u64, digest: &ContentDigest) -> bool {
        let Ok(found) = fs::symlink_metadata(path) else { return false };
        let is_whole = found.is_file() && found.len() == length;
        if self.is_trusted.load(Ordering::Relaxed) || !is_whole {
            return is_whole;
        }
        File::open(path).and_then(|file| read_digest(&file, length)).is_ok_and(|found| found == *digest)
    }

    fn keep_bytes(&self, bytes: &[u8]) -> io::Result<ContentDigest> {
        let digest = sha256(bytes);
        let path = self.path_of(&digest);
        if self.has(&path, bytes.len() as u64, &digest) {
            return Ok(digest);
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                let written = file.write_all(bytes);
                written.inspect_err(|_| drop(fs::remove_file(&path)))?;
            }
            // Cut short by the end of a process or of the machine, or still being written by
            // another process.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let (draft, mut file) = self.draft()?;
                let written = file.write_all(bytes).and_then(|()| fs::rename(&draft, &path));
                written.inspect_err(|_| drop(fs::remove_file(&draft)))?;
            }
            Err(error) => return Err(error),
        }
        Ok(digest)
    }

    /// Stores a large file by sharing its blocks; none if the file system cannot do that.
    #[cfg(target_os = "linux")]
    fn keep_by_reflink(&self, file: &File, max_bytes: u64) -> io::Result<Option<ContentDigest>> {
        if !self.has_reflinks.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (draft, clone) = self.draft()?;
        let remove = || drop(fs::remove_file(&draft));
        if rustix::fs::ioctl_ficlone(&clone, file).is_err() {
            self.has_reflinks.store(false, Ordering::Relaxed);
            remove();
            return Ok(None);
        }
        let kept = read_digest(&clone, max_bytes).and_then(|digest| {
            fs::rename(&draft, self.path_of(&digest))?;
            Ok(Some(digest))
        });
        kept.inspect_err(|_| remove())
    }

    #[cfg(not(target_os = "linux"))]
    fn keep_by_reflink(&self, _: &File, _: u64) -> io::Result<Option<ContentDigest>> {
        Ok(None)
    }

    fn draft(&self) -> io::Result<(PathBuf, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("draft-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let draft = self.directory.join(name);
        // A draft may be left of an earlier process with the same pid.
        drop(fs::remove_file(&draft));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&draft)?;
        Ok((draft, file))
    }
}

impl ContentStore for SnapshotStore {
    fn keep_content(&self, file: &File, max_bytes: u64) -> io::Result<ContentDigest> {
        let length = file.metadata()?.len();
        if length > max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if length >= MIN_REFLINK_BYTES
            && let Some(digest) = self.keep_by_reflink(file, max_bytes)?
        {
            return Ok(digest);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.keep_bytes(&bytes)
    }

    fn export_content(&self, digest: &ContentDigest, to: &Path) -> io::Result<()> {
        let from = self.path_of(digest);
        match fs::hard_link(&from, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // Too many links, or a file system without hard links.
            Err(error) if error.kind() != io::ErrorKind::NotFound => fs::copy(&from, to).map(drop),
            linked => linked,
        }
    }

    fn load_listing(&self) -> Option<Vec<u8>> {
        let bytes = fs::read(self.directory.join("listing")).ok()?;
        let (hash, rest) = bytes.split_at_checked(32)?;
        let (boot, listing) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'\n')? + 1)?;
        let is_current = hash == sha256(rest) && boot.strip_suffix(b"\n") == Some(boot_id().as_bytes());
        self.is_trusted.store(is_current, Ordering::Relaxed);
        is_current.then(|| listing.to_vec())
    }

    fn save_listing(&self, listing: &[u8]) -> io::Result<()> {
        let rest = [boot_id().as_bytes(), b"\n", listing].concat();
        let (draft, mut file) = self.draft()?;
        let written = file
            .write_all(&sha256(&rest))
            .and_then(|()| file.write_all(&rest))
            .and_then(|()| fs::rename(&draft, self.directory.join("listing")));
        written.inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    fn remove_unused(&self, used: &HashSet<ContentDigest>) -> io::Result<()> {
        // Exclusive only for a moment: a session that starts meanwhile finds its contents missing
        // and stores them again.
        if self.lock.try_lock().is_err() {
            return self.lock.try_lock_shared().map_err(io::Error::from);
        }
        let used: HashSet<String> = used.iter().map(|digest| to_hex(digest)).collect();
        let removed = for_each_content(&self.directory, |path, name| {
            if !used.contains(name) {
                drop(fs::remove_file(path));
            }
        });
        for entry in fs::read_dir(&self.directory)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("draft-") {
                drop(fs::remove_file(entry.path()));
            }
        }
        self.lock.try_lock_shared().map_err(io::Error::from)?;
        removed.and_then(|()| self.directory.parent().map_or(Ok(()), remove_old_stores))
    }
}

/// Removes stores that were not used for [`MAX_UNUSED`].
fn remove_old_stores(stores: &Path) -> io::Result<()> {
    for entry in fs::read_dir(stores)?.flatten() {
        let path = entry.path();
        let used = fs::metadata(path.join("listing")).or_else(|_| fs::metadata(path.join("lock")));
        let is_old = used
            .and_then(|found| found.modified())
            .is_ok_and(|used| SystemTime::now().duration_since(used).is_ok_and(|unused| unused > MAX_UNUSED));
        let is_free = || File::open(path.join("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
        if is_old && is_free() {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

fn directory_of(home: &Path, workspace: &Path) -> PathBuf {
    let digest = sha256(workspace.as_os_str().as_encoded_bytes());
    home.join("snapshots").join(&to_hex(&digest)[..32])
}

fn for_each_content(directory: &Path, mut visit: impl FnMut(&Path, &str)) -> io::Result<()> {
    for entry in fs::read_dir(directory.join("contents"))? {
        let entry = entry?;
        visit(&entry.path(), &entry.file_name().to_string_lossy());
    }
    Ok(())
}

/// Returns an id that changes with every boot. Contents from before it may not have reached the
/// disk.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn sha256(bytes: &[u8]) -> ContentDigest {
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sha256
}

fn read_digest(mut file: &File, max_bytes: u64) -> io::Result<ContentDigest> {
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = max_bytes;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        left = left.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        context.update(&chunk[..read]);
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(context.finish().as_ref());
    Ok(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct StoreFixture {
        directory: tempfile::TempDir,
        store: SnapshotStore,
    }

    impl StoreFixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let store = SnapshotStore::open(directory.path(), Path::new("/w")).unwrap();
            Self { directory, store }
        }

        fn keep(&self, content: &[u8]) -> ContentDigest {
            let path = self.directory.path().join("source");
            fs::write(&path, content).unwrap();
            self.store.keep_content(&File::open(path).unwrap(), 1024 * 1024).unwrap()
        }

        fn exported(&self, digest: &ContentDigest) -> Vec<u8> {
            let to = self.directory.path().join("exported");
            drop(fs::remove_file(&to));
            self.store.export_content(digest, &to).unwrap();
            fs::read(to).unwrap()
        }
    }

    #[test]
    fn contents_come_back_and_too_large_ones_are_refused() {
        let fixture = StoreFixture::new();
        let large = vec![7; usize::try_from(MIN_REFLINK_BYTES).unwrap() + 1];
        for content in [&b""[..], b"text", &large] {
            let digest = fixture.keep(content);
            assert_eq!(digest, sha256(content));
            assert_eq!(fixture.exported(&digest), content);
        }
        let path = fixture.directory.path().join("source");
        let error = fixture.store.keep_content(&File::open(path).unwrap(), 100).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_content_that_a_power_cut_damaged_is_written_again() {
        let fixture = StoreFixture::new();
        let digest = fixture.keep(b"text");
        for damaged in ["", "tex", "TEXT", "text and more"] {
            fs::write(fixture.store.path_of(&digest), damaged).unwrap();
            fixture.keep(b"text");
            assert_eq!(fixture.exported(&digest), b"text", "{damaged:?}");
        }
    }

    #[test]
    fn a_listing_comes_back_whole_and_from_this_start_of_the_machine_or_not_at_all() {
        let fixture = StoreFixture::new();
        assert_eq!(fixture.store.load_listing(), None);
        fixture.store.save_listing(b"a\nb").unwrap();
        assert_eq!(fixture.store.load_listing().as_deref(), Some(&b"a\nb"[..]));
        let path = fixture.store.directory.join("listing");
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(fixture.store.load_listing(), None, "cut at {cut}");
        }
        let rest = [b"another\n", &b"a\nb"[..]].concat();
        fs::write(&path, [&sha256(&rest)[..], &rest].concat()).unwrap();
        assert_eq!(fixture.store.load_listing(), None);
    }

    #[test]
    fn unused_contents_are_removed_unless_another_session_uses_the_store() {
        let fixture = StoreFixture::new();
        let (used, unused) = (fixture.keep(b"used"), fixture.keep(b"unused"));
        let other = SnapshotStore::open(fixture.directory.path(), Path::new("/w")).unwrap();
        fixture.store.remove_unused(&HashSet::from([used])).unwrap();
        assert!(fixture.store.path_of(&unused).exists());
        drop(other);
        fixture.store.remove_unused(&HashSet::from([used])).unwrap();
        assert!(!fixture.store.path_of(&unused).exists());
        assert_eq!(fixture.exported(&used), b"used");
        let state = SnapshotStore::state(fixture.directory.path(), Path::new("/w")).unwrap().unwrap();
        assert_eq!(state.contents, 1);
    }
}
