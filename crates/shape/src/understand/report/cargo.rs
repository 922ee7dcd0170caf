//! `cargo test`: what libtest prints.

use std::collections::HashMap;

use windlass_contract::insight::TestFailure;

use super::{Growing, Reader, Tally, counts, seconds};
use crate::understand::place;

/// Reads libtest's lines.
#[derive(Default)]
pub(super) struct Cargo {
    tally: Tally,
    /// Whether any target has told its result.
    done: bool,
    /// Those that failed, and what the failing ones said.
    failed: Vec<String>,
    said: HashMap<String, TestFailure>,
    block: Option<(String, Panic)>,
}

impl Reader for Cargo {
    fn read(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result: ") {
            self.end_block();
            self.result(rest);
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.end_block();
            self.block = Some((name.to_owned(), Panic::new(name)));
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

    fn tally(mut self: Box<Self>) -> Option<Tally> {
        for name in std::mem::take(&mut self.failed) {
            let failure = self.said.remove(&name).unwrap_or_else(|| Growing::new(&name).finish());
            self.tally.fail(failure);
        }
        self.done.then_some(Tally { runner: "cargo", ..self.tally })
    }
}

impl Cargo {
    /// `ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.90s`
    fn result(&mut self, text: &str) {
        let Some((_, text)) = text.split_once(". ") else { return };
        let (text, time) = text.split_once("; finished in ").unwrap_or((text, ""));
        let Some(counts) = counts(text.split(';')) else { return };
        self.done = true;
        self.tally.took(seconds(time));
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
            self.said.insert(name, panic.finish());
        }
    }
}

/// What a test that panicked or returned an error said.
pub(super) struct Panic {
    growing: Growing,
    state: State,
}

enum State {
    Before,
    Telling,
    Told,
}

impl Panic {
    pub(super) fn new(name: &str) -> Self {
        Self { growing: Growing::new(name), state: State::Before }
    }

    pub(super) fn read(&mut self, line: &str) {
        let text = line.trim();
        if let Some((_, told)) = text.split_once(" panicked at ") {
            self.panicked(told);
            return;
        }
        let over = text == "stack backtrace:" || text.starts_with("note: run with ");
        match self.state {
            State::Before if text.starts_with("Error: ") => self.growing.say(text),
            State::Telling if over || text.is_empty() => self.state = State::Told,
            State::Telling => self.growing.say(text),
            State::Before | State::Told => {}
        }
    }

    /// `src/lib.rs:3:5:`, or as it was before Rust 1.73: `'message', src/lib.rs:3:5`.
    fn panicked(&mut self, told: &str) {
        let (message, place) = match told.rsplit_once("', ") {
            Some((message, place)) => (message.strip_prefix('\''), place),
            None => (None, told),
        };
        self.growing.at(place::alone(place));
        if let Some(message) = message {
            self.growing.say(message);
        }
        self.state = State::Telling;
    }

    pub(super) fn finish(self) -> TestFailure {
        self.growing.finish()
    }
}
