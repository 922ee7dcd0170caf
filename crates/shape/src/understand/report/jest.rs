//! Parses Jest: the default format, and the JSON that Jest and Vitest share.

use serde::Deserialize;
use windlass_contract::insight::TestFailure;

use super::{FailureBuilder, TestOutputReader, TestTally, counts, milliseconds, stack_place, with_unit};
use crate::understand::shortened;

/// Parses Jest's lines.
#[derive(Default)]
pub(super) struct JestReader {
    tally: TestTally,
    done: bool,
    /// The file to which the failures below belong.
    file: String,
    block: Option<FailureBuilder>,
    from_json: Option<TestTally>,
}

impl TestOutputReader for JestReader {
    fn read(&mut self, line: &str) {
        if line.starts_with(r#"{"num"#) && line.contains(r#""testResults":"#) {
            self.from_json = parsed(line);
        } else if let Some(name) = line.strip_prefix("  ● ") {
            self.end_block();
            let name = if name == "Test suite failed to run" {
                self.file.clone()
            } else {
                name.replace(" › ", " ")
            };
            self.block = Some(FailureBuilder::new(&name));
        } else if let Some(file) = line.strip_prefix("FAIL ") {
            self.end_block();
            self.file = shortened(file);
        } else if let Some(list) = line.strip_prefix("Tests: ") {
            self.end_block();
            self.result(list);
        } else if let Some(time) = line.strip_prefix("Time: ") {
            self.tally.add_duration(with_unit(time.split(',').next().unwrap_or_default()));
        } else if !line.is_empty() && !line.starts_with(' ') {
            self.end_block();
        } else if let Some(block) = &mut self.block {
            read_failure_line(line.trim(), block);
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        let Self { tally, done, from_json, .. } = *self;
        from_json.or(done.then_some(TestTally { runner: "jest", ..tally }))
    }
}

/// Parses a line of a failure: the expectation, then the code around it, then its place.
fn read_failure_line(text: &str, block: &mut FailureBuilder) {
    let code = text
        .trim_start_matches("> ")
        .split_once(" |")
        .is_some_and(|(number, _)| number.trim().bytes().all(|byte| byte.is_ascii_digit()));
    if text.starts_with("at ") {
        block.set_place(stack_place(text));
    } else if !code && !text.starts_with('|') && !text.is_empty() {
        block.push_line(text);
    }
}

impl JestReader {
    /// Parses `      2 failed, 1 skipped, 2 passed, 5 total`.
    fn result(&mut self, list: &str) {
        let Some(counts) = counts(list.split(',')) else { return };
        self.done = counts.iter().any(|(_, word)| *word == "total");
        self.tally.count(counts);
    }

    /// Ends a failure. With many suites Jest prints all failures again at the end; these are
    /// dropped.
    fn end_block(&mut self) {
        if let Some(failure) = self.block.take().map(FailureBuilder::finish)
            && !self.tally.failures.contains(&failure)
        {
            self.tally.add_failure(failure);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestResults {
    num_passed_tests: u32,
    num_failed_tests: u32,
    num_pending_tests: u32,
    #[serde(default)]
    num_todo_tests: u32,
    /// Only Jest prints this field.
    num_runtime_error_test_suites: Option<u32>,
    test_results: Vec<JestSuite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestSuite {
    name: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    start_time: f64,
    #[serde(default)]
    end_time: f64,
    assertion_results: Vec<JestAssertion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestAssertion {
    full_name: String,
    status: String,
    duration: Option<f64>,
    #[serde(default)]
    failure_messages: Vec<String>,
}

fn parsed(line: &str) -> Option<TestTally> {
    let results: JestResults = serde_json::from_str(line).ok()?;
    let runner = if results.num_runtime_error_test_suites.is_some() { "jest" } else { "vitest" };
    let mut tally = TestTally {
        passed: results.num_passed_tests.into(),
        failed: results.num_failed_tests.into(),
        skipped: u64::from(results.num_pending_tests) + u64::from(results.num_todo_tests),
        ..TestTally::new(runner)
    };
    for suite in results.test_results {
        tally.add_duration(milliseconds(&(suite.end_time - suite.start_time).to_string()));
        if suite.assertion_results.is_empty() && suite.status == "failed" {
            tally.failed += 1;
            tally.add_failure(failed(&suite.name, &suite.message));
        }
        for test in suite.assertion_results {
            if let Some(time) = test.duration.and_then(|time| milliseconds(&time.to_string())) {
                tally.add_time(&test.full_name, time);
            }
            if test.status == "failed" {
                tally.add_failure(failed(&test.full_name, &test.failure_messages.join("\n")));
            }
        }
    }
    Some(tally)
}

/// Builds a failure from a message with a stack.
pub(super) fn failed(name: &str, message: &str) -> TestFailure {
    let mut growing = FailureBuilder::new(name);
    message.lines().for_each(|line| read_failure_line(line.trim(), &mut growing));
    growing.finish()
}
