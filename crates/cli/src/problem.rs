//! What went wrong, for a person: what, where, and what to do.

use std::{io, path::Path};

use windlass::{BuildError, record::SessionError};

use crate::{
    exit::Exit,
    screen::{visible, visible_path},
};

/// A problem that ends the program.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    /// What is wrong, in as many lines as it takes; the first says it all.
    pub(crate) message: String,
}

impl Problem {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Something did not work.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }

    /// A file named on the command line cannot be used.
    pub(crate) fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::usage(format!("{what} `{}`: {error}", visible_path(path)))
    }

    /// There is no agent.
    pub(crate) fn build(error: &BuildError) -> Self {
        match error {
            BuildError::Journal(_)
            | BuildError::Session(SessionError::Io { .. } | SessionError::Journal { .. }) => {
                Self::failed(chain(error))
            }
            BuildError::NoModel
            | BuildError::Tools(_)
            | BuildError::ResumeWithoutHome
            | BuildError::OtherProvider { .. }
            | BuildError::Session(_) => Self::usage(chain(error)),
        }
    }
}

/// An error with what caused it, on one line, whatever names of files are in it.
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
