//! Parses Maven's Surefire and Gradle. Gradle prints passing tests only if others fail.

use windlass_contract::insight::Place;

use super::{FailureBuilder, TestOutputReader, TestTally, counts, seconds};
use crate::understand::place;

/// Parses the lines of both.
#[derive(Default)]
pub(super) struct JavaReader {
    tally: TestTally,
    runner: Option<&'static str>,
    block: Option<FailureBuilder>,
}

impl TestOutputReader for JavaReader {
    fn read(&mut self, line: &str) {
        let bare = line
            .strip_prefix("[ERROR] ")
            .or_else(|| line.strip_prefix("[INFO] "))
            .or_else(|| line.strip_prefix("[WARNING] "));
        let text = bare.unwrap_or(line);
        if let Some(rest) = text.strip_prefix("Tests run: ") {
            self.end_block();
            self.surefire(rest);
        } else if let Some((test, _)) = text.split_once("Time elapsed: ").filter(|_| text.contains(" <<< ")) {
            self.end_block();
            self.block = Some(FailureBuilder::new(&dotted(test.trim().trim_end_matches(" --"))));
        } else if let Some(test) = line.strip_suffix(" FAILED").filter(|test| test.contains(" > ")) {
            self.end_block();
            self.block = Some(FailureBuilder::new(&test.trim_end_matches("()").replace(" > ", ".")));
        } else if let Some((number, rest)) =
            line.split_once(" tests completed, ").or_else(|| line.split_once(" test completed, "))
        {
            self.end_block();
            self.gradle(number, rest);
        } else if bare.is_some() || line.is_empty() {
            self.end_block();
        } else if let Some(block) = &mut self.block {
            read_failure_line(line, block);
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        Some(TestTally { runner: self.runner?, ..self.tally })
    }
}

/// Rewrites `rounds(shop.TillTest)`, the format of Surefire before 3.0, with its class first.
fn dotted(test: &str) -> String {
    match test.strip_suffix(')').and_then(|test| test.split_once('(')) {
        Some((method, class)) if !class.is_empty() => format!("{class}.{method}"),
        _ => test.trim_end_matches("()").to_owned(),
    }
}

/// Parses a stack frame, a line of a message, or Gradle's `java.lang.AssertionError at
/// TillTest.java:16`.
pub(super) fn read_failure_line(line: &str, block: &mut FailureBuilder) {
    if let Some(frame) = line.trim_start().strip_prefix("at ") {
        let class = block.failure.name.rsplit_once('.').map_or("", |(class, _)| class);
        if !class.is_empty() && frame.contains(class) {
            block.set_place(inside(frame));
        }
    } else if let Some((what, place)) = line.split_once(" at ").filter(|_| line.starts_with("    ")) {
        block.set_place(place::alone(place));
        block.push_line(what);
    } else {
        block.push_line(line);
    }
}

/// Parses `shop.TillTest.rounds(TillTest.java:16)`.
fn inside(frame: &str) -> Option<Place> {
    place::alone(frame.rsplit_once('(')?.1.trim_end_matches(')'))
}

impl JavaReader {
    /// Parses `4, Failures: 1, Errors: 1, Skipped: 1`, and per class `Time elapsed: 0.9 s - in
    /// shop.TillTest`.
    fn surefire(&mut self, rest: &str) {
        if let Some((_, time)) = rest.split_once("Time elapsed: ") {
            let (time, class) = time.split_once(" s").unwrap_or((time, ""));
            let time = seconds(time);
            self.tally.add_duration(time);
            if let (Some(time), Some((_, class))) = (time, class.rsplit_once(" in ")) {
                self.tally.add_time(class, time);
            }
            return;
        }
        let mut numbers = rest
            .split(", ")
            .map(|each| each.rsplit(' ').next().unwrap_or(each).parse::<u32>().map(u64::from));
        if let (Some(Ok(run)), Some(Ok(failures)), Some(Ok(errors)), Some(Ok(skipped))) =
            (numbers.next(), numbers.next(), numbers.next(), numbers.next())
        {
            self.runner = Some("maven");
            self.tally.failed += failures + errors;
            self.tally.skipped += skipped;
            self.tally.passed += run.saturating_sub(failures + errors + skipped);
        }
    }

    /// Parses `2 failed, 1 skipped`.
    fn gradle(&mut self, number: &str, rest: &str) {
        let (Ok(run), Some(counts)) = (number.trim().parse::<u32>().map(u64::from), counts(rest.split(',')))
        else {
            return;
        };
        self.runner = Some("gradle");
        let (mut failed, mut skipped) = (0, 0);
        for (number, word) in counts {
            match word {
                "failed" => failed = number,
                "skipped" => skipped = number,
                _ => {}
            }
        }
        self.tally.failed += failed;
        self.tally.skipped += skipped;
        self.tally.passed += run.saturating_sub(failed + skipped);
    }

    fn end_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}
