//! Parses the Test Anything Protocol (TAP) of Node's runner and others, and the `spec` format of
//! Node's runner.

use super::{FailureBuilder, TestOutputReader, TestTally, milliseconds, stack_place};
use crate::understand::place;

/// Parses TAP.
#[derive(Default)]
pub(super) struct TapReader {
    tally: TestTally,
    /// True after a plan line. Without a plan the text is not TAP and merely contains an `ok`.
    planned: bool,
    /// Depth of the last result. A result with deeper ones before it only summarizes them.
    depth: usize,
    block: Option<FailureBuilder>,
    in_stack: bool,
    name: String,
    node: bool,
}

impl TestOutputReader for TapReader {
    fn read(&mut self, line: &str) {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some((good, name)) = result(text) {
            self.ended(depth, good, name);
        } else if depth == 0 && (is_plan(text) || text.starts_with("TAP version ")) {
            self.planned = true;
        } else if let Some(time) = text.strip_prefix("duration_ms: ") {
            self.node = true;
            if let Some(time) = milliseconds(time) {
                self.tally.add_time(&self.name, time);
            }
        } else if let Some(time) = text.strip_prefix("# duration_ms ") {
            self.tally.duration = milliseconds(time);
        } else if let Some(block) = &mut self.block {
            read_failure_line(text, block, &mut self.in_stack);
        }
    }

    fn tally(mut self: Box<Self>) -> Option<TestTally> {
        self.end_block();
        let runner = if self.node { "node" } else { "tap" };
        let counted = self.tally.passed + self.tally.failed + self.tally.skipped > 0;
        (self.planned && counted).then_some(TestTally { runner, ..self.tally })
    }
}

/// Parses `not ok 2 - rounds # SKIP`.
fn result(text: &str) -> Option<(bool, &str)> {
    let (good, rest) = match text.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok ")?),
    };
    let (_, rest) = place::number(rest)?;
    let rest = rest.strip_prefix(' ')?;
    Some((good, rest.strip_prefix("- ").unwrap_or(rest)))
}

fn is_plan(text: &str) -> bool {
    text.strip_prefix("1..")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses a line below a failure: Node's YAML, or text with a stack.
fn read_failure_line(text: &str, block: &mut FailureBuilder, in_stack: &mut bool) {
    let quoted = |value: &str| value.trim().trim_matches(['\'', '"']).to_owned();
    if let Some(error) = text.strip_prefix("error: ") {
        block.push_line(&quoted(error).replace("|-", ""));
    } else if let Some(place) = text.strip_prefix("location: ") {
        block.set_place(place::alone(&quoted(place)));
    } else if text.starts_with("stack: ") || text == "---" {
        *in_stack = true;
    } else if text.starts_with("at ") {
        block.set_place(stack_place(text));
    } else if !*in_stack && text != "..." && !text.starts_with('#') {
        block.push_line(text);
    }
}

impl TapReader {
    fn ended(&mut self, depth: usize, good: bool, name: &str) {
        self.end_block();
        let sums_up = self.depth > depth;
        self.depth = depth;
        let (name, directive) = name.split_once(" # ").unwrap_or((name, ""));
        name.clone_into(&mut self.name);
        if sums_up {
            return;
        }
        let directive = directive.to_ascii_uppercase();
        if directive.starts_with("SKIP") || directive.starts_with("TODO") {
            self.tally.skipped += 1;
        } else if good {
            self.tally.passed += 1;
        } else {
            self.tally.failed += 1;
            self.block = Some(FailureBuilder::new(name));
            self.in_stack = false;
        }
    }

    fn end_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}

/// Parses the `spec` format of Node's runner.
#[derive(Default)]
pub(super) struct NodeSpecReader {
    tally: TestTally,
    done: bool,
    /// Place of the failure whose name comes next.
    place: Option<windlass_contract::insight::Place>,
    /// The failure, and true if its stack has begun.
    block: Option<(FailureBuilder, bool)>,
}

impl TestOutputReader for NodeSpecReader {
    fn read(&mut self, line: &str) {
        if let Some((word, number)) = line.strip_prefix("ℹ ").and_then(|rest| rest.split_once(' ')) {
            let count: u64 = number.parse::<u32>().unwrap_or(0).into();
            match word {
                "pass" => self.tally.passed = count,
                "fail" | "cancelled" => self.tally.failed += count,
                "skipped" | "todo" => self.tally.skipped += count,
                "duration_ms" => {
                    self.tally.duration = milliseconds(number);
                    self.done = true;
                }
                _ => {}
            }
        } else if !self.done {
        } else if let Some(at) = line.strip_prefix("test at ") {
            self.end_block();
            self.place = place::alone(at);
        } else if let Some(name) = line.strip_prefix("✖ ").filter(|_| self.place.is_some()) {
            let mut block = FailureBuilder::new(name.rsplit_once(" (").map_or(name, |(name, _)| name));
            block.set_place(self.place.take());
            self.block = Some((block, false));
        } else if let Some((block, in_stack)) = &mut self.block {
            let text = line.trim();
            *in_stack |= text.starts_with("at ");
            if !*in_stack {
                block.push_line(text);
            }
        }
    }

    fn tally(mut self: Box<Self>) -> Option<TestTally> {
        self.end_block();
        // Node counts a test with subtests as one more, but does not list it.
        let listed = self.tally.failures.len() as u64;
        if listed > 0 {
            self.tally.failed = self.tally.failed.min(listed);
        }
        self.done.then_some(TestTally { runner: "node", ..self.tally })
    }
}

impl NodeSpecReader {
    fn end_block(&mut self) {
        if let Some((block, _)) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}
