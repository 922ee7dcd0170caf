//! Tracks a private key line by line: which lines belong to it, and where it ends.

use std::hash::{DefaultHasher, Hasher};

use super::{
    BEGINNING, KeyLines, MAX_FRAME_BYTES, WIDTH, body_in, body_length, find_end, frame, has_line, is_base64,
    is_blank, is_body,
};
use crate::clean::{labels, value};

/// Maximum number of consecutive lines, blank or with only a number, between two lines of a key.
/// `sed = key | sed G` prints seven where the key has a blank one.
const MAX_BETWEEN: usize = 8;
/// Maximum number of consecutive unrelated lines between two lines of a key, as when two programs
/// write to one log.
const MAX_FOREIGN: usize = 16;
/// Maximum length of the remembered text after a title.
const MAX_TAIL_BYTES: usize = 4;

/// A block that has begun.
#[derive(Debug, Clone)]
pub(in crate::clean) struct KeyBlock {
    /// Hash of its lines, which identifies it in labels.
    pub(in crate::clean) hash: DefaultHasher,
    pub(in crate::clean) lines: usize,
    /// Text before the title or first line, repeated before the other lines.
    frame: Vec<u8>,
    /// Text after the title, repeated after the other lines: `\n","stream":…`.
    tail: Vec<u8>,
    has_title: bool,
    /// Number of lines since the last line of the key.
    between: usize,
    /// Number of those lines that are unrelated to the key.
    foreign: usize,
    /// Total number of lines.
    all: usize,
}

/// The relation of a line to an open block.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::clean) enum KeyBlockPart {
    Body,
    /// The line is not part of the block, which goes on after it.
    Between,
    /// The line is not part of the block and is scanned like any other.
    Foreign,
    /// The block is over, and the line is kept.
    Over,
    /// The block ends in this line, at this offset.
    EndsAt(usize),
}

impl KeyBlock {
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

    /// Begins a block at a title, with the text before and after it. Returns `None` if the text
    /// after it holds an end marker or is already redacted. Such text mostly means that the title
    /// is only mentioned. Then the next line must look like a line of a key.
    pub(in crate::clean) fn titled(before: &[u8], behind: &[u8]) -> Option<Self> {
        let block = Self { has_title: true, ..Self::framed(before) };
        if is_blank(behind) {
            return Some(block);
        }
        let is_over = find_end(behind).is_some() || memchr::memmem::find(behind, labels::MARK).is_some();
        let tail = behind.trim_ascii_start();
        let tail = tail[..tail.len().min(MAX_TAIL_BYTES)].to_vec();
        (!is_over).then_some(Self { tail, foreign: 1, ..block })
    }

    /// Begins a block at its first line, with the text before it.
    pub(in crate::clean) fn framed(before: &[u8]) -> Self {
        let frame =
            if before.len() > MAX_FRAME_BYTES { Vec::new() } else { frame::bare(before).into_owned() };
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

    /// Skips a line between lines of the key.
    pub(in crate::clean) fn pass(&mut self) {
        self.between += 1;
    }

    /// Skips a line unrelated to the key. The lines before it have their label already.
    pub(in crate::clean) fn leave(&mut self) {
        self.foreign += 1;
        self.lines = 0;
    }

    /// Returns the relation of a line to this block.
    pub(in crate::clean) fn part(&self, line: &[u8]) -> KeyBlockPart {
        if let Some(end) = find_end(line) {
            let start = line[..end].iter().rposition(|byte| is_base64(*byte)).map_or(0, |last| last + 1);
            let bare = frame::bare(&line[..end]);
            let text = self.inner(&bare);
            let has_body = if self.foreign > 0 { is_like_key(text) } else { has_line(text) };
            return if has_body { KeyBlockPart::EndsAt(start) } else { KeyBlockPart::Over };
        }
        // Otherwise a false start would take all base64 after it along.
        if self.all >= KeyLines::MAX_LINES {
            return KeyBlockPart::Over;
        }
        let bare = frame::bare(line);
        let text = self.inner(&bare);
        if self.foreign > 0 {
            return if is_like_key(text) { KeyBlockPart::Body } else { self.foreign_or_over(line) };
        }
        let is_header = self.lines < 8 && text.len() < 200 && is_header(text);
        let goes_on = self.has_title && self.between < MAX_BETWEEN;
        if is_mark(text) {
            return match self.lines {
                0 if goes_on => KeyBlockPart::Between,
                1..8 => KeyBlockPart::Body,
                _ if goes_on => KeyBlockPart::Body,
                _ => self.foreign_or_over(line),
            };
        }
        if goes_on && text.iter().all(u8::is_ascii_digit) && text.len() < 6 {
            return KeyBlockPart::Between;
        }
        // A short line that does not follow a line of the key may be anything.
        let is_random = || {
            text.starts_with(b"=")
                || text.len().is_multiple_of(4) && !text.iter().all(u8::is_ascii_alphabetic)
        };
        let may_be_last = self.between == 0 || is_random();
        let lines = if may_be_last { self.lines } else { 0 };
        if is_header || is_body(text, lines) { KeyBlockPart::Body } else { self.foreign_or_over(line) }
    }

    /// Classifies a line that does not belong to the key.
    fn foreign_or_over(&self, line: &[u8]) -> KeyBlockPart {
        let is_over = self.foreign >= MAX_FOREIGN || BEGINNING.find(line).is_some();
        if is_over { KeyBlockPart::Over } else { KeyBlockPart::Foreign }
    }

    /// Strips the text that the block repeats before and after each line.
    fn inner<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let text = frame::behind(&self.frame, line);
        let end = match &self.tail[..] {
            [] => None,
            tail => memchr::memmem::find(text, tail),
        };
        text[..end.unwrap_or(text.len())].trim_ascii()
    }
}

/// Returns true if a line after unrelated lines belongs to a key: as wide as its lines or its last
/// one, and random; or a checksum.
fn is_like_key(text: &[u8]) -> bool {
    if let [b'=', sum @ ..] = text {
        return sum.len() == 4 && sum.iter().all(|byte| is_base64(*byte));
    }
    let (before, body) = body_in(text);
    // Hexadecimal checksums use letters of one case.
    let is_wide = WIDTH.contains(&body_length(text)) && body.iter().any(u8::is_ascii_lowercase);
    let is_end = body.len().is_multiple_of(4) || body.ends_with(b"=");
    let is_last = is_end && body.len() == text.len() && body.len() < *WIDTH.start();
    (is_wide || is_last)
        && !before.iter().any(u8::is_ascii_alphabetic)
        && body.iter().any(u8::is_ascii_uppercase)
        && value::is_random(body, if body.ends_with(b"=") { 8 } else { 16 })
}

/// Returns true if a line is blank except for a diff marker.
fn is_mark(text: &[u8]) -> bool {
    matches!(text, b"" | b"+" | b"-")
}

/// Returns true for a header such as `Proc-Type: 4,ENCRYPTED`.
fn is_header(text: &[u8]) -> bool {
    [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:", b"Subject:", b"Hash:"]
        .iter()
        .any(|name| text.starts_with(name))
}
