//! The index of a git directory: which paths it may list.
//!
//! Git checks the paths of a commit when it reads one, but not those of an index: `git checkout --
//! .` writes what the index lists, in `.git/hooks` or outside of the repository, too. So an index
//! that a command wrote is listed by git itself, in a sandbox, and moved aside if it holds such a
//! path.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use windlass_files::{DirHandle, EntryStat};
use windlass_sandbox::ProtectedPaths;

/// The files of an index as they were before a command.
#[derive(Debug, Default)]
pub(super) struct IndexStats(BTreeMap<PathBuf, EntryStat>);

impl IndexStats {
    /// Reads the metadata of every index.
    pub(super) fn read(protected: &ProtectedPaths) -> Self {
        let stat = |path: &PathBuf| Some((path.clone(), stat(path)?));
        Self(protected.git_indexes.iter().filter_map(stat).collect())
    }

    /// Returns the files below a directory that are not as they were, or are gone.
    pub(super) fn changed_below<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = self.0.iter().filter(move |(path, _)| path.starts_with(directory));
        below.filter(|(path, before)| stat(path).as_ref() != Some(before)).map(|(path, _)| path.as_path())
    }
}

fn stat(path: &Path) -> Option<EntryStat> {
    let (above, name) = path.parent().zip(path.file_name())?;
    DirHandle::open(above).ok()?.stat_entry(name).ok()
}

/// Tells whether an entry of a git directory is an index, or a part that one refers to.
pub(super) fn is_index(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case("index") || name.as_encoded_bytes().starts_with(b"sharedindex.")
}

/// Returns the first path of an index, listed by `git ls-files -z`, that git must not write.
pub(super) fn find_unsafe_path(list: &[u8]) -> Option<&[u8]> {
    let paths = list.strip_suffix(b"\0").unwrap_or(list).split(|byte| *byte == 0);
    paths.filter(|_| !list.is_empty()).find(|path| !path.split(|byte| *byte == b'/').all(is_safe_name))
}

/// Tells whether a name leads neither out of a working tree nor into a git directory, on file
/// systems that ignore case, invisible characters or what ends a name, too.
fn is_safe_name(name: &[u8]) -> bool {
    /// Characters that HFS+ ignores in names.
    const INVISIBLE: [std::ops::RangeInclusive<char>; 4] =
        ['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}', '\u{feff}'..='\u{feff}'];
    let text = String::from_utf8_lossy(name);
    let visible: String =
        text.chars().filter(|char| !INVISIBLE.iter().any(|range| range.contains(char))).collect();
    let visible = visible.split([':', '\\']).next().unwrap_or_default().trim_end_matches([' ', '.']);
    let is_git = visible.eq_ignore_ascii_case(".git") || visible.eq_ignore_ascii_case("git~1");
    !matches!(name, b"" | b"." | b"..") && !is_git
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_or_into_a_git_directory_are_found() {
        for path in [
            "/etc/x",
            "../x",
            "a/../x",
            "a//b",
            "a/./b",
            ".git/hooks/x",
            "sub/.GIT/x",
            "a/.git",
            ".git /x",
            "git~1/x",
            ".g\u{200c}it/x",
            ".git:x/y",
        ] {
            let list = [b"fine\0", path.as_bytes(), b"\0also fine\0"].concat();
            assert_eq!(find_unsafe_path(&list), Some(path.as_bytes()), "{path}");
        }
        for list in ["", "a\0", ".gitignore\0a/.github/x\0..a\0.gita/b\0 \0"] {
            assert_eq!(find_unsafe_path(list.as_bytes()), None, "{list:?}");
        }
    }
}
