//! Log lines about a call: one for the decision at each step, at `debug`, and one for its end, at
//! `info`. The line at `info` has no content of the call; those at `debug` may name programs and
//! paths.

use std::time::Duration;

use windlass_contract::{Denial, Outcome, ToolCall, grant::Held};
use windlass_shape::Failure;

use crate::{gate::CallAdmission, router::AcceptedCall};

/// The router has found a tool and read the arguments, or not.
pub(crate) fn routed(call: &ToolCall, accepted: &Result<AcceptedCall, Failure>) {
    match accepted {
        Ok(AcceptedCall { effects, repairs, .. }) => tracing::debug!(
            call.id = %call.id, tool.name = %call.name, may_change = effects.may_change(),
            repairs = repairs.join("; "), "call routed"
        ),
        Err(failure) => {
            tracing::debug!(call.id = %call.id, tool.name = %call.name, why = why(failure), "call not routed");
        }
    }
}

/// The policy, or a person, has decided. `class` is the policy's reading of a command.
pub(crate) fn decided(call: &ToolCall, class: Option<&str>, admitted: &Result<CallAdmission, Failure>) {
    match admitted {
        Ok(admission) => tracing::debug!(
            call.id = %call.id, tool.name = %call.name, class, decision = admission.decision,
            "call admitted"
        ),
        Err(failure) => tracing::debug!(
            call.id = %call.id, tool.name = %call.name, class, why = why(failure), "call refused"
        ),
    }
}

/// An attempt has ended, and this confinement was in force.
pub(crate) fn held(call: &ToolCall, held: &Held, decision: &str) {
    tracing::debug!(
        call.id = %call.id, tool.name = %call.name, sandbox = held.rung.name(), decision,
        "attempt ended"
    );
}

/// The sandbox has stopped a command, and someone may be asked about it.
pub(crate) fn stopped(call: &ToolCall, denials: &[Denial]) {
    for Denial { what, rule, .. } in denials {
        tracing::debug!(call.id = %call.id, tool.name = %call.name, what, rule, "the sandbox stopped it");
    }
}

/// The result is shaped and judged.
pub(crate) fn judged(call: &ToolCall, outcome: &Outcome) {
    if let Some(lines) = outcome.view.total_lines {
        tracing::debug!(call.id = %call.id, tool.name = %call.name, lines, "output cut for the model");
    }
    let verdict = &outcome.verdict;
    tracing::debug!(
        call.id = %call.id, tool.name = %call.name, success = verdict.success, confidence = verdict.confidence,
        points = verdict.marks.total(), reasons = verdict.reasons.join("; "), "call judged"
    );
}

/// A call is over.
pub(crate) fn ended(call: &ToolCall, outcome: &Outcome, duration: Duration) {
    tracing::info!(
        call.id = %call.id, tool.name = %call.name, status = outcome.status.name(),
        success = outcome.verdict.success, duration_ms = milliseconds(duration), "call ended"
    );
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn why(failure: &Failure) -> &str {
    match failure {
        Failure::NotFound(why)
        | Failure::Refused(why)
        | Failure::Aborted(why)
        | Failure::CutShort(why, _) => why,
        Failure::Tool(error) => &error.message,
    }
}
