//! Exit codes of the program. The numbers are stable (see the README).

use std::process::ExitCode;

use crate::interrupts;

/// The end of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramExit {
    /// Done.
    Done,
    /// The turn, or the one call, failed; or the answer says that it was not done.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// A call was refused because there was no person to approve it, and no later call replaced it.
    Refused,
    /// A limit on time or tokens was reached, or a loop was detected.
    Limit,
    /// Someone pressed Ctrl-C, closed the terminal, or asked the process to end.
    Interrupted,
}

impl ProgramExit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Limit => 4,
            Self::Interrupted => interrupts::code(),
        }
    }

    /// Ends the process immediately.
    pub(crate) fn now(self) -> ! {
        std::process::exit(self.code().into())
    }
}

impl From<ProgramExit> for ExitCode {
    fn from(exit: ProgramExit) -> Self {
        Self::from(exit.code())
    }
}
