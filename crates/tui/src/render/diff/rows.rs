//! The rows of a diff, from two texts or from a unified diff.

use std::{iter, ops::Range};

use similar::{Algorithm, DiffOp, capture_diff_slices};
use windlass::counted;

/// Lines of context around a change, as in `diff -u`.
const CONTEXT_LINES: usize = 3;

/// Maximum number of lines that are compared, apart from equal ones at the beginning and the end.
/// Beyond it, all lines count as changed: comparing takes time that grows with the square.
const MAX_COMPARED_LINES: usize = 4_000;

/// One row of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderedRow {
    pub(super) kind: RowKind,
    /// The number of the line before.
    pub(super) old: Option<usize>,
    /// The number of the line after.
    pub(super) new: Option<usize>,
    pub(super) text: String,
    /// The changed parts of the text, in order.
    pub(super) changed: Vec<Range<usize>>,
}

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    Context,
    Removed,
    Added,
    /// The name of a file.
    File,
    /// Lines that are not shown.
    Folded,
}

impl RenderedRow {
    fn context(old: usize, new: usize, text: &str) -> Self {
        Self { old: Some(old), new: Some(new), ..Self::new(RowKind::Context, text) }
    }

    fn removed(old: usize, text: &str) -> Self {
        Self { old: Some(old), ..Self::new(RowKind::Removed, text) }
    }

    fn added(new: usize, text: &str) -> Self {
        Self { new: Some(new), ..Self::new(RowKind::Added, text) }
    }

    fn new(kind: RowKind, text: &str) -> Self {
        Self { kind, old: None, new: None, text: text.to_owned(), changed: Vec::new() }
    }

    /// Returns the text in pieces, each with whether it is changed.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&str, bool)> {
        let ends = self.changed.iter().map(|range| range.start).chain([self.text.len()]);
        let begins = iter::once(0).chain(self.changed.iter().map(|range| range.end));
        let equal = begins.zip(ends).map(|(begin, end)| (&self.text[begin..end], false));
        let changed = self.changed.iter().map(|range| (&self.text[range.clone()], true));
        let mut changed = changed.chain([("", true)]);
        equal
            .flat_map(move |piece| [Some(piece), changed.next()])
            .flatten()
            .filter(|piece| !piece.0.is_empty())
    }
}

/// Compares two texts line by line.
pub(super) fn compare(before: &str, after: &str) -> Vec<RenderedRow> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same_begin = iter::zip(&old, &new).take_while(|(a, b)| a == b).count();
    let ends = iter::zip(old[same_begin..].iter().rev(), new[same_begin..].iter().rev());
    let same_end = ends.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - same_end, new.len() - same_end);
    let mut rows = equal_rows(&old, 0, 0, same_begin);
    rows.extend(changed_rows(&old, &new, same_begin..old_end, same_begin..new_end));
    rows.extend(equal_rows(&old, old_end, new_end, same_end));
    fold(rows)
}

fn changed_rows(old: &[&str], new: &[&str], olds: Range<usize>, news: Range<usize>) -> Vec<RenderedRow> {
    let (old_part, new_part) = (&old[olds.clone()], &new[news.clone()]);
    let operations = if old_part.len() + new_part.len() > MAX_COMPARED_LINES {
        let (old_len, new_len) = (old_part.len(), new_part.len());
        vec![DiffOp::Replace { old_index: 0, old_len, new_index: 0, new_len }]
    } else {
        capture_diff_slices(Algorithm::Myers, old_part, new_part)
    };
    let mut rows = Vec::new();
    for operation in operations {
        let (was, is) = (shift(operation.old_range(), olds.start), shift(operation.new_range(), news.start));
        if let DiffOp::Equal { len, .. } = operation {
            rows.extend(equal_rows(old, was.start, is.start, len));
        } else {
            rows.extend(was.map(|at| RenderedRow::removed(at + 1, old[at])));
            rows.extend(is.map(|at| RenderedRow::added(at + 1, new[at])));
        }
    }
    rows
}

