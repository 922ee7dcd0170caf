//! Builds one diff of all file changes that tools made during a turn, from file content and without
//! git.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use windlass_contract::edit::{Changed, Version};
use windlass_patch::{Side, diff};

/// Maximum length of a diff. Further files are only counted.
const MAX_DIFF_BYTES: usize = 1024 * 1024;

/// Content of files at the beginning of a turn, and now.
#[derive(Debug, Default)]
pub struct TurnDiff(BTreeMap<PathBuf, (Option<Version>, Option<Version>)>);

impl TurnDiff {
    /// Records changes.
    pub fn take(&mut self, changed: &[Changed]) {
        for Changed { path, before, after, .. } in changed {
            let (_, last) = self.0.entry(path.clone()).or_insert_with(|| (before.clone(), None));
            last.clone_from(after);
        }
    }

    /// Removes all recorded changes.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the diff, with paths relative to a directory. It is empty if nothing differs.
    pub fn text(&self, directory: &Path) -> String {
        let mut text = String::new();
        let mut left_out = 0_usize;
        for (path, (before, after)) in &self.0 {
            let shown = path.strip_prefix(directory).unwrap_or(path).to_string_lossy();
            let shown = shown.trim_start_matches('/');
            let one = diff(side(shown, before.as_ref()), side(shown, after.as_ref()));
            if text.len() + one.len() > MAX_DIFF_BYTES {
                left_out += 1;
            } else {
                text.push_str(&one);
            }
        }
        if left_out > 0 {
            text.push_str(&format!("# {left_out} more files changed; their diff is too long to show\n"));
        }
        text
    }
}

fn side<'a>(path: &'a str, version: Option<&'a Version>) -> Option<Side<'a>> {
    version.map(|version| Side { path, bytes: &version.bytes, executable: version.mode & 0o100 != 0 })
}

#[cfg(test)]
mod tests {
    use windlass_contract::edit::Attributes;

    use super::*;

    fn changed(path: &str, before: Option<&str>, after: Option<&str>) -> Changed {
        let version = |text: &str| Version {
            bytes: text.as_bytes().into(),
            mode: 0o644,
            owner: None,
            modified: None,
            attributes: Attributes::new(),
        };
        Changed {
            path: path.into(),
            before: before.map(version),
            after: after.map(version),
            stamp: None,
            folders: Vec::new(),
            other_names: 0,
        }
    }

    #[test]
    fn two_changes_of_a_file_are_one_and_what_was_taken_back_is_none() {
        let mut turn = TurnDiff::default();
        turn.take(&[changed("/w/a", Some("1\n"), Some("2\n")), changed("/w/b", None, Some("x\n"))]);
        turn.take(&[changed("/w/a", Some("2\n"), Some("3\n")), changed("/w/b", Some("x\n"), None)]);
        assert_eq!(turn.text(Path::new("/w")), "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+3\n");
        turn.clear();
        assert_eq!(turn.text(Path::new("/w")), "");
    }

    #[test]
    fn what_is_too_long_is_counted() {
        let mut turn = TurnDiff::default();
        let long = "x\n".repeat(MAX_DIFF_BYTES);
        turn.take(&[changed("/w/a", None, Some(&long)), changed("/w/b", None, Some("short\n"))]);
        let text = turn.text(Path::new("/w"));
        assert!(
            text.contains("+short\n")
                && text.ends_with("# 1 more files changed; their diff is too long to show\n")
        );
    }
}
