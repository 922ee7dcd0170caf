//! What tools are found with: the index of them, and what became of earlier calls.

use std::path::Path;

use jiff::Timestamp;
use windlass_record::{CallIndexError, Calls, DiskCache, Keep};
use windlass_runtime::{Card, Index, Usage};

/// From so many tools on their index is saved: fewer are read faster than a file is written.
const WORTH_SAVING: usize = 1000;

/// The index of tools. If there are many, it is kept below the home directory and taken up again, as far as the tools are still
/// the same; whatever is wrong with what was kept, it is made anew.
pub fn index(cards: &[Card], home: Option<&Path>) -> Index {
    let Some(home) = home.filter(|_| cards.len() >= WORTH_SAVING) else { return Index::from_cards(cards) };
    let (shelf, key) = (DiskCache::new(home, "tools"), Index::family_hash(cards));
    let known = shelf.get(key).and_then(|bytes| Index::from_bytes(&bytes).ok()).unwrap_or_default();
    if known.matches_cards(cards) {
        return known;
    }
    let index = known.renewed(cards);
    if let Err(error) = shelf.put(key, &index.to_bytes()) {
        tracing::debug!(%error, "the index of tools is not kept");
    }
    index
}

/// What became of earlier calls: how tools stand, and which requests they were the answer to.
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

/// Both, as far as it is known what became of earlier calls: finding tools goes on without.
pub(crate) fn catalogue(cards: &[Card], home: Option<&Path>, keep: Keep) -> (Index, Usage) {
    let calls = home.filter(|home| Calls::index_path(home).exists());
    let usage = calls.map_or_else(|| Ok(Usage::default()), |home| usage(&Calls::open(home, keep)?));
    let usage = usage.unwrap_or_else(|error| {
        tracing::warn!(%error, "tools are ranked without what became of earlier calls");
        Usage::default()
    });
    let mut index = index(cards, home);
    index.remember(&usage);
    (index, usage)
}
