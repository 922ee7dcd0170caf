//! How long outputs are kept, and how many bytes of them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How often it is worth looking.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);

/// The file whose time says when that was done last.
const STAMP: &str = ".pruned";

/// Bounds on the outputs of all sessions together. What is absent is not bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputRetention {
    /// The most bytes; beyond it the oldest go first.
    pub max_bytes: Option<u64>,
    /// The longest time since the last change.
    pub max_age: Option<Duration>,
}

/// One file.
#[derive(Debug, PartialEq, Eq)]
struct KeptFile {
    path: PathBuf,
    changed: SystemTime,
    bytes: u64,
}

impl OutputRetention {
    /// Removes outputs beyond the bounds. `directory` holds a directory for each session. Does nothing if that was done
    /// within the last hour.
    pub fn prune(&self, directory: &Path) -> io::Result<()> {
        let stamp = directory.join(STAMP);
        let now = SystemTime::now();
        if *self == Self::default() || !directory.is_dir() || is_recent(&stamp, now) {
            return Ok(());
        }
        fs::write(&stamp, "")?;
        for file in self.surplus(list(directory)?, now) {
            absent_is_fine(fs::remove_file(&file))?;
            if let Some(session) = file.parent() {
                // It goes with its last file; another session may write there by now.
                let _left = fs::remove_dir(session);
            }
        }
        Ok(())
    }

    /// The files that are too old, and the oldest of the rest until the others fit.
    fn surplus(&self, mut files: Vec<KeptFile>, now: SystemTime) -> Vec<PathBuf> {
        files.sort_by_key(|file| std::cmp::Reverse(file.changed));
        let mut kept_bytes = 0_u64;
        let mut surplus = Vec::new();
        for file in files {
            let age = now.duration_since(file.changed).unwrap_or_default();
            kept_bytes = kept_bytes.saturating_add(file.bytes);
            let is_old = self.max_age.is_some_and(|limit| age > limit);
            if is_old || self.max_bytes.is_some_and(|limit| kept_bytes > limit) {
                surplus.push(file.path);
            }
        }
        surplus
    }
}

fn is_recent(stamp: &Path, now: SystemTime) -> bool {
    let changed = fs::symlink_metadata(stamp).and_then(|found| found.modified());
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|since| since < PRUNE_INTERVAL))
}

/// The regular files in the directories of all sessions. Links are not followed.
fn list(directory: &Path) -> io::Result<Vec<KeptFile>> {
    let mut files = Vec::new();
    for session in fs::read_dir(directory)? {
        let session = session?;
        if !session.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(session.path())? {
            let file = file?;
            let Ok(found) = file.metadata() else { continue };
            if found.is_file() {
                files.push(KeptFile { path: file.path(), changed: found.modified()?, bytes: found.len() });
            }
        }
    }
    Ok(files)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Three sessions with a file each, of 10 bytes, so many hours old.
    fn outputs() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for (session, hours) in [("a", 1), ("b", 2), ("c", 100)] {
            let file = place.path().join(session).join("1.txt");
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, "0123456789").unwrap();
            let opened = fs::File::options().write(true).open(&file).unwrap();
            opened.set_modified(SystemTime::now() - HOUR * hours).unwrap();
        }
        place
    }

    fn left(place: &tempfile::TempDir) -> Vec<&str> {
        ["a", "b", "c"].into_iter().filter(|name| place.path().join(name).exists()).collect()
    }

    #[test]
    fn what_is_too_old_goes_with_its_directory() {
        let place = outputs();
        let retention = OutputRetention { max_age: Some(HOUR * 50), ..OutputRetention::default() };
        retention.prune(place.path()).unwrap();
        assert_eq!(left(&place), ["a", "b"]);
    }

    #[test]
    fn of_what_is_too_much_the_oldest_goes() {
        let place = outputs();
        let retention = OutputRetention { max_bytes: Some(15), ..OutputRetention::default() };
        retention.prune(place.path()).unwrap();
        assert_eq!(left(&place), ["a"]);
    }

    #[test]
    fn within_an_hour_and_without_bounds_nothing_is_done() {
        let place = outputs();
        OutputRetention::default().prune(place.path()).unwrap();
        assert!(!place.path().join(STAMP).exists());
        let retention = OutputRetention { max_bytes: Some(15), ..OutputRetention::default() };
        fs::write(place.path().join(STAMP), "").unwrap();
        retention.prune(place.path()).unwrap();
        assert_eq!(left(&place), ["a", "b", "c"]);
        OutputRetention { max_age: Some(HOUR), ..retention }.prune(&place.path().join("absent")).unwrap();
    }
}
