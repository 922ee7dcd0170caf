//! Whether a call did what was asked, judged from its status and facts. Prose is never read.

use windlass_contract::{Exit, Facts, Status, Verdict};

/// Judges a call.
pub(crate) fn judge(status: Status, facts: &Facts) -> Verdict {
    let reason = match (status, facts.exit()) {
        (Status::Success, _) => return Verdict { success: true, reasons: Vec::new() },
        (_, Some(Exit::Code(code))) => format!("the command ended with exit code {code}"),
        (_, Some(Exit::Signal(signal))) => format!("the command was ended by signal {signal}"),
        (_, Some(Exit::TimedOut)) => "the command's time was up".to_owned(),
        (_, Some(Exit::Cancelled)) => "the command was cancelled".to_owned(),
        (status, None) => format!("the call ended with status {}", status.name()),
    };
    Verdict { success: false, reasons: vec![reason] }
}
