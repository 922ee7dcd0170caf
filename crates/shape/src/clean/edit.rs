//! Edits that redact a text, and the report of them.

use std::{
    ops::Range,
    sync::{Arc, PoisonError},
};

use super::{Cleaner, Finding, found_secret::FoundSecret, keys::KeyBlock, labels};
use crate::utf16::{CharWidth, NarrowedText};

/// An edit of a range.
#[derive(Debug)]
pub(super) enum RedactionEdit {
    Secret {
        range: Range<usize>,
        label: &'static str,
        why: &'static str,
    },
    Known {
        range: Range<usize>,
        value: usize,
    },
    /// A dropped line of a private key.
    Drop {
        range: Range<usize>,
    },
    /// The end of a private key, which gets the label.
    Block {
        at: usize,
        hash: u64,
    },
}

impl RedactionEdit {
    /// Creates the edit of a secret found in a line that starts at `line`.
    pub(super) fn secret(found: &FoundSecret, line: usize) -> Self {
        let range = line + found.range.start..line + found.range.end;
        Self::Secret { range, label: found.label, why: found.why }
    }

    /// Creates the edit at the end of a private key whose lines were dropped.
    pub(super) fn block(at: usize, block: &KeyBlock) -> Self {
        Self::Block { at, hash: std::hash::Hasher::finish(&block.hash) }
    }

    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Self::Secret { range, .. } | Self::Known { range, .. } | Self::Drop { range } => range.clone(),
            Self::Block { at, .. } => *at..*at,
        }
    }
}

/// The findings, and the current position in the text.
#[derive(Debug)]
pub(super) struct RedactionReport {
    line: u64,
    column: u64,
    pub(super) findings: Vec<Finding>,
}

impl Cleaner {
    /// Writes a text with the edits applied. Their ranges refer to the narrowed text.
    pub(super) fn emit(
        &mut self,
        raw: &[u8],
        seen: &NarrowedText<'_>,
        mut edits: Vec<RedactionEdit>,
        out: &mut Vec<u8>,
    ) {
        // Edits are in order, unless there were known values or one place had several secrets.
        if !edits.is_sorted_by_key(|edit| edit.range().start) {
            edits.sort_by_key(|edit| edit.range().start);
        }
        let labels = Arc::clone(&self.secrets.labels);
        let mut labels = labels.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, mut at) = (seen.text(), 0);
        let end = seen.before(raw.len());
        let mut merged = edits.into_iter().peekable();
        while let Some(edit) = merged.next() {
            let mut range = edit.range();
            // A matcher with a length limit may stop within a character.
            let is_within = |at: usize| at < end && text[at] & 0xc0 == 0x80;
            loop {
                range.end +=
                    (range.end..).take(3).take_while(|at| !range.is_empty() && is_within(*at)).count();
                let Some(next) = merged.next_if(|next| next.range().start < range.end) else { break };
                range.end = range.end.max(next.range().end);
            }
            let (place, written) = seen.raw(&range);
            out.extend_from_slice(&raw[at..place.start]);
            let start = out.len();
            let (rule, why) = match &edit {
                RedactionEdit::Secret { label, why, .. } => {
                    labels.write(labels::hash(&text[range.clone()]), label, out);
                    (*label, *why)
                }
                RedactionEdit::Known { value, .. } => {
                    let known = &self.secrets.known;
                    labels.write(labels::hash(known.text(*value)), known.name(*value), out);
                    (known.name(*value), "a value known from the environment or the configuration")
                }
                RedactionEdit::Block { hash, .. } => {
                    labels.write(*hash, "private-key", out);
                    ("private-key", "the lines of a private key")
                }
                RedactionEdit::Drop { .. } => ("", ""),
            };
            if let Some(report) = &mut self.report {
                report.advance(&raw[at..place.start]);
                report.add(rule, why, &out[start..]);
                report.advance(&raw[place.clone()]);
            }
            let written = match edit {
                RedactionEdit::Block { .. } => {
                    out.push(b'\n');
                    self.dropped.take().unwrap_or(CharWidth::Narrow)
                }
                RedactionEdit::Drop { .. } => *self.dropped.get_or_insert(written),
                RedactionEdit::Secret { .. } | RedactionEdit::Known { .. } => written,
            };
            written.apply(out, start);
            at = place.end;
        }
        out.extend_from_slice(&raw[at..]);
        if let Some(report) = &mut self.report {
            report.advance(&raw[at..]);
        }
    }
}

impl RedactionReport {
    pub(super) fn new() -> Self {
        Self { line: 1, column: 0, findings: Vec::new() }
    }

    fn advance(&mut self, text: &[u8]) {
        match memchr::memrchr(b'\n', text) {
            Some(last) => {
                self.line += memchr::memchr_iter(b'\n', text).count() as u64;
                self.column = (text.len() - last - 1) as u64;
            }
            None => self.column += text.len() as u64,
        }
    }

    fn add(&mut self, rule: &str, why: &'static str, label: &[u8]) {
        if !rule.is_empty() {
            let label = String::from_utf8_lossy(label).into_owned();
            self.findings.push(Finding {
                line: self.line,
                column: self.column + 1,
                label,
                rule: rule.to_owned(),
                why,
            });
        }
    }
}
