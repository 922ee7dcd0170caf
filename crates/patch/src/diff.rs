//! Writes unified diffs in the format of git, for people and programs.
//!
//! The cost is bounded: two files that have little in common cost no more than reading them.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{Encoding, Text};

/// Number of context lines around a change in a diff of whole files.
const CONTEXT_LINES: usize = 3;

/// Maximum number of lines on both sides of a gap for an exact comparison. Between unique lines
/// there are rarely more, and then marking all of them as changed says as much.
const MAX_COMPARED_LINES: usize = 2048;

/// A file on one side of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side<'a> {
    /// The path to show, without a leading `/`.
    pub path: &'a str,
    pub bytes: &'a [u8],
    pub executable: bool,
}

impl Side<'_> {
    fn mode(&self) -> &'static str {
        if self.executable { "100755" } else { "100644" }
    }
}

/// Returns the change of one file as a diff with a git header. Empty if nothing changed.
pub fn diff(before: Option<Side<'_>>, after: Option<Side<'_>>) -> String {
    if before == after {
        return String::new();
    }
    let Some(shown) = after.or(before) else { return String::new() };
    let old_path = before.unwrap_or(shown).path;
    let mut out = format!("diff --git {} {}\n", quote_path("a/", old_path), quote_path("b/", shown.path));
    match (before, after) {
        (None, Some(after)) => out.push_str(&format!("new file mode {}\n", after.mode())),
        (Some(before), None) => out.push_str(&format!("deleted file mode {}\n", before.mode())),
        (Some(before), Some(after)) => write_mode_and_rename(&mut out, before, after),
        (None, None) => {}
    }
    let old = before.map_or(&b""[..], |side| side.bytes);
    let new = after.map_or(&b""[..], |side| side.bytes);
    if old == new {
        return out;
    }
    let label = |side: Option<Side<'_>>, prefix| {
        side.map_or("/dev/null".into(), |side| quote_path(prefix, side.path))
    };
    let (old_label, new_label) = (label(before, "a/"), label(after, "b/"));
    match (Text::decode(old), Text::decode(new)) {
        (Ok(old), Ok(new)) => {
            let hunks = unified(&content(&old), &content(&new), CONTEXT_LINES);
            out.push_str(&format!("--- {old_label}\n+++ {new_label}\n{hunks}"));
        }
        _ => out.push_str(&format!("Binary files {old_label} and {new_label} differ\n")),
    }
    out
}

/// Returns the hunks of a diff between two texts, with `context` lines around each change and no
/// header.
pub fn unified(old: &str, new: &str, context: usize) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut out = String::new();
    for hunk in hunks(&changes(&old, &new), context) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let before = first.old.start.min(first.new.start).min(context);
        let after = (old.len() - last.old.end).min(context);
        let old_range = first.old.start - before..last.old.end + after;
        let new_range = first.new.start - before..last.new.end + after;
        out.push_str(&format!("@@ -{} +{} @@\n", range(&old_range), range(&new_range)));
        let mut at = old_range.start;
        for change in hunk {
            old[at..change.old.start].iter().for_each(|line| write_row(&mut out, ' ', line));
            old[change.old.clone()].iter().for_each(|line| write_row(&mut out, '-', line));
            new[change.new.clone()].iter().for_each(|line| write_row(&mut out, '+', line));
            at = change.old.end;
        }
        old[at..old_range.end].iter().for_each(|line| write_row(&mut out, ' ', line));
    }
    out
}

fn write_mode_and_rename(out: &mut String, before: Side<'_>, after: Side<'_>) {
    if before.executable != after.executable {
        out.push_str(&format!("old mode {}\nnew mode {}\n", before.mode(), after.mode()));
    }
    if before.path != after.path {
        if before.bytes == after.bytes {
            out.push_str("similarity index 100%\n");
        }
        out.push_str(&format!(
            "rename from {}\nrename to {}\n",
            quote_path("", before.path),
            quote_path("", after.path)
        ));
    }
}

