//! What became of tests, found in what their runners printed. One pass over the lines; each reader knows one runner.

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

/// How many failures are told, how many slow tests, and how much of a message.
const FAILURES: usize = 50;
const SLOWEST: usize = 5;
const MESSAGE_LINES: usize = 12;

/// How many failures a reader remembers before it knows which are told.
const REMEMBERED: usize = 4 * FAILURES;

/// Times below this are not worth telling.
const SLOW: Duration = Duration::from_millis(10);

/// Knows what one runner prints.
trait Reader {
    /// Reads the next line.
    fn read(&mut self, line: &str);

    /// What it has seen; nothing if the runner has not said how it went.
    fn tally(self: Box<Self>) -> Option<Tally>;
}

/// A runner's reader, and what it always prints in the end: without one of these there is no need to read.
struct Known {
    signs: &'static [&'static str],
    reader: fn() -> Box<dyn Reader>,
}

const KNOWN: [Known; 12] = [
    Known { signs: &["Summary ["], reader: || Box::new(nextest::Nextest::default()) },
    Known { signs: &["test result: "], reader: || Box::new(cargo::Cargo::default()) },
    Known { signs: pytest::SIGNS, reader: || Box::new(pytest::Pytest::default()) },
    Known { signs: &["Ran "], reader: || Box::new(unittest::Unittest::default()) },
    Known { signs: &["ok  \t", "FAIL\t", "\"Action\":"], reader: || Box::new(go::Go::default()) },
    Known { signs: &["Tests: ", "\"testResults\":"], reader: || Box::new(jest::Jest::default()) },
    Known { signs: &["Tests  "], reader: || Box::new(vitest::Vitest::default()) },
    Known { signs: &[" passing (", "[\"end\","], reader: || Box::new(mocha::Mocha::default()) },
    Known { signs: &["1..", "TAP version "], reader: || Box::new(tap::Tap::default()) },
    Known { signs: &["ℹ duration_ms "], reader: || Box::new(tap::Spec::default()) },
    Known { signs: &["Tests run: ", "completed, "], reader: || Box::new(java::Java::default()) },
    Known { signs: &["% tests passed, "], reader: || Box::new(ctest::Ctest::default()) },
];

/// What became of tests, by what their runner printed and what it wrote into files. The files say more, unless they tell of
/// fewer tests: then some of them were not found.
pub(super) fn with(written: Option<TestReport>, text: &str) -> Option<TestReport> {
    let all = |report: &TestReport| report.passed + report.failed + report.skipped;
    match (written.map(finished), of(text)) {
        (Some(written), Some(printed)) if all(&written) < all(&printed) => Some(printed),
        (Some(written), printed) => {
            let duration = printed.and_then(|printed| printed.duration).or(written.duration);
            Some(TestReport { duration, ..written })
        }
        (None, printed) => printed,
    }
}

