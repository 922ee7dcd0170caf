//! Parses libtest, the output of `cargo test`.

use std::collections::HashMap;

use windlass_contract::insight::TestFailure;

use super::{FailureBuilder, TestOutputReader, TestTally, counts, seconds};
use crate::understand::place;

/// Parses libtest's lines.
#[derive(Default)]
pub(super) struct LibtestReader {
    tally: TestTally,
    /// True after a target printed its result.
    done: bool,
    /// Names of failed tests, and the failures by name.
    failed: Vec<String>,
    messages: HashMap<String, TestFailure>,
    block: Option<(String, PanicReader)>,
}

impl TestOutputReader for LibtestReader {
    fn read(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result: ") {
            self.end_block();
            self.result(rest);
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.end_block();
            self.block = Some((name.to_owned(), PanicReader::new(name)));
        } else if line == "failures:" {
            self.end_block();
        } else if let Some((_, panic)) = &mut self.block {
            panic.read(line);
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failed.push(name.to_owned());
        }
    }

    fn tally(mut self: Box<Self>) -> Option<TestTally> {
        for name in std::mem::take(&mut self.failed) {
            let failure = self.messages.remove(&name).unwrap_or_else(|| FailureBuilder::new(&name).finish());
            self.tally.add_failure(failure);
        }
        self.done.then_some(TestTally { runner: "cargo", ..self.tally })
    }
}

impl LibtestReader {
    /// Parses `ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.90s`.
    fn result(&mut self, text: &str) {
        let Some((_, text)) = text.split_once(". ") else { return };
        let (text, time) = text.split_once("; finished in ").unwrap_or((text, ""));
        let Some(counts) = counts(text.split(';')) else { return };
        self.done = true;
        self.tally.add_duration(seconds(time));
        for (number, word) in counts {
            match word {
                "passed" => self.tally.passed += number,
                "failed" => self.tally.failed += number,
                "ignored" => self.tally.skipped += number,
                _ => {}
            }
        }
    }

    fn end_block(&mut self) {
        if let Some((name, panic)) = self.block.take() {
            self.messages.insert(name, panic.finish());
        }
    }
}

/// Parses the output of a test that panicked or returned an error.
pub(super) struct PanicReader {
    growing: FailureBuilder,
    state: PanicState,
}

enum PanicState {
    Before,
    InMessage,
    Done,
}

impl PanicReader {
    pub(super) fn new(name: &str) -> Self {
        Self { growing: FailureBuilder::new(name), state: PanicState::Before }
    }

    pub(super) fn read(&mut self, line: &str) {
        let text = line.trim();
        if let Some((_, report)) = text.split_once(" panicked at ") {
            self.panicked(report);
            return;
        }
        let over = text == "stack backtrace:" || text.starts_with("note: run with ");
        match self.state {
            PanicState::Before if text.starts_with("Error: ") => self.growing.push_line(text),
            PanicState::InMessage if over || text.is_empty() => self.state = PanicState::Done,
            PanicState::InMessage => self.growing.push_line(text),
            PanicState::Before | PanicState::Done => {}
        }
    }

    /// Parses `src/lib.rs:3:5:`, or before Rust 1.73 `'message', src/lib.rs:3:5`.
    fn panicked(&mut self, report: &str) {
        let (message, place) = match report.rsplit_once("', ") {
            Some((message, place)) => (message.strip_prefix('\''), place),
            None => (None, report),
        };
        self.growing.set_place(place::alone(place));
        if let Some(message) = message {
            self.growing.push_line(message);
        }
        self.state = PanicState::InMessage;
    }

    pub(super) fn finish(self) -> TestFailure {
        self.growing.finish()
    }
}
