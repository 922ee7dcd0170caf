//! Vitest's usual form. Its JSON is Jest's.

use super::{Growing, Reader, Tally, counts, stack_place, with_unit};

/// Reads Vitest's lines.
#[derive(Default)]
pub(super) struct Vitest {
    tally: Tally,
    done: bool,
    block: Option<(Growing, bool)>,
}

impl Reader for Vitest {
    fn read(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix(" FAIL  ") {
            self.end_block();
            // `file > group > test`, of which the filter knows all but the file.
            let name = name.split_once(" > ").map_or(name, |(_, name)| name).replace(" > ", " ");
            self.block = Some((Growing::new(&name), false));
        } else if let Some(list) = line.trim_start().strip_prefix("Tests  ") {
            self.end_block();
            self.result(list);
        } else if let Some(time) = line.trim_start().strip_prefix("Duration  ") {
            self.tally.took(time.split(' ').next().and_then(with_unit));
        } else if let Some((block, told)) = &mut self.block {
            if let Some(place) = stack_place(line) {
                block.at(Some(place));
                *told = true;
            } else if !*told && !line.starts_with('⎯') && !line.is_empty() {
                block.say(line);
            }
        }
    }

    fn tally(self: Box<Self>) -> Option<Tally> {
        self.done.then_some(Tally { runner: "vitest", ..self.tally })
    }
}

impl Vitest {
    /// `2 failed | 1 passed | 1 skipped (4)`
    fn result(&mut self, list: &str) {
        let Some((list, _)) = list.rsplit_once(" (") else { return };
        let Some(counts) = counts(list.split(" | ")) else { return };
        self.done = true;
        self.tally.count(counts);
    }

    fn end_block(&mut self) {
        if let Some((block, _)) = self.block.take() {
            self.tally.fail(block.finish());
        }
    }
}
