//! The conversation so far. It only grows at the end, except for compactions, and every call in it
//! is followed by exactly one output.

use std::sync::Arc;

use windlass_contract::{
    Clean, Item, Journal, Outcome, ToolCall,
    compaction::{CompactedHistory, OutputDigest, OutputDigests, WorkNotes},
    event::ContextParts,
    insight::Detail,
    item::{Body, Cached, Role},
    journal::{JournalError, Record},
};
use windlass_record::{OutputSubstitute, StoredOutputs};
use windlass_runtime::{FinishedCall, Secrets};

use crate::spending::item_tokens;

/// The name of the tool that changes the plan.
const PLAN_TOOL: &str = "update_plan";

/// The conversation, recorded as it grows. Only a compaction changes what is in it.
pub(crate) struct ConversationHistory {
    entries: Vec<Cached<Item>>,
    /// The number of entries before the first request of the user.
    opening_items: usize,
    /// Estimated tokens of the entries, by their part.
    parts: ContextParts,
    digests: OutputDigests,
    notes: WorkNotes,
    /// The place of outputs that a compaction takes out.
    stored: Option<StoredOutputs>,
    journal: Arc<dyn Journal>,
    /// Secrets that must not be recorded.
    secrets: Secrets,
}

/// The state of a recorded conversation.
#[derive(Default)]
pub(crate) struct RecordedHistory {
    pub(crate) items: Vec<Item>,
    pub(crate) opening_items: usize,
    pub(crate) digests: OutputDigests,
    pub(crate) notes: WorkNotes,
}

impl ConversationHistory {
    /// Resumes a recorded conversation. Reasoning without a following item is left out, because
    /// servers refuse it. It remains if the process was killed before the next item was recorded.
    pub(crate) fn new(recorded: RecordedHistory, journal: Arc<dyn Journal>, secrets: Secrets) -> Self {
        let RecordedHistory { items, opening_items, digests, notes } = recorded;
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
        let parts = ContextParts::default();
        let mut history = Self {
            entries: Vec::new(),
            opening_items,
            parts,
            digests,
            notes,
            stored: None,
            journal,
            secrets,
        };
        history.extend(items);
        history
    }

    /// Keeps outputs that a compaction takes out in this directory.
    pub(crate) fn with_stored_outputs(mut self, stored: Option<StoredOutputs>) -> Self {
        self.stored = stored;
        self
    }

    /// Records the first items of a conversation.
    pub(crate) fn open(&mut self, items: Vec<Item>) -> Result<(), JournalError> {
        if self.entries.is_empty() {
            self.opening_items = items.len();
        }
        items.into_iter().try_for_each(|item| self.push(item))
    }

    /// Returns the entries that the model is sent.
    pub(crate) fn entries(&self) -> &[Cached<Item>] {
        &self.entries
    }

    /// Records an item, then adds it.
    pub(crate) fn push(&mut self, item: Item) -> Result<(), JournalError> {
        self.journal.append(&Record::Item(self.secrets.clean_item(&item).as_deref()))?;
        self.extend([item]);
        Ok(())
    }

    /// Records a compaction, then replaces the conversation.
    pub(crate) fn replace(&mut self, compacted: CompactedHistory) -> Result<(), JournalError> {
        self.journal.append(&Record::Compacted(self.secrets.clean_compacted(&compacted).as_ref()))?;
        let CompactedHistory { history, opening_items, .. } = compacted;
        self.entries.clear();
        (self.opening_items, self.parts) = (opening_items, ContextParts::default());
        self.extend(history);
        let entries = &self.entries;
        self.digests.retain(|id, _| {
            entries.iter().any(|entry| matches!(&entry.get().body, Body::Output { call, .. } if call == id))
        });
        Ok(())
    }

    /// Notes which files a call read and changed, the plan, and the line that can stand for its
    /// output.
    pub(crate) fn note(&mut self, done: &FinishedCall) {
        let FinishedCall { call, arguments, effects, outcome } = done;
        let file = outcome.insight.as_ref().and_then(|insight| match &insight.detail {
            Detail::File(file) => Some(file),
            Detail::Command(_) | Detail::Search(_) => None,
        });
        let summary = outcome.insight.as_ref().map(|insight| insight.summary.as_str());
        let digest = OutputDigest { is_file: file.is_some(), ..OutputDigest::new(outcome, summary) };
        self.digests.insert(call.id.clone(), digest);
        if !outcome.verdict.success {
            return;
        }
        if let Some(file) = file {
            self.notes.file_read(&file.path);
        }
        effects.writes.iter().for_each(|path| self.notes.file_changed(path));
        if call.name.as_str() == PLAN_TOOL
            && let Some(plan) = arguments.as_ref().and_then(|plan| serde_json::from_value(plan.clone()).ok())
        {
            self.notes.plan = Some(plan);
        }
    }

    /// Returns the number of entries before the first request of the user.
    pub(crate) fn opening_items(&self) -> usize {
        self.opening_items
    }

    /// Returns the estimated tokens of all entries.
    pub(crate) fn tokens(&self) -> u64 {
        self.parts.total()
    }

    /// Returns the estimated tokens of the entries, by their part.
    pub(crate) fn parts(&self) -> &ContextParts {
        &self.parts
    }

    pub(crate) fn digests(&self) -> &OutputDigests {
        &self.digests
    }

    pub(crate) fn notes(&self) -> &WorkNotes {
        &self.notes
    }

    pub(crate) fn stored_outputs(&self) -> Option<&StoredOutputs> {
        self.stored.as_ref()
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    fn extend(&mut self, items: impl IntoIterator<Item = Item>) {
        for item in items {
            let tokens = item_tokens(&item);
            let part = match &item.body {
                _ if self.entries.len() < self.opening_items => &mut self.parts.instructions,
                Body::Output { call, .. } if self.digests.get(call).is_some_and(|digest| digest.is_file) => {
                    &mut self.parts.files
                }
                Body::Output { .. } => &mut self.parts.outputs,
                _ => &mut self.parts.conversation,
            };
            *part = part.saturating_add(tokens);
            self.entries.push(item.into());
        }
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
        let outputs = done.map(|(call, outcome)| {
            let (content, failed) = (outcome.for_model(), !outcome.verdict.success);
            let (call, input) = (call.id.clone(), call.input.kind());
            Body::Output { call, input, content, failed }.into()
        });
        self.extend(outputs.collect::<Vec<_>>());
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
        let recorded = RecordedHistory { items, ..RecordedHistory::default() };
        let history =
            ConversationHistory::new(recorded, Arc::new(MemoryJournal::default()), Secrets::default());
        let thoughts = history.entries().iter().filter_map(|entry| match &entry.get().body {
            Body::Reasoning { summary, .. } => Some(summary.join("")),
            _ => None,
        });
        assert_eq!(thoughts.collect::<Vec<_>>(), ["kept"]);
    }
}
