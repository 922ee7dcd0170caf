//! Secrets out of text: by their shape, by the names they have, and by their values.
//!
//! One pass over whole lines finds the places where a secret may be; small matchers look at those places. A line longer
//! than [`WINDOW_BYTES`] is looked at in overlapping pieces. What is kept between two pieces of input is at most one line, and the
//! lines before it that may be of a private key: only its end may tell.

mod assign;
mod bytes;
mod edit;
mod found;
mod keys;
mod known;
mod labels;
mod line;
mod name;
mod place;
mod rules;
mod scan;
mod token;
mod value;
mod walk;

pub use self::keys::KeyLines;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex},
};

use self::{
    edit::{Edit, Report},
    found::{Found, Pending},
    keys::Block,
    known::Known,
    labels::SecretLabels,
    line::Line,
    scan::{Hit, SEARCH},
};
use crate::wide::{Readable, Written};

/// So much of a line is looked at at once.
const WINDOW_BYTES: usize = 64 * 1024;
/// A secret that starts in a window may go on for so long after it.
const AHEAD_BYTES: usize = 8 * 1024;
/// More than this is never kept.
const LIMIT_BYTES: usize = WINDOW_BYTES + AHEAD_BYTES;

/// What a session knows about secrets: values that must not get out, and the labels given so far. Clones share both.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    known: Arc<Known>,
    labels: Arc<Mutex<SecretLabels>>,
}

impl Secrets {
    /// Knows these values, given with their names. Short and ordinary ones (`true`, `production`) are not used; of
    /// addresses only the password is.
    pub fn knowing(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { known: Arc::new(Known::new(values)), labels: Arc::default() }
    }

    /// Whether the value of a variable looks like a credential, by its name or by its form.
    pub fn is_credential(name: &str, value: &str) -> bool {
        known::is_credential(name, value)
    }

    /// The text without secrets.
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

/// A secret that was replaced. It never holds the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Counted from 1.
    pub line: u64,
    /// In bytes, counted from 1, in what came in.
    pub column: u64,
    /// What stands there now.
    pub label: String,
    /// Which rule found it.
    pub rule: String,
    /// Why it was taken for a secret.
    pub why: &'static str,
}

/// Cleans a stream of bytes. Where it is cut into pieces makes no difference.
#[derive(Debug)]
pub struct Cleaner {
    secrets: Secrets,
    /// What came in and is not finished: lines that may be of a key, and at most one line, or one window of it.
    rest: Vec<u8>,
    /// How much of it is whole lines that cannot be judged yet,
    open: usize,
    /// and how much it may be before all of them are looked at again.
    enough: usize,
    block: Option<Block>,
    pending: Option<Pending>,
    report: Option<Report>,
    /// How the lines of a private key were written whose label comes later.
    dropped: Option<Written>,
}

impl Cleaner {
    /// A cleaner for one stream, with what the session knows.
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

    /// Also remembers what it finds, for [`Cleaner::findings`].
    #[must_use]
    pub fn reporting(mut self) -> Self {
        self.report = Some(Report::new());
        self
    }

    /// What was found since this was asked last.
    pub fn findings(&mut self) -> Vec<Finding> {
        self.report.as_mut().map(|report| std::mem::take(&mut report.findings)).unwrap_or_default()
    }

