//! Marks the words that differ between a removed line and the added line in its place.

use std::{mem, ops::Range};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::rows::{RenderedRow, RowKind};

/// Maximum length of a line whose words are compared.
const MAX_COMPARED_BYTES: usize = 2_000;

/// Marks changed words in all rows. Removed lines are compared with the added lines that follow
/// them, in order.
pub(super) fn mark_changes(rows: &mut [RenderedRow]) {
    let mut at = 0;
    while at < rows.len() {
        let removed = count(&rows[at..], RowKind::Removed);
        let added = count(&rows[at + removed..], RowKind::Added);
        let (olds, news) = rows[at..].split_at_mut(removed);
        for (old, new) in olds.iter_mut().zip(&mut news[..added]) {
            mark_pair(old, new);
        }
        at += (removed + added).max(1);
    }
}

fn count(rows: &[RenderedRow], kind: RowKind) -> usize {
    rows.iter().take_while(|row| row.kind == kind).count()
}

fn mark_pair(old: &mut RenderedRow, new: &mut RenderedRow) {
    if old.text.len().max(new.text.len()) > MAX_COMPARED_BYTES {
        return;
    }
    let (old_words, new_words) = (words(&old.text), words(&new.text));
    let text = |words: &[Range<usize>], line: &str| -> Vec<String> {
        words.iter().map(|word| line[word.clone()].to_owned()).collect()
    };
    let operations =
        capture_diff_slices(Algorithm::Myers, &text(&old_words, &old.text), &text(&new_words, &new.text));
    let (mut old_changed, mut new_changed, mut same) = (Vec::new(), Vec::new(), 0);
    for operation in operations {
        if let DiffOp::Equal { .. } = operation {
            same += span(&old_words, operation.old_range()).len();
        } else {
            old_changed.push(span(&old_words, operation.old_range()));
            new_changed.push(span(&new_words, operation.new_range()));
        }
    }
    // Lines with little in common are different lines; marks would only be noise.
    if same * 3 >= old.text.len().max(new.text.len()) {
        old.changed = joined(old_changed);
        new.changed = joined(new_changed);
    }
}

/// Returns the bytes that a range of words covers.
fn span(words: &[Range<usize>], range: Range<usize>) -> Range<usize> {
    match words.get(range) {
        Some([first, .., last]) => first.start..last.end,
        Some([only]) => only.clone(),
        _ => 0..0,
    }
}

/// Drops empty ranges and joins those that touch.
fn joined(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

/// Splits a line into words, runs of blanks and single signs.
fn words(line: &str) -> Vec<Range<usize>> {
    let (mut words, mut begin, mut last) = (Vec::new(), 0, DiffTokenClass::Sign);
    for (at, c) in line.char_indices() {
        let class = DiffTokenClass::from_char(c);
        let before = mem::replace(&mut last, class);
        if at > 0 && (before != class || class == DiffTokenClass::Sign) {
            words.push(begin..at);
            begin = at;
        }
    }
    if begin < line.len() {
        words.push(begin..line.len());
    }
    words
}

/// The classes of characters that words are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffTokenClass {
    Letter,
    Blank,
    Sign,
}

impl DiffTokenClass {
    fn from_char(c: char) -> Self {
        if c.is_alphanumeric() || c == '_' {
            Self::Letter
        } else if c.is_whitespace() {
            Self::Blank
        } else {
            Self::Sign
        }
    }
}
