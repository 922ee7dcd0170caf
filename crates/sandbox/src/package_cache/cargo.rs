//! A home directory for Cargo that can be written, in which what the user's own has is found
//! through links.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use super::cache_dir::{enter, link, open_cache};

/// Names of Cargo's home below the cache of a workspace: without and with the user's settings.
pub(super) const PLACE: &str = "cargo";
const WITH_SETTINGS: &str = "cargo-with-settings";

/// Maximum number of files of the user's cache that are linked.
const MAX_LINKS: usize = 20_000;

/// Maximum depth of the index: `index/NAME/.cache/ab/cd`.
const MAX_DEPTH: usize = 6;

/// Returns whether Cargo was ever started with one of the directories: it leaves its lock there.
pub(super) fn is_used(cache: &Path) -> bool {
    [PLACE, WITH_SETTINGS].iter().any(|place| cache.join(place).join(".package-cache").exists())
}

/// Makes the directory and returns its path. Where Cargo would not find the user's settings by
/// going up from where it is started, a second directory has them beside the same registry.
pub(super) fn prepare(cache: &Path, own: &Path, directory: &Path) -> io::Result<PathBuf> {
    let top = open_cache(cache)?;
    let home = enter(&top, OsStr::new(PLACE))?;
    if has_changed(cache, own) {
        link(&home, OsStr::new("bin"), &own.join("bin"))?;
        let mut left = MAX_LINKS;
        for (part, depth) in [
            ("registry/cache", MAX_DEPTH),
            ("registry/index", MAX_DEPTH),
            ("git/db", 0),
            ("git/checkouts", 0),
        ] {
            mirror(&enter_all(&home, part)?, &own.join(part), depth, &mut left)?;
        }
    }
    let settings = ["config.toml", "config"].into_iter().find(|name| own.join(name).is_file());
    let Some(settings) = settings.filter(|_| !own.parent().is_some_and(|above| directory.starts_with(above)))
    else {
        return Ok(cache.join(PLACE));
    };
    let second = enter(&top, OsStr::new(WITH_SETTINGS))?;
    for name in ["registry", "git"] {
        link(&second, OsStr::new(name), &Path::new("..").join(PLACE).join(name))?;
    }
    link(&second, OsStr::new("bin"), &own.join("bin"))?;
    link(&second, OsStr::new(settings), &own.join(settings))?;
    Ok(cache.join(WITH_SETTINGS))
}

/// Returns whether the user's cache has other files than when they were last linked by this
/// process.
#[expect(clippy::disallowed_methods, reason = "the note is beside the cache, where commands cannot write")]
fn has_changed(cache: &Path, own: &Path) -> bool {
    static LINKED: Mutex<BTreeMap<PathBuf, Vec<(PathBuf, SystemTime)>>> = Mutex::new(BTreeMap::new());
    let registries = fs::read_dir(own.join("registry/cache")).into_iter().flatten().flatten();
    let directories =
        registries.map(|entry| entry.path()).chain([own.join("git/db"), own.join("git/checkouts")]);
    let now = directories.filter_map(|path| {
        let modified = fs::metadata(&path).and_then(|found| found.modified()).ok()?;
        Some((path, modified))
    });
    let now: Vec<_> = now.collect();
    let mut linked = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    if linked.insert(cache.to_owned(), now.clone()).as_ref() == Some(&now) {
        return false;
    }
    // Beside the cache, where commands cannot write: what an earlier process has linked.
    let (note, text) = (cache.with_extension("linked"), format!("{now:?}"));
    let is_known = cache.join(PLACE).join("registry/index").is_dir()
        && fs::read_to_string(&note).is_ok_and(|before| before == text);
    // Without the note everything is linked once more, which does no harm.
    if !is_known {
        drop(fs::write(&note, text));
    }
    !is_known
}

/// Links everything in a directory of the user's: its files, and its directories below the depth.
fn mirror(to: &OwnedFd, from: &Path, depth: usize, left: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let name = entry.file_name();
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            mirror(&enter(to, &name)?, &entry.path(), depth - 1, left)?;
        } else {
            link(to, &name, &entry.path())?;
        }
    }
    Ok(())
}

fn enter_all(directory: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let (first, second) = path.split_once('/').unwrap_or((path, "."));
    enter(&enter(directory, OsStr::new(first))?, OsStr::new(second))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_the_user_has_is_found_and_new_files_are_our_own() {
        let place = tempfile::tempdir().unwrap();
        let (cache, own) = (place.path().join("cache"), place.path().join("home/.cargo"));
        for path in ["registry/cache/i", "registry/index/i/.cache/se/rd", "git/db/x", "bin"] {
            fs::create_dir_all(own.join(path)).unwrap();
        }
        for path in ["registry/cache/i/a.crate", "registry/index/i/.cache/se/rd/serde", "config.toml"] {
            fs::write(own.join(path), path).unwrap();
        }
        fs::create_dir(&cache).unwrap();
        let home = prepare(&cache, &own, &place.path().join("home/work")).unwrap();
        assert_eq!(home, cache.join("cargo"));
        assert!(!home.join("config.toml").exists(), "it is found above the working directory");
        fs::write(home.join("registry/cache/i/b.crate"), "").unwrap();
        let away = prepare(&cache, &own, Path::new("/srv/work")).unwrap();
        for path in ["registry/cache/i/a.crate", "registry/index/i/.cache/se/rd/serde", "config.toml"] {
            assert_eq!(fs::read_to_string(away.join(path)).unwrap(), path);
        }
        assert!(away.join("registry/cache/i/b.crate").is_file() && away.join("git/db/x").is_dir());
        assert!(!own.join("registry/cache/i/b.crate").exists());
    }

    #[test]
    fn a_link_that_a_command_has_put_there_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (cache, own, victim) =
            (place.path().join("cache"), place.path().join("own"), place.path().join("victim"));
        fs::create_dir_all(own.join("registry/cache/i")).unwrap();
        fs::create_dir_all(cache.join("cargo/registry")).unwrap();
        fs::create_dir(&victim).unwrap();
        symlink(&victim, cache.join("cargo/registry/cache")).unwrap();
        assert!(prepare(&cache, &own, Path::new("/")).is_err());
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }
}
