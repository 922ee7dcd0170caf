//! What tools are found with: the index of them, and what became of earlier calls.

use std::path::Path;

use jiff::Timestamp;
use windlass_record::{Calls, CallsError, Keep};
use windlass_runtime::{Card, Index, Usage};

/// What became of earlier calls: how tools stand, and which requests they were the answer to.
pub fn usage(calls: &Calls) -> Result<Usage, CallsError> {
    let now = Timestamp::now();
    let mut usage = Usage::default();
    for standing in calls.standings(now)? {
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        usage.add(standing.tool.as_str(), standing.rate as f32, standing.age);
    }
    for asked in calls.requests(now)? {
        let tools = asked.tools.iter().map(ToString::to_string).collect();
        usage.answered(&asked.request, tools, asked.age);
    }
    Ok(usage)
}

/// The index of tools, with what became of earlier calls as far as that is known: finding tools goes on without.
pub(crate) fn index(cards: &[Card], home: Option<&Path>, keep: Keep) -> (Index, Usage) {
    let home = home.filter(|home| Calls::place(home).exists());
    let usage = home.map_or_else(|| Ok(Usage::default()), |home| usage(&Calls::open(home, keep)?));
    let usage = usage.unwrap_or_else(|error| {
        tracing::warn!(%error, "tools are ranked without what became of earlier calls");
        Usage::default()
    });
    let mut index = Index::of(cards);
    index.remember(&usage);
    (index, usage)
}
