//! Ignore files (`.ignore`, `.gitignore`, `.git/info/exclude`), read by handle and up to a maximum
//! size.
//!
//! The crate `ignore` opens them by path and reads them to their end, so that a FIFO or an endless
//! file would block the program. Here it only matches patterns; the precedence of the files is the
//! same as there.

use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::DirHandle;

/// Maximum size of an ignore file; a larger one is not applied.
const MAX_BYTES: u64 = 1024 * 1024;

/// A cache of the rules of each directory.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules(RwLock<HashMap<PathBuf, Arc<DirectoryRules>>>);

/// The ignore files of one directory, and those above it.
#[derive(Debug)]
pub(crate) struct DirectoryRules {
    above: Option<Arc<DirectoryRules>>,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
}

/// The result of matching a path with ignore files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreMatch {
    /// No pattern matches.
    None,
    /// It is ignored.
    Ignored,
    /// A pattern with `!` includes it.
    Included,
}

impl IgnoreRules {
    /// Matches an entry by its absolute path without links. Whether a directory above it is ignored
    /// is not checked.
    pub(crate) fn matched(&self, path: &Path, is_directory: bool) -> IgnoreMatch {
        let Some(rules) = path.parent().map(|above| self.rules(above)) else { return IgnoreMatch::None };
        rules.matched(path, is_directory)
    }

    fn rules(&self, directory: &Path) -> Arc<DirectoryRules> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(directory) {
            return Arc::clone(known);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<_> = directory.ancestors().take_while(|above| !known.contains_key(*above)).collect();
        for directory in missing.into_iter().rev() {
            let above = directory.parent().and_then(|above| known.get(above)).cloned();
            known.insert(directory.to_owned(), Arc::new(DirectoryRules::read(directory, above)));
        }
        known.get(directory).cloned().unwrap_or_else(|| Arc::new(DirectoryRules::read(directory, None)))
    }
}

impl DirectoryRules {
    fn read(directory: &Path, above: Option<Arc<Self>>) -> Self {
        Self::read_in(directory, DirHandle::open(directory).ok().as_ref(), above)
    }

    /// Reads the ignore files of an open directory.
    pub(crate) fn read_in(directory: &Path, handle: Option<&DirHandle>, above: Option<Arc<Self>>) -> Self {
        let read = |handle: Option<&DirHandle>, name: &str| {
            let content = handle.and_then(|handle| handle.read_file(OsStr::new(name), MAX_BYTES).ok());
            content.map_or_else(Gitignore::empty, |content| parse(directory, &content))
        };
        let is_repository = handle.is_some_and(|here| here.stat_entry(OsStr::new(".git")).is_ok());
        let info = handle.filter(|_| is_repository);
        let info = info.and_then(|here| here.open_dir(Path::new(".git/info")).ok());
        Self {
            ignore: read(handle, ".ignore"),
            gitignore: read(handle, ".gitignore"),
            exclude: read(info.as_ref(), "exclude"),
            is_repository,
            above,
        }
    }

    /// Matches a path, the nearest directory first. All `.ignore` files come before all
    /// `.gitignore` files, which apply up to the top of the repository and come before its
    /// `exclude` file.
    pub(crate) fn matched(&self, path: &Path, is_directory: bool) -> IgnoreMatch {
        let chain = || std::iter::successors(Some(self), |rules| rules.above.as_deref());
        let matched = |rules: &Gitignore| match rules.matched(path, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(IgnoreMatch::Ignored),
            Match::Whitelist(_) => Some(IgnoreMatch::Included),
        };
        let top = chain().position(|rules| rules.is_repository);
        let in_repository = || chain().take(top.map_or(0, |top| top + 1));
        chain()
            .find_map(|rules| matched(&rules.ignore))
            .or_else(|| in_repository().find_map(|rules| matched(&rules.gitignore)))
            .or_else(|| in_repository().find_map(|rules| matched(&rules.exclude)))
            .unwrap_or(IgnoreMatch::None)
    }
}

impl Default for DirectoryRules {
    /// No rules.
    fn default() -> Self {
        let none = Gitignore::empty;
        Self { above: None, ignore: none(), gitignore: none(), exclude: none(), is_repository: false }
    }
}

/// Parses patterns. An invalid line is skipped, as in git.
fn parse(directory: &Path, content: &[u8]) -> Gitignore {
    let text = String::from_utf8_lossy(content);
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _unusable = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::{collections::BTreeSet, fs};

    use ignore::WalkBuilder;
    use proptest::prelude::*;

    use super::*;

    /// Returns the entries that our rules do not ignore, hidden ones included.
    fn left(top: &Path) -> BTreeSet<PathBuf> {
        let rules = IgnoreRules::default();
        let mut found = BTreeSet::new();
        let mut queue = vec![top.to_owned()];
        while let Some(directory) = queue.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let is_directory = entry.file_type().unwrap().is_dir();
                if rules.matched(&entry.path(), is_directory) == IgnoreMatch::Ignored {
                    continue;
                }
                found.insert(entry.path());
                if is_directory {
                    queue.push(entry.path());
                }
            }
        }
        found
    }

    /// Returns the entries that the crate `ignore` does not ignore.
    fn left_by_the_crate(top: &Path) -> BTreeSet<PathBuf> {
        let walk = WalkBuilder::new(top).hidden(false).git_global(false).build().map(Result::unwrap);
        walk.filter(|entry| entry.depth() > 0).map(ignore::DirEntry::into_path).collect()
    }

    #[test]
    fn a_fifo_and_an_endless_file_are_no_ignore_files() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        fs::create_dir_all(top.join(".git/info")).unwrap();
        for name in [".gitignore", ".ignore", ".git/info/exclude"] {
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mknodat(rustix::fs::CWD, top.join(name), rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        }
        fs::create_dir(top.join("sub")).unwrap();
        fs::File::create(top.join("sub/.gitignore")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(IgnoreRules::default().matched(&top.join("sub/a"), false), IgnoreMatch::None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_same_is_ignored_as_by_the_crate(
            rules in prop::collection::vec(
                (
                    prop::sample::select(vec!["", "a", "a/b", "c"]),
                    prop::sample::select(vec![".gitignore", ".ignore", ".git/info/exclude"]),
                    prop::collection::vec(
                        prop::sample::select(vec![
                            "x", "!x", "/x", "b/", "*.o", "!a/*.o", "a/b", "**/y", "#x", "c/**", "!/c/x", ".hid",
                        ]),
                        1..4,
                    ),
                ),
                0..5,
            ),
            nested in any::<bool>(),
        ) {
            let place = tempfile::tempdir().unwrap();
            let top = place.path().canonicalize().unwrap();
            for directory in ["", "a", "a/b", "c"] {
                fs::create_dir_all(top.join(directory)).unwrap();
                for file in ["x", "y", "z.o", ".hid"] {
                    fs::write(top.join(directory).join(file), "").unwrap();
                }
            }
            fs::create_dir_all(top.join(".git/info")).unwrap();
            if nested {
                fs::create_dir_all(top.join("a/.git")).unwrap();
            }
            for (directory, name, lines) in &rules {
                let path = top.join(directory).join(name);
                if path.parent().unwrap().is_dir() {
                    fs::write(path, lines.join("\n")).unwrap();
                }
            }
            prop_assert_eq!(left(&top), left_by_the_crate(&top));
        }
    }
}
