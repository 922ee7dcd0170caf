//! Reports: facts about a process from the host, and data that a tool returns. They are passed as
//! types; they become JSON only when they leave the program.

use std::{mem, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Denial,
    grant::Held,
    host::{Exit, Whole},
    insight::TestReport,
};

pub(crate) mod record_form;

/// Everything that was observed of a process. Made by the host, passed on by tools, and kept with
/// the outcome.
///
/// `E` is `Option<Exit>` for a process that may still run, so that it cannot be mistaken for one
/// that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport<E = Exit> {
    /// Way it ended.
    pub exit: E,
    /// Duration of the process; for a session, of this call.
    pub duration: Duration,
    /// Bytes printed in that time, kept or not. 0 if the output did not pass through the host.
    pub output_bytes: u64,
    /// Location of the full output, if it is long.
    pub whole: Option<Whole>,
    /// Names of the programs that still ran at its end and were killed.
    pub killed: Vec<String>,
    /// Accesses that the sandbox blocked, as far as they are known. The shaper moves them to the
    /// receipt.
    pub denials: Vec<Denial>,
    /// True if it waits for input, or was waiting when it exceeded its time limit.
    pub waits_for_input: bool,
    /// Names of the programs that ran when it exceeded its time limit; empty if that cannot be
    /// known. Not recorded.
    pub running: Vec<String>,
    /// Confinement that was enforced; absent if it was stopped before it began. The shaper moves it
    /// to the receipt, because the call itself may have been confined differently.
    pub held: Option<Held>,
}

impl<E> ProcessReport<E> {
    /// Builds a report that has nothing but the end.
    pub fn new(exit: E) -> Self {
        Self {
            exit,
            duration: Duration::ZERO,
            output_bytes: 0,
            whole: None,
            killed: Vec::new(),
            denials: Vec::new(),
            waits_for_input: false,
            running: Vec::new(),
            held: None,
        }
    }

    /// Takes the parts that belong to the receipt: the denials, and the confinement of the process.
    pub(crate) fn take_confinement(&mut self) -> (Vec<Denial>, Option<Held>) {
        (mem::take(&mut self.denials), self.held.take())
    }

    /// Returns the same report with another value for the end.
    pub fn with_exit<F>(self, exit: F) -> ProcessReport<F> {
        let Self { duration, output_bytes, whole, killed, denials, waits_for_input, running, held, .. } =
            self;
        ProcessReport { exit, duration, output_bytes, whole, killed, denials, waits_for_input, running, held }
    }
}

/// A session during one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// Its number, which later calls use.
    pub session: u32,
    /// True if this call started it.
    #[serde(default)]
    pub started: bool,
    /// Name of this piece of its output.
    pub chunk: String,
    /// Facts about its process, without an exit while it runs.
    #[serde(flatten, with = "record_form::SessionForm")]
    pub report: ProcessReport<Option<Exit>>,
}

/// Everything that was observed of a call of a remote tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteReport {
    /// True if its server says that the tool has failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Number of bytes of the texts of its result.
    pub output_bytes: u64,
    /// Location of the full texts, if they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Whole>,
}

/// Data that a tool returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "Value")]
pub enum ToolReport {
    /// Report that a runner wrote about its tests.
    Tests(Box<TestReport>),
    /// Result of a search.
    Search(SearchReport),
    /// Output of a command by stream.
    Streams(StreamReport),
    /// Data of a tool that is not built in, or any report that was read from a record.
    Json(Value),
}

impl ToolReport {
    /// Returns true if it contains nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Json(Value::Null))
    }

    /// Returns true if it is an object or a list.
    pub fn is_structured(&self) -> bool {
        match self {
            Self::Tests(_) | Self::Search(_) | Self::Streams(_) => true,
            Self::Json(value) => value.is_object() || value.is_array(),
        }
    }
}

impl From<Value> for ToolReport {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

/// Result of a search. The fields of these reports are sorted by name, because they have always
/// been written in that order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SearchReport {
    /// Number of files and directories that were skipped because they may not be read.
    pub denied: u64,
    /// Number of files with matches.
    pub files: u64,
    /// Matches, in the order they are shown.
    pub matches: Vec<SearchMatch>,
    /// True if there are more than were requested.
    pub more: bool,
}

/// One match. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SearchMatch {
    /// A file.
    File {
        /// Its path.
        path: String,
    },
    /// A file and its number of matches.
    Count {
        /// Number of matching lines.
        count: u64,
        /// The path of the file.
        path: String,
    },
    /// A line.
    Line {
        /// Line number, from 1.
        line: u64,
        /// The path of its file.
        path: String,
        /// Its text.
        text: String,
    },
}

/// Output of a command by stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Exit code that a shell would report.
    pub return_code: i32,
    /// Standard error.
    pub stderr: String,
    /// Standard output.
    pub stdout: String,
}

#[cfg(test)]
mod tests;
