//! What lies in the directories below a root: repositories nobody mentions, and names that are protected anywhere.
//!
//! Before a command only so many directories are looked into, however many there are. Afterwards the same ones are, and
//! everything the command has made since: what that costs grows with what the command did, not with the workspace.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{protect::is_protected_anywhere, seen::Seen};

/// How many directories are looked into before a command. Looking into one takes some 10 µs, and 1 µs if it has not
/// changed.
pub(crate) const LOOKED_INTO: usize = 128;

/// How many entries of each: a huge directory holds files, not repositories.
const ENTRIES: usize = 1024;

/// How many directories that a command has made are looked into, and how many entries of each.
const MADE: usize = 16 * 1024;
const MADE_ENTRIES: usize = 256 * 1024;

/// Directories with so much in them that they are looked into last.
const CROWDED: [&str; 3] = ["node_modules", "target", "objects"];

/// What was found below a root.
#[derive(Debug)]
pub(crate) struct Below {
    /// Directories that git takes for a repository, the root aside.
    pub(crate) repositories: Vec<PathBuf>,
    /// What is protected anywhere, the root's own aside.
    pub(crate) names: Vec<PathBuf>,
    /// Whether everything was looked through.
    pub(crate) is_all: bool,
    pub(crate) root: PathBuf,
    /// Each with whether all its entries were seen.
    looked_into: HashMap<PathBuf, bool>,
    /// Known, and not looked into.
    passed_over: Vec<PathBuf>,
}

impl Below {
    /// Looks below a root, first on the way to a directory.
    pub(crate) fn of(root: &Path, towards: &Path) -> Self {
        let mut below = Self::nothing(root);
        let mut queue = Queue::default();
        let mut way: Vec<_> = towards.ancestors().take_while(|above| above.starts_with(root)).collect();
        way.reverse();
        queue.now.extend(way.into_iter().map(Path::to_owned));
        queue.now.push_back(root.to_owned());
        while let Some(directory) = queue.next() {
            if below.looked_into.contains_key(&directory) {
                continue;
            }
            if below.looked_into.len() == LOOKED_INTO {
                below.passed_over.push(directory);
                continue;
            }
            let listing = listing(&directory);
            below.looked_into.insert(directory.clone(), listing.is_all);
            below.take(directory, &listing);
            queue.extend(&listing.directories);
        }
        below.is_all &= below.passed_over.is_empty();
        below
    }

    /// Looks again, when a command is over.
    pub(crate) fn again(&self) -> Self {
        let passed_over: HashSet<_> = self.passed_over.iter().collect();
        let mut below = Self::nothing(&self.root);
        let mut queue = Queue::default();
        queue.now.push_back(self.root.clone());
        let mut made = 0;
        while let Some(directory) = queue.next() {
            let before = self.looked_into.get(&directory).copied();
            if before.is_none() {
                made += 1;
            }
            if made > MADE {
                below.is_all = false;
                break;
            }
            let known = before.map(|_| listing(&directory));
            let listing = match known.filter(|known| known.is_all || before == Some(false)) {
                Some(known) => known,
                None => Arc::new(Listing::read(&directory, MADE_ENTRIES)),
            };
            below.take(directory, &listing);
            let directories = listing.directories.iter().filter(|each| !passed_over.contains(each));
            if before == Some(false) {
                // Not all of what it held is known, so what is new cannot be told from what is not.
                queue.extend(directories.filter(|each| self.looked_into.contains_key(*each)));
            } else {
                queue.extend(directories);
            }
        }
        below
    }

    fn nothing(root: &Path) -> Self {
        Self {
            repositories: Vec::new(),
            names: Vec::new(),
            is_all: true,
            root: root.to_owned(),
            looked_into: HashMap::new(),
            passed_over: Vec::new(),
        }
    }

    fn take(&mut self, directory: PathBuf, listing: &Listing) {
        self.is_all &= listing.is_all;
        if directory == self.root {
            return;
        }
        // Packages come with settings of their authors, and nobody opens an editor in one.
        if !directory.iter().any(|part| part == "node_modules") {
            self.names.extend(listing.names.iter().map(|name| directory.join(name)));
        }
        if listing.is_repository {
            self.repositories.push(directory);
        }
    }
}

/// Directories still to be looked into: from the outside in, the crowded ones last.
#[derive(Debug, Default)]
struct Queue {
    now: VecDeque<PathBuf>,
    last: VecDeque<PathBuf>,
}

impl Queue {
    fn next(&mut self) -> Option<PathBuf> {
        self.now.pop_front().or_else(|| self.last.pop_front())
    }

