//! Redacts secrets from text: by format, by name, and by known value.
//!
//! One pass over whole lines finds the places where a secret may be; small matchers check those
//! places. A line longer than [`WINDOW_BYTES`] is checked in overlapping windows. Between two
//! chunks of input at most one line is kept, plus the lines before it that may belong to a private
//! key. Only the end of a key may identify them.

mod assign;
mod bytes;
mod edit;
mod found_secret;
mod keys;
mod known_values;
mod labels;
mod line;
mod name;
mod place;
mod rules;
mod scan;
mod token;
mod value;
mod walk;
mod word_search;

pub use self::keys::KeyLines;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex},
};

use self::{
    edit::{RedactionEdit, RedactionReport},
    found_secret::{FoundSecret, PendingSecret},
    keys::KeyBlock,
    known_values::KnownValues,
    labels::SecretLabels,
    line::ScannedLine,
    scan::{SEARCH, ScanHit},
};
use crate::utf16::{CharWidth, NarrowedText};

/// Length of a window over a long line.
const WINDOW_BYTES: usize = 64 * 1024;
/// Maximum length of a secret beyond the window in which it starts.
const AHEAD_BYTES: usize = 8 * 1024;
/// Maximum number of bytes kept between two chunks.
const MAX_KEPT_BYTES: usize = WINDOW_BYTES + AHEAD_BYTES;

/// The secrets of a session: values to redact, and the labels given so far. Clones share both.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    known: Arc<KnownValues>,
    labels: Arc<Mutex<SecretLabels>>,
}

impl Secrets {
    /// Creates a set of known values with their names. Short and ordinary values (`true`,
    /// `production`) are ignored. Of a URL only the password is used.
    pub fn knowing(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { known: Arc::new(KnownValues::new(values)), labels: Arc::default() }
    }

    /// Returns true if a variable looks like a credential, by its name or the format of its value.
    pub fn is_credential(name: &str, value: &str) -> bool {
        known_values::is_credential(name, value)
    }

    /// Returns the text with its secrets redacted.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut cleaner = Cleaner::new(self);
        let mut bytes = cleaner.push(text.as_bytes());
        bytes.extend(cleaner.finish());
        if bytes == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

/// A redacted secret. It never holds the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Line number, from 1.
    pub line: u64,
    /// Column in bytes of the input, from 1.
    pub column: u64,
    /// The label that replaced the secret.
    pub label: String,
    /// Name of the rule that matched.
    pub rule: String,
    /// The reason for the match.
    pub why: &'static str,
}

/// Redacts a stream of bytes. The result does not depend on chunk boundaries.
#[derive(Debug)]
pub struct Cleaner {
    secrets: Secrets,
    /// Pending input: lines that may belong to a key, and at most one line or window.
    rest: Vec<u8>,
    /// Length of the complete lines in `rest` that cannot be judged yet.
    open: usize,
    /// Length of `rest` at which all of its lines are checked again.
    enough: usize,
    block: Option<KeyBlock>,
    pending: Option<PendingSecret>,
    report: Option<RedactionReport>,
    /// Character width of the dropped lines of a private key whose label follows.
    dropped: Option<CharWidth>,
}

