//! pytest, however much it is told to print.

use windlass_contract::insight::{Place, TestFailure};

use super::{Growing, REMEMBERED, Reader, Tally, counts, seconds};
use crate::understand::{place, shortened};

/// The end of the last line, before the time.
pub(super) const SIGNS: &[&str] = &[
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

/// Reads pytest's lines.
#[derive(Default)]
pub(super) struct Pytest {
    tally: Tally,
    done: bool,
    /// What is told under `____ test ____`: its title and the rest.
    sections: Vec<(String, Growing)>,
    /// The names and short messages of the summary.
    summary: Vec<(String, String)>,
    in_summary: bool,
}

impl Reader for Pytest {
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
            told(line, section);
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

    fn tally(mut self: Box<Self>) -> Option<Tally> {
        let mut sections = std::mem::take(&mut self.sections);
        sections.retain(|(title, _)| !title.is_empty());
        let failures: Vec<_> = if self.summary.is_empty() {
            sections.into_iter().map(|(_, section)| section.finish()).collect()
        } else {
            self.summary.drain(..).map(|(name, message)| joined(&name, &message, &mut sections)).collect()
        };
        for failure in failures {
            self.tally.fail(failure);
        }
        self.done.then_some(Tally { runner: "pytest", ..self.tally })
    }
}

impl Pytest {
    /// A section begins. If there are too many, the last one is forgotten.
    fn section(&mut self, title: &str) {
        self.sections.truncate(REMEMBERED);
        self.sections.push((title.to_owned(), Growing::new(title)));
    }

    /// `FAILED tests/a.py::test - message`
    fn failed(&mut self, line: &str) -> bool {
        let Some((word, rest)) = line.split_once(' ') else { return false };
        if !matches!(word.split('(').next(), Some("FAILED" | "ERROR" | "SUBFAILED" | "SUBFAIL")) {
            return false;
        }
        let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
        if self.summary.len() < REMEMBERED {
            self.summary.push((name.to_owned(), message.to_owned()));
        }
        true
    }

    /// `4 failed, 2 passed, 1 skipped, 1 error in 0.50s`
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
        self.tally.took(time);
        self.in_summary = false;
        self.done = true;
        true
    }

    /// `0.03s call     tests/a.py::test`
    fn duration(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        if let (Some(time), Some("call" | "setup" | "teardown"), Some(name)) =
            (words.next(), words.next(), words.next())
            && let Some(time) = time.strip_suffix('s').and_then(seconds)
        {
            self.tally.time(name, time);
        }
    }
}

/// A line of a section: what was raised, and where. The last place of the project counts.
fn told(line: &str, section: &mut Growing) {
    if let Some(said) = line.strip_prefix("E   ") {
        section.say(said.trim_start());
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

/// A failure of the summary with what its section tells. Sections are in the same order, but errors come first.
fn joined(name: &str, message: &str, sections: &mut Vec<(String, Growing)>) -> TestFailure {
    let (file, test) = name.split_once("::").unwrap_or((name, name));
    let title = test.replace("::", ".");
    let fits = |(told, section): &(String, Growing)| {
        let same = *told == title || told.strip_prefix(&title).is_some_and(|rest| rest.starts_with(" ("));
        let place: &Place = &section.failure.place;
        same && place.file.as_deref().is_none_or(|at| at == file || !at.contains("test"))
    };
    let section = sections.iter().position(fits).map(|at| sections.remove(at).1.finish());
    let TestFailure { place, message: told, .. } = section.unwrap_or_default();
    TestFailure {
        name: shortened(name),
        place,
        message: if told.is_empty() { shortened(message) } else { told },
    }
}
