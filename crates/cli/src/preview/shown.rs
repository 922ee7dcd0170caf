//! Changes of a preview as a person reads them: a unified diff, and one line for each change
//! without one.

use std::{
    collections::BTreeMap,
    fmt::Write,
    path::{Path, PathBuf},
};

use windlass::{
    counted,
    host::{EntryKind, EntryStat, LayerChange, LayerChangeKind, Preview, PreviewChanges},
    patch::{Side, diff},
};

use crate::{paths::PathDisplay, screen::visible};

/// Maximum size of a file with a diff; a larger one is shown in one line.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Maximum size of all diffs; after that every further file is shown in one line.
const MAX_DIFF_BYTES: usize = 1024 * 1024;

/// Maximum number of changes that are shown one by one.
const MAX_LINES: usize = 500;

/// Maximum number of files of an added or removed directory that are listed; a larger one is shown
/// in one line.
const MAX_FILES_IN_DIRECTORY: usize = 40;

/// Formats changes.
pub(super) struct ShownChanges<'a> {
    preview: &'a Preview,
    changes: &'a PreviewChanges,
    paths: &'a PathDisplay,
    text: String,
    lines: usize,
}

impl<'a> ShownChanges<'a> {
    pub(super) fn new(preview: &'a Preview, changes: &'a PreviewChanges, paths: &'a PathDisplay) -> Self {
        Self { preview, changes, paths, text: String::new(), lines: 0 }
    }

    /// Returns all changes, with counts in the last line.
    pub(super) fn text(mut self) -> String {
        let collapsed = self.collapsed();
        let mut hidden = 0;
        for change in &self.changes.layer.changes {
            if collapsed.keys().any(|top| change.path != *top && change.path.starts_with(top)) {
                continue;
            }
            if self.lines >= MAX_LINES {
                hidden += 1;
            } else if let Some(summary) = collapsed.get(&change.path) {
                self.line(&format!("{} {summary}", self.paths.show(&change.path)));
            } else {
                self.change(change);
            }
        }
        let is_listed = |top: &PathBuf| self.changes.layer.changes.iter().any(|change| change.path == *top);
        for (top, summary) in collapsed.iter().filter(|(top, _)| is_git_directory(top) && !is_listed(top)) {
            self.line(&format!("{} {summary}", self.paths.show(top)));
        }
        if hidden > 0 {
            self.line(&format!("and {hidden} more"));
        }
        for path in &self.changes.git_settings {
            self.line(&format!("{} other settings; only safe ones are applied", self.paths.show(path)));
        }
        for refusal in &self.changes.layer.refused {
            let (path, reason) = (self.paths.show(&refusal.path), visible(&refusal.reason));
            self.line(&format!("left out: {path}: {reason}"));
        }
        for conflict in &self.changes.layer.conflicts {
            self.line(&format!("conflict: {}: {}", self.paths.show(&conflict.path), conflict.reason));
        }
        let summary = self.summary();
        self.line(&summary);
        self.text
    }

    /// Returns directories that are shown in one line: git's, and large ones that are added or
    /// removed as a whole.
    fn collapsed(&self) -> BTreeMap<PathBuf, String> {
        let mut counts: BTreeMap<PathBuf, ChangeCounts> = BTreeMap::new();
        let whole: Vec<_> =
            self.changes.layer.changes.iter().filter(|change| is_whole_directory(change)).collect();
        for change in &self.changes.layer.changes {
            let git = change.path.ancestors().filter(|above| is_git_directory(above)).last();
            let outermost = || whole.iter().find(|top| change.path.starts_with(&top.path));
            let top = git.map(Path::to_owned).or_else(|| outermost().map(|top| top.path.clone()));
            if let Some(top) = top {
                counts.entry(top).or_default().add(change);
            }
        }
        counts.retain(|top, counts| is_git_directory(top) || counts.all() > MAX_FILES_IN_DIRECTORY);
        counts.into_iter().map(|(top, counts)| (top, counts.in_words())).collect()
    }

    fn change(&mut self, change: &LayerChange) {
        let path = self.paths.show(&change.path);
        let kinds = (change.before.map(|stat| stat.kind), change.after.map(|stat| stat.kind));
        let is_directory = |kind: Option<EntryKind>| kind.is_none_or(|kind| kind == EntryKind::Directory);
        if is_directory(kinds.0) && is_directory(kinds.1) {
            // Its contents are shown.
            let is_empty = !self
                .changes
                .layer
                .changes
                .iter()
                .any(|other| other.path != change.path && other.path.starts_with(&change.path));
            if is_empty {
                self.line(&format!("{path}/ {}", change.kind.name()));
            }
            return;
        }
        if change.kind == LayerChangeKind::Metadata {
            return self.metadata(change, &path);
        }
        match self.file_diff(change) {
            Some(diff) if !diff.is_empty() => {
                self.lines += 1;
                diff.lines().for_each(|line| {
                    let _infallible = writeln!(self.text, "{}", visible(line));
                });
            }
            _ => self.line(&self.described(change, &path)),
        }
    }

