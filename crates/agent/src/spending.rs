//! Counts the tokens of a turn against its limit. Usage that a server does not report is estimated.

use windlass_contract::{Content, Item, ToolSpec, item::Body, model::Usage};

/// Approximate number of bytes per token.
const BYTES_PER_TOKEN: usize = 4;

/// Approximate cost of an image in bytes of text. Its size does not matter: servers scale it down.
const IMAGE_BYTES: usize = 1000 * BYTES_PER_TOKEN;

/// The tokens of a turn.
#[derive(Debug, Default)]
pub(crate) struct TokenSpending {
    limit: Option<u64>,
    reported: Usage,
    /// Tokens that count towards the limit: the reported ones, and estimates where none are
    /// reported.
    counted: u64,
    /// Bytes received of an answer whose cost is not reported yet: complete items, and pieces of
    /// others.
    items: usize,
    pieces: usize,
    /// Reported tokens of the last answer and its request.
    last_total: u64,
}

impl TokenSpending {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns the usage reported by servers.
    pub(crate) fn reported(&self) -> Usage {
        self.reported
    }

    /// Returns the reported tokens of the last answer and its request; 0 if none were reported.
    pub(crate) fn last_total(&self) -> u64 {
        self.last_total
    }

    /// Adds usage reported by a server.
    pub(crate) fn add(&mut self, usage: Usage) {
        self.reported += usage;
        self.counted = self.counted.saturating_add(usage.total());
    }

    /// Counts a piece of an item.
    pub(crate) fn add_piece(&mut self, text: &str) {
        self.pieces = self.pieces.saturating_add(text.len());
    }

    /// Counts a complete item. Its pieces, if any, were counted already; pieces of other items may
    /// be among them.
    pub(crate) fn add_item(&mut self, item: &Item) {
        let written = item_bytes(item);
        self.items = self.items.saturating_add(written);
        self.pieces = self.pieces.saturating_sub(written);
    }

    /// Counts a complete answer by the reported usage, or else by an estimate.
    pub(crate) fn complete_answer(&mut self, reported: Option<Usage>, sent: impl FnOnce() -> u64) {
        let arrived = self.arrived();
        (self.items, self.pieces) = (0, 0);
        if let Some(usage) = reported.filter(|usage| usage.total() > 0) {
            self.last_total = usage.total();
            self.add(usage);
        } else {
            self.counted = self.counted.saturating_add(arrived).saturating_add(sent());
        }
    }

    /// Counts the data received before a stream broke: it was paid for, although no usage is
    /// reported.
    pub(crate) fn count_broken_stream(&mut self) {
        self.complete_answer(None, || 0);
    }

    /// Returns true if no more requests are allowed.
    pub(crate) fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted >= limit)
    }

    /// Returns true if the answer that is arriving exceeds the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted.saturating_add(self.arrived()) > limit)
    }

    fn arrived(&self) -> u64 {
        tokens(self.items.saturating_add(self.pieces))
    }
}

/// Estimates the tokens of a request.
pub(crate) fn estimate_request<'a>(
    instructions: &str,
    history: impl Iterator<Item = &'a Item>,
    tools: &[ToolSpec],
) -> u64 {
    let bytes = history.map(item_bytes).fold(instructions.len(), usize::saturating_add);
    let told = tools.iter().map(ToolSpec::tokens).fold(0, usize::saturating_add);
    tokens(bytes).saturating_add(u64::try_from(told).unwrap_or(u64::MAX))
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX)
}

/// Returns the size of an item in bytes of text.
fn item_bytes(item: &Item) -> usize {
    let parts = |content: &[Content]| content.iter().map(content_bytes).sum();
    let lines = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
    match &item.body {
        Body::Message { content, .. } | Body::Output { content, .. } => parts(content),
        Body::Reasoning { summary, text } => lines(summary).max(lines(text)),
        Body::Call(call) => call.name.as_str().len() + call.input.as_str().len(),
        Body::WebSearch { query } => query.len(),
        Body::Other => 0,
    }
}

fn content_bytes(content: &Content) -> usize {
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
        let mut spending = TokenSpending::new(Some(100));
        spending.add_piece(&"x".repeat(300));
        spending.add_item(&Item::message(Role::Assistant, "x".repeat(300)));
        assert!(!spending.is_exceeded());
        let usage = Usage { input_tokens: 50, output_tokens: 49, ..Usage::default() };
        spending.complete_answer(Some(usage), || unreachable!("reported"));
        assert_eq!((spending.reported(), spending.is_used_up()), (usage, false));
        spending.add(Usage { output_tokens: 1, ..Usage::default() });
        assert!(spending.is_used_up());
    }

    #[test]
    fn what_nobody_reports_is_estimated_with_what_was_sent() {
        for nothing in [None, Some(Usage::default())] {
            let mut spending = TokenSpending::new(Some(100));
            spending.add_item(&Item::message(Role::Assistant, "x".repeat(40)));
            spending.complete_answer(nothing, || 89);
            assert!(!spending.is_used_up());
            spending.add_piece("wxyz");
            spending.count_broken_stream();
            assert!(spending.is_used_up());
            assert_eq!(spending.reported(), Usage::default(), "an estimate is not a report");
        }
    }

    #[test]
    fn calls_whose_pieces_come_before_all_of_them_are_counted_once() {
        let mut spending = TokenSpending::new(Some(100));
        let call = || {
            Item::from(Body::Call(ToolCall {
                id: "c".into(),
                name: "f".into(),
                input: Input::Json("x".repeat(199)),
            }))
        };
        spending.add_piece(&"x".repeat(398));
        for _ in 0..2 {
            spending.add_item(&call());
            assert!(!spending.is_exceeded());
        }
        spending.add_piece("wxyz");
        assert!(spending.is_exceeded());
    }

    #[test]
    fn an_answer_without_end_exceeds_the_limit_while_it_arrives() {
        let mut spending = TokenSpending::new(Some(100));
        spending.add_piece(&"x".repeat(403));
        assert!(!spending.is_exceeded());
        spending.add_piece("x");
        assert!(spending.is_exceeded());
        assert!(!TokenSpending::new(None).is_exceeded());
    }
}
