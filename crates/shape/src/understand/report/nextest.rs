//! Parses `cargo nextest run`.

use super::{TestOutputReader, TestTally, cargo::PanicReader, counts, seconds};

/// Parses nextest's lines.
#[derive(Default)]
pub(super) struct NextestReader {
    tally: TestTally,
    done: bool,
    block: Option<PanicReader>,
}

impl TestOutputReader for NextestReader {
    fn read(&mut self, line: &str) {
        if self.done || !line.starts_with(' ') {
            return;
        }
        let text = line.trim_start();
        if let Some(rest) = text.strip_prefix("Summary [") {
            self.end_block();
            self.summary(rest);
        } else if let Some((word, rest)) = text.split_once(" [").filter(|(word, _)| is_end(word)) {
            self.end_block();
            self.ended(word, rest);
        } else if let Some(panic) = &mut self.block {
            panic.read(text);
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        self.done.then_some(TestTally { runner: "nextest", ..self.tally })
    }
}

/// Returns true if a line about a finished test begins with this word.
fn is_end(word: &str) -> bool {
    matches!(word, "PASS" | "FAIL" | "TIMEOUT" | "ABORT" | "LEAK" | "FLAKY") || word.starts_with("SIG")
}

impl NextestReader {
    /// Parses `   0.140s] (2/4) till::shop closes`.
    fn ended(&mut self, word: &str, rest: &str) {
        let Some((time, name)) = rest.split_once("] ") else { return };
        let name = name.trim_start();
        let name =
            name.strip_prefix('(').and_then(|name| name.split_once(") ")).map_or(name, |(_, name)| name);
        let name = name.trim().split_once(' ').map_or(name, |(_, test)| test);
        if let Some(time) = seconds(time) {
            self.tally.add_time(name, time);
        }
        if !matches!(word, "PASS" | "LEAK" | "FLAKY") {
            self.block = Some(PanicReader::new(name));
        }
    }

    /// Parses `   1.775s] 4 tests run: 1 passed, 3 failed, 1 skipped`.
    fn summary(&mut self, rest: &str) {
        let Some((time, rest)) = rest.split_once("] ") else { return };
        let Some((_, list)) = rest.split_once(" run: ") else { return };
        self.tally.add_duration(seconds(time));
        self.done = true;
        // `3 passed (1 slow)` contains a comma only in brackets with several entries.
        for (number, word) in
            counts(list.split(", ").filter(|each| each.starts_with(|c: char| c.is_ascii_digit())))
                .unwrap_or_default()
        {
            match word.split(' ').next().unwrap_or_default() {
                "passed" => self.tally.passed += number,
                "failed" | "timed" | "exec" => self.tally.failed += number,
                "skipped" => self.tally.skipped += number,
                _ => {}
            }
        }
    }

    fn end_block(&mut self) {
        if let Some(panic) = self.block.take() {
            self.tally.add_failure(panic.finish());
        }
    }
}
