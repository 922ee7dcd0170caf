//! A private key while its lines come: which of them are of it, and when it is over.

use std::hash::{DefaultHasher, Hasher};

use super::{
    BEGINNING, FRAME, KeyLines, WIDTH, body_in, body_length, find_end, frame, has_line, is_base64, is_blank,
    is_body,
};
use crate::clean::{labels, value};

/// So many lines in a row that are blank or a number may be between two of a key: `sed = key | sed G` has seven where the
/// key itself has a blank one.
const BETWEEN: usize = 8;
/// So many lines in a row that have nothing to do with a key may be between two of it, as where two programs write one log.
const FOREIGN: usize = 16;
/// As much as is remembered of what is behind a title.
const TAIL: usize = 4;

/// A block that has begun.
#[derive(Debug, Clone)]
pub(in crate::clean) struct Block {
    /// Of its lines, for its number.
    pub(in crate::clean) hash: DefaultHasher,
    pub(in crate::clean) lines: usize,
    /// What was in front of its title or first line, and is in front of the others.
    frame: Vec<u8>,
    /// What began behind its title, and does behind the others: `\n","stream":…`.
    tail: Vec<u8>,
    has_title: bool,
    /// How many lines there were since the last of the key.
    between: usize,
    /// How many of them have nothing to do with it.
    foreign: usize,
    /// How many lines it has had in all.
    all: usize,
}

/// What a line is to a block that has begun.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::clean) enum Part {
    Body,
    /// The line is not part of the block, which goes on after it.
    Between,
    /// The same, and the line is like any other.
    Foreign,
    /// The block is over, and the line stays.
    Over,
    /// The block ends in this line; what is before this place belongs to it.
    EndsAt(usize),
}

impl Block {
    pub(in crate::clean) fn new() -> Self {
        Self {
            hash: DefaultHasher::new(),
            lines: 0,
            frame: Vec::new(),
            tail: Vec::new(),
            has_title: false,
            between: 0,
            foreign: 0,
            all: 0,
        }
    }

    /// One with this in front of its title, and this behind it, unless that has an end or was cleaned before. With something
    /// behind it a title is mostly no more than mentioned: there, the next line is of a key only if it is like one.
    pub(in crate::clean) fn titled(before: &[u8], behind: &[u8]) -> Option<Self> {
        let block = Self { has_title: true, ..Self::framed(before) };
        if is_blank(behind) {
            return Some(block);
        }
        let is_over = find_end(behind).is_some() || memchr::memmem::find(behind, labels::MARK).is_some();
        let tail = behind.trim_ascii_start();
        let tail = tail[..tail.len().min(TAIL)].to_vec();
        (!is_over).then_some(Self { tail, foreign: 1, ..block })
    }

    /// One with this in front of its first line.
    pub(in crate::clean) fn framed(before: &[u8]) -> Self {
        let frame = if before.len() > FRAME { Vec::new() } else { frame::bare(before).into_owned() };
        Self { frame, ..Self::new() }
    }

    pub(in crate::clean) fn take(&mut self, line: &[u8]) {
        let bare = frame::bare(line);
        let text = self.inner(&bare);
        self.between = if is_mark(text) { self.between + 1 } else { 0 };
        self.foreign = 0;
        self.hash.write(text);
        self.lines += 1;
        self.all += 1;
    }

    /// Leaves out a line that is between those of the key.
    pub(in crate::clean) fn pass(&mut self) {
        self.between += 1;
    }

    /// Leaves out a line that has nothing to do with the key. The lines before it have their label.
    pub(in crate::clean) fn leave(&mut self) {
        self.foreign += 1;
        self.lines = 0;
    }

    /// What a line is to this block.
    pub(in crate::clean) fn part(&self, line: &[u8]) -> Part {
        if let Some(end) = find_end(line) {
            let start = line[..end].iter().rposition(|byte| is_base64(*byte)).map_or(0, |last| last + 1);
            let bare = frame::bare(&line[..end]);
            let text = self.inner(&bare);
            let has_body = if self.foreign > 0 { is_like_key(text) } else { has_line(text) };
            return if has_body { Part::EndsAt(start) } else { Part::Over };
        }
        // What only began like a key would take all base64 behind it along.
        if self.all >= KeyLines::MOST {
            return Part::Over;
        }
        let bare = frame::bare(line);
        let text = self.inner(&bare);
        if self.foreign > 0 {
            return if is_like_key(text) { Part::Body } else { self.foreign_or_over(line) };
        }
        let is_header = self.lines < 8 && text.len() < 200 && is_header(text);
        let goes_on = self.has_title && self.between < BETWEEN;
        if is_mark(text) {
            return match self.lines {
                0 if goes_on => Part::Between,
                1..8 => Part::Body,
                _ if goes_on => Part::Body,
                _ => self.foreign_or_over(line),
            };
        }
        if goes_on && text.iter().all(u8::is_ascii_digit) && text.len() < 6 {
            return Part::Between;
        }
        // A short line that does not follow one of the key may be anything.
        let is_random = || {
            text.starts_with(b"=")
                || text.len().is_multiple_of(4) && !text.iter().all(u8::is_ascii_alphabetic)
        };
        let may_be_last = self.between == 0 || is_random();
        let lines = if may_be_last { self.lines } else { 0 };
        if is_header || is_body(text, lines) { Part::Body } else { self.foreign_or_over(line) }
    }

    /// What a line is that is not of the key.
    fn foreign_or_over(&self, line: &[u8]) -> Part {
        let is_over = self.foreign >= FOREIGN || BEGINNING.find(line).is_some();
        if is_over { Part::Over } else { Part::Foreign }
    }

    /// A line without what is in front of all lines of the block, and behind them.
    fn inner<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let text = frame::behind(&self.frame, line);
        let end = match &self.tail[..] {
            [] => None,
            tail => memchr::memmem::find(text, tail),
        };
        text[..end.unwrap_or(text.len())].trim_ascii()
    }
}

/// Whether a line is of a key where others are between: as wide as those, or its last one, and random; or a checksum.
fn is_like_key(text: &[u8]) -> bool {
    if let [b'=', sum @ ..] = text {
        return sum.len() == 4 && sum.iter().all(|byte| is_base64(*byte));
    }
    let (before, body) = body_in(text);
    // In a sum of hexadecimal digits all letters have one case.
    let is_wide = WIDTH.contains(&body_length(text)) && body.iter().any(u8::is_ascii_lowercase);
    let is_end = body.len().is_multiple_of(4) || body.ends_with(b"=");
    let is_last = is_end && body.len() == text.len() && body.len() < *WIDTH.start();
    (is_wide || is_last)
        && !before.iter().any(u8::is_ascii_alphabetic)
        && body.iter().any(u8::is_ascii_uppercase)
        && value::is_random(body, if body.ends_with(b"=") { 8 } else { 16 })
}

/// Whether a line is blank, but for the mark of a diff.
fn is_mark(text: &[u8]) -> bool {
    matches!(text, b"" | b"+" | b"-")
}

/// `Proc-Type: 4,ENCRYPTED`
fn is_header(text: &[u8]) -> bool {
    [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:", b"Subject:", b"Hash:"]
        .iter()
        .any(|name| text.starts_with(name))
}
