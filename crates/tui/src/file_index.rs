//! The files that `@` completes, found once in the background.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
};

use ignore::WalkBuilder;

/// Maximum number of files that are offered.
const MAX_FILES: usize = 20_000;

/// Maximum number of matches.
pub(crate) const MAX_MATCHES: usize = 8;

/// Names of files below a directory. Ignored ones are left out.
#[derive(Debug)]
pub(crate) struct FileIndex {
    root: PathBuf,
    found: Arc<OnceLock<Vec<String>>>,
    started: bool,
}

impl FileIndex {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, found: Arc::default(), started: false }
    }

    /// Returns the best matches for a text. The first request starts the search for files, and
    /// there are none until it is done.
    pub(crate) fn matches(&mut self, wanted: &str) -> Vec<String> {
        if !self.started {
            self.started = true;
            let (root, found) = (self.root.clone(), Arc::clone(&self.found));
            // Without a thread there is no completion, and everything else works.
            let _thread = thread::Builder::new().name("windlass-files".to_owned()).spawn(move || {
                // Set once, by this thread.
                let _ = found.set(walk(&root));
            });
        }
        best(self.found.get().map_or(&[], Vec::as_slice), wanted)
    }
}

fn walk(root: &Path) -> Vec<String> {
    let entries = WalkBuilder::new(root).require_git(false).build().flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        entry.path().strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned)
    };
    files.filter_map(name).filter(|name| !name.contains(char::is_control)).take(MAX_FILES).collect()
}

fn best(names: &[String], wanted: &str) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<_> =
        names.iter().filter_map(|name| score(name, &wanted).map(|score| (score, name))).collect();
    scored.sort();
    scored.into_iter().take(MAX_MATCHES).map(|(_, name)| name.clone()).collect()
}

/// Scores a name that has all characters in order: gaps and length count against it, a match in the
/// last component for it. Lower is better.
fn score(name: &str, wanted: &str) -> Option<usize> {
    let lower = name.to_lowercase();
    if let Some(at) = lower.rfind(wanted) {
        let in_file_name = !lower[at..].contains('/');
        return Some(name.len() + if in_file_name { 0 } else { 100 });
    }
    let (mut gaps, mut rest) = (0, lower.as_str());
    for c in wanted.chars() {
        let at = rest.find(c)?;
        gaps += at;
        rest = &rest[at + c.len_utf8()..];
    }
    Some(200 + gaps * 4 + name.len())
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
