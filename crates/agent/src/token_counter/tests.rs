//! Tests of the counter.

use windlass_contract::item::Role;

use super::*;

const WORDS: &str = "The sandbox blocked the command; approving it runs it again. ";

fn entries(texts: &[&str]) -> Vec<Cached<Item>> {
    texts.iter().map(|text| Item::message(Role::User, *text).into()).collect()
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

fn no_tools() -> Cached<Vec<ToolSpec>> {
    Vec::new().into()
}

#[test]
fn a_family_with_a_vocabulary_is_counted_by_it() {
    let (entries, tools) = (entries(&["getUserNameFromHTTPResponse()", "请阅读配置文件，"]), no_tools());
    let request = RequestParts { instructions: "fn main() {}", entries: &entries, tools: &tools };
    let count = |vocabulary| TokenCounter::new(vocabulary).request(&request) - 2 * ITEM_TOKENS;
    assert_eq!(count(Some(Vocabulary::O200k)), 4 + 6 + 6);
    assert_eq!(count(None), 3 + 7 + 8);
}

#[test]
fn the_server_is_believed_and_what_was_added_is_counted() {
    let (mut entries, tools) = (entries(&["hello"]), no_tools());
    let mut counter = TokenCounter::new(Some(Vocabulary::O200k));
    let context = |counter: &TokenCounter, entries: &[_]| {
        counter.context(&RequestParts { instructions: "", entries, tools: &tools })
    };
    assert_eq!(context(&counter, &entries), 1 + ITEM_TOKENS);
    let request = RequestParts { instructions: "", entries: &entries, tools: &tools };
    counter.learn(usage(300, 20), &request, 2);
    entries.push(Item::message(Role::Assistant, "hi there").into());
    assert_eq!(context(&counter, &entries), 320);
    entries.push(Item::message(Role::User, "hello").into());
    assert_eq!(context(&counter, &entries), 320 + 1 + ITEM_TOKENS);
    // A shorter conversation than the reported one is another one.
    assert_eq!(context(&counter, &entries[..1]), 1 + ITEM_TOKENS);
}

#[test]
fn a_long_request_corrects_the_counts_within_bounds() {
    let (entries, tools) = (entries(&[&WORDS.repeat(200)]), no_tools());
    let request = RequestParts { instructions: "", entries: &entries, tools: &tools };
    let mut counter = TokenCounter::new(None);
    let tokens = counter.request(&request);
    for (reported, corrected) in [(tokens * 3 / 2, 1500), (tokens / 10, 700), (tokens * 100, 4000)] {
        counter.learn(usage(reported, 1), &request, 2);
        assert!(counter.corrected(1000).abs_diff(corrected) <= 1, "{}", counter.corrected(1000));
    }
    let mut counter = TokenCounter::new(None);
    let short = RequestParts { instructions: "", entries: &[], tools: &tools };
    counter.learn(usage(5000, 1), &short, 1);
    assert_eq!(counter.corrected(1000), 1000, "nothing is learned from a short request");
}

#[test]
fn a_server_that_cuts_the_beginning_does_not_make_the_conversation_shorter() {
    let (entries, tools) = (entries(&[&WORDS.repeat(4000)]), no_tools());
    let request = RequestParts { instructions: "", entries: &entries, tools: &tools };
    let mut counter = TokenCounter::new(None);
    counter.learn(usage(4096, 10), &request, 1);
    assert!(counter.context(&request) > 40_000, "{}", counter.context(&request));
}

#[test]
fn what_cannot_fill_the_window_is_not_counted() {
    let (entries, tools) = (entries(&[&"x".repeat(1000)]), no_tools());
    let request = RequestParts { instructions: "", entries: &entries, tools: &tools };
    for vocabulary in [None, Some(Vocabulary::O200k)] {
        let mut counter = TokenCounter::new(vocabulary);
        assert!(!counter.may_exceed(&request, 1000 + ITEM_TOKENS + 1));
        assert!(counter.may_exceed(&request, 1000 + ITEM_TOKENS));
        assert!(counter.may_exceed(&request, counter.context(&request)));
        counter.learn(usage(7000, 0), &request, 1);
        assert!(counter.may_exceed(&request, 7000) && !counter.may_exceed(&request, 7001));
    }
}

#[test]
fn tools_that_join_later_are_counted() {
    let spec = ToolSpec { name: "look".into(), description: WORDS.repeat(10), kind: SpecKind::LocalShell };
    let mut counter = TokenCounter::new(Some(Vocabulary::O200k));
    let none = no_tools();
    counter.learn(usage(100, 0), &RequestParts { instructions: "", entries: &[], tools: &none }, 0);
    let tools = Cached::new(vec![spec.clone()]);
    let request = RequestParts { instructions: "", entries: &[], tools: &tools };
    assert_eq!(counter.context(&request), 100 + counter.tool(&spec));
    assert!(counter.tool(&spec) > 100);
}
