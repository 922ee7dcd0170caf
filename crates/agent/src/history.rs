//! The conversation so far. It only grows at the end, and every call in it is followed by exactly
//! one output.

use std::sync::Arc;

use windlass_contract::{
    Clean, Item, Journal, Outcome, ToolCall,
    item::{Body, Cached, Role},
    journal::{JournalError, Record},
};
use windlass_record::OutputSubstitute;
use windlass_runtime::Secrets;

/// The conversation, recorded as it grows.
pub(crate) struct ConversationHistory {
    entries: Vec<Cached<Item>>,
    journal: Arc<dyn Journal>,
    /// Secrets that must not be recorded.
    secrets: Secrets,
}

impl ConversationHistory {
    /// Resumes a recorded conversation. Reasoning without a following item is left out, because
    /// servers refuse it. It remains if the process was killed before the next item was recorded.
    pub(crate) fn new(items: Vec<Item>, journal: Arc<dyn Journal>, secrets: Secrets) -> Self {
        let mut loose = true;
        let kept = items.into_iter().rev().filter(|item| match item.body {
            Body::Reasoning { .. } => !loose,
            ref other => {
                loose = matches!(other, Body::Message { role: Role::User, .. });
                true
            }
        });
        let mut items: Vec<_> = kept.collect();
        items.reverse();
        Self { entries: items.into_iter().map(Cached::new).collect(), journal, secrets }
    }

    /// Returns the entries that the model is sent.
    pub(crate) fn entries(&self) -> &[Cached<Item>] {
        &self.entries
    }

    /// Records an item, then adds it.
    pub(crate) fn push(&mut self, item: Item) -> Result<(), JournalError> {
        self.journal.append(&Record::Item(self.secrets.clean_item(&item).as_deref()))?;
        self.entries.push(item.into());
        Ok(())
    }

    /// Gives every call without an output one that says its result is unknown. There is one only if
    /// a turn was dropped while its calls were running.
    pub(crate) fn close_open_calls(&mut self) -> Result<(), JournalError> {
        let mut open: Vec<ToolCall> = Vec::new();
        for entry in &self.entries {
            match &entry.get().body {
                Body::Call(call) => open.push(call.clone()),
                Body::Output { call, .. } => open.retain(|each| each.id != *call),
                _ => {}
            }
        }
        let Some(outcome) = OutputSubstitute::Unknown.outcome() else { return Ok(()) };
        let settled: Vec<_> = open.into_iter().map(|call| (call, outcome.clone())).collect();
        for (call, outcome) in &settled {
            self.journal.append(&Record::Outcome { call: &call.id, outcome: outcome.as_ref() })?;
        }
        self.push_outputs(settled.iter().map(|(call, outcome)| (call, outcome)))
    }

    /// Adds the outputs of calls, in call order. Their content is recorded already, with their
    /// outcomes.
    pub(crate) fn push_outputs<'a>(
        &mut self,
        done: impl Iterator<Item = (&'a ToolCall, &'a Clean<Outcome>)> + Clone,
    ) -> Result<(), JournalError> {
        let calls: Vec<_> = done.clone().map(|(call, _)| call.id.clone()).collect();
        if calls.is_empty() {
            return Ok(());
        }
        self.journal.append(&Record::Outputs { calls: &calls })?;
        self.entries.extend(done.map(|(call, outcome)| {
            let (content, failed) = (outcome.for_model(), !outcome.verdict.success);
            let (call, input) = (call.id.clone(), call.input.kind());
            Cached::new(Body::Output { call, input, content, failed }.into())
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windlass_fakes::MemoryJournal;

    use super::*;

    #[test]
    fn thoughts_that_led_to_nothing_are_left_out_of_a_resumed_conversation() {
        let thought =
            |text: &str| Item::from(Body::Reasoning { summary: vec![text.into()], text: Vec::new() });
        let items = vec![
            thought("kept"),
            Item::message(Role::Assistant, "hi"),
            thought("loose"),
            Item::message(Role::User, "again"),
            thought("loose"),
            thought("loose"),
        ];
        let history = ConversationHistory::new(items, Arc::new(MemoryJournal::default()), Secrets::default());
        let thoughts = history.entries().iter().filter_map(|entry| match &entry.get().body {
            Body::Reasoning { summary, .. } => Some(summary.join("")),
            _ => None,
        });
        assert_eq!(thoughts.collect::<Vec<_>>(), ["kept"]);
    }
}
