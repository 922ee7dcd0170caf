//! Which calls nobody allowed, and whether it mattered in the end.

use windlass_contract::{Outcome, Refusal, ToolCall};

/// The refusals of a turn.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Vec<Refusal>);

impl Refusals {
    /// Takes note of how a call ended. A later call of the same tool that succeeds makes up for a refused one: the
    /// model found a way that was allowed.
    pub(crate) fn note(&mut self, call: &ToolCall, outcome: &Outcome) {
        if let Some(reason) = &outcome.receipt.refusal {
            let (call, tool) = (call.id.clone(), call.name.clone());
            self.0.push(Refusal { call, tool, reason: reason.clone(), made_up_for: false });
        } else if outcome.verdict.success {
            self.0
                .iter_mut()
                .filter(|refusal| refusal.tool == call.name)
                .for_each(|refusal| refusal.made_up_for = true);
        }
    }

    pub(crate) fn list(&self) -> Vec<Refusal> {
        self.0.clone()
    }
}