    fn extend<'a>(&mut self, directories: impl IntoIterator<Item = &'a PathBuf>) {
        for directory in directories {
            let is_crowded = CROWDED.iter().any(|name| directory.ends_with(name));
            if is_crowded { &mut self.last } else { &mut self.now }.push_back(directory.clone());
        }
    }
}

/// What a directory holds, as far as it matters here.
#[derive(Debug, Default)]
struct Listing {
    is_repository: bool,
    names: Vec<String>,
    directories: Vec<PathBuf>,
    is_all: bool,
}

fn listing(directory: &Path) -> Arc<Listing> {
    static SEEN: Seen<Arc<Listing>> = Seen::new();
    SEEN.or(directory, || Arc::new(Listing::read(directory, ENTRIES)))
}

impl Listing {
    fn read(directory: &Path, limit: usize) -> Self {
        let mut listing = Self { is_all: true, ..Self::default() };
        let mut git = GitNames::default();
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                // What cannot be looked into may hold anything; what is gone holds nothing.
                listing.is_all = error.kind() == io::ErrorKind::NotFound;
                return listing;
            }
        };
        for (index, entry) in entries.enumerate() {
            let Ok(entry) = entry else {
                listing.is_all = false;
                continue;
            };
            if index == limit {
                listing.is_all = false;
                break;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            git.see(&name);
            if is_protected_anywhere(&name) {
                listing.names.push(name.into_owned());
            } else if name != ".git" && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                listing.directories.push(entry.path());
            }
        }
        listing.is_repository = git.are_a_repository();
        listing
    }
}

/// The names by which git takes a directory for a repository, as far as they were seen.
#[derive(Debug, Default)]
struct GitNames(BTreeSet<&'static str>);

impl GitNames {
    fn see(&mut self, name: &str) {
        const NAMES: [&str; 5] = [".git", "HEAD", "objects", "refs", "commondir"];
        self.0.extend(NAMES.iter().find(|known| **known == name));
    }

    fn are_a_repository(&self) -> bool {
        let is = |name: &str| self.0.contains(name);
        is(".git") || is("HEAD") && (is("commondir") || is("objects") && is("refs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(root: &Path, directories: &[&str]) {
        for each in directories {
            fs::create_dir_all(root.join(each)).unwrap();
        }
    }

    /// Repositories and names, relative to the root.
    fn found(below: &Below) -> [Vec<&str>; 2] {
        [&below.repositories, &below.names].map(|paths| {
            let mut names: Vec<_> =
                paths.iter().map(|path| path.strip_prefix(&below.root).unwrap().to_str().unwrap()).collect();
            names.sort_unstable();
            names
        })
    }

    #[test]
    fn repositories_of_both_kinds_and_names_are_found_below_a_root() {
        let place = tempfile::tempdir().unwrap();
        make(place.path(), &["a/b/.git", ".git/c/.git", "a/.vscode/deeper/.vscode", ".codex"]);
        make(place.path(), &["node_modules/p/.vscode", "bare/objects", "bare/refs", "half/objects", "link"]);
        for file in ["bare/HEAD", "half/HEAD", "link/HEAD", "link/commondir", "a/b/.envrc"] {
            fs::write(place.path().join(file), "").unwrap();
        }
        let below = Below::of(place.path(), place.path());
        assert_eq!(found(&below)[0], ["a/b", "bare", "link"]);
        assert_eq!(found(&below)[1], ["a/.vscode", "a/b/.envrc"]);
        assert!(below.is_all);
    }

    #[test]
    fn what_a_command_has_made_is_found_however_much_it_is_and_what_was_passed_over_is_not() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        (0..2 * LOOKED_INTO).for_each(|number| make(root, &[&format!("old{number}/in")]));
        make(root, &["way/down/here"]);
        let below = Below::of(root, &root.join("way/down/here"));
        assert!(!below.is_all, "it does not claim to have seen everything");
        let passed_over = below.passed_over[0].join(".git");
        fs::create_dir_all(passed_over).unwrap();
        make(root, &["way/down/here/.idea", "new/1/2/3/.git"]);
        (0..2 * LOOKED_INTO).for_each(|number| make(root, &[&format!("new/x{number}/in")]));
        assert_eq!(found(&below.again()), [["new/1/2/3"], ["way/down/here/.idea"]]);
    }

    #[test]
    fn a_directory_that_was_not_seen_to_its_end_is_not_taken_for_new() {
        let place = tempfile::tempdir().unwrap();
        (0..=ENTRIES).for_each(|number| make(place.path(), &[&format!("{number}/.git")]));
        let below = Below::of(place.path(), place.path());
        let (before, after) = (below.repositories.len(), below.again().repositories.len());
        assert_eq!(before, after);
    }
}
