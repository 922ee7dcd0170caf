//! The hash chain over the lines of a session file. Every line contains the SHA-256 of the previous
//! line, and ends with a checksum of itself.
//!
//! A line that is changed, removed, added or moved breaks the chain at the next line. The checksum
//! shows damage to a line without the next one.
//!
//! The chain alone does not show that lines are missing at the end. For that, the [`ChainHead`]
//! must be remembered, as the index of calls does. It also does not show that someone wrote the
//! rest of the file anew with matching hashes. For that, the head must be remembered where they
//! cannot write.

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
    hex::from_hex,
    session_line::{LineRead, LineReader},
    session_paths,
};

/// The SHA-256 of a line with its line break, as `sha256sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LineHash([u8; 32]);

impl LineHash {
    pub(crate) fn new(line: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, line).as_ref());
        Self(bytes)
    }

    /// Returns the hash that the first line names: that of no bytes.
    pub(crate) fn start() -> Self {
        Self::new(b"")
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        from_hex(text).map(Self)
    }
}

impl fmt::Display for LineHash {
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

impl fmt::Debug for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The comma, the key and the opening quote before a checksum.
const CHECKSUM_KEY: &[u8] = br#","sum":""#;

/// The end of a line that has a checksum.
const CHECKSUM_END: &[u8] = b"\"}\n";

/// Number of hexadecimal digits of a checksum: 64 bits of the SHA-256 of the line up to the comma.
/// That is enough against damage; the chain is there against people.
const CHECKSUM_DIGITS: usize = 16;

const CHECKSUM_BYTES: usize = CHECKSUM_KEY.len() + CHECKSUM_DIGITS + CHECKSUM_END.len();

/// The result of comparing a line with its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChecksumState {
    /// The line was written by an earlier version.
    Absent,
    Valid,
    Invalid,
}

/// Completes a line, without its closing brace, with its checksum and a line break. Returns its
/// hash.
pub(crate) fn append_checksum(line: &mut Vec<u8>) -> LineHash {
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

/// Compares a line with its checksum, and returns its hash too. Both take one pass over the line.
pub(crate) fn verify_checksum(line: &[u8]) -> (LineHash, ChecksumState) {
    let (body, end) = line.split_at(line.len().saturating_sub(CHECKSUM_BYTES));
    let digits = end.strip_prefix(CHECKSUM_KEY).and_then(|rest| rest.strip_suffix(CHECKSUM_END));
    let Some(digits) = digits else {
        // Lines without a checksum end with two braces: the payload's and their own.
        let is_damaged = line.ends_with(CHECKSUM_END);
        return (
            LineHash::new(line),
            if is_damaged { ChecksumState::Invalid } else { ChecksumState::Absent },
        );
    };
    let mut hash = Context::new(&SHA256);
    hash.update(body);
    let holds = finish(hash.clone()).to_string().as_bytes().starts_with(digits);
    hash.update(end);
    (finish(hash), if holds { ChecksumState::Valid } else { ChecksumState::Invalid })
}

fn finish(hash: Context) -> LineHash {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    LineHash(bytes)
}

/// The length of a file and the hash of its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// The number of complete lines.
    pub lines: u64,
    /// The number of bytes in them.
    pub bytes: u64,
    /// The hash of the last one.
    pub link: LineHash,
}

impl ChainHead {
    /// Returns the head of an empty file.
    pub(crate) fn start() -> Self {
        Self { lines: 0, bytes: 0, link: LineHash::start() }
    }

    /// Returns the head after one more line.
    pub(crate) fn extended_by(self, line: &[u8]) -> Self {
        self.extended_by_hash(LineHash::new(line), line.len())
    }

    fn extended_by_hash(self, link: LineHash, bytes: usize) -> Self {
        Self { lines: self.lines + 1, bytes: self.bytes + bytes as u64, link }
    }

    /// Returns whether a line names this head as its predecessor; none if it names no predecessor.
    pub(crate) fn precedes(self, line: &[u8]) -> Option<bool> {
        self.matches_previous(previous_hash(line).as_deref())
    }

    fn matches_previous(self, prev: Option<&str>) -> Option<bool> {
        prev.map(|prev| LineHash::parse(prev) == Some(self.link))
    }
}

