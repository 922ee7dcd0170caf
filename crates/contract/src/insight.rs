//! The meaning of a result, as data. It is derived from the result; observed facts are in
//! [`Facts`](crate::outcome::Facts).

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::grant::millis;

/// Meaning of a result: one line for a person, the rest for programs. Lists are bounded; counts say
/// how many entries there were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insight {
    /// One line.
    pub summary: String,
    /// The same and more, as structured data.
    #[serde(flatten)]
    pub detail: Detail,
}

impl Insight {
    /// Returns the report on the tests that ran, if any did.
    pub fn tests(&self) -> Option<&TestReport> {
        match &self.detail {
            Detail::Command(command) => command.tests.as_ref(),
            Detail::File(_) | Detail::Search(_) => None,
        }
    }

    /// Returns true if the summary says more than how the call ended, which is shown anyway.
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

/// Details by the kind of the result.
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

/// Meaning of a command's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandInsight {
    /// Way the command ended.
    pub class: ExitClass,
    /// First line of the output that describes the error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// Messages of compilers and linters.
    #[serde(default, skip_serializing_if = "Diagnostics::is_empty")]
    pub diagnostics: Diagnostics,
    /// Results of tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
}

/// The ways a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitClass {
    /// With code 0, or with 1 where that means "no" and not a failure.
    Ok,
    /// With another code.
    Failed,
    /// The program does not exist.
    NotFound,
    /// The program exists but cannot be executed.
    NotExecutable,
    /// By a signal.
    Signalled,
    /// It exceeded its time limit.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It failed, and the sandbox is known to have blocked something.
    Denied,
    /// It exceeded its memory limit.
    KilledForMemory,
}

impl ExitClass {
    /// Returns the name used on every wire and screen.
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

/// Messages of compilers and linters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Number of errors.
    pub errors: u64,
    /// Number of warnings.
    pub warnings: u64,
    /// First entries, errors before warnings.
    pub first: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Returns true if there are neither errors nor warnings.
    pub fn is_empty(&self) -> bool {
        self.errors == 0 && self.warnings == 0
    }
}

/// One message of a compiler or linter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Source of the message: `rustc`, `gcc`, `tsc`, `eslint`, `python` or `go`; `other` for any
    /// other tool that uses the common form.
    pub tool: String,
    /// Severity of the message.
    pub severity: Severity,
    /// Position in the source.
    #[serde(flatten)]
    pub place: Place,
    /// The tool's name for it, such as `E0308` or `no-unused-vars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Text of the message.
    pub message: String,
}

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It must be fixed.
    Error,
    /// It should be fixed.
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

/// Results of tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Test runner, such as `cargo` or `pytest`.
    pub runner: String,
    /// Number of tests that passed.
    pub passed: u64,
    /// Number of tests that failed, for any reason.
    pub failed: u64,
    /// Number of tests that were not run.
    pub skipped: u64,
    /// Duration of the run, if the runner reports it.
    #[serde(default, rename = "duration_ms", with = "maybe_millis", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// First tests that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TestFailure>,
    /// Slowest tests, if the runner reports durations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowTest>,
    /// Arguments to add to the runner's command to run only the failed tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rerun: Vec<String>,
}

/// A test that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFailure {
    /// Its name, as its runner knows it.
    pub name: String,
    /// Position of the failure.
    #[serde(flatten)]
    pub place: Place,
    /// Message of the failure, at most a few lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A test and its duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowTest {
    /// Its name.
    pub name: String,
    /// Its duration.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
}

/// Facts about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInsight {
    /// The file.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of lines, if the whole file was examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Character encoding.
    pub encoding: String,
    /// Language of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Definitions in the file, from top to bottom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<Section>,
}

/// Something that a file defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Kind of definition, such as `function`, `class` or `heading`.
    pub kind: String,
    /// Line on which it begins, counted from 1.
    pub line: u32,
    /// Number of definitions that enclose it.
    #[serde(default)]
    pub depth: u32,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchInsight {
    /// Number of files with hits.
    pub files: u64,
    /// Number of lines with hits, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// True if there are more results than were requested.
    pub more: bool,
    /// Directories with the most files found, in descending order.
    pub directories: Vec<Hits>,
}

/// Number of hits in a directory, without its subdirectories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    /// The directory.
    pub path: PathBuf,
    /// Number of its files with hits.
    pub files: u64,
}

/// Optional durations as milliseconds.
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
