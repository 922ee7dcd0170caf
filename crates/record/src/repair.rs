//! Repairs that were needed to load a session, and the notes that replace lost results.

use std::{fmt, path::PathBuf};

use windlass_contract::{CallId, Clean, Outcome};

/// A problem in a session file that was repaired. Its `Display` is one line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRepair {
    /// The last line was cut short when the process that wrote it ended. It is dropped.
    TornLine {
        /// Its number.
        line: usize,
    },
    /// A line could not be used.
    SkippedLine {
        /// Its number.
        line: usize,
        /// The reason.
        problem: String,
    },
    /// A line is damaged. The session ends before it, because nothing after it is certain.
    CutOff {
        /// Its number.
        line: usize,
        /// The number of records that are left out, including this one.
        records: usize,
        /// The file that they were moved to; none if the session file was not changed.
        kept: Option<PathBuf>,
    },
    /// A call had no output in the history and got a substitute.
    MissingOutput {
        /// The call.
        call: CallId,
        /// The substitute.
        substitute: OutputSubstitute,
    },
    /// An output belonged to no call and was left out.
    StrayOutput {
        /// The call it names.
        call: CallId,
    },
}

/// The replacement for a missing output in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSubstitute {
    /// The real result of the call, which is in the file.
    Recorded,
    /// A note that the call was started and its outcome is unknown.
    Unknown,
    /// A note that the call was never started.
    NotStarted,
    /// A note that the file is damaged and the outcome is lost.
    Lost,
}

impl OutputSubstitute {
    /// Returns the outcome to record and to send to the model; none if there is a real one.
    pub fn outcome(self) -> Option<Clean<Outcome>> {
        let (reason, note) = match self {
            Self::Recorded => return None,
            Self::Unknown => (
                "the program ended while the call was running",
                "The program ended while this call was running, so its outcome is unknown. It may have had effects, \
                 in part or in full. It was not run again. Check what it may have changed before repeating it.",
            ),
            Self::NotStarted => (
                "the program ended before the call was started",
                // Not "it had no effects": the last records may be lost when the machine crashes
                // (see `SessionFile`).
                "The program ended before this call was started, as far as the session file tells. Repeat it if it is \
                 still needed.",
            ),
            Self::Lost => (
                "the outcome was lost from the session file",
                "What became of this call was lost from the session file. It may have had effects. It was not run \
                 again. Check what it may have changed before repeating it.",
            ),
        };
        Some(Clean::unknown(reason, note))
    }
}

impl fmt::Display for SessionRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornLine { line } => write!(f, "line {line} was cut short and is left out"),
            Self::SkippedLine { line, problem } => write!(f, "line {line} is left out: {problem}"),
            Self::CutOff { line, records, kept } => {
                write!(f, "line {line} is damaged: the conversation ends before it, and ")?;
                match records {
                    1 => write!(f, "1 record is left out")?,
                    _ => write!(f, "{records} records are left out")?,
                }
                match kept {
                    Some(path) => write!(f, "; kept in `{}`", path.display()),
                    None => Ok(()),
                }
            }
            Self::MissingOutput { call, substitute } => {
                let what = match substitute {
                    OutputSubstitute::Recorded => "its recorded result was added to the conversation",
                    OutputSubstitute::Unknown => {
                        "it was running when the program ended, its outcome is unknown"
                    }
                    OutputSubstitute::NotStarted => "it had not been started when the program ended",
                    OutputSubstitute::Lost => "what became of it can no longer be read",
                };
                write!(f, "call `{call}` had no output: {what}")
            }
            Self::StrayOutput { call } => write!(f, "an output of the unknown call `{call}` is left out"),
        }
    }
}
