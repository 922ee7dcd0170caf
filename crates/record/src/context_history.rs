//! The sizes of requests in a session file, read without rebuilding the session.

use std::{io::BufReader, path::Path};

use serde::Deserialize;
use windlass_contract::{
    compaction::{CompactionMethod, CompactionReason},
    event::ContextParts,
    model::Usage,
};

use crate::{
    SessionError,
    error::cannot,
    journal::READ_BYTES,
    session_line::{LineEnvelope, LineRead, LineReader},
    session_paths,
};

/// Share of the tokens of the request before, in per cent, that must come from the cache. The cache
/// of a server ends at a block, so a part is always read again.
const CACHE_HIT_PERCENT: u64 = 50;

/// The use of the context window of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextHistory {
    /// Tokens of the last request with its answer.
    pub tokens: u64,
    /// The context window, if it is known.
    pub window: Option<u64>,
    /// Estimated tokens of the last request by their part.
    pub parts: ContextParts,
    /// Number of answered requests.
    pub requests: u64,
    /// Tokens of all of them, as far as servers reported them.
    pub usage: Usage,
    /// Number of requests that should have found the one before in the cache of the server, and did
    /// not. A request after a compaction is not one of them.
    pub cache_misses: u64,
    /// The compactions.
    pub compactions: Vec<CompactionSummary>,
}

/// A compaction without its history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
pub struct CompactionSummary {
    /// The reason for it.
    pub reason: CompactionReason,
    /// The way it was done.
    pub method: CompactionMethod,
    /// Estimated tokens of a request before it.
    pub tokens_before: u64,
    /// Estimated tokens of a request after it.
    pub tokens_after: u64,
}

/// The events that are read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
enum ContextEvent {
    ContextUsed {
        tokens: u64,
        #[serde(default)]
        window: Option<u64>,
        #[serde(default)]
        usage: Option<Usage>,
        parts: ContextParts,
    },
}

/// Reads what filled the context window of a session.
pub fn context_of(path: &Path) -> Result<ContextHistory, SessionError> {
    let file = session_paths::open_to_read(path)?;
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BYTES, file));
    let (mut context, mut cacheable) = (ContextHistory::default(), 0);
    while let LineRead::Whole(line) = lines.next().map_err(cannot("read", path))? {
        let Ok(line) = LineEnvelope::parse(line) else { continue };
        match line.kind.as_ref() {
            "event" => {
                if let Ok(event) = line.parse_payload() {
                    context.add(event, &mut cacheable);
                }
            }
            "compacted" => {
                if let Ok(compaction) = line.parse_payload::<CompactionSummary>() {
                    (context.tokens, cacheable) = (compaction.tokens_after, 0);
                    context.compactions.push(compaction);
                }
            }
            _ => {}
        }
    }
    Ok(context)
}

impl ContextHistory {
    /// Adds a request. `cacheable` are the tokens that the server may have in its cache.
    fn add(&mut self, event: ContextEvent, cacheable: &mut u64) {
        let ContextEvent::ContextUsed { tokens, window, usage, parts } = event;
        (self.tokens, self.window, self.parts) = (tokens, window, parts);
        self.requests += 1;
        let Some(usage) = usage else { return };
        self.usage += usage;
        // A server that has never reported a cached token may have no cache.
        let has_cache = self.usage.cached_input_tokens > 0;
        if has_cache && usage.cached_input_tokens < cacheable.saturating_mul(CACHE_HIT_PERCENT) / 100 {
            self.cache_misses += 1;
        }
        *cacheable = usage.input_tokens;
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Event, Journal,
        compaction::{CompactedHistory, WorkNotes},
        journal::{Record, SessionMeta},
    };
    use windlass_fakes::clean;

    use super::*;
    use crate::{SessionFile, new_thread_id};

    #[test]
    fn the_last_request_its_parts_and_the_cache_are_counted() {
        let home = tempfile::tempdir().unwrap();
        let (cwd, version, instructions) = ("/w".into(), "0".into(), String::new());
        let meta = SessionMeta { id: new_thread_id(), cwd, version, instructions, parent: None };
        let file = SessionFile::create(home.path(), &meta).unwrap();
        let parts = ContextParts { outputs: 7, ..ContextParts::default() };
        let used = |input_tokens, cached_input_tokens| Event::ContextUsed {
            tokens: input_tokens,
            window: Some(8000),
            usage: Some(Usage { input_tokens, cached_input_tokens, ..Usage::default() }),
            parts: Box::new(parts.clone()),
        };
        let record = |event: Event| file.append(&Record::Event(clean(&event))).unwrap();
        [used(2000, 0), used(3000, 1900), used(4000, 100)].into_iter().for_each(record);
        let compacted = CompactedHistory {
            reason: CompactionReason::Window,
            method: CompactionMethod::Rules,
            tokens_before: 4000,
            tokens_after: 1000,
            history: Vec::new(),
            opening_items: 0,
            notes: WorkNotes::default(),
            tools: Vec::new(),
        };
        file.append(&Record::Compacted(clean(&compacted))).unwrap();
        record(used(1100, 0));
        let context = context_of(file.path()).unwrap();
        assert_eq!((context.tokens, context.window, context.requests), (1100, Some(8000), 4));
        assert_eq!((context.usage.cached_input_tokens, context.cache_misses), (2000, 1));
        assert_eq!((context.parts, context.compactions.len()), (parts, 1));
    }
}