impl Cleaner {
    /// Creates a cleaner for one stream, with the secrets of the session.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            rest: Vec::new(),
            open: 0,
            enough: 0,
            block: None,
            pending: None,
            report: None,
            dropped: None,
        }
    }

    /// Also records findings, for [`Cleaner::findings`].
    #[must_use]
    pub fn reporting(mut self) -> Self {
        self.report = Some(RedactionReport::new());
        self
    }

    /// Returns the findings since the last call.
    pub fn findings(&mut self) -> Vec<Finding> {
        self.report.as_mut().map(|report| std::mem::take(&mut report.findings)).unwrap_or_default()
    }

    /// Processes a chunk and returns the complete lines that are redacted.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 64);
        self.push_to(bytes, &mut out);
        out
    }

    /// Does the same as [`Cleaner::push`], but appends to `out` to reuse its capacity.
    pub fn push_to(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.can_wait(bytes) {
            self.rest.extend_from_slice(bytes);
            return;
        }
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            // Complete the pending input with as little as it can need, to avoid copying the rest
            // of the chunk.
            let mut begun = std::mem::take(&mut self.rest);
            let before = begun.len();
            begun.extend_from_slice(&bytes[..bytes.len().min(MAX_KEPT_BYTES)]);
            let done = self.take(&begun, out);
            if done < before {
                begun.drain(..done);
                return self.keep(begun);
            }
            bytes = &bytes[done - before..];
        }
        let done = self.take(bytes, out);
        self.keep(bytes[done..].to_vec());
    }

    /// Returns true if the chunk cannot complete anything: it ends no line, or only lines like
    /// those of a key. Pending input is checked again only after it doubled, which keeps the cost
    /// linear.
    fn can_wait(&mut self, bytes: &[u8]) -> bool {
        if self.rest.len() + bytes.len() >= self.enough {
            return false;
        }
        let Some(newline) = memchr::memrchr(b'\n', bytes) else { return true };
        let lines = [&self.rest[self.open..], &bytes[..=newline]].concat();
        let are_wide = keys::are_wide(NarrowedText::new(&lines).text());
        self.open += if are_wide { lines.len() } else { 0 };
        are_wide
    }

    fn keep(&mut self, rest: Vec<u8>) {
        self.enough = (2 * rest.len()).min(MAX_KEPT_BYTES);
        self.rest = rest;
    }

    /// Returns the rest and resets the cleaner.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let rest = std::mem::take(&mut self.rest);
        self.keep(Vec::new());
        self.whole_lines(&rest, &NarrowedText::new(&rest), &mut out);
        if let Some(block) = self.block.take().filter(|block| block.lines > 0) {
            self.emit(&[], &NarrowedText::new(&[]), vec![RedactionEdit::block(0, &block)], &mut out);
        }
        self.pending = None;
        out
    }

    /// Redacts all complete lines and returns their length.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        self.open = 0;
        loop {
            let piece = &bytes[at..bytes.len().min(at + MAX_KEPT_BYTES)];
            if let Some(newline) = memchr::memrchr(b'\n', piece) {
                let lines = &piece[..=newline];
                let seen = NarrowedText::new(lines);
                at += match seen.behind(keys::open_from(seen.text(), seen.text().len())) {
                    0 if piece.len() < MAX_KEPT_BYTES => {
                        self.open = lines.len();
                        return at;
                    }
                    start if start == 0 || start == lines.len() => {
                        self.whole_lines(lines, &seen, out);
                        lines.len()
                    }
                    start => {
                        self.whole_lines(&lines[..start], &NarrowedText::new(&lines[..start]), out);
                        start
                    }
                };
            } else if piece.len() == MAX_KEPT_BYTES {
                at += self.window(piece, out);
            } else {
                return at;
            }
        }
    }

    /// Redacts lines. The last one may lack its line end.
    fn whole_lines(&mut self, text: &[u8], seen: &NarrowedText<'_>, out: &mut Vec<u8>) {
        let mut edits = Vec::new();
        self.known_values(seen.text(), text.len(), &mut edits);
        self.scan(&SEARCH, seen.text(), &mut edits);
        self.emit(text, seen, edits, out);
    }

    /// Redacts the first window of a long line and returns the length that is done.
    fn window(&mut self, piece: &[u8], out: &mut Vec<u8>) -> usize {
        let (seen, mut edits) = (NarrowedText::new(piece), Vec::new());
        let (raw, piece, before) = (piece, seen.text(), seen.before(WINDOW_BYTES));
        self.end_block(0, &mut edits);
        self.pending = None;
        self.known_values(piece, before, &mut edits);
        let (line, mut at, mut found) = (ScannedLine::new(piece), 0, Vec::new());
        while let Some((pattern, range)) = SEARCH.next(piece, at).filter(|(_, range)| range.start < before) {
            at = match SEARCH.look(pattern, &line, &range, &mut found) {
                ScanHit::Next(next) => next.resume.max(range.start + 1),
                ScanHit::End => {
                    let body = keys::body_before(&piece[at..range.start]);
                    if body > 0 {
                        let range = range.start - body..range.start;
                        found.push(FoundSecret {
                            range,
                            label: "private-key",
                            why: "the end of a private key",
                        });
                    }
                    range.end
                }
                ScanHit::Head { .. } | ScanHit::Middle => range.end,
                ScanHit::Block { title } => {
                    let body = keys::body_in_line(keys::until_title(&piece[title.end..]));
                    found.push(FoundSecret {
                        range: title.end..title.end + body,
                        label: "private-key",
                        why: "a private key",
                    });
                    title.end + body
                }
            };
        }
        edits.extend(found.into_iter().map(|found| RedactionEdit::secret(&found, 0)));
        let last = edits.iter().map(|edit| seen.raw(&edit.range()).0.end).max().unwrap_or(0);
        let cut = WINDOW_BYTES.max(last);
        self.emit(&raw[..cut], &seen, edits, out);
        cut
    }

    fn known_values(&self, text: &[u8], before: usize, edits: &mut Vec<RedactionEdit>) {
        let found = self.secrets.known.find(text).take_while(|(range, _)| range.start < before);
        edits.extend(found.map(|(range, value)| RedactionEdit::Known { range, value }));
    }
}

#[cfg(test)]
mod tests;
