//! Token counts, which come in parts: input with the first event, output with the last ones.

use serde::Deserialize;
use windlass_contract::model::Usage;

use crate::json::LenientField;

/// Counts as an event has them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireCounts {
    input_tokens: LenientField<u64>,
    cache_creation_input_tokens: LenientField<u64>,
    cache_read_input_tokens: LenientField<u64>,
    output_tokens: LenientField<u64>,
    output_tokens_details: LenientField<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: LenientField<u64>,
}

/// The counts of an answer so far. They are totals, and some servers send zeros with an event that
/// does not know them, so the largest one counts.
#[derive(Debug, Default)]
pub(super) struct AnswerUsage {
    is_known: bool,
    /// Input that neither was in the cache nor went there.
    input: u64,
    cache_writes: u64,
    cache_reads: u64,
    output: u64,
    thinking: u64,
}

impl AnswerUsage {
    pub(super) fn update(&mut self, counts: Option<WireCounts>) {
        let Some(counts) = counts else { return };
        self.is_known = true;
        let thinking = counts.output_tokens_details.0.and_then(|details| details.thinking_tokens.0);
        for (total, count) in [
            (&mut self.input, counts.input_tokens.0),
            (&mut self.cache_writes, counts.cache_creation_input_tokens.0),
            (&mut self.cache_reads, counts.cache_read_input_tokens.0),
            (&mut self.output, counts.output_tokens.0),
            (&mut self.thinking, thinking),
        ] {
            *total = (*total).max(count.unwrap_or(0));
        }
    }

    /// Returns the usage, in which the input includes the cache.
    pub(super) fn usage(&self) -> Option<Usage> {
        let input = self.input.saturating_add(self.cache_writes).saturating_add(self.cache_reads);
        self.is_known.then_some(Usage {
            input_tokens: input,
            cached_input_tokens: self.cache_reads,
            cache_write_input_tokens: self.cache_writes,
            output_tokens: self.output,
            reasoning_output_tokens: self.thinking,
        })
    }
}