/// Writes a path like git: quoted if it contains special characters.
fn quote_path(prefix: &str, path: &str) -> String {
    if !path.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for character in path.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_ascii_control() => {
                quoted.push_str(&format!("\\{:03o}", u32::from(control)))
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Returns the content with its byte order mark, so that a diff shows when it is added or removed.
fn content<'t>(text: &'t Text<'_>) -> Cow<'t, str> {
    match text.encoding() {
        Encoding::Utf8 | Encoding::Legacy(_) => text.content().into(),
        Encoding::Utf8Bom | Encoding::Utf16Le | Encoding::Utf16Be => {
            format!("\u{FEFF}{}", text.content()).into()
        }
    }
}

fn range(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn write_row(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

/// Lines of the old side that are replaced by lines of the new side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineChange {
    old: Range<usize>,
    new: Range<usize>,
}

/// Groups changes whose context lines touch.
fn hunks(changes: &[LineChange], context: usize) -> impl Iterator<Item = &[LineChange]> {
    changes.chunk_by(move |a, b| b.old.start - a.old.end <= 2 * context)
}

/// Computes the changes in order. Lines that are unique on both sides serve as anchors, and the
/// gaps between them are compared.
fn changes(old: &[&str], new: &[&str]) -> Vec<LineChange> {
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(|line| number(*line)).collect();
    let new: Vec<usize> = new.iter().map(|line| number(*line)).collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let mut fixed = anchors(&old[start..old_end], &new[start..new_end]);
    fixed.push((old_end - start, new_end - start));
    let mut changes: Vec<LineChange> = Vec::new();
    let (mut old_at, mut new_at) = (start, start);
    for (old_anchor, new_anchor) in fixed {
        let gap = LineChange { old: old_at..start + old_anchor, new: new_at..start + new_anchor };
        (old_at, new_at) = (gap.old.end, gap.new.end);
        for change in diff_gap(&old, &new, gap) {
            match changes.last_mut() {
                Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
                    last.old.end = change.old.end;
                    last.new.end = change.new.end;
                }
                _ => changes.push(change),
            }
        }
    }
    changes
}

/// Returns pairs of lines that are unique on both sides, as many as keep their order.
fn anchors(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let positions = |lines: &[usize]| {
        let mut only: HashMap<usize, Option<usize>> = HashMap::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            only.entry(*line).and_modify(|only| *only = None).or_insert(Some(at));
        }
        only
    };
    let in_new = positions(new);
    let mut pairs: Vec<(usize, usize)> = positions(old)
        .into_iter()
        .filter_map(|(line, at)| at.zip(in_new.get(&line).copied().flatten()))
        .collect();
    pairs.sort_unstable();
    longest_rising(&pairs)
}

/// Returns the longest increasing subsequence of pairs.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the index of the smallest last pair; and for each pair, its predecessor.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *new);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        run.push(pairs[index]);
        at = before[index];
    }
    run.reverse();
    run
}

/// Computes the changes in one gap.
fn diff_gap(old: &[usize], new: &[usize], gap: LineChange) -> Vec<LineChange> {
    if gap.old.is_empty() && gap.new.is_empty() {
        return Vec::new();
    }
    if gap.old.is_empty() || gap.new.is_empty() || gap.old.len() + gap.new.len() > MAX_COMPARED_LINES {
        return vec![gap];
    }
    let operations = capture_diff_slices(Algorithm::Myers, &old[gap.old.clone()], &new[gap.new.clone()]);
    let moved = |range: Range<usize>, by: usize| range.start + by..range.end + by;
    operations
        .iter()
        .filter(|operation| !matches!(operation, DiffOp::Equal { .. }))
        .map(|operation| LineChange {
            old: moved(operation.old_range(), gap.old.start),
            new: moved(operation.new_range(), gap.new.start),
        })
        .collect()
}

#[cfg(test)]
mod tests;