/// What was written into files, cut as everything that is shown.
fn finished(written: TestReport) -> TestReport {
    let finish = |TestFailure { name, place, message }: TestFailure| {
        let mut block = Growing::new(&name);
        block.at(Some(place));
        message.lines().for_each(|line| java::told(line, &mut block));
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

/// What became of the tests in an output, if that is what it is about.
fn of(text: &str) -> Option<TestReport> {
    let speaks = |known: &&Known| {
        known.signs.iter().any(|sign| memmem::find(text.as_bytes(), sign.as_bytes()).is_some())
    };
    let mut readers: Vec<_> = KNOWN.iter().filter(speaks).map(|known| (known.reader)()).collect();
    if readers.is_empty() {
        return None;
    }
    for line in text.lines() {
        for reader in &mut readers {
            reader.read(line);
        }
    }
    readers.into_iter().filter_map(Reader::tally).map(Tally::report).reduce(together)
}

/// Several runners in one output, as of a `make test`.
fn together(mut all: TestReport, other: TestReport) -> TestReport {
    all.runner = format!("{}, {}", all.runner, other.runner);
    all.passed += other.passed;
    all.failed += other.failed;
    all.skipped += other.skipped;
    all.duration = all.duration.into_iter().chain(other.duration).reduce(|one, two| one + two);
    all.failures.extend(other.failures);
    all.failures.truncate(FAILURES);
    all.slowest.extend(other.slowest);
    // Each has its own way to run some again.
    all.rerun.clear();
    all
}

/// What has been counted and kept so far.
#[derive(Default)]
struct Tally {
    runner: &'static str,
    passed: u64,
    failed: u64,
    skipped: u64,
    duration: Option<Duration>,
    failures: Vec<TestFailure>,
    slowest: Vec<SlowTest>,
}

impl Tally {
    fn of(runner: &'static str) -> Self {
        Self { runner, ..Self::default() }
    }

    /// Adds counts in the words of Jest and those who follow it.
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

    /// Keeps a failure, unless there are enough.
    fn fail(&mut self, failure: TestFailure) {
        if self.failures.len() < FAILURES {
            self.failures.push(failure);
        }
    }

    /// Keeps a time, if it is one of the longest.
    fn time(&mut self, name: &str, duration: Duration) {
        if duration < SLOW {
            return;
        }
        let at = self.slowest.partition_point(|slow| slow.duration >= duration);
        if at < SLOWEST {
            self.slowest.insert(at, SlowTest { name: name.to_owned(), duration });
            self.slowest.truncate(SLOWEST);
        }
    }

    fn took(&mut self, duration: Option<Duration>) {
        self.duration = self.duration.into_iter().chain(duration).reduce(|one, two| one + two);
    }

    fn report(self) -> TestReport {
        let mut report = self.raw();
        report.slowest.iter_mut().for_each(|slow| slow.name = shortened(&slow.name));
        report.rerun = rerun::arguments(&report.runner, report.failures.iter().map(|failure| &*failure.name));
        report
    }

    /// As it was kept.
    fn raw(self) -> TestReport {
        let Self { runner, passed, failed, skipped, duration, failures, slowest } = self;
        let (runner, rerun) = (runner.to_owned(), Vec::new());
        TestReport { runner, passed, failed, skipped, duration, failures, slowest, rerun }
    }
}

/// The failure that is being read: its message grows line by line.
#[derive(Default)]
struct Growing {
    failure: TestFailure,
    lines: usize,
}

impl Growing {
    fn new(name: &str) -> Self {
        Self { failure: TestFailure { name: shortened(name), ..TestFailure::default() }, lines: 0 }
    }

    /// Adds a line to the message, as long as there is room. Empty lines at its beginning are left out.
    fn say(&mut self, line: &str) {
        let line = line.trim_end();
        if self.lines == MESSAGE_LINES || (self.lines == 0 && line.trim().is_empty()) {
            return;
        }
        if self.lines > 0 {
            self.failure.message.push('\n');
        }
        self.failure.message.push_str(&shortened(line));
        self.lines += 1;
    }

    /// Keeps the first place told.
    fn at(&mut self, place: Option<Place>) {
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

/// The place of a JavaScript stack line (`at f (file:line:column)`), unless it is of a library.
fn stack_place(line: &str) -> Option<Place> {
    let line = line.trim();
    let inner = line.strip_prefix("at ").or_else(|| line.strip_prefix("❯ "))?;
    let inner = inner.rsplit_once('(').map_or(inner, |(_, inner)| inner.trim_end_matches(')'));
    let inner = inner.strip_prefix("file://").unwrap_or(inner.strip_prefix("async ").unwrap_or(inner));
    let outside =
        inner.starts_with("node:") || inner.contains("node_modules/") || inner.starts_with("internal/");
    if outside { None } else { place::alone(inner) }
}

/// So many seconds, unless no test can have taken so long: what is printed is not believed, and is added up.
fn time(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| u32::try_from(time.as_secs()).is_ok())
}

/// Seconds as programs write them: `0.34`, `0.34s`.
fn seconds(text: &str) -> Option<Duration> {
    time(text.trim().trim_end_matches('s').trim_end().parse().ok()?)
}

/// Milliseconds likewise.
fn milliseconds(text: &str) -> Option<Duration> {
    time(text.trim().parse::<f64>().ok()? / 1000.0)
}

/// A time with its unit: `23ms`, `1.5s`, `2m`.
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

/// Counts such as `2 failed`, each a number and a word, from a list.
fn counts<'a>(list: impl Iterator<Item = &'a str>) -> Option<Vec<(u64, &'a str)>> {
    list.map(|each| {
        let (number, word) = each.trim().split_once(' ')?;
        Some((number.parse::<u32>().ok()?.into(), word.trim()))
    })
    .collect()
}
