//! The meaning of a result, as data. Derived from what came back; what was observed is in [`Facts`](crate::outcome::Facts).

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::grant::millis;

/// What a result means: one line for a person, the rest for programs. Lists are bounded, and say how many there were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insight {
    /// One line.
    pub summary: String,
    /// The same and more, as data.
    #[serde(flatten)]
    pub detail: Detail,
}

impl Insight {
    /// What is known of the tests that ran.
    pub fn tests(&self) -> Option<&TestReport> {
        match &self.detail {
            Detail::Command(command) => command.tests.as_ref(),
            Detail::File(_) | Detail::Search(_) => None,
        }
    }

    /// Whether the summary says more than how the call ended, which is shown anyway.
    pub fn is_telling(&self) -> bool {
        match &self.detail {
            Detail::Command(command) => {
                !matches!(command.class, ExitClass::Ok | ExitClass::Failed)
                    || command.first_error.is_some()
                    || command.tests.is_some()
                    || command.diagnostics != Diagnostics::default()
            }
            Detail::File(_) | Detail::Search(_) => true,
        }
    }
}

/// What kind of result it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Detail {
    /// A command ended.
    Command(CommandInsight),
    /// A file was read.
    File(FileInsight),
    /// Files were searched.
    Search(SearchInsight),
}

/// What a command's output means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandInsight {
    /// How it ended.
    pub class: ExitClass,
    /// The line that says first what went wrong, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// What compilers and linters said.
    #[serde(default, skip_serializing_if = "Diagnostics::is_empty")]
    pub diagnostics: Diagnostics,
    /// What became of tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
}

/// The ways a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitClass {
    /// With code 0, or with 1 where that is an answer.
    Ok,
    /// With another code.
    Failed,
    /// There is no such program.
    NotFound,
    /// There is one, but it cannot be executed.
    NotExecutable,
    /// By a signal.
    Signalled,
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It failed, and the sandbox is known to have stopped something.
    Denied,
    /// It used more memory than it may.
    KilledForMemory,
}

impl ExitClass {
    /// The name used on every wire and screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::NotFound => "not_found",
            Self::NotExecutable => "not_executable",
            Self::Signalled => "signalled",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::KilledForMemory => "killed_for_memory",
        }
    }
}

/// What compilers and linters said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// How many errors there are.
    pub errors: u64,
    /// How many warnings there are.
    pub warnings: u64,
    /// The first of them, errors before warnings.
    pub first: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.errors == 0 && self.warnings == 0
    }
}

/// One thing a compiler or linter said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Who said it: `rustc`, `gcc`, `tsc`, `eslint`, `python`, `go`; `other` for anything in the common form.
    pub tool: String,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The tool's name for it, such as `E0308` or `no-unused-vars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it is.
    pub message: String,
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It must be mended.
    Error,
    /// It should be.
    Warning,
}

/// A place in a file, as far as it is known. Numbers count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file, as it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// What became of tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Who ran them, such as `cargo` or `pytest`.
    pub runner: String,
    /// How many passed.
    pub passed: u64,
    /// How many failed, for whatever reason.
    pub failed: u64,
    /// How many were not run.
    pub skipped: u64,
    /// How long they took, where the runner says so.
    #[serde(default, rename = "duration_ms", with = "maybe_millis", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The first that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TestFailure>,
    /// Those that took longest, where the runner says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowTest>,
    /// What to add to the runner's command to run only those that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rerun: Vec<String>,
}

/// A test that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFailure {
    /// Its name, as its runner knows it.
    pub name: String,
    /// Where it failed.
    #[serde(flatten)]
    pub place: Place,
    /// Why: a few lines at most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A test and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowTest {
    /// Its name.
    pub name: String,
    /// The time.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInsight {
    /// The file.
    pub path: PathBuf,
    /// How many bytes it has.
    pub bytes: u64,
    /// How many lines it has, where all of it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// How its characters are written.
    pub encoding: String,
    /// The language it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What it defines, from top to bottom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<Section>,
}

/// Something a file defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// What it is: `function`, `class`, `heading`.
    pub kind: String,
    /// Where it begins, from 1.
    pub line: u32,
    /// How many others it is in.
    #[serde(default)]
    pub depth: u32,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchInsight {
    /// In how many files.
    pub files: u64,
    /// How many lines, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Whether there is more than was asked for.
    pub more: bool,
    /// The directories with most of it, the first with most files.
    pub directories: Vec<Hits>,
}

/// How much was found in a directory, and not below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    /// The directory.
    pub path: PathBuf,
    /// In how many of its files.
    pub files: u64,
}

/// Durations as milliseconds, where there is one.
mod maybe_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::grant::millis;

    #[expect(clippy::ref_option, reason = "the shape serde's `with` wants")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => millis::serialize(time, to),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_insight_is_flat_and_short_on_the_wire() {
        let place = Place { file: Some("a.rs".into()), line: Some(3), column: None };
        let failure = TestFailure { name: "t".into(), place: place.clone(), message: String::new() };
        let insight = Insight {
            summary: "1 of 2 tests failed".into(),
            detail: Detail::Command(CommandInsight {
                class: ExitClass::Failed,
                first_error: None,
                diagnostics: Diagnostics::default(),
                tests: Some(TestReport {
                    runner: "cargo".into(),
                    passed: 1,
                    failed: 1,
                    duration: Some(Duration::from_millis(20)),
                    failures: vec![failure],
                    ..TestReport::default()
                }),
            }),
        };
        let written = serde_json::to_value(&insight).unwrap();
        assert_eq!(
            written,
            json!({
                "summary": "1 of 2 tests failed", "kind": "command", "class": "failed",
                "tests": {
                    "runner": "cargo", "passed": 1, "failed": 1, "skipped": 0, "duration_ms": 20,
                    "failures": [{"name": "t", "file": "a.rs", "line": 3}]
                }
            })
        );
        assert_eq!(serde_json::from_value::<Insight>(written).unwrap(), insight);
    }
}
