//! Parses test reports from the output of test runners. It makes one pass over the lines; each
//! reader knows one runner.

mod cargo;
mod ctest;
mod go;
mod java;
mod jest;
mod junit;
mod mocha;
mod nextest;
mod pytest;
mod rerun;
mod tap;
mod unittest;
mod vitest;

use std::time::Duration;

use memchr::memmem;
use windlass_contract::insight::{Place, SlowTest, TestFailure, TestReport};

pub use junit::junit;
pub use rerun::arguments as rerun;

use super::{place, shortened};

/// Maximum number of failures, of slow tests, and of lines in a failure message of a report.
const MAX_FAILURES: usize = 50;
const MAX_SLOW_TESTS: usize = 5;
const MAX_MESSAGE_LINES: usize = 12;

/// Maximum number of failures that a reader holds before it knows which ones to report.
const MAX_PENDING_FAILURES: usize = 4 * MAX_FAILURES;

/// Minimum time of a test that is listed as slow.
const MIN_SLOW_TIME: Duration = Duration::from_millis(10);

/// Parses the output of one test runner. Implemented by the readers of this module and called by
/// [`parse_output`].
trait TestOutputReader {
    /// Parses the next line.
    fn read(&mut self, line: &str);

    /// Returns the counts, or `None` if the runner printed no result.
    fn tally(self: Box<Self>) -> Option<TestTally>;
}

/// A reader, and texts of which its runner always prints one. The reader is skipped if none is
/// present.
struct RunnerFormat {
    markers: &'static [&'static str],
    reader: fn() -> Box<dyn TestOutputReader>,
}

const RUNNER_FORMATS: [RunnerFormat; 12] = [
    RunnerFormat { markers: &["Summary ["], reader: || Box::new(nextest::NextestReader::default()) },
    RunnerFormat { markers: &["test result: "], reader: || Box::new(cargo::LibtestReader::default()) },
    RunnerFormat { markers: pytest::MARKERS, reader: || Box::new(pytest::PytestReader::default()) },
    RunnerFormat { markers: &["Ran "], reader: || Box::new(unittest::UnittestReader::default()) },
    RunnerFormat {
        markers: &["ok  \t", "FAIL\t", "\"Action\":"],
        reader: || Box::new(go::GoTestReader::default()),
    },
    RunnerFormat {
        markers: &["Tests: ", "\"testResults\":"],
        reader: || Box::new(jest::JestReader::default()),
    },
    RunnerFormat { markers: &["Tests  "], reader: || Box::new(vitest::VitestReader::default()) },
    RunnerFormat {
        markers: &[" passing (", "[\"end\","],
        reader: || Box::new(mocha::MochaReader::default()),
    },
    RunnerFormat { markers: &["1..", "TAP version "], reader: || Box::new(tap::TapReader::default()) },
    RunnerFormat { markers: &["ℹ duration_ms "], reader: || Box::new(tap::NodeSpecReader::default()) },
    RunnerFormat {
        markers: &["Tests run: ", "completed, "],
        reader: || Box::new(java::JavaReader::default()),
    },
    RunnerFormat { markers: &["% tests passed, "], reader: || Box::new(ctest::CtestReader::default()) },
];

/// Merges the report that a runner wrote to files with the one parsed from its output. The files
/// have more detail. If they have fewer tests, some files were not found, and the output is used.
pub(super) fn merge_written(written: Option<TestReport>, text: &str) -> Option<TestReport> {
    let all = |report: &TestReport| report.passed + report.failed + report.skipped;
    match (written.map(shorten_written), parse_output(text)) {
        (Some(written), Some(printed)) if all(&written) < all(&printed) => Some(printed),
        (Some(written), printed) => {
            let duration = printed.and_then(|printed| printed.duration).or(written.duration);
            Some(TestReport { duration, ..written })
        }
        (None, printed) => printed,
    }
}

/// Applies the limits of a parsed report to one from files.
fn shorten_written(written: TestReport) -> TestReport {
    let finish = |TestFailure { name, place, message }: TestFailure| {
        let mut block = FailureBuilder::new(&name);
        block.set_place(Some(place));
        message.lines().for_each(|line| java::read_failure_line(line, &mut block));
        block.finish()
    };
    let slow = |slow: SlowTest| SlowTest { name: shortened(&slow.name), ..slow };
    let failures: Vec<_> = written.failures.into_iter().map(finish).collect();
    TestReport {
        rerun: rerun::arguments(&written.runner, failures.iter().map(|failure| &*failure.name)),
        failures,
        slowest: written.slowest.into_iter().map(slow).collect(),
        ..written
    }
}

/// Parses the test report of an output, or returns `None` if there is none.
fn parse_output(text: &str) -> Option<TestReport> {
    let is_present = |known: &&RunnerFormat| {
        known.markers.iter().any(|marker| memmem::find(text.as_bytes(), marker.as_bytes()).is_some())
    };
    let mut readers: Vec<_> =
        RUNNER_FORMATS.iter().filter(is_present).map(|known| (known.reader)()).collect();
    if readers.is_empty() {
        return None;
    }
    for line in text.lines() {
        for reader in &mut readers {
            reader.read(line);
        }
    }
    readers.into_iter().filter_map(TestOutputReader::tally).map(TestTally::report).reduce(merge_reports)
}

