//! `go test`: plain, with `-v`, and with `-json`. Without `-v`, tests that pass are not named: then packages count.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde::Deserialize;
use windlass_contract::insight::TestFailure;

use super::{Growing, Reader, Tally, seconds};
use crate::understand::place;

/// Reads go's lines.
#[derive(Default)]
pub(super) struct Go {
    /// Tests in the order they were first seen, by package (where that is known) and name.
    tests: Vec<Test>,
    index: HashMap<(String, String), usize>,
    /// The test that plain lines belong to.
    current: Option<usize>,
    /// Packages that passed, and those that failed without a test to blame.
    passed: u64,
    broken: Vec<Growing>,
    /// Failures seen since the last package ended, and packages with a test that failed.
    blamed: bool,
    failing: HashSet<String>,
    time: Duration,
    done: bool,
}

struct Test {
    package: String,
    name: String,
    end: Option<End>,
    time: Duration,
    said: Growing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Pass,
    Fail,
    Skip,
}

/// A line of `-json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
    elapsed: Option<f64>,
}

impl Reader for Go {
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
            told(text, &mut self.tests[current].said);
        }
    }

    fn tally(self: Box<Self>) -> Option<Tally> {
        if !self.done {
            return None;
        }
        let mut tally = Tally::of("go");
        tally.took(Some(self.time));
        let parents: HashSet<_> =
            self.tests.iter().filter_map(|test| parent(&test.package, &test.name)).collect();
        let leaves: Vec<_> = self
            .tests
            .into_iter()
            .filter(|test| !parents.contains(&(test.package.clone(), test.name.clone())))
            .collect();
        let named = leaves.iter().any(|test| test.end == Some(End::Pass));
        for Test { name, end, time, said, .. } in leaves {
            tally.time(&name, time);
            match end {
                Some(End::Pass) => tally.passed += 1,
                Some(End::Skip) => tally.skipped += 1,
                Some(End::Fail) => {
                    tally.failed += 1;
                    tally.fail(TestFailure { name, ..said.finish() });
                }
                None => {}
            }
        }
        tally.failed += self.broken.len() as u64;
        self.broken.into_iter().for_each(|broken| tally.fail(broken.finish()));
        tally.passed += if named { 0 } else { self.passed };
        Some(tally)
    }
}

/// The test that this one is a part of.
fn parent(package: &str, name: &str) -> Option<(String, String)> {
    name.rsplit_once('/').map(|(parent, _)| (package.to_owned(), parent.to_owned()))
}

impl Go {
    fn test(&mut self, package: &str, name: &str) -> usize {
        let key = (package.to_owned(), name.to_owned());
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        let (package, said) = (package.to_owned(), Growing::new(name));
        self.tests.push(Test { package, name: name.to_owned(), end: None, time: Duration::ZERO, said });
        self.index.insert(key, self.tests.len() - 1);
        self.tests.len() - 1
    }

    /// `FAIL: TestMany/two (0.00s)`
    fn ended(&mut self, rest: &str) {
        let Some((word, rest)) = rest.split_once(": ") else { return };
        let end = match word {
            "PASS" => End::Pass,
            "FAIL" => End::Fail,
            "SKIP" => End::Skip,
            _ => return,
        };
        let (name, time) = rest.rsplit_once(" (").unwrap_or((rest, ""));
        let at = self.test("", name);
        self.tests[at].end = Some(end);
        self.tests[at].time = seconds(time.trim_end_matches(')')).unwrap_or_default();
        self.blamed |= end == End::Fail;
        self.current = Some(at);
    }

    /// `ok`, a package and a time, or `FAIL` and `example.test/till/bad [build failed]`, with tabs between.
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

    /// A package that failed although none of its tests did.
    fn blame(&mut self, package: &str) {
        let (name, why) = package.split_once(" [").unwrap_or((package, "failed outside its tests"));
        let mut broken = Growing::new(name);
        broken.say(why.trim_end_matches(']'));
        self.broken.push(broken);
    }

    fn event(&mut self, event: Event) {
        let Event { action, package, test, output, elapsed } = event;
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
            "pass" => test.end = Some(End::Pass),
            "fail" => {
                test.end = Some(End::Fail);
                self.failing.insert(package);
            }
            "skip" => test.end = Some(End::Skip),
            "output" => {
                let line = output.trim();
                if !line.starts_with("=== ") && !line.starts_with("--- ") {
                    told(line, &mut test.said);
                }
                return;
            }
            _ => return,
        }
        test.time = time;
    }
}

/// A line of a test: `till_test.go:12: got 1, want 2`, a panic, or a line of its stack.
fn told(text: &str, said: &mut Growing) {
    if let Some((place, rest)) = place::leading(text) {
        said.at(Some(place));
        said.say(rest.trim_start());
    } else if let Some((frame, _)) = text.split_once(" +0x") {
        if !frame.contains("/src/testing/") && !frame.contains("/src/runtime/") {
            said.at(place::alone(frame));
        }
    } else if !is_frame(text) && text != "FAIL" && text != "PASS" {
        said.say(text);
    }
}

/// Whether this names a function of a stack, not what went wrong.
fn is_frame(text: &str) -> bool {
    text.contains("(0x")
        || text.contains("({0x")
        || ["goroutine ", "testing.", "created by "].iter().any(|start| text.starts_with(start))
}