    /// Takes the next piece and gives back what is finished: whole lines, as far as there are any.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 64);
        self.push_to(bytes, &mut out);
        out
    }

    /// The same, behind what is in `out`, whose room is used again and again.
    pub fn push_to(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.can_wait(bytes) {
            self.rest.extend_from_slice(bytes);
            return;
        }
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            // What was begun is finished with as little as that can need, so that the rest of a piece is not copied.
            let mut begun = std::mem::take(&mut self.rest);
            let before = begun.len();
            begun.extend_from_slice(&bytes[..bytes.len().min(LIMIT_BYTES)]);
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

    /// Whether nothing can be told with this that could not be told without: it ends no line, or none but such as those of a key.
    /// What is kept is then looked at as a whole only where it is twice as much as when that was done last.
    fn can_wait(&mut self, bytes: &[u8]) -> bool {
        if self.rest.len() + bytes.len() >= self.enough {
            return false;
        }
        let Some(newline) = memchr::memrchr(b'\n', bytes) else { return true };
        let lines = [&self.rest[self.open..], &bytes[..=newline]].concat();
        let are_wide = keys::are_wide(Readable::new(&lines).text());
        self.open += if are_wide { lines.len() } else { 0 };
        are_wide
    }

    fn keep(&mut self, rest: Vec<u8>) {
        self.enough = (2 * rest.len()).min(LIMIT_BYTES);
        self.rest = rest;
    }

    /// Gives back the rest. The cleaner is as new after it.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let rest = std::mem::take(&mut self.rest);
        self.keep(Vec::new());
        self.whole_lines(&rest, &Readable::new(&rest), &mut out);
        if let Some(block) = self.block.take().filter(|block| block.lines > 0) {
            self.emit(&[], &Readable::new(&[]), vec![Edit::block(0, &block)], &mut out);
        }
        self.pending = None;
        out
    }

    /// Cleans what is complete, and says how much that was.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        self.open = 0;
        loop {
            let piece = &bytes[at..bytes.len().min(at + LIMIT_BYTES)];
            if let Some(newline) = memchr::memrchr(b'\n', piece) {
                let lines = &piece[..=newline];
                let seen = Readable::new(lines);
                at += match seen.behind(keys::open_from(seen.text(), seen.text().len())) {
                    0 if piece.len() < LIMIT_BYTES => {
                        self.open = lines.len();
                        return at;
                    }
                    start if start == 0 || start == lines.len() => {
                        self.whole_lines(lines, &seen, out);
                        lines.len()
                    }
                    start => {
                        self.whole_lines(&lines[..start], &Readable::new(&lines[..start]), out);
                        start
                    }
                };
            } else if piece.len() == LIMIT_BYTES {
                at += self.window(piece, out);
            } else {
                return at;
            }
        }
    }

    /// Cleans lines, the last of which may lack its end.
    fn whole_lines(&mut self, text: &[u8], seen: &Readable<'_>, out: &mut Vec<u8>) {
        let mut edits = Vec::new();
        self.known_values(seen.text(), text.len(), &mut edits);
        self.scan(&SEARCH, seen.text(), &mut edits);
        self.emit(text, seen, edits, out);
    }

    /// Cleans the first piece of a line that is too long, and says how much of it is done.
    fn window(&mut self, piece: &[u8], out: &mut Vec<u8>) -> usize {
        let (seen, mut edits) = (Readable::new(piece), Vec::new());
        let (raw, piece, before) = (piece, seen.text(), seen.before(WINDOW_BYTES));
        self.end_block(0, &mut edits);
        self.pending = None;
        self.known_values(piece, before, &mut edits);
        let (line, mut at, mut found) = (Line::new(piece), 0, Vec::new());
        while let Some((pattern, range)) = SEARCH.next(piece, at).filter(|(_, range)| range.start < before) {
            at = match SEARCH.look(pattern, &line, &range, &mut found) {
                Hit::Next(next) => next.resume.max(range.start + 1),
                Hit::End => {
                    let body = keys::body_before(&piece[at..range.start]);
                    if body > 0 {
                        let range = range.start - body..range.start;
                        found.push(Found { range, label: "private-key", why: "the end of a private key" });
                    }
                    range.end
                }
                Hit::Head { .. } | Hit::Middle => range.end,
                Hit::Block { title } => {
                    let body = keys::body_in_line(keys::until_title(&piece[title.end..]));
                    found.push(Found {
                        range: title.end..title.end + body,
                        label: "private-key",
                        why: "a private key",
                    });
                    title.end + body
                }
            };
        }
        edits.extend(found.into_iter().map(|found| Edit::secret(&found, 0)));
        let last = edits.iter().map(|edit| seen.raw(&edit.range()).0.end).max().unwrap_or(0);
        let cut = WINDOW_BYTES.max(last);
        self.emit(&raw[..cut], &seen, edits, out);
        cut
    }

    fn known_values(&self, text: &[u8], before: usize, edits: &mut Vec<Edit>) {
        let found = self.secrets.known.find(text).take_while(|(range, _)| range.start < before);
        edits.extend(found.map(|(range, value)| Edit::Known { range, value }));
    }
}

#[cfg(test)]
mod tests;