/// Returns the hash that a line names as that of its predecessor.
fn previous_hash(line: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct ChainedLine<'a> {
        #[serde(borrow)]
        prev: Option<Cow<'a, str>>,
    }
    serde_json::from_slice::<ChainedLine>(line).ok()?.prev
}

/// Checks the lines of a file, one by one from the first.
#[derive(Debug)]
pub(crate) struct ChainCheck {
    /// The head after the last line that was checked.
    pub(crate) head: ChainHead,
    /// The number of lines at the beginning that name no predecessor.
    unchained: u64,
    /// The checksum of the last line that was checked.
    last: ChecksumState,
}

impl ChainCheck {
    pub(crate) fn new() -> Self {
        Self { head: ChainHead::start(), unchained: 0, last: ChecksumState::Absent }
    }

    /// Checks the next line, which names `prev` as the hash of its predecessor.
    pub(crate) fn follow(&mut self, line: &[u8], prev: Option<&str>) -> Result<(), BreakReason> {
        let before = self.head;
        let (hash, checksum) = verify_checksum(line);
        (self.head, self.last) = (before.extended_by_hash(hash, line.len()), checksum);
        match before.matches_previous(prev) {
            _ if checksum == ChecksumState::Invalid => Err(BreakReason::Checksum),
            Some(true) => Ok(()),
            Some(false) => Err(BreakReason::WrongPrevious),
            None if self.unchained == before.lines => {
                self.unchained += 1;
                Ok(())
            }
            None => Err(BreakReason::Unchained),
        }
    }

    /// Returns true if the checksum of the last line shows that it is not damaged.
    pub(crate) fn is_last_verified(&self) -> bool {
        self.last == ChecksumState::Valid
    }
}

/// The result of checking the chain of a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainAudit {
    /// The end of the file.
    pub head: ChainHead,
    /// The number of lines at the beginning without a hash. An earlier version wrote them, and
    /// nothing is proved about them.
    pub unchained: u64,
    /// The first line that does not follow from its predecessor.
    pub broken: Option<ChainBreak>,
    /// Set if the file ends in half a line, as when the writer was killed. Resuming removes it.
    pub torn: bool,
    /// Set if the file once ended with the hash that was remembered.
    pub passed: bool,
}

/// The place where a chain breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainBreak {
    /// The number of the line that does not follow, from 1.
    pub line: u64,
    /// The evidence.
    pub why: BreakReason,
}

/// The evidence that a chain is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakReason {
    /// The line names another hash than that of its predecessor.
    WrongPrevious,
    /// The line names no hash, although earlier ones do.
    Unchained,
    /// The checksum does not match the line.
    Checksum,
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, why } = self;
        match (why, line) {
            (BreakReason::Checksum, _) => write!(f, "line {line} was changed: its checksum does not match"),
            (BreakReason::Unchained, _) => {
                write!(f, "line {line} was changed or put there: it names no line before it")
            }
            (BreakReason::WrongPrevious, 1) => {
                write!(f, "line 1 was not the first: lines before it were removed, or it was changed")
            }
            (BreakReason::WrongPrevious, _) => write!(
                f,
                "line {} was changed, or lines were removed, added or moved before line {line}: it follows another line",
                line - 1
            ),
        }
    }
}

/// Reads a file and compares every line with its predecessor. `remembered` is the hash of a line
/// that the file once ended with, if known.
pub fn verify(path: &Path, remembered: Option<LineHash>) -> Result<ChainAudit, SessionError> {
    let file = session_paths::open_to_read(path)?;
    audit(BufReader::new(file), remembered).map_err(cannot("read", path))
}

fn audit(from: BufReader<impl Read>, remembered: Option<LineHash>) -> std::io::Result<ChainAudit> {
    let mut lines = LineReader::new(from);
    let mut check = ChainCheck::new();
    let (mut broken, mut torn, mut passed) = (None, false, false);
    loop {
        match lines.next()? {
            LineRead::Whole(line) => {
                let followed = check.follow(line, previous_hash(line).as_deref());
                broken = broken.or(followed.err().map(|why| ChainBreak { line: check.head.lines, why }));
                passed |= remembered == Some(check.head.link);
            }
            LineRead::Torn => torn = true,
            LineRead::End => break,
        }
    }
    let ChainCheck { head, unchained, .. } = check;
    Ok(ChainAudit { head, unchained, broken, torn, passed })
}

#[cfg(test)]
mod tests;
