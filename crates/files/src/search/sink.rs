//! Collects the matching lines of one file.

use std::io;

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use windlass_contract::files::{FoundLine, Wanted};

/// Maximum length of a line that is kept; the match is seldom beyond it.
const MAX_LINE_BYTES: usize = 500;

/// Collects the requested data of one file.
pub(super) struct MatchCollector {
    wanted: Wanted,
    limit: usize,
    count: u64,
    lines: Vec<FoundLine>,
    /// There are more lines than the limit.
    is_cut: bool,
    is_binary: bool,
}

impl MatchCollector {
    pub(super) fn new(wanted: Wanted, limit: usize) -> Self {
        Self { wanted, limit, count: 0, lines: Vec::new(), is_cut: false, is_binary: false }
    }

    /// Returns the number of matching lines, the kept ones, and whether there are more; `None` for
    /// a file without a match or a binary one.
    pub(super) fn found(self) -> Option<(u64, Vec<FoundLine>, bool)> {
        (self.count > 0 && !self.is_binary).then_some((self.count, self.lines, self.is_cut))
    }

    fn keep(&mut self, number: Option<u64>, fits: bool, bytes: &[u8]) {
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&bytes[..end.min(4 * MAX_LINE_BYTES)]);
        let cut = (0..=MAX_LINE_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let text = text[..cut.unwrap_or(0)].to_owned();
        self.lines.push(FoundLine { number: number.unwrap_or(0), fits, text });
    }
}

impl Sink for MatchCollector {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.wanted {
            Wanted::Names => self.count = 1,
            Wanted::Counts => self.count += found.lines().count() as u64,
            // The limit was reached before, so that this match says that there are more.
            Wanted::Lines { .. } if self.lines.len() >= self.limit => {
                self.is_cut = true;
                return Ok(false);
            }
            Wanted::Lines { .. } => {
                for (at, line) in found.lines().enumerate() {
                    self.count += 1;
                    self.keep(found.line_number().map(|first| first + at as u64), true, line);
                }
            }
        }
        Ok(self.wanted != Wanted::Names)
    }

    fn context(&mut self, _searcher: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        self.keep(near.line_number(), false, near.bytes());
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}
