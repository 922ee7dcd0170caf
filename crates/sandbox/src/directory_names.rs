//! Names of the entries of a directory, listed once instead of one lookup per name.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::stat_cache::StatCache;

/// Maximum number of entries; for larger directories, single lookups are cheaper than a listing.
const MAX_ENTRIES: usize = 512;

/// The names of a directory, as far as they are known.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryNames(Option<Arc<HashSet<OsString>>>);

impl DirectoryNames {
    pub(crate) fn list(directory: &Path) -> Self {
        static SEEN: StatCache<DirectoryNames> = StatCache::new();
        SEEN.get_or_read(directory, || Self(read(directory).map(Arc::new)))
    }

    /// Returns true if a path below the directory certainly does not exist. Only lower-case names
    /// give a certain answer.
    pub(crate) fn lack(&self, below: &Path) -> bool {
        let first = below.iter().next().filter(|first| !first.as_bytes().iter().any(u8::is_ascii_uppercase));
        self.0.as_ref().zip(first).is_some_and(|(names, first)| !names.contains(first))
    }
}

/// Returns the given paths below a directory that may exist.
pub(crate) fn there<'a>(
    directory: &Path,
    below: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = PathBuf> {
    let names = DirectoryNames::list(directory);
    below.into_iter().filter(move |path| !names.lack(Path::new(path))).map(|path| directory.join(path))
}

/// Returns all names in lower case, or `None` if the list may be incomplete. A directory may ignore
/// case, and then has its own rules for other equal names.
fn read(directory: &Path) -> Option<HashSet<OsString>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(HashSet::new()),
        entries => entries.ok()?,
    };
    let mut names = HashSet::new();
    for entry in entries {
        let name = entry.ok()?.file_name();
        if names.len() == MAX_ENTRIES || !name.is_ascii() {
            return None;
        }
        names.insert(name.to_ascii_lowercase());
    }
    Some(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lacking_only_if_nothing_could_be_taken_for_it() {
        let place = tempfile::tempdir().unwrap();
        let lacks = |name: &str| DirectoryNames::list(place.path()).lack(Path::new(name));
        assert!(lacks(".envrc") && lacks(".config/fish"));
        fs::create_dir(place.path().join(".config")).unwrap();
        assert!(lacks(".envrc") && !lacks(".config/fish"));
        fs::write(place.path().join(".ENVRC"), "").unwrap();
        assert!(!lacks(".envrc"), "the file system may not care about case");
        assert!(lacks(".ssh") && !lacks(".SSH"));
        fs::write(place.path().join(".\u{17f}sh"), "").unwrap();
        assert!(!lacks(".ssh") && !lacks(".profile"), "or not about more than that");
    }

    #[test]
    fn what_cannot_be_listed_lacks_nothing_and_what_is_not_there_lacks_everything() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(!DirectoryNames::list(&file).lack(Path::new("a")));
        assert!(DirectoryNames::list(&place.path().join("gone")).lack(Path::new("a")));
        (0..=MAX_ENTRIES).for_each(|number| fs::write(place.path().join(number.to_string()), "").unwrap());
        assert!(!DirectoryNames::list(place.path()).lack(Path::new("a")), "too many to be listed");
    }
}
