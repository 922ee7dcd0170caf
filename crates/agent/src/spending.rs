//! What a turn has cost in tokens, and whether that is too much. What a server does not report is estimated.

use windlass_contract::{Content, Item, ToolSpec, item::Body, model::Usage};

/// About how many bytes make a token.
const BYTES_PER_TOKEN: usize = 4;

/// What an image costs about, in bytes of text. It is not its size that counts: servers scale it down.
const IMAGE_BYTES: usize = 1000 * BYTES_PER_TOKEN;

/// The tokens of a turn.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    limit: Option<u64>,
    reported: Usage,
    /// What counts towards the limit: what was reported, and what was estimated where nothing was.
    counted: u64,
    /// What has arrived of an answer whose cost nobody has told yet, in bytes: complete items, and pieces of others.
    items: usize,
    pieces: usize,
    /// What the last answer that a server has reported on cost, with its request.
    last_total: u64,
}

impl Spending {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// What servers have reported.
    pub(crate) fn reported(&self) -> Usage {
        self.reported
    }

    /// How many tokens the last answer and its request had, as its server counts; 0 if it has not said.
    pub(crate) fn last_total(&self) -> u64 {
        self.last_total
    }

    /// Adds what a server has reported.
    pub(crate) fn add(&mut self, usage: Usage) {
        self.reported += usage;
        self.counted = self.counted.saturating_add(usage.total());
    }

    /// A piece of an item has arrived.
    pub(crate) fn piece(&mut self, text: &str) {
        self.pieces = self.pieces.saturating_add(text.len());
    }

    /// An item is complete. Its pieces were counted already, if it came in pieces; those of others may have come too.
    pub(crate) fn item(&mut self, item: &Item) {
        let written = written(item);
        self.items = self.items.saturating_add(written);
        self.pieces = self.pieces.saturating_sub(written);
    }

    /// An answer is complete, and so is its cost if the server has told it.
    pub(crate) fn completed(&mut self, reported: Option<Usage>, sent: impl FnOnce() -> u64) {
        let arrived = self.arrived();
        (self.items, self.pieces) = (0, 0);
        if let Some(usage) = reported.filter(|usage| usage.total() > 0) {
            self.last_total = usage.total();
            self.add(usage);
        } else {
            self.counted = self.counted.saturating_add(arrived).saturating_add(sent());
        }
    }

    /// Another try: what arrived before the stream broke was paid for, although nobody says how much.
    pub(crate) fn broke_off(&mut self) {
        self.completed(None, || 0);
    }

    /// Whether nothing more may be asked for.
    pub(crate) fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted >= limit)
    }

    /// Whether the answer that is arriving goes beyond the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted.saturating_add(self.arrived()) > limit)
    }

    fn arrived(&self) -> u64 {
        tokens(self.items.saturating_add(self.pieces))
    }
}

/// About how many tokens a request costs.
pub(crate) fn sent<'a>(
    instructions: &str,
    history: impl Iterator<Item = &'a Item>,
    tools: &[ToolSpec],
) -> u64 {
    let bytes = history.map(written).fold(instructions.len(), usize::saturating_add);
    let told = tools.iter().map(ToolSpec::tokens).fold(0, usize::saturating_add);
    tokens(bytes).saturating_add(u64::try_from(told).unwrap_or(u64::MAX))
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX)
}

/// How many bytes of text an item is.
fn written(item: &Item) -> usize {
    let parts = |content: &[Content]| content.iter().map(part).sum();
    let lines = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
    match &item.body {
        Body::Message { content, .. } | Body::Output { content, .. } => parts(content),
        Body::Reasoning { summary, text } => lines(summary).max(lines(text)),
        Body::Call(call) => call.name.as_str().len() + call.input.as_str().len(),
        Body::WebSearch { query } => query.len(),
        Body::Other => 0,
    }
}

fn part(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image(_) => IMAGE_BYTES,
        Content::Tool(tool) => tool.tokens() * BYTES_PER_TOKEN,
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Input, ToolCall, item::Role};

    use super::*;

    #[test]
    fn what_is_reported_counts_and_nothing_is_counted_twice() {
        let mut spending = Spending::new(Some(100));
        spending.piece(&"x".repeat(300));
        spending.item(&Item::message(Role::Assistant, "x".repeat(300)));
        assert!(!spending.is_exceeded());
        let usage = Usage { input_tokens: 50, output_tokens: 49, ..Usage::default() };
        spending.completed(Some(usage), || unreachable!("reported"));
        assert_eq!((spending.reported(), spending.is_used_up()), (usage, false));
        spending.add(Usage { output_tokens: 1, ..Usage::default() });
        assert!(spending.is_used_up());
    }

    #[test]
    fn what_nobody_reports_is_estimated_with_what_was_sent() {
        for nothing in [None, Some(Usage::default())] {
            let mut spending = Spending::new(Some(100));
            spending.item(&Item::message(Role::Assistant, "x".repeat(40)));
            spending.completed(nothing, || 89);
            assert!(!spending.is_used_up());
            spending.piece("wxyz");
            spending.broke_off();
            assert!(spending.is_used_up());
            assert_eq!(spending.reported(), Usage::default(), "an estimate is not a report");
        }
    }

    #[test]
    fn calls_whose_pieces_come_before_all_of_them_are_counted_once() {
        let mut spending = Spending::new(Some(100));
        let call = || {
            Item::from(Body::Call(ToolCall {
                id: "c".into(),
                name: "f".into(),
                input: Input::Json("x".repeat(199)),
            }))
        };
        spending.piece(&"x".repeat(398));
        for _ in 0..2 {
            spending.item(&call());
            assert!(!spending.is_exceeded());
        }
        spending.piece("wxyz");
        assert!(spending.is_exceeded());
    }

    #[test]
    fn an_answer_without_end_exceeds_the_limit_while_it_arrives() {
        let mut spending = Spending::new(Some(100));
        spending.piece(&"x".repeat(403));
        assert!(!spending.is_exceeded());
        spending.piece("x");
        assert!(spending.is_exceeded());
        assert!(!Spending::new(None).is_exceeded());
    }
}
