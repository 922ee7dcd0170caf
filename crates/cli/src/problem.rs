//! Errors for a person: what failed, where, and how to fix it.

use std::{io, path::Path};

use windlass::{BuildError, record::SessionError};

use crate::{
    exit::ProgramExit,
    screen::{visible, visible_path},
};

/// A problem that ends the program.
#[derive(Debug)]
pub(crate) struct CliProblem {
    pub(crate) exit: ProgramExit,
    /// The message, of any number of lines; the first is sufficient by itself.
    pub(crate) message: String,
}

impl CliProblem {
    /// Creates a problem of the command line or the configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: ProgramExit::Usage, message: message.into() }
    }

    /// Creates a problem of an operation that failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { exit: ProgramExit::Failed, message: message.into() }
    }

    /// Creates a problem of a file named on the command line.
    pub(crate) fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::usage(format!("{what} `{}`: {error}", visible_path(path)))
    }

    /// Creates a problem of an agent that cannot be built.
    pub(crate) fn build(error: &BuildError) -> Self {
        match error {
            BuildError::Journal(_)
            | BuildError::Session(SessionError::Io { .. } | SessionError::Journal { .. }) => {
                Self::failed(chain(error))
            }
            BuildError::Session(SessionError::Busy { .. }) => {
                Self::usage(format!("{}, or copy its conversation with `windlass fork`", chain(error)))
            }
            BuildError::NoModel
            | BuildError::Tools(_)
            | BuildError::ResumeWithoutHome
            | BuildError::UnknownPrice { .. }
            | BuildError::OtherProvider { .. }
            | BuildError::Session(_) => Self::usage(chain(error)),
        }
    }
}

/// Formats an error with its causes on one line, with file names escaped.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    visible(&text)
}
