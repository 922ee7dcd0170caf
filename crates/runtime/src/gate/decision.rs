//! The decision of the gate about a call.

use windlass_contract::grant::{Confinement, DirectProgram};

/// The policy's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GateDecision {
    Run {
        confinement: Confinement,
        why: String,
    },
    /// One program runs outside of the sandbox, as a rule allows.
    Leave {
        program: DirectProgram,
        why: String,
    },
    Ask {
        confinement: Confinement,
        reason: String,
        unclear: Vec<String>,
    },
    Refuse {
        reason: String,
    },
}

impl GateDecision {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Leave { .. } => "leave",
            Self::Ask { .. } => "ask",
            Self::Refuse { .. } => "refuse",
        }
    }

    pub(super) fn why(&self) -> &str {
        match self {
            Self::Run { why: reason, .. }
            | Self::Leave { why: reason, .. }
            | Self::Ask { reason, .. }
            | Self::Refuse { reason } => reason,
        }
    }

    /// Tells the model why its change is refused in plan mode.
    pub(super) fn in_plan_mode(self) -> Self {
        match self {
            Self::Refuse { .. } => Self::plan_mode_refusal(),
            other => other,
        }
    }

    pub(super) fn plan_mode_refusal() -> Self {
        let reason = "refused: plan mode is on; nothing is changed before the user approves the plan";
        Self::Refuse { reason: reason.to_owned() }
    }

    /// Turns the decision into a question with one more reason, unless it is a refusal.
    pub(super) fn asked(self, why: &str) -> Self {
        match self {
            Self::Run { confinement, .. } => {
                Self::Ask { confinement, reason: why.to_owned(), unclear: Vec::new() }
            }
            Self::Leave { .. } => Self::Ask {
                confinement: Confinement::Unconfined,
                reason: why.to_owned(),
                unclear: Vec::new(),
            },
            Self::Ask { confinement, reason, unclear } => {
                Self::Ask { confinement, reason: format!("{reason}; {why}"), unclear }
            }
            Self::Refuse { .. } => self,
        }
    }
}
