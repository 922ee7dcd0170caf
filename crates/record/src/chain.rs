//! The chain over the lines of a session file: every line names the SHA-256 of the line before it,
//! and ends with a checksum of itself.
//!
//! Whoever changes, removes, adds or moves a line breaks the chain at the next one; the checksum
//! shows damage to a line without the next. Two things the chain cannot show by itself: that lines
//! are missing at the end (for that someone must remember the [`Head`], as the index of calls does),
//! and that someone wrote the whole rest of the file anew with hashes that fit (for that the head
//! must be remembered where they cannot write).

use std::{
    borrow::Cow,
    fmt,
    io::{BufReader, Read},
    path::Path,
};

use ring::digest::{Context, SHA256, digest};
use serde::Deserialize;

use crate::{
    SessionError,
    error::cannot,
    line::{Lines, Next},
    place,
};

/// The SHA-256 of a line with its end, as `sha256sum` would print it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Link([u8; 32]);

impl Link {
    pub(crate) fn of(line: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, line).as_ref());
        Self(bytes)
    }

    /// What stands before the first line: nothing.
    pub(crate) fn start() -> Self {
        Self::of(b"")
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(0..) {
            *byte = u8::from_str_radix(text.get(pair * 2..pair * 2 + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Begins the end of a line: the comma, the key and the opening quote of its checksum.
const CHECKSUM_KEY: &[u8] = br#","sum":""#;

/// Ends a line that has a checksum.
const CHECKSUM_END: &[u8] = b"\"}\n";

/// Hexadecimal digits of a checksum: 64 bits of the SHA-256 of the line before the comma. Against
/// damage that is plenty; against people there is the chain.
const CHECKSUM_DIGITS: usize = 16;

const CHECKSUM_BYTES: usize = CHECKSUM_KEY.len() + CHECKSUM_DIGITS + CHECKSUM_END.len();

/// The result of comparing a line with its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// An earlier version wrote the line.
    Absent,
    Holds,
    Fails,
}

/// Ends a line, from which the closing brace was taken, with its checksum. Returns its link.
pub(crate) fn seal(line: &mut Vec<u8>) -> Link {
    let mut hash = Context::new(&SHA256);
    hash.update(line);
    let digits = finish(hash.clone()).to_string();
    let body_bytes = line.len();
    line.extend_from_slice(CHECKSUM_KEY);
    line.extend_from_slice(&digits.as_bytes()[..CHECKSUM_DIGITS]);
    line.extend_from_slice(CHECKSUM_END);
    hash.update(&line[body_bytes..]);
    finish(hash)
}

/// Compares a line with its checksum, and returns its link too: both in one pass over the line.
pub(crate) fn unseal(line: &[u8]) -> (Link, Checksum) {
    let (body, end) = line.split_at(line.len().saturating_sub(CHECKSUM_BYTES));
    let digits = end.strip_prefix(CHECKSUM_KEY).and_then(|rest| rest.strip_suffix(CHECKSUM_END));
    let Some(digits) = digits else {
        // Lines without a checksum end with the payload's brace and the line's own.
        let is_damaged = line.ends_with(CHECKSUM_END);
        return (Link::of(line), if is_damaged { Checksum::Fails } else { Checksum::Absent });
    };
    let mut hash = Context::new(&SHA256);
    hash.update(body);
    let holds = finish(hash.clone()).to_string().as_bytes().starts_with(digits);
    hash.update(end);
    (finish(hash), if holds { Checksum::Holds } else { Checksum::Fails })
}

fn finish(hash: Context) -> Link {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    Link(bytes)
}

/// How far a file goes, and what its last line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many whole lines.
    pub lines: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// The last of them.
    pub link: Link,
}

impl Head {
    /// Before the first line.
    pub(crate) fn start() -> Self {
        Self { lines: 0, bytes: 0, link: Link::start() }
    }

    /// One line further.
    pub(crate) fn after(self, line: &[u8]) -> Self {
        self.after_link(Link::of(line), line.len())
    }

    fn after_link(self, link: Link, bytes: usize) -> Self {
        Self { lines: self.lines + 1, bytes: self.bytes + bytes as u64, link }
    }

    /// Whether a line says that it comes next; none if it does not say what it follows.
    pub(crate) fn leads_to(self, line: &[u8]) -> Option<bool> {
        self.is_named_by(named_before(line).as_deref())
    }

    fn is_named_by(self, prev: Option<&str>) -> Option<bool> {
        prev.map(|prev| Link::parse(prev) == Some(self.link))
    }
}

/// The link that a line names as the one before it.
fn named_before(line: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Chained<'a> {
        #[serde(borrow)]
        prev: Option<Cow<'a, str>>,
    }
    serde_json::from_slice::<Chained>(line).ok()?.prev
}

/// Follows the lines of a file, one by one from the first.
#[derive(Debug)]
pub(crate) struct ChainCheck {
    /// The last line that was followed.
    pub(crate) head: Head,
    /// How many lines at the beginning name no line before them.
    unchained: u64,
    /// The checksum of the last line that was followed.
    last: Checksum,
}

impl ChainCheck {
    pub(crate) fn new() -> Self {
        Self { head: Head::start(), unchained: 0, last: Checksum::Absent }
    }

    /// Goes one line further, which names `prev` as the one before it, or says what is wrong with it.
    pub(crate) fn follow(&mut self, line: &[u8], prev: Option<&str>) -> Result<(), Why> {
        let before = self.head;
        let (hash, checksum) = unseal(line);
        (self.head, self.last) = (before.after_link(hash, line.len()), checksum);
        match before.is_named_by(prev) {
            _ if checksum == Checksum::Fails => Err(Why::Checksum),
            Some(true) => Ok(()),
            Some(false) => Err(Why::OtherBefore),
            None if self.unchained == before.lines => {
                self.unchained += 1;
                Ok(())
            }
            None => Err(Why::Unchained),
        }
    }

    /// Whether the last line that was followed proves by itself that it is not damaged.
    pub(crate) fn is_last_proved(&self) -> bool {
        self.last == Checksum::Holds
    }
}

/// What the lines of a session file say about each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Where the file ends.
    pub head: Head,
    /// How many lines at the beginning carry no hash: an earlier version wrote them, and nothing is proved about them.
    pub unchained: u64,
    /// The first line that does not follow from the one before it.
    pub broken: Option<Break>,
    /// Whether half a line stands at the end, as when the writer was killed. Resuming takes it away.
    pub torn: bool,
    /// Whether the file was at some line what was remembered of it.
    pub passed: bool,
}

