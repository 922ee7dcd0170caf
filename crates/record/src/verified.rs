//! The lines of a session file up to the first that is damaged.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

use crate::{
    Head, Why,
    chain::ChainCheck,
    line::{Envelope, Line, Lines, Next},
};

/// Reads lines and gives out those that are proved: by their own checksum, or, where an earlier
/// version wrote no checksum, by the next line, which names their hash. Lines from before the chain
/// are given out unproved, and so is the last line if it has no checksum.
pub(crate) struct VerifiedLines<R> {
    lines: Lines<R>,
    check: ChainCheck,
    /// The last line, while only the next one can prove it.
    held: Option<VerifiedLine>,
    ready: VecDeque<Step>,
    /// The end of the lines that were given out.
    end: Head,
}

/// A line that was read.
pub(crate) struct VerifiedLine {
    pub(crate) number: usize,
    /// The record, or why it makes no sense.
    pub(crate) record: Result<Line, String>,
    after: Head,
}

/// The next thing in a file.
pub(crate) enum Step {
    Line(VerifiedLine),
    /// This line is damaged. Nothing is given out from here on.
    Damaged {
        line: usize,
        why: Why,
        /// How many lines there are from here to the end.
        records: usize,
    },
    /// The last line lacks its end.
    Torn(usize),
    End,
}

impl<R: BufRead> VerifiedLines<R> {
    pub(crate) fn new(from: R) -> Self {
        let lines = Lines::new(from);
        let (held, ready, end) = (None, VecDeque::new(), Head::start());
        Self { lines, check: ChainCheck::new(), held, ready, end }
    }

    /// The end of the lines that were given out so far.
    pub(crate) fn end(&self) -> Head {
        self.end
    }

    pub(crate) fn next(&mut self) -> io::Result<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                if let Step::Line(line) = &step {
                    self.end = line.after;
                }
                return Ok(step);
            }
            self.read()?;
        }
    }

    /// Reads one line further.
    fn read(&mut self) -> io::Result<()> {
        let step = match self.lines.next()? {
            Next::Whole(text) => {
                let envelope = Envelope::parse(text);
                let prev = envelope.as_ref().ok().and_then(|line| line.prev.as_deref());
                match self.check.follow(text, prev) {
                    Ok(()) => {
                        let record = envelope.and_then(|line| Line::open(&line));
                        let line = VerifiedLine { number: self.lines.number, record, after: self.check.head };
                        self.hold(line);
                        return Ok(());
                    }
                    Err(why) => self.give_up(why)?,
                }
            }
            Next::Torn => Step::Torn(self.lines.number),
            Next::End => Step::End,
        };
        self.release();
        self.ready.push_back(step);
        Ok(())
    }

    /// Takes a line that follows from the one before it.
    fn hold(&mut self, line: VerifiedLine) {
        self.release();
        if self.check.is_last_proved() {
            self.ready.push_back(Step::Line(line));
        } else {
            self.held = Some(line);
        }
    }

    fn release(&mut self) {
        self.ready.extend(self.held.take().map(Step::Line));
    }

    /// Ends at the line that was read last, or at the one before: if that has no checksum and this
    /// line names another, either may be the damaged one.
    fn give_up(&mut self, why: Why) -> io::Result<Step> {
        let at = self.lines.number;
        let line = match self.held.take_if(|_| why == Why::OtherBefore) {
            Some(held) => held.number,
            None => at,
        };
        while !matches!(self.lines.next()?, Next::End) {}
        Ok(Step::Damaged { line, why, records: self.lines.number - line + 1 })
    }
}
