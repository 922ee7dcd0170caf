//! A file that was read to be changed, compared with the model's view of it.

use std::sync::Arc;

use windlass_contract::{
    Cx,
    files::{OpenFile, Seen, Since},
    wording::counted,
};
use windlass_patch::{Side, diff};

/// Maximum number of lines of a shown diff.
const MAX_DIFF_LINES: usize = 60;

/// Maximum length of a shown diff.
const MAX_DIFF_NOTE_BYTES: usize = 4000;

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct OriginalFile {
    pub(crate) bytes: Arc<[u8]>,
    pub(super) since: Since,
    pub(super) file: Box<dyn OpenFile>,
}

impl OriginalFile {
    /// Returns true if the model was shown the file or wrote it.
    pub(crate) fn is_known(&self) -> bool {
        self.since != Since::NeverShown
    }

    /// Returns a note if the file differs from the version that the model was shown.
    pub(crate) fn news(&self, path: &str) -> Option<String> {
        let Since::Changed { was } = &self.since else { return None };
        let news = format!(
            "{path} has changed since you last read or wrote it: someone else, or a command, has written to it."
        );
        let Some(was) = was else { return Some(news) };
        let side = |bytes| Side { path, bytes, executable: false };
        let diff = diff(Some(side(was)), Some(side(&self.bytes)));
        Some(format!("{news} What has changed:\n{}", shortened(&diff)))
    }

    /// Returns the reason not to overwrite or remove the file before the model reads it. After this
    /// message the model knows the file, and a second attempt succeeds.
    pub(crate) fn refusal(&self, cx: &Cx, path: &str) -> Option<String> {
        let news = self.news(path)?;
        let seen = Seen { path: self.file.real_path(), stamp: self.file.stamp(), bytes: Some(&self.bytes) };
        cx.host.files().show(seen);
        Some(format!("{news}\nNothing was changed. Read {path} again, then decide"))
    }
}

/// Cuts a diff to its beginning, without file names.
fn shortened(diff: &str) -> String {
    let hunks = diff.find("\n@@").map_or(diff, |at| &diff[at + 1..]);
    let mut left = MAX_DIFF_NOTE_BYTES;
    let fits = hunks.lines().take(MAX_DIFF_LINES).take_while(|line| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    });
    let mut shown: Vec<_> = fits.collect();
    let rest = hunks.lines().count() - shown.len();
    let more = format!("… {} more", counted(rest, "line"));
    if rest > 0 {
        shown.push(&more);
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_difference_is_cut_at_a_line() {
        let diff = format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n{}", "+line\n".repeat(100));
        let shown = shortened(&diff);
        assert!(shown.starts_with("@@ -1 +1 @@\n+line\n"), "{shown}");
        assert!(shown.ends_with("+line\n… 41 lines more"), "{shown}");
        let long = format!("\n@@ -1 +1 @@\n+{}\n", "x".repeat(MAX_DIFF_NOTE_BYTES));
        assert_eq!(shortened(&long), "@@ -1 +1 @@\n… 1 line more");
    }
}
