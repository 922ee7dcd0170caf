//! Reports: what the host says of a process, and what a tool gives back as data. They travel as types; JSON is made of
//! them only where it leaves the program.

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

/// Everything that was observed of a process. Made by the host, passed on by tools, and kept with the outcome.
///
/// `E` is `Option<Exit>` where the process may still run, so that a running one is never taken for one that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport<E = Exit> {
    /// How it ended.
    pub exit: E,
    /// How long it ran; for a session, how long this call looked at it.
    pub duration: Duration,
    /// How much it printed in that time, kept or not. 0 if its output did not pass through the host.
    pub output_bytes: u64,
    /// Where all of a long output is.
    pub whole: Option<Whole>,
    /// What was still running at its end and was killed, by name.
    pub killed: Vec<String>,
    /// What the sandbox stopped, as far as it is known. The shaper moves it to the receipt.
    pub denials: Vec<Denial>,
    /// Whether it waits for input, or waited for it when its time was up.
    pub waits_for_input: bool,
    /// The programs that ran when its time was up, by name; none where that cannot be known. Not recorded.
    pub running: Vec<String>,
    /// What held it; absent if it was stopped before it began. The shaper moves it to the receipt: the call itself may have
    /// been held otherwise.
    pub held: Option<Held>,
}

impl<E> ProcessReport<E> {
    /// A process of which nothing is known but how it ended.
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

    /// Takes what belongs to the receipt: what the sandbox stopped, and what held the process.
    pub(crate) fn take_confinement(&mut self) -> (Vec<Denial>, Option<Held>) {
        (mem::take(&mut self.denials), self.held.take())
    }

    /// The same report with another idea of the end.
    pub fn with_exit<F>(self, exit: F) -> ProcessReport<F> {
        let Self { duration, output_bytes, whole, killed, denials, waits_for_input, running, held, .. } =
            self;
        ProcessReport { exit, duration, output_bytes, whole, killed, denials, waits_for_input, running, held }
    }
}

/// A session during one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// Its number, by which later calls reach it.
    pub session: u32,
    /// Whether this call started it.
    #[serde(default)]
    pub started: bool,
    /// The name of this piece of its output.
    pub chunk: String,
    /// What was observed of its process; without an exit while it runs.
    #[serde(flatten, with = "record_form::SessionForm")]
    pub report: ProcessReport<Option<Exit>>,
}

/// What a tool gives back as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "Value")]
pub enum ToolReport {
    /// What a runner wrote about its tests.
    Tests(Box<TestReport>),
    /// What a search found.
    Search(SearchReport),
    /// What a command printed, by stream.
    Streams(StreamReport),
    /// The data of a tool that is not built in, and any report that was read from a record.
    Json(Value),
}

impl ToolReport {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Json(Value::Null))
    }

    /// Whether it is an object or a list.
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

/// What a search found. The fields of these reports stand in the order of their names: so they have always been written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SearchReport {
    /// How many files and directories were passed over because they may not be read.
    pub denied: u64,
    /// In how many files.
    pub files: u64,
    /// What was found, in the order it is shown.
    pub matches: Vec<SearchMatch>,
    /// Whether there is more than was asked for.
    pub more: bool,
}

/// One thing a search found. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SearchMatch {
    /// A file.
    File {
        /// Its path.
        path: String,
    },
    /// A file, and how often the pattern fits.
    Count {
        /// How many lines fit.
        count: u64,
        /// The path of the file.
        path: String,
    },
    /// A line.
    Line {
        /// Its number, from 1.
        line: u64,
        /// The path of its file.
        path: String,
        /// What it says.
        text: String,
    },
}

/// What a command printed, by stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// The code a shell would report.
    pub return_code: i32,
    /// What it wrote to standard error.
    pub stderr: String,
    /// What it wrote to standard output.
    pub stdout: String,
}

#[cfg(test)]
mod tests;
