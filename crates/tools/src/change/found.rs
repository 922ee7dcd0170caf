//! A file that was read to be changed, and whether it is what the model thinks it is.

use std::sync::Arc;

use windlass_contract::{
    Cx,
    files::{OpenFile, Seen, Since},
    wording::counted,
};
use windlass_patch::{Side, diff};

/// How many lines of a difference are shown.
const DIFF_LINES: usize = 60;

/// How much of a difference is shown.
const DIFF_BYTES: usize = 4000;

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) bytes: Arc<[u8]>,
    pub(super) since: Since,
    pub(super) file: Box<dyn OpenFile>,
}

impl Found {
    /// Whether the model was shown it, or has written it itself.
    pub(crate) fn is_known(&self) -> bool {
        self.since != Since::NeverShown
    }

    /// What the model does not know: the file is not what it was shown.
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

    /// Why it must not be overwritten or removed without a look at it. Once this is told, the model knows, and may.
    pub(crate) fn refusal(&self, cx: &Cx, path: &str) -> Option<String> {
        let news = self.news(path)?;
        let seen = Seen { path: self.file.real_path(), stamp: self.file.stamp(), bytes: Some(&self.bytes) };
        cx.host.files().show(seen);
        Some(format!("{news}\nNothing was changed. Read {path} again, then decide"))
    }
}

/// The beginning of a difference, without the names of the file.
fn shortened(diff: &str) -> String {
    let hunks = diff.find("\n@@").map_or(diff, |at| &diff[at + 1..]);
    let mut left = DIFF_BYTES;
    let fits = hunks.lines().take(DIFF_LINES).take_while(|line| {
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
        let long = format!("\n@@ -1 +1 @@\n+{}\n", "x".repeat(DIFF_BYTES));
        assert_eq!(shortened(&long), "@@ -1 +1 @@\n… 1 line more");
    }
}
