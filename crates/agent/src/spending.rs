//! Counts the tokens of a turn against its limit. Usage that a server does not report is estimated.

use windlass_contract::{Item, model::Usage};
use windlass_runtime::Reason;
use windlass_tokens::quarter_tokens;

use crate::{
    ModelPrices, SessionBudget,
    token_counter::{IMAGE_TOKENS, ITEM_TOKENS, ItemPart, for_each_part},
};

/// The tokens of a turn.
#[derive(Debug, Default)]
pub(crate) struct TokenSpending {
    limit: Option<u64>,
    /// The budget of the session, which all tokens count towards, and their prices.
    budget: SessionBudget,
    prices: Option<ModelPrices>,
    reported: Usage,
    /// Tokens that count towards the limit: the reported ones, and estimates where none are
    /// reported.
    counted: u64,
    /// Estimated quarters of tokens of an answer whose cost is not reported yet: complete items,
    /// and pieces of others.
    items: u64,
    pieces: u64,
}

impl TokenSpending {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Spends a budget, at these prices.
    pub(crate) fn with_budget(mut self, budget: SessionBudget, prices: Option<ModelPrices>) -> Self {
        (self.budget, self.prices) = (budget, prices);
        self
    }

    /// Returns the budget of the session.
    pub(crate) fn budget(&self) -> &SessionBudget {
        &self.budget
    }

    /// Returns the usage reported by servers.
    pub(crate) fn reported(&self) -> Usage {
        self.reported
    }

    /// Adds usage reported by a server.
    pub(crate) fn add(&mut self, usage: Usage) {
        self.reported += usage;
        self.count(&usage);
    }

    /// Adds usage of agents that this one has started. They have spent it from the budget.
    pub(crate) fn add_of_agents(&mut self, usage: Usage) {
        self.reported += usage;
        self.counted = self.counted.saturating_add(usage.total());
    }

    fn count(&mut self, usage: &Usage) {
        self.counted = self.counted.saturating_add(usage.total());
        if usage.total() > 0 {
            self.budget.add_usage(usage, self.prices.as_ref());
        }
    }

    /// Counts a piece of an item.
    pub(crate) fn add_piece(&mut self, text: &str) {
        self.pieces = self.pieces.saturating_add(quarter_tokens(text));
    }

    /// Counts a complete item. Its pieces, if any, were counted already; pieces of other items may
    /// be among them.
    pub(crate) fn add_item(&mut self, item: &Item) {
        let written = item_quarters(item);
        self.items = self.items.saturating_add(written);
        self.pieces = self.pieces.saturating_sub(written);
    }

    /// Counts a complete answer by the reported usage, or else by an estimate.
    pub(crate) fn complete_answer(&mut self, reported: Option<Usage>, sent: impl FnOnce() -> u64) {
        let arrived = self.arrived();
        (self.items, self.pieces) = (0, 0);
        match reported {
            Some(usage) => self.add(usage),
            None => {
                self.count(&Usage { input_tokens: sent(), output_tokens: arrived, ..Usage::default() });
            }
        }
    }

    /// Counts the data received before a stream broke: it was paid for, although no usage is
    /// reported.
    pub(crate) fn count_broken_stream(&mut self) {
        self.complete_answer(None, || 0);
    }

    /// Returns true if no more requests are allowed.
    fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted >= limit)
    }

    /// Returns true if the answer that is arriving exceeds the limit.
    fn is_exceeded(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted.saturating_add(self.arrived()) > limit)
    }

    /// Returns the limit that allows no more requests, if one is reached.
    pub(crate) fn reached(&self) -> Option<Reason> {
        if self.is_used_up() { Some(Reason::TokenLimit) } else { self.budget.reached() }
    }

    /// Returns the limit that the arriving answer exceeds, if it does.
    pub(crate) fn exceeded(&self) -> Option<Reason> {
        if self.is_exceeded() {
            return Some(Reason::TokenLimit);
        }
        self.budget.is_exceeded_by(self.arrived()).then_some(Reason::TokenBudget)
    }

    fn arrived(&self) -> u64 {
        self.items.saturating_add(self.pieces) / 4
    }
}

/// Estimates the tokens of an item in a request.
pub(crate) fn item_tokens(item: &Item) -> u64 {
    item_quarters(item) / 4 + ITEM_TOKENS
}

/// Estimates the tokens of a text.
pub(crate) fn text_tokens(text: &str) -> u64 {
    quarter_tokens(text) / 4
}

/// Estimates an item in quarters of tokens, in time for every piece of a stream.
fn item_quarters(item: &Item) -> u64 {
    let mut quarters = 0;
    for_each_part(item, |part| {
        quarters += match part {
            ItemPart::Text(text) => quarter_tokens(text),
            ItemPart::Image => IMAGE_TOKENS * 4,
            ItemPart::Tool(spec) => spec.tokens() as u64 * 4,
        }
    });
    quarters
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Input, ToolCall,
        item::{Body, Role},
    };

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
        let mut spending = TokenSpending::new(Some(100));
        spending.add_item(&Item::message(Role::Assistant, "x".repeat(40)));
        spending.complete_answer(None, || 89);
        assert!(!spending.is_used_up());
        spending.add_piece("wxyz");
        spending.count_broken_stream();
        assert!(spending.is_used_up());
        assert_eq!(spending.reported(), Usage::default(), "an estimate is not a report");
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
