//! Follows symbolic links: every link on the way, and the target.

use std::{
    ffi::OsString,
    fs, iter,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use crate::stat_cache::StatCache;

/// Maximum number of links in a path, as in the kernel.
const MAX_SYMLINKS: usize = 40;

/// Maximum number of entries of a directory that are searched for links.
pub const MAX_ENTRIES: usize = 1024;

/// The links from a path to its target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Each link, with its target.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The target without any links. It need not exist.
    pub end: PathBuf,
}

/// Follows a path from the root of the file system, name by name. Returns `None` for a loop.
pub fn follow(path: &Path) -> Option<Way> {
    let mut way = Way::default();
    let mut rest: Vec<OsString> = names(path).collect();
    while let Some(name) = rest.pop() {
        match Path::new(&name).components().next() {
            Some(Component::ParentDir) => drop(way.end.pop()),
            Some(Component::Normal(_)) => {
                let next = way.end.join(&name);
                let Ok(target) = fs::read_link(&next) else {
                    way.end = next;
                    continue;
                };
                if way.links.len() == MAX_SYMLINKS {
                    return None;
                }
                rest.extend(names(&target));
                way.links.push((next, target));
            }
            Some(Component::RootDir) => way.end = PathBuf::from("/"),
            _ => {}
        }
    }
    Some(way)
}

/// Returns the names of a path, the last one first.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned())
}

/// The links and directories in a directory.
#[derive(Debug)]
pub struct Inside {
    /// Names of the links, sorted.
    pub links: Vec<OsString>,
    /// Names of the directories, sorted.
    pub directories: Vec<OsString>,
    /// True if every entry was checked.
    pub is_all: bool,
}

/// Returns the links and directories directly inside a directory. An unchanged directory is not
/// read again.
pub fn inside(directory: &Path) -> Arc<Inside> {
    static SEEN: StatCache<Arc<Inside>> = StatCache::new();
    SEEN.get_or_read(directory, || Arc::new(read(directory)))
}

fn read(directory: &Path) -> Inside {
    let Ok(mut entries) = fs::read_dir(directory) else {
        return Inside { links: Vec::new(), directories: Vec::new(), is_all: false };
    };
    let (mut links, mut directories) = (Vec::new(), Vec::new());
    for entry in iter::from_fn(|| entries.next()).take(MAX_ENTRIES).flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => links.push(entry.file_name()),
            Ok(kind) if kind.is_dir() => directories.push(entry.file_name()),
            _ => {}
        }
    }
    // Sort, so that the same ones are followed every time if there are too many.
    links.sort();
    directories.sort();
    Inside { links, directories, is_all: entries.next().is_none() }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_told_and_the_end_need_not_be_there() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("real/in")).unwrap();
        let links = [("a", "./b/../c/x"), ("b", "real/in"), ("real/c", "../d"), ("d", "real")];
        for (name, target) in links {
            symlink(target, top.join(name)).unwrap();
        }
        let passed = links.map(|(name, target)| (top.join(name), PathBuf::from(target)));
        let way = follow(&top.join("a")).unwrap();
        assert_eq!(way, Way { links: passed.to_vec(), end: top.join("real/x") });
        symlink("round", top.join("round")).unwrap();
        assert_eq!(follow(&top.join("round")), None);
    }

    #[test]
    fn links_are_looked_for_in_so_many_entries() {
        let place = tempfile::tempdir().unwrap();
        symlink("x", place.path().join("link")).unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        fs::create_dir(place.path().join("directory")).unwrap();
        let Inside { links, directories, is_all } = read(place.path());
        assert_eq!((links, is_all), (vec![OsString::from("link")], true));
        assert_eq!(directories, [OsString::from("directory")]);
        (0..MAX_ENTRIES).for_each(|number| fs::write(place.path().join(number.to_string()), "").unwrap());
        assert!(!read(place.path()).is_all);
    }
}