/// Merges the reports of several runners in one output, such as that of `make test`.
fn merge_reports(mut all: TestReport, other: TestReport) -> TestReport {
    all.runner = format!("{}, {}", all.runner, other.runner);
    all.passed += other.passed;
    all.failed += other.failed;
    all.skipped += other.skipped;
    all.duration = all.duration.into_iter().chain(other.duration).reduce(|one, two| one + two);
    all.failures.extend(other.failures);
    all.failures.truncate(MAX_FAILURES);
    all.slowest.extend(other.slowest);
    // The runners select tests by different options.
    all.rerun.clear();
    all
}

/// The counts and failures of a runner so far.
#[derive(Default)]
struct TestTally {
    runner: &'static str,
    passed: u64,
    failed: u64,
    skipped: u64,
    duration: Option<Duration>,
    failures: Vec<TestFailure>,
    slowest: Vec<SlowTest>,
}

impl TestTally {
    fn new(runner: &'static str) -> Self {
        Self { runner, ..Self::default() }
    }

    /// Adds counts under the words that Jest and similar runners use.
    fn count(&mut self, counts: Vec<(u64, &str)>) {
        for (number, word) in counts {
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "skipped" | "todo" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Adds a failure, unless the list is full.
    fn add_failure(&mut self, failure: TestFailure) {
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(failure);
        }
    }

    /// Adds the time of a test, if it is one of the longest.
    fn add_time(&mut self, name: &str, duration: Duration) {
        if duration < MIN_SLOW_TIME {
            return;
        }
        let at = self.slowest.partition_point(|slow| slow.duration >= duration);
        if at < MAX_SLOW_TESTS {
            self.slowest.insert(at, SlowTest { name: name.to_owned(), duration });
            self.slowest.truncate(MAX_SLOW_TESTS);
        }
    }

    fn add_duration(&mut self, duration: Option<Duration>) {
        self.duration = self.duration.into_iter().chain(duration).reduce(|one, two| one + two);
    }

    fn report(self) -> TestReport {
        let mut report = self.raw();
        report.slowest.iter_mut().for_each(|slow| slow.name = shortened(&slow.name));
        report.rerun = rerun::arguments(&report.runner, report.failures.iter().map(|failure| &*failure.name));
        report
    }

    /// Converts to a report without cutting names.
    fn raw(self) -> TestReport {
        let Self { runner, passed, failed, skipped, duration, failures, slowest } = self;
        let (runner, rerun) = (runner.to_owned(), Vec::new());
        TestReport { runner, passed, failed, skipped, duration, failures, slowest, rerun }
    }
}

/// Builds a failure line by line.
#[derive(Default)]
struct FailureBuilder {
    failure: TestFailure,
    lines: usize,
}

impl FailureBuilder {
    fn new(name: &str) -> Self {
        Self { failure: TestFailure { name: shortened(name), ..TestFailure::default() }, lines: 0 }
    }

    /// Adds a line to the message, up to the maximum. Leading empty lines are dropped.
    fn push_line(&mut self, line: &str) {
        let line = line.trim_end();
        if self.lines == MAX_MESSAGE_LINES || (self.lines == 0 && line.trim().is_empty()) {
            return;
        }
        if self.lines > 0 {
            self.failure.message.push('\n');
        }
        self.failure.message.push_str(&shortened(line));
        self.lines += 1;
    }

    /// Sets the place, unless one is set already.
    fn set_place(&mut self, place: Option<Place>) {
        if self.failure.place == Place::default()
            && let Some(place) = place
        {
            self.failure.place = place;
        }
    }

    fn finish(mut self) -> TestFailure {
        let end = self.failure.message.trim_end().len();
        self.failure.message.truncate(end);
        self.failure
    }
}

/// Parses the place of a JavaScript stack frame, `at f (file:line:column)`. Ignores frames in
/// libraries.
fn stack_place(line: &str) -> Option<Place> {
    let line = line.trim();
    let inner = line.strip_prefix("at ").or_else(|| line.strip_prefix("❯ "))?;
    let inner = inner.rsplit_once('(').map_or(inner, |(_, inner)| inner.trim_end_matches(')'));
    let inner = inner.strip_prefix("file://").unwrap_or(inner.strip_prefix("async ").unwrap_or(inner));
    let outside =
        inner.starts_with("node:") || inner.contains("node_modules/") || inner.starts_with("internal/");
    if outside { None } else { place::alone(inner) }
}

/// Converts seconds to a duration. Rejects values that no test can take: output is untrusted, and
/// the durations are summed.
fn time(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| u32::try_from(time.as_secs()).is_ok())
}

/// Parses seconds such as `0.34` or `0.34s`.
fn seconds(text: &str) -> Option<Duration> {
    time(text.trim().trim_end_matches('s').trim_end().parse().ok()?)
}

/// Parses milliseconds such as `340`.
fn milliseconds(text: &str) -> Option<Duration> {
    time(text.trim().parse::<f64>().ok()? / 1000.0)
}

/// Parses a time with its unit: `23ms`, `1.5s`, `2m`.
fn with_unit(text: &str) -> Option<Duration> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    match text[number.len()..].trim() {
        "ms" => milliseconds(number),
        "s" => seconds(number),
        "m" => time(number.parse::<f64>().ok()? * 60.0),
        _ => None,
    }
}

/// Parses a list of counts such as `2 failed`, each a number and a word.
fn counts<'a>(list: impl Iterator<Item = &'a str>) -> Option<Vec<(u64, &'a str)>> {
    list.map(|each| {
        let (number, word) = each.trim().split_once(' ')?;
        Some((number.parse::<u32>().ok()?.into(), word.trim()))
    })
    .collect()
}
