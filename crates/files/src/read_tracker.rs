//! Tracks which files the model has read in this session.
//!
//! Small files are compared by content, large ones by their stamp: hashing ten gigabytes to
//! remember a slice would be too slow.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use windlass_contract::{
    edit::Archive,
    files::{Seen, Sight, Since},
};

use crate::sha256::{sha256_of, to_hex};

/// Maximum size of a file that is compared by content.
const MAX_HASHED_BYTES: usize = 256 * 1024;

/// Maximum size of all contents kept to show what has changed. Beyond it, only the fact of a change
/// is known.
const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of files. Beyond it, tracking starts anew.
const MAX_FILES: usize = 20_000;

/// The files that the model has read, shared by all calls of a session.
#[derive(Debug)]
pub struct ReadTracker {
    archive: Option<Arc<dyn Archive>>,
    tracked: OnceLock<Mutex<TrackedFiles>>,
}

#[derive(Debug, Default)]
struct TrackedFiles {
    files: HashMap<PathBuf, TrackedFile>,
    kept_bytes: usize,
}

#[derive(Debug)]
struct TrackedFile {
    sight: Sight,
    content: Option<Vec<u8>>,
}

impl ReadTracker {
    /// Creates a tracker. The files of earlier runs are read from the archive on first use.
    pub fn new(archive: Option<Arc<dyn Archive>>) -> Self {
        Self { archive, tracked: OnceLock::new() }
    }

    /// Records that the model has read a file.
    pub(crate) fn show(&self, seen: Seen<'_>) {
        let small = small_content(seen);
        let digest = small.map(hex);
        let sight = Sight { path: seen.path.to_owned(), stamp: seen.stamp, digest };
        let mut tracked = self.lock();
        if tracked.files.get(seen.path).is_some_and(|known| known.sight == sight) {
            return;
        }
        if let Some(archive) = &self.archive {
            // If this fails, the next start only lacks one check for stale edits.
            let _forgotten = archive.see(&sight);
        }
        tracked.add(sight, small.map(<[u8]>::to_vec));
    }

    /// Compares a file with its state when the model last read it.
    pub(crate) fn since(&self, now: Seen<'_>) -> Since {
        let tracked = self.lock();
        let Some(known) = tracked.files.get(now.path) else { return Since::NeverShown };
        let is_same = match (&known.sight.digest, small_content(now)) {
            (Some(digest), Some(bytes)) => *digest == hex(bytes),
            (Some(_), None) if now.bytes.is_some() => false,
            _ => known.sight.stamp == now.stamp,
        };
        if is_same { Since::Same } else { Since::Changed { was: known.content.clone() } }
    }

    /// Locks the files, after reading those of earlier runs from the archive.
    fn lock(&self) -> MutexGuard<'_, TrackedFiles> {
        let tracked = self.tracked.get_or_init(|| {
            let earlier = self.archive.as_ref().and_then(|archive| archive.seen().ok());
            let mut tracked = TrackedFiles::default();
            earlier.into_iter().flatten().for_each(|sight| tracked.add(sight, None));
            Mutex::new(tracked)
        });
        tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrackedFiles {
    fn add(&mut self, sight: Sight, content: Option<Vec<u8>>) {
        if self.files.len() >= MAX_FILES {
            *self = Self::default();
        }
        self.kept_bytes += content.as_ref().map_or(0, Vec::len);
        let replaced = self.files.insert(sight.path.clone(), TrackedFile { sight, content });
        self.kept_bytes -= replaced.and_then(|known| known.content).map_or(0, |content| content.len());
        if self.kept_bytes > MAX_KEPT_BYTES {
            self.files.values_mut().for_each(|known| known.content = None);
            self.kept_bytes = 0;
        }
    }
}

/// Returns the content of a file that is small enough to be compared by it.
fn small_content(seen: Seen<'_>) -> Option<&[u8]> {
    seen.bytes.filter(|bytes| bytes.len() <= MAX_HASHED_BYTES)
}

fn hex(bytes: &[u8]) -> String {
    to_hex(&sha256_of(bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windlass_contract::files::Stamp;

    use super::*;

    fn seen(bytes: Option<&[u8]>, changed: i64) -> Seen<'_> {
        let size_bytes = bytes.map_or(1 << 40, |bytes| bytes.len() as u64);
        let stamp = Stamp { device: 1, inode: 2, size_bytes, changed: (changed, 0) };
        Seen { path: Path::new("/w/a"), stamp, bytes }
    }

    #[test]
    fn a_small_file_is_known_by_its_content_and_not_by_its_time() {
        let tracker = ReadTracker::new(None);
        assert_eq!(tracker.since(seen(Some(b"x"), 1)), Since::NeverShown);
        tracker.show(seen(Some(b"x"), 1));
        assert_eq!(tracker.since(seen(Some(b"x"), 2)), Since::Same);
        // Written within the same tick of the clock, and as long as before.
        assert_eq!(tracker.since(seen(Some(b"y"), 1)), Since::Changed { was: Some(b"x".to_vec()) });
    }

    #[test]
    fn a_large_file_is_known_by_its_stamp() {
        let tracker = ReadTracker::new(None);
        tracker.show(seen(None, 1));
        let long = vec![b'x'; MAX_HASHED_BYTES + 1];
        let now = |changed| Seen { bytes: Some(&long), ..seen(None, changed) };
        assert_eq!(tracker.since(now(1)), Since::Same);
        assert_eq!(tracker.since(now(2)), Since::Changed { was: None });
        assert_eq!(tracker.since(seen(Some(b"cut"), 1)), Since::Changed { was: None });
    }

    #[test]
    fn a_small_file_that_has_grown_large_has_changed() {
        let tracker = ReadTracker::new(None);
        tracker.show(seen(Some(b"x"), 1));
        let long = vec![b'x'; MAX_HASHED_BYTES + 1];
        assert!(matches!(tracker.since(seen(Some(&long), 1)), Since::Changed { .. }));
    }

    #[test]
    fn content_is_kept_within_bounds() {
        let mut tracked = TrackedFiles::default();
        for at in 0..100 {
            let Seen { stamp, .. } = seen(None, 1);
            let sight = Sight { path: format!("/w/{at}").into(), stamp, digest: None };
            tracked.add(sight, Some(vec![0; MAX_HASHED_BYTES]));
            let held: usize =
                tracked.files.values().filter_map(|known| known.content.as_ref()).map(Vec::len).sum();
            assert_eq!(held, tracked.kept_bytes);
            assert!(held <= MAX_KEPT_BYTES);
        }
        assert_eq!(tracked.files.len(), 100);
    }
}
