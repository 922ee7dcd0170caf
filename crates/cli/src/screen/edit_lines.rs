//! The lines about files that a call has changed: their names, and what changed in them.

use windlass::{
    Changed, EditKind, FileEdit, Version,
    clean::Secrets,
    counted,
    patch::{Side, diff},
};

use super::TerminalStyle;
use crate::{paths::PathDisplay, screen::visible};

/// Maximum number of lines of a diff. `windlass show` and `windlass undo` have all of it.
const MAX_DIFF_LINES: usize = 20;

/// Maximum size of a file whose change is shown.
const MAX_FILE_BYTES: usize = 256 * 1024;

/// Describes changed files for a person.
pub(super) struct EditLines<'a> {
    pub(super) style: &'a TerminalStyle,
    pub(super) paths: &'a PathDisplay,
    pub(super) secrets: &'a Secrets,
}

impl EditLines<'_> {
    /// Returns the lines about all files of a call.
    pub(super) fn all(&self, files: &[FileEdit], changed: &[Changed]) -> Vec<String> {
        let mut lines: Vec<_> = files.iter().map(|file| self.name(file)).collect();
        if let [change] = changed {
            lines.extend(self.diff(change));
        } else {
            for change in changed {
                lines.push(format!("  {}:", self.paths.show(&change.path)));
                lines.extend(self.diff(change));
            }
        }
        lines
    }

    /// Describes the change of a file in the usual notation.
    fn name(&self, file: &FileEdit) -> String {
        let letter = match file.kind {
            EditKind::Add => "A",
            EditKind::Delete => "D",
            EditKind::Update => "M",
        };
        match &file.move_path {
            Some(to) => format!("{letter} {} -> {}", self.paths.show(&file.path), self.paths.show(to)),
            None => format!("{letter} {}", self.paths.show(&file.path)),
        }
    }

    /// Returns the changed lines of a text file, without secrets.
    fn diff(&self, change: &Changed) -> Vec<String> {
        let sides = (self.clean_text(change.before.as_ref()), self.clean_text(change.after.as_ref()));
        let (Some(before), Some(after)) = sides else { return Vec::new() };
        let side = |text| Side { path: "file", bytes: text, executable: false };
        let before = change.before.as_ref().map(|_| side(before.as_bytes()));
        let text = diff(before, change.after.as_ref().map(|_| side(after.as_bytes())));
        let text = self.secrets.clean(&text);
        let lines: Vec<_> = text.lines().skip_while(|line| !line.starts_with("@@")).collect();
        let mut shown: Vec<_> =
            lines.iter().take(MAX_DIFF_LINES).map(|line| format!("  {}", self.painted(line))).collect();
        if let Some(more) = lines.len().checked_sub(MAX_DIFF_LINES).filter(|more| *more > 0) {
            shown.push(format!("  … {}", counted(more as u64, "more line")));
        }
        shown
    }

    /// Returns the text of a small file, without secrets; empty if there is no file.
    fn clean_text(&self, version: Option<&Version>) -> Option<String> {
        let Some(version) = version else { return Some(String::new()) };
        let bytes =
            Some(&version.bytes).filter(|bytes| bytes.len() <= MAX_FILE_BYTES && !bytes.contains(&0))?;
        std::str::from_utf8(bytes).ok().map(|text| self.secrets.clean(text).into_owned())
    }

    fn painted(&self, line: &str) -> String {
        let text = visible(line);
        match line.as_bytes().first() {
            Some(b'+') => self.style.green(&text),
            Some(b'-') => self.style.red(&text),
            Some(b'@') => self.style.dim(&text),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use super::*;

    fn changed(before: Option<&str>, after: Option<&str>) -> Changed {
        let version = |text: &str| Version {
            bytes: Arc::from(text.as_bytes()),
            mode: 0o644,
            owner: None,
            modified: None,
            attributes: BTreeMap::new(),
        };
        Changed {
            path: "/w/a".into(),
            before: before.map(version),
            after: after.map(version),
            stamp: None,
            folders: Vec::new(),
            other_names: 0,
        }
    }

    fn lines(before: Option<&str>, after: Option<&str>) -> Vec<String> {
        let (style, paths) = (TerminalStyle { colour: false }, PathDisplay::seen_from("/w".as_ref()));
        let secrets = Secrets::default();
        EditLines { style: &style, paths: &paths, secrets: &secrets }.diff(&changed(before, after))
    }

    #[test]
    fn a_change_is_shown_without_its_header_and_without_secrets() {
        assert_eq!(
            lines(Some("one\ntwo\n"), Some("one\n2\n")),
            ["  @@ -1,2 +1,2 @@", "   one", "  -two", "  +2"]
        );
        assert_eq!(lines(None, Some("x\u{1b}[2J\n")), ["  @@ -0,0 +1 @@", "  +x\\u{1b}[2J"]);
        let secret = format!("token: ghp_{}\n", "a1B2c3D4e5F6".repeat(3));
        let shown = lines(None, Some(&secret));
        assert!(shown[1].contains("[REDACTED:") && !shown[1].contains("ghp_"), "{shown:?}");
    }

    #[test]
    fn a_long_change_is_counted_and_binary_files_are_not_shown() {
        let shown = lines(None, Some(&"line\n".repeat(100)));
        assert_eq!((shown.len(), shown.last().unwrap().as_str()), (21, "  … 81 more lines"));
        assert!(lines(Some("a\0b"), Some("c")).is_empty());
    }
}
