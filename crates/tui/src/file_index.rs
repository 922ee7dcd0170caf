//! The files that `@` completes, found in the background.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use ignore::WalkBuilder;

use crate::fuzzy_match::best_matches;

/// Maximum number of files that are offered.
const MAX_FILES: usize = 100_000;

/// Maximum number of matches.
const MAX_MATCHES: usize = 8;

/// After this time, a request looks for files again: a session makes new ones.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Folders of version control, which nobody means.
const HISTORY_FOLDERS: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// Names of files below a directory. Ignored ones are left out.
#[derive(Debug)]
pub(crate) struct FileIndex {
    root: PathBuf,
    found: Arc<Mutex<FoundFiles>>,
}

/// The result of the last search for files.
#[derive(Debug, Default)]
struct FoundFiles {
    names: Arc<Vec<String>>,
    ended: Option<Instant>,
    is_running: bool,
}

impl FoundFiles {
    fn must_begin(&self) -> bool {
        !self.is_running && self.ended.is_none_or(|ended| ended.elapsed() > MAX_AGE)
    }
}

impl FileIndex {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, found: Arc::default() }
    }

    /// Returns the directory whose files these are.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns true if the files are known.
    pub(crate) fn is_ready(&self) -> bool {
        lock(&self.found).ended.is_some()
    }

    /// Returns the best matches for a text. The first request starts the search for files, and
    /// there are none until it is done.
    pub(crate) fn matches(&mut self, wanted: &str) -> Vec<String> {
        let mut found = lock(&self.found);
        if found.must_begin() {
            found.is_running = true;
            let (root, found) = (self.root.clone(), Arc::clone(&self.found));
            let search = move || {
                let names = Arc::new(walk(&root));
                *lock(&found) = FoundFiles { names, ended: Some(Instant::now()), is_running: false };
            };
            // Without a thread there is no completion, and everything else works.
            let _thread = thread::Builder::new().name("windlass-files".to_owned()).spawn(search);
        }
        let names = Arc::clone(&found.names);
        drop(found);
        best_matches(&names, wanted, MAX_MATCHES)
    }
}

fn lock(found: &Mutex<FoundFiles>) -> MutexGuard<'_, FoundFiles> {
    // The thread replaces the whole value, so that a panic leaves it whole.
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

fn walk(root: &Path) -> Vec<String> {
    let is_wanted = |entry: &ignore::DirEntry| !HISTORY_FOLDERS.iter().any(|name| entry.file_name() == *name);
    let mut walker = WalkBuilder::new(root);
    let entries = walker.require_git(false).hidden(false).filter_entry(is_wanted).build().flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        entry.path().strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned)
    };
    files.filter_map(name).filter(|name| !name.contains(char::is_control)).take(MAX_FILES).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_found_in_the_background() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a.txt"), "").unwrap();
        let mut index = FileIndex::new(root.path().to_owned());
        index.matches("a");
        while !index.is_ready() {
            thread::yield_now();
        }
        assert_eq!(index.matches("a"), ["a.txt"]);
    }

    #[test]
    fn ignored_files_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".gitignore"), "*.log\n").unwrap();
        fs::write(root.path().join("a.log"), "").unwrap();
        fs::write(root.path().join("a.txt"), "").unwrap();
        for folder in [".git", ".github"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("config"), "").unwrap();
        }
        let mut found = walk(root.path());
        found.sort();
        assert_eq!(found, [".github/config", ".gitignore", "a.txt"]);
    }
}
