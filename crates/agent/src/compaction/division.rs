//! Divides a history into its opening, a head that a summary replaces, and a tail that stays.

use windlass_contract::{
    Content, Item,
    item::{Body, Role},
    program_message::{ENVIRONMENT_START, SUMMARY_START, is_of_program},
};

use crate::spending::item_tokens;

/// A history in three parts.
#[derive(Debug)]
pub(super) struct HistoryDivision<'a> {
    /// The items before the first request of the user, with the last message about the environment.
    pub(super) opening: Vec<&'a Item>,
    /// The items that a summary replaces.
    pub(super) head: &'a [Item],
    /// The items that stay as they are. Every call in them has its output in them.
    pub(super) tail: &'a [Item],
}

impl<'a> HistoryDivision<'a> {
    /// Divides a history. The tail has at most `tail_tokens`, except that the messages of the user
    /// at the end always stay.
    pub(super) fn new(history: &'a [Item], opening_items: usize, tail_tokens: u64) -> Self {
        let (opening, rest) = history.split_at(opening_items.min(history.len()));
        let (head, tail) = rest.split_at(tail_start(rest, tail_tokens));
        let last_environment = head.iter().rev().find(|item| starts_with(item, ENVIRONMENT_START));
        let opening = opening.iter().map(|item| match last_environment {
            Some(last) if starts_with(item, ENVIRONMENT_START) => last,
            _ => item,
        });
        Self { opening: opening.collect(), head, tail }
    }

    /// Returns the messages of the user in the head.
    pub(super) fn user_messages(&self) -> impl DoubleEndedIterator<Item = &'a Item> {
        self.head.iter().filter(|item| is_of_user(item))
    }

    /// Returns the earlier summary in the head.
    pub(super) fn earlier_summary(&self) -> Option<String> {
        let summary = self.head.iter().rev().find(|item| starts_with(item, SUMMARY_START))?;
        Some(message_text(summary))
    }
}

/// Returns true for a message that a person wrote.
pub(super) fn is_of_user(item: &Item) -> bool {
    match &item.body {
        Body::Message { role: Role::User, content } => !is_of_program(&Content::join(content)),
        _ => false,
    }
}

/// Returns the text of a message.
pub(super) fn message_text(item: &Item) -> String {
    match &item.body {
        Body::Message { content, .. } => Content::join(content),
        _ => String::new(),
    }
}

fn starts_with(item: &Item, tag: &str) -> bool {
    matches!(&item.body, Body::Message { role: Role::User, .. }) && message_text(item).starts_with(tag)
}

/// Returns the index at which the tail begins: the earliest boundary from which everything fits.
fn tail_start(items: &[Item], tail_tokens: u64) -> usize {
    let unanswered = items.iter().rev().take_while(|item| is_of_user(item)).count();
    let mut start = items.len() - unanswered;
    let mut tokens = 0_u64;
    for at in (0..start).rev() {
        // A large output is cut in the tail.
        let most = if matches!(items[at].body, Body::Output { .. }) { tail_tokens / 2 } else { u64::MAX };
        tokens = tokens.saturating_add(item_tokens(&items[at]).min(most));
        if tokens > tail_tokens {
            break;
        }
        if is_boundary(items, at) {
            start = at;
        }
    }
    start
}

/// Returns true if the history can be cut before this item: all calls before it have their
/// outputs, and reasoning is not separated from what it led to.
fn is_boundary(items: &[Item], at: usize) -> bool {
    let is_message = |item: &Item| matches!(item.body, Body::Message { role: Role::User, .. });
    let is_output = |item: &Item| matches!(item.body, Body::Output { .. });
    match items.get(at) {
        Some(item) if is_output(item) => false,
        Some(item) if is_message(item) => !starts_with(item, SUMMARY_START),
        Some(_) => at > 0 && (is_message(&items[at - 1]) || is_output(&items[at - 1])),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{assistant, call, output, user};

    #[test]
    fn the_tail_is_cut_where_all_calls_have_their_outputs() {
        let history = [
            user("<environment_context>"),
            user("first"),
            call("a"),
            call("b"),
            output("a", &"x".repeat(4000)),
            output("b", "short"),
            assistant("thinking about it"),
            call("c"),
            output("c", "short"),
        ];
        let divided = |tokens| {
            let division = HistoryDivision::new(&history, 1, tokens);
            (division.opening.len(), division.head.len(), division.tail.len())
        };
        assert_eq!(divided(40), (1, 5, 3));
        assert_eq!(divided(0), (1, 8, 0));
        assert_eq!(divided(10_000), (1, 0, 8));
    }

    #[test]
    fn a_request_that_is_not_answered_yet_stays_whatever_its_size() {
        let history = [user("env"), user("done"), assistant("yes"), user(&"long ".repeat(9000))];
        let division = HistoryDivision::new(&history, 1, 3);
        assert_eq!((division.head.len(), division.tail.len()), (2, 1));
    }

    #[test]
    fn the_last_message_about_the_environment_takes_the_place_of_the_first() {
        let history =
            [user("<environment_context>old"), user("go"), user("<environment_context>new"), assistant("x")];
        let division = HistoryDivision::new(&history, 1, 0);
        assert_eq!(message_text(division.opening[0]), "<environment_context>new");
        assert_eq!(division.user_messages().map(message_text).collect::<Vec<_>>(), ["go"]);
    }
}
