//! What had to be mended to load a session, and what a model is told in place of a lost result.

use std::{fmt, path::PathBuf};

use windlass_contract::{CallId, Outcome, Verdict};

/// Something that was not as it should be in a session file. Its text is one line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The last line was cut short by the end of the process that wrote it; what there was of it is gone.
    TornLine {
        /// Its number.
        line: usize,
    },
    /// A line could not be used.
    SkippedLine {
        /// Its number.
        line: usize,
        /// Why.
        problem: String,
    },
    /// A line is damaged. The session ends before it, because what follows it is no longer certain.
    CutOff {
        /// Its number.
        line: usize,
        /// How many records are left out, with this one.
        records: usize,
        /// The file beside the session file that they were moved to; none if nothing was changed.
        kept: Option<PathBuf>,
    },
    /// A call had no output in the history and was given one.
    MissingOutput {
        /// The call.
        call: CallId,
        /// What it was given.
        substitute: Substitute,
    },
    /// An output belonged to no call and was left out.
    StrayOutput {
        /// The call it names.
        call: CallId,
    },
}

/// What stands in the history for an output that was not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Substitute {
    /// The call's real result, which had been written down.
    Recorded,
    /// A note that the call was begun and that nobody knows how it ended.
    Unknown,
    /// A note that the call was never begun.
    NotStarted,
    /// A note that the file is damaged and nothing can be said about the call.
    Lost,
}

impl Substitute {
    /// The outcome to write down and to tell the model; none if there is a real one.
    pub fn outcome(self) -> Option<Outcome> {
        let (reason, note) = match self {
            Self::Recorded => return None,
            Self::Unknown => (
                "the program ended while the call was running",
                "The program ended while this call was running, so its outcome is unknown. It may have had effects, \
                 in part or in full. It was not run again. Check what it may have changed before repeating it.",
            ),
            Self::NotStarted => (
                "the program ended before the call was started",
                // Not "it had no effects": when the whole machine dies, the last records may be lost (see `SessionFile`).
                "The program ended before this call was started, as far as the session file tells. Repeat it if it is \
                 still needed.",
            ),
            Self::Lost => (
                "the outcome was lost from the session file",
                "What became of this call was lost from the session file. It may have had effects. It was not run \
                 again. Check what it may have changed before repeating it.",
            ),
        };
        Some(Outcome::plain(Verdict::failure(reason), note))
    }
}

impl fmt::Display for Repair {
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
                    Substitute::Recorded => "its recorded result was added to the conversation",
                    Substitute::Unknown => "it was running when the program ended, its outcome is unknown",
                    Substitute::NotStarted => "it had not been started when the program ended",
                    Substitute::Lost => "what became of it can no longer be read",
                };
                write!(f, "call `{call}` had no output: {what}")
            }
            Self::StrayOutput { call } => write!(f, "an output of the unknown call `{call}` is left out"),
        }
    }
}