/// Where a chain breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// The line that does not follow, from 1.
    pub line: u64,
    /// How one can tell.
    pub why: Why,
}

/// How one can tell that a chain is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It names another line than the one before it.
    OtherBefore,
    /// It names no line, although earlier ones do.
    Unchained,
    /// Its checksum is not that of its content.
    Checksum,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, why } = self;
        match (why, line) {
            (Why::Checksum, _) => write!(f, "line {line} was changed: its checksum does not match"),
            (Why::Unchained, _) => {
                write!(f, "line {line} was changed or put there: it names no line before it")
            }
            (Why::OtherBefore, 1) => {
                write!(f, "line 1 was not the first: lines before it were removed, or it was changed")
            }
            (Why::OtherBefore, _) => write!(
                f,
                "line {} was changed, or lines were removed, added or moved before line {line}: it follows another line",
                line - 1
            ),
        }
    }
}

/// Reads a file and compares every line with the one before it. `remembered` is where the file once ended, if someone knows.
pub fn verify(path: &Path, remembered: Option<Link>) -> Result<Audit, SessionError> {
    let file = place::open_to_read(path)?;
    audit(BufReader::new(file), remembered).map_err(cannot("read", path))
}

fn audit(from: BufReader<impl Read>, remembered: Option<Link>) -> std::io::Result<Audit> {
    let mut lines = Lines::new(from);
    let mut check = ChainCheck::new();
    let (mut broken, mut torn, mut passed) = (None, false, false);
    loop {
        match lines.next()? {
            Next::Whole(line) => {
                let followed = check.follow(line, named_before(line).as_deref());
                broken = broken.or(followed.err().map(|why| Break { line: check.head.lines, why }));
                passed |= remembered == Some(check.head.link);
            }
            Next::Torn => torn = true,
            Next::End => break,
        }
    }
    let ChainCheck { head, unchained, .. } = check;
    Ok(Audit { head, unchained, broken, torn, passed })
}

#[cfg(test)]
mod tests;
