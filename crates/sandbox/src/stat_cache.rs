//! Caches results of reading files and directories until they change, so that the cost of a call
//! does not depend on the size of the workspace.
//!
//! A command may set any time of a file except `ctime`, which the kernel keeps in steps of some
//! milliseconds. A file that changed just before it was read may change again within the same step,
//! so it is read again.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Time after which a later change gets a different `ctime`. Longer than any step of the kernel's
/// clock; the second one is for file systems that store whole seconds, or every other one.
const SETTLED: Duration = Duration::from_millis(100);
const SETTLED_COARSE: Duration = Duration::from_millis(2100);

/// Maximum number of entries: enough for a few roots with their directories and repositories.
const MAX_ENTRIES: usize = 1024;

/// Identity and state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StatStamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl StatStamp {
    /// Returns `None` if there is no such file.
    fn read(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            file: (found.dev(), found.ino()),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// Returns true if a change right now would get a different time than this.
pub(crate) fn is_settled((seconds, nanos): (i64, i64)) -> bool {
    let since = u64::try_from(seconds).ok().zip(u64::try_from(nanos).ok());
    since.is_some_and(|(seconds, nanos)| {
        let changed = Duration::from_secs(seconds) + Duration::from_nanos(nanos);
        let step = if nanos == 0 { SETTLED_COARSE } else { SETTLED };
        SystemTime::UNIX_EPOCH.elapsed().is_ok_and(|now| now > changed + step)
    })
}

/// Cache of values computed from files and directories.
pub(crate) struct StatCache<T>(Mutex<BTreeMap<PathBuf, (Option<StatStamp>, T)>>);

impl<T: Clone> StatCache<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns the cached value if the file is unchanged, and computes it otherwise.
    pub(crate) fn get_or_read(&self, path: &Path, read: impl FnOnce() -> T) -> T {
        // Stat before reading: a change in between is then found the next time.
        let stamp = StatStamp::read(path);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, made)) = seen.get(path)
            && *before == stamp
        {
            return made.clone();
        }
        let made = read();
        if stamp.is_none_or(|stamp| is_settled(stamp.changed)) {
            if seen.len() >= MAX_ENTRIES {
                seen.clear();
            }
            seen.insert(path.to_owned(), (stamp, made.clone()));
        } else {
            seen.remove(path);
        }
        made
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_time_in_whole_seconds_is_settled_later() {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let ago = |millis: u64| {
            let then = now.checked_sub(Duration::from_millis(millis)).unwrap();
            (i64::try_from(then.as_secs()).unwrap(), i64::from(then.subsec_nanos()).max(1))
        };
        assert!(is_settled(ago(500)) && !is_settled(ago(0)));
        assert!(!is_settled((ago(900).0, 0)), "it may be anywhere in that second, or the next");
        assert!(is_settled((ago(5000).0, 0)));
    }

    #[test]
    fn what_has_not_changed_for_a_while_is_read_once_and_what_has_is_read_again() {
        let seen = StatCache::new();
        let reads = Cell::new(0);
        let look = |path: &Path| {
            seen.get_or_read(path, || {
                reads.set(reads.get() + 1);
                fs::read_to_string(path).ok()
            })
        };
        // It stands where the compiler put it, before this program was started.
        let old = std::env::current_exe().unwrap();
        look(&old);
        let before = reads.get();
        look(&old);
        assert!(
            StatStamp::read(&old).is_none_or(|stamp| !is_settled(stamp.changed)) || reads.get() == before
        );
        let place = tempfile::tempdir().unwrap();
        let fresh = place.path().join("fresh");
        for text in ["one", "two", "six"] {
            // The same length, and perhaps the same time: only the age tells that it must be read
            // again.
            fs::write(&fresh, text).unwrap();
            assert_eq!(look(&fresh).as_deref(), Some(text));
        }
        fs::remove_file(&fresh).unwrap();
        assert_eq!(look(&fresh), None);
    }
}
