//! The lines of a file of any size: what is not wanted is passed over, and no line is kept whole that is too long.

use tokio_util::sync::CancellationToken;
use windlass_contract::files::{FileError, OpenFile};
use windlass_patch::Encoding;
use windlass_shape::KeyLines;

use super::{HEAD_BYTES, decode};

/// How much is read at once beyond the head.
const CHUNK_BYTES: usize = 1024 * 1024;

/// How much of a line is kept. A line is shown up to 500 bytes of UTF-8, and no encoding needs four bytes for one of them.
const KEPT_BYTES: usize = 2000;

/// Reads lines from the beginning of a file on.
pub(crate) struct Lines<'a> {
    file: &'a dyn OpenFile,
    cancel: &'a CancellationToken,
    encoding: Encoding,
    chunk: Vec<u8>,
    /// How much of the chunk is used up.
    at: usize,
    /// Where in the file the next chunk begins.
    next: u64,
    /// Whether the chunk is the last.
    is_last: bool,
}

impl<'a> Lines<'a> {
    /// The lines of a file that begins with `head`.
    pub(crate) fn new(file: &'a dyn OpenFile, head: Vec<u8>, cancel: &'a CancellationToken) -> Self {
        let encoding = decode::sniff(&head);
        let is_last = head.len() < HEAD_BYTES;
        Self { file, cancel, encoding, at: 0, next: head.len() as u64, chunk: head, is_last }
    }

    /// The whole file, if it was short enough to be read at once.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        (self.next == self.chunk.len() as u64 && self.is_last).then_some(&self.chunk)
    }

    /// How the file is written, by its head.
    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Passes over lines; over all there are, if there are fewer.
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

    /// Goes from the beginning to a line, counted from 1, and knows by the lines before it whether that is inside a private
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

    /// The next lines without their ends, each only as long as is of use.
    pub(crate) async fn take(&mut self, lines: usize) -> Result<Vec<Vec<u8>>, FileError> {
        let mut taken = Vec::new();
        while taken.len() < lines {
            // The end of the last one wanted need not be found.
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
            line.extend_from_slice(&part[..part.len().min(KEPT_BYTES - line.len())]);
            self.at += end.map_or(rest.len(), |end| end + self.width());
            if end.is_some() || (is_last && line.len() == KEPT_BYTES) {
                break;
            }
        }
        Ok(Some(line))
    }

    /// Reads on if everything is used up. False at the end of the file.
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

    /// How many bytes a line's end has.
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

    /// Where the first line ends.
    fn end(&self, bytes: &[u8]) -> Option<usize> {
        match self.wide_end() {
            Some(end) => bytes.chunks_exact(2).position(|unit| unit == end).map(|at| 2 * at),
            None => bytes.iter().position(|byte| *byte == b'\n'),
        }
    }

    /// How many lines end.
    fn ends(&self, bytes: &[u8]) -> usize {
        match self.wide_end() {
            Some(end) => bytes.chunks_exact(2).filter(|unit| *unit == end).count(),
            None => bytes.iter().map(|byte| usize::from(*byte == b'\n')).sum(),
        }
    }
}
