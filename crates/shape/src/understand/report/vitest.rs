//! Parses Vitest's default format. Its JSON is the same as Jest's.

use super::{FailureBuilder, TestOutputReader, TestTally, counts, stack_place, with_unit};

/// Parses Vitest's lines.
#[derive(Default)]
pub(super) struct VitestReader {
    tally: TestTally,
    done: bool,
    block: Option<(FailureBuilder, bool)>,
}

impl TestOutputReader for VitestReader {
    fn read(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix(" FAIL  ") {
            self.end_block();
            // `file > group > test`; Vitest's name filter matches all of it but the file.
            let name = name.split_once(" > ").map_or(name, |(_, name)| name).replace(" > ", " ");
            self.block = Some((FailureBuilder::new(&name), false));
        } else if let Some(list) = line.trim_start().strip_prefix("Tests  ") {
            self.end_block();
            self.result(list);
        } else if let Some(time) = line.trim_start().strip_prefix("Duration  ") {
            self.tally.add_duration(time.split(' ').next().and_then(with_unit));
        } else if let Some((block, complete)) = &mut self.block {
            if let Some(place) = stack_place(line) {
                block.set_place(Some(place));
                *complete = true;
            } else if !*complete && !line.starts_with('⎯') && !line.is_empty() {
                block.push_line(line);
            }
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        self.done.then_some(TestTally { runner: "vitest", ..self.tally })
    }
}

impl VitestReader {
    /// Parses `2 failed | 1 passed | 1 skipped (4)`.
    fn result(&mut self, list: &str) {
        let Some((list, _)) = list.rsplit_once(" (") else { return };
        let Some(counts) = counts(list.split(" | ")) else { return };
        self.done = true;
        self.tally.count(counts);
    }

    fn end_block(&mut self) {
        if let Some((block, _)) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}
