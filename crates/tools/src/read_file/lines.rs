//! Reads the lines of a file of any size. Skips unwanted lines, and never holds an overlong line as
//! a whole.

use tokio_util::sync::CancellationToken;
use windlass_contract::files::{FileError, OpenFile};
use windlass_patch::Encoding;
use windlass_shape::KeyLines;

use super::{HEAD_BYTES, decode};

/// Size of a read after the head.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Maximum length of a kept line. At most 500 bytes of UTF-8 are shown, and no encoding needs four
/// bytes for one of them.
const MAX_LINE_BYTES: usize = 2000;

/// Reads lines from the beginning of a file.
pub(crate) struct FileLines<'a> {
    file: &'a dyn OpenFile,
    cancel: &'a CancellationToken,
    encoding: Encoding,
    chunk: Vec<u8>,
    /// Number of used bytes of the chunk.
    at: usize,
    /// File offset of the next chunk.
    next: u64,
    /// True if the chunk is the last.
    is_last: bool,
}

impl<'a> FileLines<'a> {
    /// Creates a reader of a file that begins with `head`.
    pub(crate) fn new(file: &'a dyn OpenFile, head: Vec<u8>, cancel: &'a CancellationToken) -> Self {
        let encoding = decode::sniff(&head);
        let is_last = head.len() < HEAD_BYTES;
        Self { file, cancel, encoding, at: 0, next: head.len() as u64, chunk: head, is_last }
    }

    /// Returns the whole file, if the head holds all of it.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        (self.next == self.chunk.len() as u64 && self.is_last).then_some(&self.chunk)
    }

    /// Returns the encoding of the file, detected from its head.
    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Skips lines, up to the end of the file.
    async fn skip(&mut self, mut lines: usize) -> Result<(), FileError> {
        while lines > 0 && self.fill().await? {
            let rest = &self.chunk[self.at..];
            let ends = self.ends(rest);
            if ends < lines {
                lines -= ends;
                self.at = self.chunk.len();
                continue;
            }
            for _ in 0..lines {
                let rest = &self.chunk[self.at..];
                self.at += self.end(rest).map_or(rest.len(), |end| end + self.width());
            }
            return Ok(());
        }
        Ok(())
    }

    /// Skips to a line, counted from 1. The returned state knows if that line is inside a private
    /// key.
    pub(crate) async fn go_to(&mut self, line: usize) -> Result<KeyLines, FileError> {
        let back = (line - 1).min(KeyLines::MAX_LINES);
        self.skip(line - 1 - back).await?;
        let mut keys = KeyLines::default();
        for line in self.take(back).await? {
            keys.take(&line);
        }
        Ok(keys)
    }

    /// Returns the next lines without their ends, each cut to the maximum length.
    pub(crate) async fn take(&mut self, lines: usize) -> Result<Vec<Vec<u8>>, FileError> {
        let mut taken = Vec::new();
        while taken.len() < lines {
            // The end of the last wanted line need not be found.
            let is_last = taken.len() + 1 == lines;
            let Some(line) = self.line(is_last).await? else { break };
            taken.push(line);
        }
        Ok(taken)
    }

    async fn line(&mut self, is_last: bool) -> Result<Option<Vec<u8>>, FileError> {
        if !self.fill().await? {
            return Ok(None);
        }
        let mut line = Vec::new();
        while self.fill().await? {
            let rest = &self.chunk[self.at..];
            let end = self.end(rest);
            let part = &rest[..end.unwrap_or(rest.len())];
            line.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES - line.len())]);
            self.at += end.map_or(rest.len(), |end| end + self.width());
            if end.is_some() || (is_last && line.len() == MAX_LINE_BYTES) {
                break;
            }
        }
        Ok(Some(line))
    }

    /// Reads the next chunk if this one is used up. Returns false at the end of the file.
    async fn fill(&mut self) -> Result<bool, FileError> {
        if self.at < self.chunk.len() {
            return Ok(true);
        }
        if self.is_last {
            return Ok(false);
        }
        if self.cancel.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        self.chunk = self.file.read_at(self.next, CHUNK_BYTES).await?;
        self.next += self.chunk.len() as u64;
        self.is_last = self.chunk.len() < CHUNK_BYTES;
        self.at = 0;
        Ok(!self.chunk.is_empty())
    }

    /// Returns the length of a line end.
    fn width(&self) -> usize {
        self.wide_end().map_or(1, |end| end.len())
    }

    fn wide_end(&self) -> Option<[u8; 2]> {
        match self.encoding {
            Encoding::Utf16Le => Some([b'\n', 0]),
            Encoding::Utf16Be => Some([0, b'\n']),
            Encoding::Utf8 | Encoding::Utf8Bom | Encoding::Legacy(_) => None,
        }
    }

    /// Returns the end of the first line.
    fn end(&self, bytes: &[u8]) -> Option<usize> {
        match self.wide_end() {
            Some(end) => bytes.chunks_exact(2).position(|unit| unit == end).map(|at| 2 * at),
            None => bytes.iter().position(|byte| *byte == b'\n'),
        }
    }

    /// Counts the line ends.
    fn ends(&self, bytes: &[u8]) -> usize {
        match self.wide_end() {
            Some(end) => bytes.chunks_exact(2).filter(|unit| *unit == end).count(),
            None => bytes.iter().map(|byte| usize::from(*byte == b'\n')).sum(),
        }
    }
}
