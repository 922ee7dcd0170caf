//! Secrets out of text: by their shape, by the names they have, and by their values.
//!
//! One pass over whole lines finds the places where a secret may be; small matchers look at those places. A line longer
//! than [`WINDOW_BYTES`] is looked at in overlapping pieces. What is kept between two pieces of input is at most one line, and the
//! lines before it that may be of a private key: only its end may tell.

mod assign;
mod bytes;
mod call;
mod dictionary;
mod edit;
mod found;
mod keys;
mod known;
mod labels;
mod line;
mod memo;
mod name;
mod option;
mod place;
mod rules;
mod scan;
mod seen;
mod spoken;
mod token;
mod value;
mod words;

pub use self::keys::KeyLines;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, Mutex},
};

use self::{
    edit::{Edit, Report},
    found::{Found, Next, Pending},
    keys::{Block, Part},
    known::Known,
    labels::Labels,
    line::Line,
    scan::{Hit, SEARCH, Search},
    seen::{Seen, Unknown},
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
    labels: Arc<Mutex<Labels>>,
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
    seen: Seen,
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
            seen: Seen::default(),
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
            at = match SEARCH.look(pattern, &line, range.clone(), &mut found) {
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

    fn scan(&mut self, search: &Search, text: &[u8], edits: &mut Vec<Edit>) {
        // Where what has been looked at as a block ends, and where the search goes on in a line that began one and is none of it.
        let (mut blocks, mut behind) = (0, 0);
        // Where a line ends that is between those of a block and like any other.
        let mut foreign = 0;
        let (mut at, mut place, mut line) = (0, 0..0, Line::new(&[]));
        let mut found = Vec::new();
        self.seen.expect(text.len());
        // The line that is looked at, if it can be kept.
        let mut kept = None;
        if let Some(pending) = self.pending.take().filter(|_| !text.is_empty()) {
            self.look_ahead(text, 0, pending, edits);
        }
        loop {
            if self.block.is_some() && at >= foreign {
                let from = at;
                (at, foreign) = self.skip_block(text, from, edits);
                blocks = if at > from { at } else { blocks };
                at = at.max(behind);
                place = at..at;
            }
            let until = if self.block.is_some() { foreign } else { text.len() };
            let Some((pattern, range)) = search.next(&text[..until], at) else {
                if until == text.len() {
                    return self.seen.keep(kept, edits, place.start);
                }
                at = until;
                continue;
            };
            if range.start >= place.end {
                self.seen.keep(kept.take(), edits, place.start);
                place = line_after(text, place.end, range.start);
                line = Line::new(&text[place.clone()]);
                // In a key, other lines have a say; and what is before the search in its line was of one.
                if self.block.is_none() && at <= place.start && self.seen.is_worth_asking() {
                    match self.seen.recall(&line) {
                        Ok(secrets) => {
                            let secrets = secrets.iter().flatten();
                            edits.extend(secrets.map(|found| Edit::secret(found, place.start)));
                            at = place.end;
                            continue;
                        }
                        Err(hash) => kept = Some(Unknown { hash, edits: edits.len() }),
                    }
                }
            }
            let here = range.start - place.start..range.end - place.start;
            let hit = search.look(pattern, &line, here, &mut found);
            if !matches!(hit, Hit::Next(Next { pending: None, .. })) {
                // What is in other lines too cannot be told from this one.
                kept = None;
            }
            match hit {
                Hit::Next(next) => {
                    at = (place.start + next.resume).max(range.start + 1);
                    if let Some(pending) = next.pending {
                        self.look_ahead(text, place.end + 1, pending, edits);
                    }
                }
                Hit::Block { title } => {
                    (at, foreign) = self.begin_block(text, title, &place, edits);
                    blocks = at;
                }
                Hit::End => {
                    untitled(&text[..range.start], blocks, edits);
                    (at, blocks) = (range.end, range.end);
                }
                // Its line has a title in it, and what follows that was looked at; or the line above is of something else.
                Hit::Middle if place.start < blocks || !keys::goes_on(text, place.start, &range) => {
                    at = range.end;
                }
                Hit::Middle => {
                    let start = keys::body_above(text, place.start).max(blocks);
                    let mut block = Block::new();
                    take_lines(&mut block, &text[start..place.start]);
                    edits.push(Edit::Drop { range: start..place.start });
                    self.block = Some(block);
                    (at, behind, foreign) = (place.start, range.end, 0);
                }
                Hit::Head { start } => {
                    self.block = Some(Block::framed(&line[..start]));
                    (at, behind, foreign) = (place.start, range.end, 0);
                }
            }
            if !found.is_empty() {
                edits.extend(found.drain(..).map(|found| Edit::secret(&found, place.start)));
            }
        }
    }

    /// Looks at the next line for a value, now if it is there.
    fn look_ahead(&mut self, text: &[u8], next: usize, pending: Pending, edits: &mut Vec<Edit>) {
        if next >= text.len() {
            self.pending = Some(pending);
            return;
        }
        let line = line_at(text, next);
        match assign::find_pending(&Line::new(&text[line.clone()]), pending) {
            Ok(found) => edits.push(Edit::secret(&found, line.start)),
            Err(Some(pending)) => self.look_ahead(text, line.end + 1, pending, edits),
            Err(None) => {}
        }
    }

    /// The title of a private key is here in a line: its body may be behind it or in the next lines. Says where to go on, and
    /// where what is like any other text ends if that comes first.
    fn begin_block(
        &mut self,
        text: &[u8],
        title: Range<usize>,
        line: &Range<usize>,
        edits: &mut Vec<Edit>,
    ) -> (usize, usize) {
        self.block = None;
        let title_end = line.start + title.end;
        let behind = &text[title_end..line.end];
        let rest = keys::until_title(behind);
        let blank = keys::is_blank(rest);
        let body = keys::body_in_line(rest);
        if !blank && body > 0 && (body < rest.trim_ascii_end().len() || body > 64) {
            let range = title_end..title_end + body;
            edits.push(Edit::Secret { range, label: "private-key", why: "the body of a private key" });
            return (title_end + body, 0);
        }
        if line.end < text.len() && rest.len() == behind.len() {
            self.block = Block::titled(&text[line.start..line.start + title.start], rest);
            return (if blank { line.end + 1 } else { title_end }, line.end + 1);
        }
        (title_end, 0)
    }

    /// Drops lines of a private key, and says where it is over, or where the next line ends if that is of something else.
    fn skip_block(&mut self, text: &[u8], from: usize, edits: &mut Vec<Edit>) -> (usize, usize) {
        let mut at = from;
        while at < text.len() {
            let Some(block) = &mut self.block else { return (at, at) };
            let line = line_at(text, at);
            let after = (line.end + 1).min(text.len());
            match block.part(&text[line.clone()]) {
                Part::Body => {
                    block.take(&text[line]);
                    edits.push(Edit::Drop { range: at..after });
                    at = after;
                }
                Part::Between => {
                    block.pass();
                    at = after;
                }
                Part::Foreign => {
                    if block.lines > 0 {
                        edits.push(Edit::block(at, block));
                    }
                    block.leave();
                    return (at, after);
                }
                Part::EndsAt(length) => {
                    block.take(&text[at..at + length]);
                    edits.push(Edit::Drop { range: at..at + length });
                    self.end_block(at + length, edits);
                    return (at + length, at + length);
                }
                Part::Over => {
                    self.end_block(at, edits);
                    return (at, at);
                }
            }
        }
        (at, at)
    }

    fn end_block(&mut self, at: usize, edits: &mut Vec<Edit>) {
        if let Some(block) = self.block.take().filter(|block| block.lines > 0) {
            edits.push(Edit::block(at, &block));
        }
    }
}

/// Drops what is above the end of a private key and has no title.
fn untitled(before: &[u8], from: usize, edits: &mut Vec<Edit>) {
    let line = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let in_line = keys::body_before(&before[line.max(from)..]);
    if in_line > 0 {
        let range = before.len() - in_line..before.len();
        edits.push(Edit::Secret { range, label: "private-key", why: "the end of a private key" });
        return;
    }
    // Mostly what is above was looked at with its title.
    let start = if from < line { keys::body_above(before, line).max(from) } else { line };
    if start < line {
        let mut block = Block::new();
        take_lines(&mut block, &before[start..line]);
        edits.push(Edit::Drop { range: start..line });
        edits.push(Edit::block(line, &block));
    }
}

fn take_lines(block: &mut Block, lines: &[u8]) {
    lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| block.take(line));
}

/// The line around a place that is behind the last line looked at: mostly the next one, whose start need not be sought.
fn line_after(text: &[u8], last: usize, at: usize) -> Range<usize> {
    let is_end = text.get(last) == Some(&b'\n');
    let next = last + 1..last + 1 + text.get(last + 1..).map_or(0, line_length);
    if is_end && next.contains(&at) { next } else { line_at(text, at) }
}

/// The line around a place, without its end.
fn line_at(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    start..at + line_length(&text[at..])
}

fn line_length(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
