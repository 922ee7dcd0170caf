//! Builds the index of tools for searches, and the usage of tools in earlier calls.

use std::path::Path;

use jiff::Timestamp;
use windlass_record::{CallIndexError, Calls, DiskCache};
use windlass_runtime::{Card, Index, Usage};

use crate::StorageSettings;

/// Minimum number of tools for which the index is saved: a smaller one is built faster than a file
/// is written.
const MIN_SAVED_TOOLS: usize = 1000;

/// Returns the index of tools. A large one is cached below the home directory and reused for
/// unchanged tools. If the cache is damaged, it is built anew.
pub fn index(cards: &[Card], home: Option<&Path>) -> Index {
    let Some(home) = home.filter(|_| cards.len() >= MIN_SAVED_TOOLS) else { return Index::from_cards(cards) };
    let (cache, key) = (DiskCache::new(home, "tools"), Index::family_hash(cards));
    let known = cache.get(key).and_then(|bytes| Index::from_bytes(&bytes).ok()).unwrap_or_default();
    if known.matches_cards(cards) {
        return known;
    }
    let index = known.renewed(cards);
    if let Err(error) = cache.put(key, &index.to_bytes()) {
        tracing::debug!(%error, "the index of tools is not kept");
    }
    index
}

/// Returns the usage of tools in earlier calls: their reliability, and the requests they served.
pub fn usage(calls: &Calls) -> Result<Usage, CallIndexError> {
    let now = Timestamp::now();
    let mut usage = Usage::default();
    for standing in calls.tool_reliability(now)? {
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        usage.add(standing.tool.as_str(), standing.rate as f32, standing.age);
    }
    for asked in calls.requests(now)? {
        let tools = asked.tools.iter().map(ToString::to_string).collect();
        usage.add_request(&asked.request, tools, asked.age);
    }
    Ok(usage)
}

/// Returns the index and the usage. If the usage cannot be read, it is left empty.
pub(crate) fn catalogue(cards: &[Card], storage: Option<&StorageSettings>) -> (Index, Usage) {
    let calls = storage.filter(|storage| Calls::index_path(&storage.home).exists());
    let usage = calls
        .map_or_else(|| Ok(Usage::default()), |storage| usage(&Calls::open(&storage.home, storage.keep)?));
    let usage = usage.unwrap_or_else(|error| {
        tracing::warn!(%error, "tools are ranked without what became of earlier calls");
        Usage::default()
    });
    let mut index = index(cards, storage.map(|storage| storage.home.as_path()));
    index.remember(&usage);
    (index, usage)
}
