//! Parses pytest at any verbosity.

use windlass_contract::insight::{Place, TestFailure};

use super::{FailureBuilder, MAX_PENDING_FAILURES, TestOutputReader, TestTally, counts, seconds};
use crate::understand::{place, shortened};

/// Texts before the time in pytest's last line.
pub(super) const MARKERS: &[&str] = &[
    "passed in ",
    "failed in ",
    "error in ",
    "errors in ",
    "skipped in ",
    "deselected in ",
    "xfailed in ",
    "warning in ",
    "warnings in ",
    "rerun in ",
    "no tests ran in ",
];

/// Parses pytest's lines.
#[derive(Default)]
pub(super) struct PytestReader {
    tally: TestTally,
    done: bool,
    /// The sections below `____ test ____`, by title.
    sections: Vec<(String, FailureBuilder)>,
    /// Names and short messages of the summary.
    summary: Vec<(String, String)>,
    in_summary: bool,
}

impl TestOutputReader for PytestReader {
    fn read(&mut self, line: &str) {
        if line.starts_with('=') || self.in_summary {
            let title = line.trim_matches(['=', ' ']);
            self.in_summary |= title == "short test summary info";
        }
        if self.in_summary && self.failed(line) {
            return;
        }
        if line.contains(" in ") && self.ended(line.trim_matches(['=', ' '])) {
            return;
        }
        if let Some(title) = line.strip_prefix("__").and_then(|rest| rest.strip_suffix("__")) {
            let title = title.trim_matches(['_', ' ']);
            let title = title
                .strip_prefix("ERROR at setup of ")
                .or_else(|| title.strip_prefix("ERROR at teardown of "))
                .unwrap_or(title);
            let title = title.strip_prefix("ERROR collecting ").unwrap_or(title);
            self.section(title);
        } else if let Some((_, section)) = self.sections.last_mut() {
            read_failure_line(line, section);
        } else if line.contains("s call ") || line.contains("s setup ") {
            self.duration(line);
        }
        if line.starts_with('=') && line.contains("slowest") {
            self.section("");
        }
        if self.sections.last().is_some_and(|(title, _)| title.is_empty()) {
            self.duration(line);
        }
    }

    fn tally(mut self: Box<Self>) -> Option<TestTally> {
        let mut sections = std::mem::take(&mut self.sections);
        sections.retain(|(title, _)| !title.is_empty());
        let failures: Vec<_> = if self.summary.is_empty() {
            sections.into_iter().map(|(_, section)| section.finish()).collect()
        } else {
            self.summary.drain(..).map(|(name, message)| joined(&name, &message, &mut sections)).collect()
        };
        for failure in failures {
            self.tally.add_failure(failure);
        }
        self.done.then_some(TestTally { runner: "pytest", ..self.tally })
    }
}

impl PytestReader {
    /// Begins a section. If there are too many, the last one is dropped.
    fn section(&mut self, title: &str) {
        self.sections.truncate(MAX_PENDING_FAILURES);
        self.sections.push((title.to_owned(), FailureBuilder::new(title)));
    }

    /// Parses `FAILED tests/a.py::test - message`.
    fn failed(&mut self, line: &str) -> bool {
        let Some((word, rest)) = line.split_once(' ') else { return false };
        if !matches!(word.split('(').next(), Some("FAILED" | "ERROR" | "SUBFAILED" | "SUBFAIL")) {
            return false;
        }
        let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
        if self.summary.len() < MAX_PENDING_FAILURES {
            self.summary.push((name.to_owned(), message.to_owned()));
        }
        true
    }

    /// Parses `4 failed, 2 passed, 1 skipped, 1 error in 0.50s`.
    fn ended(&mut self, line: &str) -> bool {
        let Some((list, time)) = line.split_once(" in ") else { return false };
        let time = time.split(' ').next().and_then(|time| time.strip_suffix('s')).and_then(seconds);
        if time.is_none() {
            return false;
        }
        let counts = if list == "no tests ran" { Some(Vec::new()) } else { counts(list.split(',')) };
        let Some(counts) = counts else { return false };
        let known = ["passed", "failed", "error", "errors", "skipped", "deselected", "xfailed", "xpassed"];
        if !counts.iter().all(|(_, word)| {
            known.contains(word) || word.contains("warning") || word.contains("subtest") || *word == "rerun"
        }) {
            return false;
        }
        for (number, word) in counts {
            match word {
                "passed" | "xpassed" => self.tally.passed += number,
                "failed" | "error" | "errors" => self.tally.failed += number,
                "skipped" | "xfailed" => self.tally.skipped += number,
                _ => {}
            }
        }
        self.tally.add_duration(time);
        self.in_summary = false;
        self.done = true;
        true
    }

    /// Parses `0.03s call     tests/a.py::test`.
    fn duration(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        if let (Some(time), Some("call" | "setup" | "teardown"), Some(name)) =
            (words.next(), words.next(), words.next())
            && let Some(time) = time.strip_suffix('s').and_then(seconds)
        {
            self.tally.add_time(name, time);
        }
    }
}

/// Parses a line of a section: the exception or its place. The last place in the project wins.
fn read_failure_line(line: &str, section: &mut FailureBuilder) {
    if let Some(raised) = line.strip_prefix("E   ") {
        section.push_line(raised.trim_start());
    } else if let Some((place, rest)) = place::leading(line)
        && (rest.is_empty() || rest.starts_with(' '))
        && !place
            .file
            .as_deref()
            .is_some_and(|file| file.contains("/site-packages/") || file.contains("/lib/python"))
    {
        section.failure.place = place;
    }
}

/// Joins a failure of the summary with its section. Sections have the same order, except that
/// errors come first.
fn joined(name: &str, message: &str, sections: &mut Vec<(String, FailureBuilder)>) -> TestFailure {
    let (file, test) = name.split_once("::").unwrap_or((name, name));
    let title = test.replace("::", ".");
    let fits = |(heading, section): &(String, FailureBuilder)| {
        let same =
            *heading == title || heading.strip_prefix(&title).is_some_and(|rest| rest.starts_with(" ("));
        let place: &Place = &section.failure.place;
        same && place.file.as_deref().is_none_or(|at| at == file || !at.contains("test"))
    };
    let section = sections.iter().position(fits).map(|at| sections.remove(at).1.finish());
    let TestFailure { place, message: detail, .. } = section.unwrap_or_default();
    TestFailure {
        name: shortened(name),
        place,
        message: if detail.is_empty() { shortened(message) } else { detail },
    }
}
