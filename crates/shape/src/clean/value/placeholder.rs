//! Values that say of themselves that another one goes there, or that something is put in.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, Input};
use regex::bytes::Regex;

use super::tally::ByteTally;
use crate::clean::bytes::{compiled, search_for};

/// Words that make a placeholder of whatever they are in.
const PLACEHOLDER_WORDS: &str = "changeme change_me change-me changeit placeholder example xxxx **** .... redacted \
    dummy replace not-a-real notreal not_real mysecret my-secret my_secret mytoken my-token my_token mypassword \
    my-password my_password insert sample foobar goes-here goes_here -here _here yoursecret your- your_ yourpass \
    yourtoken yourapi yourkey fake- fake_ todo fixme undefined hidden masked filtered … ••• 0000000000 <your none \
    null test-token test_token testtoken ...";

/// What people type where any value will do. A value made of it is a placeholder where nothing else says that it is a
/// secret; behind the prefix of a key, behind `Bearer` and as a password it is what somebody tries this with.
const SEQUENCES: &str = "1234567890 abcdefgh deadbeef abc123 abcd1234";

/// The ones that a random text may hold by chance, so that they count in short values of one kind only.
const SHORT_WORD_BYTES: usize = 4;
const LONG_VALUE_BYTES: usize = 24;

static PLACEHOLDERS: LazyLock<AhoCorasick> =
    LazyLock::new(|| search_for(PLACEHOLDER_WORDS.split_ascii_whitespace()));
static TYPED: LazyLock<AhoCorasick> = LazyLock::new(|| search_for(SEQUENCES.split_ascii_whitespace()));

/// `${X}`, `$(x)`, `{{ x }}`, `<x>`, `%s`, `%X%`, `$X`, `{name}`; and `[0-9a-f]+` with its like, which others are
/// compared with.
static TEMPLATE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^(?:\$\d*|\$[A-Za-z_][\w.:]*|<.*>|\[.*\]|\{.*\}|%.*%|\(.*\))$|\$[{(]|\{\{|#\{|<%|%s|%\(|\{\}|@\{|\{[\w.:\[\]()]+\}|-[9zZfF]\]|\[\^|\(\?:",
    )
});

/// Returns whether the part of a key behind its prefix was made up for a document. The keys of AWS's documents, which
/// have `EXAMPLE` in capitals, are hidden all the same: they are what people try first.
pub(in crate::clean) fn is_placeholder_key(key: &[u8]) -> bool {
    key.len() >= 12 && !has_more_bytes(key, 6) || has_placeholder_word(key, |word| word != b"EXAMPLE")
}

/// Returns whether more than so many different bytes are in a text.
fn has_more_bytes(text: &[u8], most: usize) -> bool {
    let (mut seen, mut different) = ([false; 256], 0);
    text.iter().any(|byte| {
        different += usize::from(!std::mem::replace(&mut seen[usize::from(*byte)], true));
        different > most
    })
}

/// Returns whether the value says of itself that another one goes there, or was typed without a thought.
pub(in crate::clean) fn is_placeholder(value: &[u8]) -> bool {
    TYPED.is_match(value) || says_placeholder(value)
}

/// Returns whether the value says of itself that another one goes there.
pub(in crate::clean) fn says_placeholder(value: &[u8]) -> bool {
    has_placeholder_word(value, |_| true) || value.len() > 2 && value.iter().all(|byte| *byte == value[0])
}

/// Returns whether one of the words is in a value, and is meant. `is_telling` may leave some out.
fn has_placeholder_word(value: &[u8], is_telling: impl Fn(&[u8]) -> bool) -> bool {
    let is_edge =
        |at: Option<usize>| at.and_then(|at| value.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let counts = |word: &Range<usize>| {
        word.len() > SHORT_WORD_BYTES
            || !may_hold_by_chance(value)
            || !value[word.clone()].iter().all(u8::is_ascii_alphabetic)
            || is_edge(word.start.checked_sub(1)) && is_edge(Some(word.end))
    };
    let mut at = 0;
    std::iter::from_fn(|| {
        let word = PLACEHOLDERS.find(Input::new(value).range(at..))?.range();
        at = word.start + 1;
        Some(word)
    })
    .any(|word| is_telling(&value[word.clone()]) && counts(&word))
}

/// Returns whether a value is so long, or so mixed, that a short word in it need not be meant.
fn may_hold_by_chance(value: &[u8]) -> bool {
    let ByteTally { lower, upper, digits, .. } = ByteTally::new(value);
    value.len() > LONG_VALUE_BYTES || lower > 0 && upper > 0 && digits > 0
}

/// Returns whether something is put in here later.
pub(super) fn is_template(value: &[u8], tally: ByteTally) -> bool {
    tally.symbols > 0 && TEMPLATE.is_match(value)
}
