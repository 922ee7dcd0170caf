//! The files that `@` completes, found in the background.

use std::{
    cmp::Reverse,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use frizbee::{CaseMatching, Config, Matcher};
use ignore::WalkBuilder;

/// Maximum number of files that are offered.
const MAX_FILES: usize = 100_000;

/// Maximum number of matches.
pub(crate) const MAX_MATCHES: usize = 8;

/// Maximum number of matches that are compared by the name of the file.
const MAX_RANKED: usize = 256;

/// Maximum number of characters of a request that are looked at.
const MAX_WANTED_CHARS: usize = 128;

/// After this time, a request looks for files again: a session makes new ones.
const MAX_AGE: Duration = Duration::from_secs(10);

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
        best(&names, wanted)
    }
}

fn lock(found: &Mutex<FoundFiles>) -> MutexGuard<'_, FoundFiles> {
    // The thread replaces the whole value, so that a panic leaves it whole.
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

fn walk(root: &Path) -> Vec<String> {
    let entries = WalkBuilder::new(root).require_git(false).build().flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        entry.path().strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned)
    };
    files.filter_map(name).filter(|name| !name.contains(char::is_control)).take(MAX_FILES).collect()
}

/// Returns the best matches: those in the name of a file before those in its directory, then by
/// score, then the shorter ones.
fn best(names: &[String], wanted: &str) -> Vec<String> {
    let wanted: String = wanted.chars().take(MAX_WANTED_CHARS).collect();
    if wanted.is_empty() {
        return names.iter().take(MAX_MATCHES).cloned().collect();
    }
    let config = Config::default().casing(CaseMatching::Ignore);
    let matches = Matcher::new(wanted.as_str(), &config).match_list(names);
    let found = matches.iter().take(MAX_RANKED).filter_map(|found| {
        let name = names.get(usize::try_from(found.index).ok()?)?;
        Some((found.score, name))
    });
    let wanted = wanted.to_lowercase();
    let mut ranked: Vec<_> = found
        .map(|(score, name)| {
            let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
            ((!file.starts_with(&wanted), !file.contains(&wanted), Reverse(score), name.len()), name)
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(MAX_MATCHES).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_name_of_a_file_counts_more_than_its_directory() {
        let names = ["app/session.rs", "src/app.rs", "src/a/p/p.rs", "other.rs"].map(str::to_owned);
        assert_eq!(best(&names, "app"), ["src/app.rs", "app/session.rs", "src/a/p/p.rs"]);
        assert_eq!(best(&names, "zzz"), Vec::<String>::new());
        assert_eq!(best(&names, "SSRS"), ["app/session.rs"]);
    }

    #[test]
    fn a_name_is_found_among_many() {
        let mut names: Vec<_> = (0..MAX_FILES).map(|at| format!("src/module_{at}/part_{at}.rs")).collect();
        names.push("docs/interactive.md".to_owned());
        assert_eq!(best(&names, "dcintermd"), ["docs/interactive.md"]);
        assert_eq!(best(&names, "part_77").len(), MAX_MATCHES);
    }

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
        assert_eq!(walk(root.path()), ["a.txt"]);
    }
}
