//! The lines of a session file up to the first that is damaged.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

use crate::{
    BreakReason, ChainHead,
    chain::ChainCheck,
    session_line::{LineEnvelope, LineRead, LineReader, SessionLine},
};

/// Reads lines and returns those that are verified.
///
/// A line is verified by its own checksum. Earlier versions wrote none; such a line is verified by
/// the next one, which names its hash. Two kinds of lines are returned unverified: those from
/// before the chain, and a last line without a checksum.
pub(crate) struct VerifiedLines<R> {
    lines: LineReader<R>,
    check: ChainCheck,
    /// The last line, while only the next one can verify it.
    held: Option<VerifiedLine>,
    ready: VecDeque<VerifiedStep>,
    /// The end of the lines that were returned.
    end: ChainHead,
}

/// A line that was read.
pub(crate) struct VerifiedLine {
    pub(crate) number: usize,
    /// The record, or the reason why it makes no sense.
    pub(crate) record: Result<SessionLine, String>,
    after: ChainHead,
}

/// The result of reading on.
pub(crate) enum VerifiedStep {
    Line(VerifiedLine),
    /// A damaged line. No line is returned after it.
    Damaged {
        line: usize,
        why: BreakReason,
        /// The number of lines from here to the end.
        records: usize,
    },
    /// The last line has no line break.
    Torn(usize),
    End,
}

impl<R: BufRead> VerifiedLines<R> {
    pub(crate) fn new(from: R) -> Self {
        let lines = LineReader::new(from);
        let (held, ready, end) = (None, VecDeque::new(), ChainHead::start());
        Self { lines, check: ChainCheck::new(), held, ready, end }
    }

    /// Returns the end of the lines that were returned so far.
    pub(crate) fn end(&self) -> ChainHead {
        self.end
    }

    pub(crate) fn next(&mut self) -> io::Result<VerifiedStep> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                if let VerifiedStep::Line(line) = &step {
                    self.end = line.after;
                }
                return Ok(step);
            }
            self.read()?;
        }
    }

    /// Reads one more line.
    fn read(&mut self) -> io::Result<()> {
        let step = match self.lines.next()? {
            LineRead::Whole(text) => {
                let envelope = LineEnvelope::parse(text);
                let prev = envelope.as_ref().ok().and_then(|line| line.prev.as_deref());
                match self.check.follow(text, prev) {
                    Ok(()) => {
                        let record = envelope.and_then(|line| SessionLine::parse(&line));
                        let line = VerifiedLine { number: self.lines.number, record, after: self.check.head };
                        self.hold(line);
                        return Ok(());
                    }
                    Err(why) => self.stop_at_damage(why)?,
                }
            }
            LineRead::Torn => VerifiedStep::Torn(self.lines.number),
            LineRead::End => VerifiedStep::End,
        };
        self.release();
        self.ready.push_back(step);
        Ok(())
    }

    /// Takes a line that follows from the previous one.
    fn hold(&mut self, line: VerifiedLine) {
        self.release();
        if self.check.is_last_verified() {
            self.ready.push_back(VerifiedStep::Line(line));
        } else {
            self.held = Some(line);
        }
    }

    fn release(&mut self) {
        self.ready.extend(self.held.take().map(VerifiedStep::Line));
    }

    /// Stops at the line that was read last, or at the previous one: if that one has no checksum
    /// and this line names another hash, either may be damaged.
    fn stop_at_damage(&mut self, why: BreakReason) -> io::Result<VerifiedStep> {
        let at = self.lines.number;
        let line = match self.held.take_if(|_| why == BreakReason::WrongPrevious) {
            Some(held) => held.number,
            None => at,
        };
        while !matches!(self.lines.next()?, LineRead::End) {}
        Ok(VerifiedStep::Damaged { line, why, records: self.lines.number - line + 1 })
    }
}
