//! Whether a call did what was asked, judged from its status and facts. Prose is never read.

use windlass_contract::{Exit, Facts, Status, Verdict};

/// Judges a call.
pub(crate) fn judge(status: Status, facts: &Facts) -> Verdict {
    let reason = match (status, facts) {
        (Status::Success, _) => return Verdict { success: true, reasons: Vec::new() },
        (_, Facts::Command(command)) => match command.exit {
            Exit::Code(code) => format!("the command ended with exit code {code}"),
            Exit::Signal(signal) => format!("the command was ended by signal {signal}"),
            Exit::TimedOut => "the command's time was up".to_owned(),
            Exit::Cancelled => "the command was cancelled".to_owned(),
        },
        (status, Facts::None) => format!("the call ended with status {}", status.name()),
    };
    Verdict { success: false, reasons: vec![reason] }
}
