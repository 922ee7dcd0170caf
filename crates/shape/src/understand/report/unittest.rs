//! Parses Python's unittest, which Django uses too.

use windlass_contract::insight::Place;

use super::{FailureBuilder, TestOutputReader, TestTally, seconds};
use crate::understand::place;

/// Parses unittest's lines.
#[derive(Default)]
pub(super) struct UnittestReader {
    tally: TestTally,
    ran: Option<u64>,
    done: bool,
    block: Option<FailureBuilder>,
}

impl TestOutputReader for UnittestReader {
    fn read(&mut self, line: &str) {
        if let Some((test, rest)) = heading(line) {
            self.end_block();
            self.block = Some(FailureBuilder::new(&named(test, rest)));
        } else if let Some(rest) = line.strip_prefix("Ran ") {
            self.end_block();
            self.ran(rest);
        } else if self.ran.is_some() && !self.done {
            self.result(line);
        } else if let Some(block) = &mut self.block {
            read_failure_line(line, block);
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        self.done.then_some(TestTally { runner: "unittest", ..self.tally })
    }
}

/// Parses `FAIL: test_many (tests.Shop.test_many) (n=2)`.
fn heading(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "))?;
    let (test, rest) = rest.split_once(" (")?;
    Some((test, rest.split_once(')')?.0))
}

/// Returns the full name. Before Python 3.11 the brackets held only the class.
fn named(test: &str, inside: &str) -> String {
    if inside.ends_with(&format!(".{test}")) { inside.to_owned() } else { format!("{inside}.{test}") }
}

/// Parses a line of a traceback: a place or the exception. The last place in the project wins.
fn read_failure_line(line: &str, block: &mut FailureBuilder) {
    if let Some((file, rest)) = line.strip_prefix("  File \"").and_then(|rest| rest.split_once("\", line ")) {
        if let Some((number, _)) = place::number(rest)
            && !file.contains("/lib/python")
            && !file.contains("/site-packages/")
        {
            block.failure.place = Place { file: Some(file.to_owned()), line: Some(number), column: None };
        }
    } else if !line.starts_with(' ')
        && !line.starts_with("---")
        && !line.starts_with("===")
        && !line.starts_with("Traceback (")
    {
        block.push_line(line);
    }
}

impl UnittestReader {
    /// Parses `5 tests in 0.001s`.
    fn ran(&mut self, rest: &str) {
        let Some((number, rest)) = rest.split_once(" test") else { return };
        let Ok(number) = number.parse::<u32>().map(u64::from) else { return };
        self.tally.add_duration(rest.split_once(" in ").and_then(|(_, time)| seconds(time)));
        self.ran = Some(number);
    }

    /// Parses `OK (skipped=1)` or `FAILED (failures=2, errors=1, skipped=1)`.
    fn result(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        let (word, list) = line.split_once(" (").unwrap_or((line, ""));
        if !matches!(word, "OK" | "FAILED" | "NO TESTS RAN") {
            return;
        }
        for (word, number) in list.trim_end_matches(')').split(", ").filter_map(|each| each.split_once('=')) {
            let number: u64 = number.parse::<u32>().unwrap_or(0).into();
            match word {
                "failures" | "errors" | "unexpected successes" => self.tally.failed += number,
                "skipped" | "expected failures" => self.tally.skipped += number,
                _ => {}
            }
        }
        let others = self.tally.failed + self.tally.skipped;
        self.tally.passed = self.ran.unwrap_or(0).saturating_sub(others);
        self.done = true;
    }

    fn end_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}