    fn metadata(&mut self, change: &LayerChange, path: &str) {
        let mode = |stat: Option<EntryStat>| stat.map_or(0, |stat| stat.permissions);
        let (before, after) = (mode(change.before), mode(change.after));
        if before == after {
            self.line(&format!("{path} other modification time"));
        } else {
            self.line(&format!("{path} mode {before:03o} -> {after:03o}"));
        }
    }

    /// Returns the diff of a file; none if it has none or is too long.
    fn file_diff(&self, change: &LayerChange) -> Option<String> {
        let is_small_file = |stat: Option<EntryStat>| {
            stat.is_none_or(|stat| stat.kind == EntryKind::File && stat.size <= MAX_FILE_BYTES)
        };
        if !is_small_file(change.before) || !is_small_file(change.after) || self.text.len() > MAX_DIFF_BYTES {
            return None;
        }
        let [before, after] = self.preview.read(change, MAX_FILE_BYTES).ok()?;
        let path = self.paths.show(&change.path);
        let path = path.trim_start_matches('/');
        let executable = |stat: Option<EntryStat>| stat.is_some_and(|stat| stat.permissions & 0o100 != 0);
        let side = |bytes, stat| Side { path, bytes, executable: executable(stat) };
        let before = before.as_deref().map(|bytes| side(bytes, change.before));
        Some(diff(before, after.as_deref().map(|bytes| side(bytes, change.after))))
    }

    /// Describes a change without a diff.
    fn described(&self, change: &LayerChange, path: &str) -> String {
        let size = |stat: Option<EntryStat>| stat.map_or(0, |stat| stat.size);
        let what = match change.after.or(change.before).map(|stat| stat.kind) {
            Some(EntryKind::Symlink) => match self.preview.read_link(change) {
                Some(target) => format!("link to {}", visible(&target.display().to_string())),
                None => "link".to_owned(),
            },
            Some(EntryKind::Special) => "FIFO or socket".to_owned(),
            Some(EntryKind::Directory) => "directory".to_owned(),
            Some(EntryKind::File) | None => {
                format!("{} before, {} after", counted(size(change.before), "byte"), size(change.after))
            }
        };
        format!("{path} {} ({what})", change.kind.name())
    }

    fn summary(&self) -> String {
        let mut counts = ChangeCounts::default();
        self.changes.layer.changes.iter().for_each(|change| counts.add(change));
        if counts.all() == 0 && self.changes.git_settings.is_empty() {
            return "no changes".to_owned();
        }
        if counts.all() == 0 {
            return "no files".to_owned();
        }
        counts.in_words()
    }

    fn line(&mut self, line: &str) {
        self.lines += 1;
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn is_git_directory(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".git")
}

fn is_whole_directory(change: &LayerChange) -> bool {
    let is_directory = |stat: Option<EntryStat>| stat.is_some_and(|stat| stat.kind == EntryKind::Directory);
    is_directory(change.before) || is_directory(change.after)
}

/// Counts of changed files; directories count with their contents.
#[derive(Debug, Default)]
struct ChangeCounts {
    created: usize,
    modified: usize,
    deleted: usize,
    metadata: usize,
    bytes: u64,
}

impl ChangeCounts {
    fn add(&mut self, change: &LayerChange) {
        let is_directory =
            |stat: Option<EntryStat>| stat.is_none_or(|stat| stat.kind == EntryKind::Directory);
        if is_directory(change.before) && is_directory(change.after) {
            return;
        }
        self.bytes += change.after.map_or(0, |stat| stat.size);
        match change.kind {
            LayerChangeKind::Created => self.created += 1,
            LayerChangeKind::Modified | LayerChangeKind::Replaced => self.modified += 1,
            LayerChangeKind::Deleted => self.deleted += 1,
            LayerChangeKind::Metadata => self.metadata += 1,
        }
    }

    fn all(&self) -> usize {
        self.created + self.modified + self.deleted + self.metadata
    }

    fn in_words(&self) -> String {
        let parts = [
            (self.created, "created"),
            (self.modified, "modified"),
            (self.deleted, "deleted"),
            (self.metadata, "with another mode or time"),
        ];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let (files, bytes) = (counted(self.all() as u64, "file"), counted(self.bytes, "byte"));
        format!("{files}: {} ({bytes})", parts.join(", "))
    }
}
