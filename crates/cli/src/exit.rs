//! How the program ends. The numbers are a promise (see the README).

use std::process::ExitCode;

/// The end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The turn, or the one call, failed.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// A call was refused because nobody could approve it, and nothing later made up for it.
    Refused,
    /// A limit on time or tokens was reached.
    Limit,
    /// Someone pressed Ctrl-C, or asked the process to end.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Limit => 4,
            Exit::Interrupted => 130,
        })
    }
}
