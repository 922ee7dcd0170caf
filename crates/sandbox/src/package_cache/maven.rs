//! A local repository for Maven that can be written, in which what the user's own has is found.
//!
//! Maven up to 3.8 has one local repository. Files from elsewhere are never changed there, so they
//! are linked. What `mvn install` overwrites in place is copied: installed artifacts, snapshots,
//! and lists of versions.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, DirEntry},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use super::cache_dir::{copy, enter, link, open_cache};

/// Name of the repository below the cache of a workspace.
pub(super) const PLACE: &str = "maven";

/// Maximum number of entries of the user's repository that are visited. With sources and checksums
/// an artifact has ten.
const MAX_ENTRIES: usize = 200_000;

/// Maximum depth of a repository: the parts of a group, the artifact, the version.
const MAX_DEPTH: usize = 24;

/// The steps of file times, on file systems that keep every other second only.
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// Maximum size of a file that is copied.
const MAX_COPIED_BYTES: u64 = 64 * 1024 * 1024;

/// Makes the repository, and links what the user's own has by now: once in each process.
pub(super) fn prepare(cache: &Path, own: &Path) -> io::Result<()> {
    static PREPARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !own.is_dir() || !PREPARED.lock().unwrap_or_else(PoisonError::into_inner).insert(cache.to_owned()) {
        return Ok(());
    }
    fill(cache, own)
}

#[expect(clippy::disallowed_methods, reason = "the note is beside the cache, where commands cannot write")]
fn fill(cache: &Path, own: &Path) -> io::Result<()> {
    // Beside the cache, where commands cannot write: the time at which links were last made.
    let note = cache.with_extension("maven-linked");
    let linked = fs::metadata(&note).and_then(|found| found.modified()).ok();
    let linked = linked.filter(|_| cache.join(PLACE).is_dir());
    let now = SystemTime::now() - CLOCK_STEP;
    let repository = enter(open_cache(cache)?, OsStr::new(PLACE))?;
    let mut mirror = RepositoryMirror { linked, left: MAX_ENTRIES };
    mirror.fill(&repository, own, MAX_DEPTH)?;
    fs::File::create(&note)?.set_modified(now)
}

/// Links and copies the user's repository.
struct RepositoryMirror {
    /// The time after which a directory has to be looked at again.
    linked: Option<SystemTime>,
    left: usize,
}

impl RepositoryMirror {
    /// Fills one directory of ours from one of the user's.
    fn fill(&mut self, to: &OwnedFd, from: &Path, depth: usize) -> io::Result<()> {
        // What cannot be read is not there for Maven either. A file that comes or goes changes the
        // time of its directory.
        let modified = fs::metadata(from).and_then(|found| found.modified());
        let (Ok(modified), Ok(entries)) = (modified, fs::read_dir(from)) else { return Ok(()) };
        let is_new = self.linked.is_none_or(|linked| linked <= modified);
        let is_overwritten = is_overwritten(from);
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if kind.is_dir() && depth > 0 {
                self.fill(&enter(to, &name)?, &entry.path(), depth - 1)?;
            } else if kind.is_file() && !is_bookkeeping(&name) {
                if is_overwritten || is_list(&name) {
                    copy_small(to, &entry)?;
                } else if is_new {
                    link(to, &name, &entry.path())?;
                }
            }
        }
        Ok(())
    }
}

/// Tells whether `mvn install` may write in a directory of a version: it was there before, or the
/// version is a snapshot.
fn is_overwritten(version: &Path) -> bool {
    let is_snapshot = version.as_os_str().as_encoded_bytes().ends_with(b"-SNAPSHOT");
    let installed = version.parent().map(|artifact| artifact.join("maven-metadata-local.xml"));
    is_snapshot || installed.is_some_and(|list| list.is_file())
}

/// Tells whether a file lists versions.
fn is_list(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"maven-metadata")
}

/// Tells whether a file only says where others came from, and what was not found. Without it, they
/// count as found.
fn is_bookkeeping(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let ends = [&b".lastUpdated"[..], b".sha1", b".md5", b".lock", b".part"];
    matches!(name, b"_remote.repositories" | b"_maven.repositories" | b"resolver-status.properties")
        || ends.iter().any(|end| name.ends_with(end))
}

fn copy_small(to: &OwnedFd, entry: &DirEntry) -> io::Result<()> {
    let is_small = entry.metadata()?.len() <= MAX_COPIED_BYTES;
    if is_small { copy(to, &entry.file_name(), &entry.path()) } else { Ok(()) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Writes a file of a repository.
    fn write(repository: &Path, path: &str) {
        let path = repository.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "user").unwrap();
    }

    #[test]
    fn what_the_user_has_is_found_and_what_install_overwrites_is_our_own() {
        let place = tempfile::tempdir().unwrap();
        let (cache, own) = (place.path().join("cache"), place.path().join("own"));
        fs::create_dir(&cache).unwrap();
        for path in [
            "org/a/1/a-1.jar",
            "org/a/1/_remote.repositories",
            "org/s/1-SNAPSHOT/s.jar",
            "x/b/maven-metadata-local.xml",
            "x/b/1/b-1.jar",
        ] {
            write(&own, path);
        }
        fill(&cache, &own).unwrap();
        let ours = cache.join(PLACE);
        for (path, is_link) in [
            ("org/a/1/a-1.jar", true),
            ("org/s/1-SNAPSHOT/s.jar", false),
            ("x/b/maven-metadata-local.xml", false),
            ("x/b/1/b-1.jar", false),
        ] {
            assert_eq!(fs::read_to_string(ours.join(path)).unwrap(), "user", "{path}");
            assert_eq!(fs::symlink_metadata(ours.join(path)).unwrap().is_symlink(), is_link, "{path}");
        }
        assert!(!ours.join("org/a/1/_remote.repositories").exists());
        fs::write(ours.join("x/b/1/b-1.jar"), "command").unwrap();
        write(&own, "org/a/2/a-2.jar");
        fill(&cache, &own).unwrap();
        assert!(ours.join("org/a/2/a-2.jar").is_file(), "what has come is linked");
        assert_eq!(fs::read_to_string(ours.join("x/b/1/b-1.jar")).unwrap(), "command");
        assert_eq!(fs::read_to_string(own.join("x/b/1/b-1.jar")).unwrap(), "user");
    }

    #[test]
    fn what_the_user_installs_later_counts() {
        let place = tempfile::tempdir().unwrap();
        let (cache, own) = (place.path().join("cache"), place.path().join("own"));
        fs::create_dir(&cache).unwrap();
        write(&own, "x/b/1-SNAPSHOT/b.jar");
        fill(&cache, &own).unwrap();
        fs::write(own.join("x/b/1-SNAPSHOT/b.jar"), "newer").unwrap();
        let later = SystemTime::now() + CLOCK_STEP;
        fs::File::options()
            .write(true)
            .open(own.join("x/b/1-SNAPSHOT/b.jar"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        fill(&cache, &own).unwrap();
        assert_eq!(fs::read_to_string(cache.join("maven/x/b/1-SNAPSHOT/b.jar")).unwrap(), "newer");
    }

    #[test]
    fn a_link_that_a_command_has_put_there_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (cache, own, victim) =
            (place.path().join("cache"), place.path().join("own"), place.path().join("victim"));
        fs::create_dir_all(cache.join(PLACE)).unwrap();
        fs::create_dir(&victim).unwrap();
        write(&own, "org/s/1-SNAPSHOT/s.jar");
        symlink(&victim, cache.join("maven/org")).unwrap();
        assert!(fill(&cache, &own).is_err());
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }
}
