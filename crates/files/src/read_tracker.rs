//! What the model was shown of files in this session.
//!
//! Small files are known by their content, large ones by their stamp: reading ten gigabytes to remember a slice would cost
//! more than it is worth.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use ring::digest::{SHA256, digest};
use windlass_contract::{
    edit::Archive,
    files::{Seen, Sight, Since},
};

/// The largest file that is known by its content.
const LIMIT_BYTES: usize = 256 * 1024;

/// How much content is kept to say what has changed. Beyond it, only that something has.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// How many files are remembered. Beyond it, memory begins anew.
const MOST_FILES: usize = 20_000;

/// A memory that all calls of a session share.
#[derive(Debug)]
pub struct ReadTracker {
    archive: Option<Arc<dyn Archive>>,
    memory: OnceLock<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    files: HashMap<PathBuf, Known>,
    kept_bytes: usize,
}

#[derive(Debug)]
struct Known {
    sight: Sight,
    content: Option<Vec<u8>>,
}

impl ReadTracker {
    /// With what is known from earlier, once it is asked for.
    pub fn new(archive: Option<Arc<dyn Archive>>) -> Self {
        Self { archive, memory: OnceLock::new() }
    }

    /// Remembers a file.
    pub(crate) fn show(&self, seen: Seen<'_>) {
        let small = small(seen);
        let digest = small.map(hex);
        let sight = Sight { path: seen.path.to_owned(), stamp: seen.stamp, digest };
        let mut memory = self.lock();
        if memory.files.get(seen.path).is_some_and(|known| known.sight == sight) {
            return;
        }
        if let Some(archive) = &self.archive {
            // Forgotten at the next start, it would only be less careful than it could be.
            let _forgotten = archive.see(&sight);
        }
        memory.add(sight, small.map(<[u8]>::to_vec));
    }

    /// What became of a file.
    pub(crate) fn since(&self, now: Seen<'_>) -> Since {
        let memory = self.lock();
        let Some(known) = memory.files.get(now.path) else { return Since::NeverShown };
        let is_same = match (&known.sight.digest, small(now)) {
            (Some(digest), Some(bytes)) => *digest == hex(bytes),
            (Some(_), None) if now.bytes.is_some() => false,
            _ => known.sight.stamp == now.stamp,
        };
        if is_same { Since::Same } else { Since::Changed { was: known.content.clone() } }
    }

    /// The memory, with what is known from earlier.
    fn lock(&self) -> MutexGuard<'_, Memory> {
        let memory = self.memory.get_or_init(|| {
            let earlier = self.archive.as_ref().and_then(|archive| archive.seen().ok());
            let mut memory = Memory::default();
            earlier.into_iter().flatten().for_each(|sight| memory.add(sight, None));
            Mutex::new(memory)
        });
        memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn add(&mut self, sight: Sight, content: Option<Vec<u8>>) {
        if self.files.len() >= MOST_FILES {
            *self = Self::default();
        }
        self.kept_bytes += content.as_ref().map_or(0, Vec::len);
        let replaced = self.files.insert(sight.path.clone(), Known { sight, content });
        self.kept_bytes -= replaced.and_then(|known| known.content).map_or(0, |content| content.len());
        if self.kept_bytes > KEPT_BYTES {
            self.files.values_mut().for_each(|known| known.content = None);
            self.kept_bytes = 0;
        }
    }
}

/// All of a file that is small enough to be known by it.
fn small(seen: Seen<'_>) -> Option<&[u8]> {
    seen.bytes.filter(|bytes| bytes.len() <= LIMIT_BYTES)
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
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
        let long = vec![b'x'; LIMIT_BYTES + 1];
        let now = |changed| Seen { bytes: Some(&long), ..seen(None, changed) };
        assert_eq!(tracker.since(now(1)), Since::Same);
        assert_eq!(tracker.since(now(2)), Since::Changed { was: None });
        assert_eq!(tracker.since(seen(Some(b"cut"), 1)), Since::Changed { was: None });
    }

    #[test]
    fn a_small_file_that_has_grown_large_has_changed() {
        let tracker = ReadTracker::new(None);
        tracker.show(seen(Some(b"x"), 1));
        let long = vec![b'x'; LIMIT_BYTES + 1];
        assert!(matches!(tracker.since(seen(Some(&long), 1)), Since::Changed { .. }));
    }

    #[test]
    fn content_is_kept_within_bounds() {
        let mut memory = Memory::default();
        for at in 0..100 {
            let Seen { stamp, .. } = seen(None, 1);
            let sight = Sight { path: format!("/w/{at}").into(), stamp, digest: None };
            memory.add(sight, Some(vec![0; LIMIT_BYTES]));
            let held: usize =
                memory.files.values().filter_map(|known| known.content.as_ref()).map(Vec::len).sum();
            assert_eq!(held, memory.kept_bytes);
            assert!(held <= KEPT_BYTES);
        }
        assert_eq!(memory.files.len(), 100);
    }
}