fn shift(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn equal_rows(old: &[&str], old_begin: usize, new_begin: usize, length: usize) -> Vec<RenderedRow> {
    let row = |at: usize| RenderedRow::context(old_begin + at + 1, new_begin + at + 1, old[old_begin + at]);
    (0..length).map(row).collect()
}

/// Replaces equal lines far from any change by their number.
fn fold(rows: Vec<RenderedRow>) -> Vec<RenderedRow> {
    let mut near = vec![false; rows.len()];
    for at in rows.iter().enumerate().filter(|(_, row)| row.kind != RowKind::Context).map(|(at, _)| at) {
        let end = (at + CONTEXT_LINES + 1).min(rows.len());
        near[at.saturating_sub(CONTEXT_LINES)..end].fill(true);
    }
    let (mut out, mut folded) = (Vec::new(), Vec::new());
    for (row, near) in rows.into_iter().zip(near) {
        if near {
            push_fold(&mut folded, &mut out);
            out.push(row);
        } else {
            folded.push(row);
        }
    }
    push_fold(&mut folded, &mut out);
    out
}

fn push_fold(folded: &mut Vec<RenderedRow>, out: &mut Vec<RenderedRow>) {
    match folded.len() {
        // The note would be as long as the line.
        0 | 1 => out.append(folded),
        count => {
            out.push(RenderedRow::new(
                RowKind::Folded,
                &format!("⋮ {}", counted(count as u64, "unchanged line")),
            ));
            folded.clear();
        }
    }
}

/// Reads a unified diff. The counts in the head of a hunk tell which lines belong to it.
pub(super) fn parse_unified(diff: &str) -> Vec<RenderedRow> {
    let mut rows = Vec::new();
    let (mut hunk, mut removed_name) = (HunkPosition::default(), "");
    for line in diff.lines() {
        if hunk.is_open() {
            rows.extend(hunk.take(line));
        } else if let Some(next) = HunkPosition::parse(line) {
            let skipped = next.new.saturating_sub(hunk.new.max(1));
            if skipped > 0 {
                let text = format!("⋮ {}", counted(skipped as u64, "unchanged line"));
                rows.push(RenderedRow::new(RowKind::Folded, &text));
            }
            hunk = next;
        } else if let Some(name) = file_name(line, "--- ", "a/") {
            removed_name = name;
        } else if let Some(name) = file_name(line, "+++ ", "b/") {
            hunk = HunkPosition::default();
            let removed = format!("{removed_name} (removed)");
            rows.push(RenderedRow::new(RowKind::File, if name == "/dev/null" { &removed } else { name }));
        } else if line.starts_with("Binary files") || line.starts_with("rename ") {
            rows.push(RenderedRow::new(RowKind::Folded, line));
        }
    }
    rows
}

/// Returns the name of a file in the head of its diff, without the prefix that git adds.
fn file_name<'a>(line: &'a str, prefix: &str, git_prefix: &str) -> Option<&'a str> {
    let name = line.strip_prefix(prefix)?;
    Some(name.strip_prefix(git_prefix).unwrap_or(name))
}

/// The place in a hunk, and how many lines it still has.
#[derive(Debug, Default)]
struct HunkPosition {
    old: usize,
    new: usize,
    old_left: usize,
    new_left: usize,
}

impl HunkPosition {
    fn parse(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |text: &str| {
            let (begin, length) = text.split_once(',').unwrap_or((text, "1"));
            Some((begin.parse().ok()?, length.parse().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(Self { old, new, old_left, new_left })
    }

    fn is_open(&self) -> bool {
        self.old_left > 0 || self.new_left > 0
    }

    fn take(&mut self, line: &str) -> Option<RenderedRow> {
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        let (old, new) = (self.old, self.new);
        let row = match sign {
            "-" => RenderedRow::removed(old, text),
            "+" => RenderedRow::added(new, text),
            // "\ No newline at end of file"
            "\\" => return None,
            _ => RenderedRow::context(old, new, text),
        };
        if row.old.is_some() {
            (self.old, self.old_left) = (old.saturating_add(1), self.old_left.saturating_sub(1));
        }
        if row.new.is_some() {
            (self.new, self.new_left) = (new.saturating_add(1), self.new_left.saturating_sub(1));
        }
        Some(row)
    }
}
