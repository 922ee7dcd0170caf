//! Parses `go test`: plain, with `-v`, and with `-json`. Without `-v` it does not name passing
//! tests, so packages are counted instead.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde::Deserialize;
use windlass_contract::insight::TestFailure;

use super::{FailureBuilder, TestOutputReader, TestTally, seconds};
use crate::understand::place;

/// Parses go's lines.
#[derive(Default)]
pub(super) struct GoTestReader {
    /// Tests in order of appearance, by package (if known) and name.
    tests: Vec<GoTest>,
    index: HashMap<(String, String), usize>,
    /// The test to which unmarked lines belong.
    current: Option<usize>,
    /// Packages that passed, and packages that failed although no test in them did.
    passed: u64,
    broken: Vec<FailureBuilder>,
    /// True if a test failed since the last package ended; and packages with a failed test.
    blamed: bool,
    failing: HashSet<String>,
    time: Duration,
    done: bool,
}

struct GoTest {
    package: String,
    name: String,
    end: Option<GoTestResult>,
    time: Duration,
    message: FailureBuilder,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GoTestResult {
    Pass,
    Fail,
    Skip,
}

/// An event that `-json` prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoTestEvent {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
    elapsed: Option<f64>,
}

impl TestOutputReader for GoTestReader {
    fn read(&mut self, line: &str) {
        if line.starts_with(r#"{"Time":"#) || line.starts_with(r#"{"Action":"#) {
            if let Ok(event) = serde_json::from_str(line) {
                self.event(event);
            }
            return;
        }
        let text = line.trim_start();
        if let Some(name) = text.strip_prefix("=== ").and_then(|rest| rest.split_whitespace().nth(1)) {
            self.current = Some(self.test("", name));
        } else if let Some(rest) = text.strip_prefix("--- ") {
            self.ended(rest);
        } else if self.package(line) {
            self.current = None;
        } else if let Some(current) = self.current {
            read_failure_line(text, &mut self.tests[current].message);
        }
    }

    fn tally(self: Box<Self>) -> Option<TestTally> {
        if !self.done {
            return None;
        }
        let mut tally = TestTally::new("go");
        tally.add_duration(Some(self.time));
        let parents: HashSet<_> =
            self.tests.iter().filter_map(|test| parent(&test.package, &test.name)).collect();
        let leaves: Vec<_> = self
            .tests
            .into_iter()
            .filter(|test| !parents.contains(&(test.package.clone(), test.name.clone())))
            .collect();
        let named = leaves.iter().any(|test| test.end == Some(GoTestResult::Pass));
        for GoTest { name, end, time, message, .. } in leaves {
            tally.add_time(&name, time);
            match end {
                Some(GoTestResult::Pass) => tally.passed += 1,
                Some(GoTestResult::Skip) => tally.skipped += 1,
                Some(GoTestResult::Fail) => {
                    tally.failed += 1;
                    tally.add_failure(TestFailure { name, ..message.finish() });
                }
                None => {}
            }
        }
        tally.failed += self.broken.len() as u64;
        self.broken.into_iter().for_each(|broken| tally.add_failure(broken.finish()));
        tally.passed += if named { 0 } else { self.passed };
        Some(tally)
    }
}

/// Returns the parent of a subtest.
fn parent(package: &str, name: &str) -> Option<(String, String)> {
    name.rsplit_once('/').map(|(parent, _)| (package.to_owned(), parent.to_owned()))
}

impl GoTestReader {
    fn test(&mut self, package: &str, name: &str) -> usize {
        let key = (package.to_owned(), name.to_owned());
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        let (package, message) = (package.to_owned(), FailureBuilder::new(name));
        self.tests.push(GoTest { package, name: name.to_owned(), end: None, time: Duration::ZERO, message });
        self.index.insert(key, self.tests.len() - 1);
        self.tests.len() - 1
    }

    /// Parses `FAIL: TestMany/two (0.00s)`.
    fn ended(&mut self, rest: &str) {
        let Some((word, rest)) = rest.split_once(": ") else { return };
        let end = match word {
            "PASS" => GoTestResult::Pass,
            "FAIL" => GoTestResult::Fail,
            "SKIP" => GoTestResult::Skip,
            _ => return,
        };
        let (name, time) = rest.rsplit_once(" (").unwrap_or((rest, ""));
        let at = self.test("", name);
        self.tests[at].end = Some(end);
        self.tests[at].time = seconds(time.trim_end_matches(')')).unwrap_or_default();
        self.blamed |= end == GoTestResult::Fail;
        self.current = Some(at);
    }

    /// Parses `ok`, a package and a time, or `FAIL` and `example.test/till/bad [build failed]`,
    /// separated by tabs.
    fn package(&mut self, line: &str) -> bool {
        let mut parts = line.split('\t');
        let (word, Some(name)) = (parts.next().unwrap_or_default().trim_end(), parts.next()) else {
            return false;
        };
        if !matches!(word, "ok" | "FAIL") {
            return false;
        }
        self.done = true;
        self.time += parts.next().and_then(seconds).unwrap_or_default();
        if word == "ok" {
            self.passed += 1;
        } else if !std::mem::take(&mut self.blamed) {
            self.blame(name);
        }
        true
    }

    /// Records a package that failed although none of its tests did.
    fn blame(&mut self, package: &str) {
        let (name, why) = package.split_once(" [").unwrap_or((package, "failed outside its tests"));
        let mut broken = FailureBuilder::new(name);
        broken.push_line(why.trim_end_matches(']'));
        self.broken.push(broken);
    }

    fn event(&mut self, event: GoTestEvent) {
        let GoTestEvent { action, package, test, output, elapsed } = event;
        let time = elapsed.and_then(super::time).unwrap_or_default();
        if test.is_empty() {
            match &*action {
                "pass" | "fail" => {
                    self.done = true;
                    self.time += time;
                    if action == "fail" && !self.failing.contains(&package) {
                        self.blame(&package);
                    }
                    self.passed += u64::from(action == "pass");
                }
                _ => {}
            }
            return;
        }
        let at = self.test(&package, &test);
        let test = &mut self.tests[at];
        match &*action {
            "pass" => test.end = Some(GoTestResult::Pass),
            "fail" => {
                test.end = Some(GoTestResult::Fail);
                self.failing.insert(package);
            }
            "skip" => test.end = Some(GoTestResult::Skip),
            "output" => {
                let line = output.trim();
                if !line.starts_with("=== ") && !line.starts_with("--- ") {
                    read_failure_line(line, &mut test.message);
                }
                return;
            }
            _ => return,
        }
        test.time = time;
    }
}

/// Parses a line of a test: `till_test.go:12: got 1, want 2`, a panic, or a stack frame.
fn read_failure_line(text: &str, message: &mut FailureBuilder) {
    if let Some((place, rest)) = place::leading(text) {
        message.set_place(Some(place));
        message.push_line(rest.trim_start());
    } else if let Some((frame, _)) = text.split_once(" +0x") {
        if !frame.contains("/src/testing/") && !frame.contains("/src/runtime/") {
            message.set_place(place::alone(frame));
        }
    } else if !is_frame(text) && text != "FAIL" && text != "PASS" {
        message.push_line(text);
    }
}

/// Returns true if this is the function of a stack frame, and not a message.
fn is_frame(text: &str) -> bool {
    text.contains("(0x")
        || text.contains("({0x")
        || ["goroutine ", "testing.", "created by "].iter().any(|start| text.starts_with(start))
}
