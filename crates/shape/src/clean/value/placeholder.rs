//! Recognizes placeholders and templates.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use super::tally::ByteTally;
use crate::clean::{bytes::compiled, word_search::WordSearch};

/// Words that mark a placeholder wherever they occur.
const PLACEHOLDER_WORDS: &str = "changeme change_me change-me changeit placeholder example xxxx **** .... redacted \
    dummy replace not-a-real notreal not_real mysecret my-secret my_secret mytoken my-token my_token mypassword \
    my-password my_password insert sample foobar goes-here goes_here -here _here yoursecret your- your_ yourpass \
    yourtoken yourapi yourkey fake- fake_ todo fixme undefined hidden masked filtered … ••• 0000000000 <your none \
    null test-token test_token testtoken ...";

/// Sequences that people type as a dummy value. A value made of one is a placeholder, unless its
/// context is certain. After the prefix of a key, after `Bearer` and as a password it may be in
/// use.
const SEQUENCES: &str = "1234567890 abcdefgh deadbeef abc123 abcd1234";

/// Words that a random text may contain by chance. They count only in short values of one kind.
const SHORT_WORD_BYTES: usize = 4;
const LONG_VALUE_BYTES: usize = 24;

static PLACEHOLDERS: LazyLock<WordSearch> =
    LazyLock::new(|| WordSearch::new(PLACEHOLDER_WORDS.split_ascii_whitespace()));
static TYPED: LazyLock<WordSearch> = LazyLock::new(|| WordSearch::new(SEQUENCES.split_ascii_whitespace()));

/// Matches `${X}`, `$(x)`, `{{ x }}`, `<x>`, `%s`, `%X%`, `$X`, `{name}`, and patterns such as
/// `[0-9a-f]+`.
static TEMPLATE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^(?:\$\d*|\$[A-Za-z_][\w.:]*|<.*>|\[.*\]|\{.*\}|%.*%|\(.*\))$|\$[{(]|\{\{|#\{|<%|%s|%\(|\{\}|@\{|\{[\w.:\[\]()]+\}|-[9zZfF]\]|\[\^|\(\?:",
    )
});

/// Returns true if the part of a key after its prefix was made up for documentation. The keys of
/// AWS's documentation, with `EXAMPLE` in capitals, are redacted all the same: people try them
/// first.
pub(in crate::clean) fn is_placeholder_key(key: &[u8]) -> bool {
    key.len() >= 12 && !has_more_bytes(key, 6) || has_placeholder_word(key, |word| word != b"EXAMPLE")
}

/// Returns true if a text has more than `most` different bytes.
fn has_more_bytes(text: &[u8], most: usize) -> bool {
    let (mut seen, mut different) = ([false; 256], 0);
    text.iter().any(|byte| {
        different += usize::from(!std::mem::replace(&mut seen[usize::from(*byte)], true));
        different > most
    })
}

/// Returns true if the value is a placeholder or a typed dummy sequence.
pub(in crate::clean) fn is_placeholder(value: &[u8]) -> bool {
    TYPED.is_match(value) || says_placeholder(value)
}

/// Returns true if the value is marked as a placeholder.
pub(in crate::clean) fn says_placeholder(value: &[u8]) -> bool {
    has_placeholder_word(value, |_| true) || value.len() > 2 && value.iter().all(|byte| *byte == value[0])
}

/// Returns true if a value contains a placeholder word on purpose. `is_telling` may exclude some.
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
        let (_, word) = PLACEHOLDERS.find(value, at)?;
        at = word.start + 1;
        Some(word)
    })
    .any(|word| is_telling(&value[word.clone()]) && counts(&word))
}

/// Returns true if a value is so long or mixed that a short word in it may be chance.
fn may_hold_by_chance(value: &[u8]) -> bool {
    let ByteTally { lower, upper, digits, .. } = ByteTally::new(value);
    value.len() > LONG_VALUE_BYTES || lower > 0 && upper > 0 && digits > 0
}

/// Returns true if the value is a template to be filled in.
pub(super) fn is_template(value: &[u8], tally: ByteTally) -> bool {
    tally.symbols > 0 && TEMPLATE.is_match(value)
}
