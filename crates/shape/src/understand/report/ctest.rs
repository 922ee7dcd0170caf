//! Parses CTest.

use super::{FailureBuilder, TestOutputReader, TestTally, seconds};

/// Parses CTest's lines.
#[derive(Default)]
pub(super) struct CtestReader {
    tally: TestTally,
    done: bool,
    block: Option<FailureBuilder>,
}

impl TestOutputReader for CtestReader {
    fn read(&mut self, line: &str) {
        if let Some((name, end)) = result(line) {
            self.end_block();
            self.ended(name, end);
        } else if line.contains("% tests passed, ") && line.contains(" tests failed out of ") {
            self.end_block();
            self.done = true;
        } else if let Some(time) = line.strip_prefix("Total Test time (real) =") {
            self.tally.duration = seconds(time.trim().trim_end_matches(" sec"));
        } else if line.trim_start().starts_with("Start ") {
            self.end_block();
        } else if let Some(block) = &mut self.block {
            block.push_line(line);
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        self.done.then_some(TestTally { runner: "ctest", ..self.tally })
    }
}

/// Parses `2/3 Test #2: rounds ...........................***Failed    0.01 sec`.
fn result(line: &str) -> Option<(&str, &str)> {
    let (head, rest) = line.split_once(" Test ")?;
    if !head.trim().split('/').all(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let (_, rest) = rest.split_once(": ")?;
    let (name, end) = rest.split_once(" ..")?;
    Some((name.trim(), end.trim_start_matches('.')))
}

impl CtestReader {
    /// Parses `***Failed    0.01 sec`.
    fn ended(&mut self, name: &str, end: &str) {
        let end = end.trim().trim_end_matches(" sec");
        let (how, time) = end.rsplit_once(' ').unwrap_or((end, ""));
        if let Some(time) = seconds(time) {
            self.tally.add_time(name, time);
        }
        match how.trim().trim_start_matches('*') {
            "Passed" => self.tally.passed += 1,
            "Skipped" | "Not Run (Disabled)" => self.tally.skipped += 1,
            how => {
                self.tally.failed += 1;
                let mut block = FailureBuilder::new(name);
                if how != "Failed" {
                    block.push_line(how);
                }
                self.block = Some(block);
            }
        }
    }

    fn end_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}
