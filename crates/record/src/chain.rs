//! The chain over the lines of a session file: every line names the SHA-256 of the line before it.
//!
//! Whoever changes, removes, adds or moves a line breaks the chain at the next one. Two things it cannot show by itself: that
//! lines are missing at the end (for that someone must remember the [`Head`], as the index of calls does), and that someone
//! wrote the whole rest of the file anew with hashes that fit (for that the head must be remembered where they cannot write).

use std::{
    borrow::Cow,
    fmt,
    io::{BufReader, Read},
    path::Path,
};

use ring::digest::{SHA256, digest};
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
        Self { lines: self.lines + 1, bytes: self.bytes + line.len() as u64, link: Link::of(line) }
    }

    /// Whether a line says that it comes next; none if it does not say what it follows.
    pub(crate) fn leads_to(self, line: &[u8]) -> Option<bool> {
        #[derive(Deserialize)]
        struct Chained<'a> {
            #[serde(borrow)]
            prev: Option<Cow<'a, str>>,
        }
        let chained: Chained = serde_json::from_slice(line).ok()?;
        chained.prev.map(|prev| Link::parse(&prev) == Some(self.link))
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
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, why } = self;
        match (why, line) {
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
    let mut audit = Audit { head: Head::start(), unchained: 0, broken: None, torn: false, passed: false };
    loop {
        let line = match lines.next()? {
            Next::Whole(line) => line,
            Next::Torn => {
                audit.torn = true;
                continue;
            }
            Next::End => return Ok(audit),
        };
        let at = audit.head.lines + 1;
        let why = match audit.head.leads_to(line) {
            Some(true) => None,
            Some(false) => Some(Why::OtherBefore),
            None if audit.unchained == audit.head.lines => {
                audit.unchained += 1;
                None
            }
            None => Some(Why::Unchained),
        };
        audit.broken = audit.broken.or(why.map(|why| Break { line: at, why }));
        audit.head = audit.head.after(line);
        audit.passed |= remembered == Some(audit.head.link);
    }
}

#[cfg(test)]
mod tests;
