//! Values that say of themselves that another one goes there, or that something is put in.

use std::{ops::Range, sync::LazyLock};

use super::tally::{BRACKET, TEMPLATE, Tally, tally};
use crate::clean::{
    memo::{self, About},
    words::Words,
};

/// Words that make a placeholder of whatever they are in.
const PLACEHOLDER_WORDS: &[&str] = &[
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "placeholder",
    "example",
    "xxxx",
    "****",
    "....",
    "redacted",
    "dummy",
    "replace",
    "not-a-real",
    "notreal",
    "not_real",
    "mysecret",
    "my-secret",
    "my_secret",
    "mytoken",
    "my-token",
    "my_token",
    "mypassword",
    "my-password",
    "my_password",
    "insert",
    "sample",
    "foobar",
    "goes-here",
    "goes_here",
    "-here",
    "_here",
    "yoursecret",
    "your-",
    "your_",
    "yourpass",
    "yourtoken",
    "yourapi",
    "yourkey",
    "fake-",
    "fake_",
    "todo",
    "fixme",
    "undefined",
    "hidden",
    "masked",
    "filtered",
    "…",
    "•••",
    "0000000000",
    "<your",
    "none",
    "null",
    "test-token",
    "test_token",
    "testtoken",
    "...",
];

/// What people type where any value will do. A value made of it is a placeholder where nothing else says that it is a
/// secret; behind the prefix of a key, behind `Bearer` and as a password it is what somebody tries this with.
const SEQUENCES: &[&str] = &["1234567890", "abcdefgh", "deadbeef", "abc123", "abcd1234"];

/// The ones that a random text may hold by chance, so that they count in short values of one kind only.
const SHORT_WORD_BYTES: usize = 4;
const LONG_VALUE_BYTES: usize = 24;

static PLACEHOLDERS: LazyLock<Words> =
    LazyLock::new(|| Words::new(PLACEHOLDER_WORDS.iter().map(|word| word.as_bytes())));

static TYPED: LazyLock<Words> = LazyLock::new(|| Words::new(SEQUENCES.iter().map(|word| word.as_bytes())));

/// Whether the part of a key behind its prefix was made up for a document. The keys of AWS's documents, which have
/// `EXAMPLE` in capitals, are hidden all the same: they are what people try first.
pub(in crate::clean) fn is_placeholder_key(key: &[u8]) -> bool {
    let is_made_up =
        || key.len() >= 12 && !has_more_bytes(key, 6) || has_placeholder_word(key, |word| word != b"EXAMPLE");
    memo::recall(About::Key, key, || u8::from(is_made_up())) == 1
}

/// Whether more than so many different bytes are in a text.
fn has_more_bytes(text: &[u8], most: usize) -> bool {
    let (mut seen, mut different) = ([false; 256], 0);
    text.iter().any(|byte| {
        different += usize::from(!std::mem::replace(&mut seen[usize::from(*byte)], true));
        different > most
    })
}

/// Whether the value says of itself that another one goes there, or was typed without a thought.
pub(in crate::clean) fn is_placeholder(value: &[u8]) -> bool {
    // `abc123XYZ!` is what people choose where a password must have everything.
    TYPED.find(value, 0).is_some() && !has_everything(value) || says_placeholder(value)
}

/// Whether the value says of itself that another one goes there.
pub(in crate::clean) fn says_placeholder(value: &[u8]) -> bool {
    has_placeholder_word(value, |_| true) || value.len() > 2 && value.iter().all(|byte| *byte == value[0])
}

/// Whether one of the words is in a value, and is meant. `is_telling` may leave some out.
fn has_placeholder_word(value: &[u8], is_telling: impl Fn(&[u8]) -> bool) -> bool {
    let counts = |word: &Range<usize>| {
        word.len() > SHORT_WORD_BYTES
            || !may_hold_by_chance(value)
            || !value[word.clone()].iter().all(u8::is_ascii_alphabetic)
            || is_edge(value, word.start.checked_sub(1)) && is_edge(value, Some(word.end))
    };
    let mut at = 0;
    std::iter::from_fn(|| {
        let (_, word) = PLACEHOLDERS.find(value, at)?;
        at = word.start + 1;
        Some(word)
    })
    .any(|word| is_telling(&value[word.clone()]) && counts(&word) && !is_documented_key(value, &word))
}

/// Whether what is around `EXAMPLE` is a key without it, as in the secrets of AWS's documents.
fn is_documented_key(value: &[u8], word: &Range<usize>) -> bool {
    const LEAST: usize = 24;
    if value[word.clone()] != *b"EXAMPLE" {
        return false;
    }
    let Tally { lower, upper, digits, .. } = tally(&[&value[..word.start], &value[word.end..]].concat());
    lower > 2 && upper > 2 && digits > 0 && lower + upper + digits >= LEAST
}

/// Whether a value is so long, or so mixed, that a short word in it need not be meant.
fn may_hold_by_chance(value: &[u8]) -> bool {
    let Tally { lower, upper, digits, .. } = tally(value);
    value.len() > LONG_VALUE_BYTES || lower > 0 && upper > 0 && digits > 0
}

/// Whether there are letters of both cases, digits, and signs that join nothing.
fn has_everything(value: &[u8]) -> bool {
    let Tally { lower, upper, digits, symbols, spaces, .. } = tally(value);
    lower > 0 && upper > 0 && digits > 0 && symbols > 0 && spaces == 0
}

fn is_edge(value: &[u8], at: Option<usize>) -> bool {
    at.and_then(|at| value.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Whether something is put in here later: `${X}`, `$(x)`, `{{ x }}`, `<x>`, `%s`, `%X%`, `$X`.
pub(super) fn is_template(value: &[u8], tally: Tally) -> bool {
    // What is wrapped has a bracket, and everything else one of its marks.
    if tally.flags & (TEMPLATE | BRACKET) == 0 {
        return false;
    }
    let (first, last) = (value.first().copied().unwrap_or(0), value.last().copied().unwrap_or(0));
    let is_variable =
        first == b'$' && value.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let is_positional = first == b'$' && value[1..].iter().all(u8::is_ascii_digit);
    let is_wrapped =
        matches!((first, last), (b'<', b'>') | (b'[', b']') | (b'{', b'}') | (b'%', b'%') | (b'(', b')'));
    is_wrapped
        || is_positional
        || is_variable && value[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(byte))
        || value
            .windows(2)
            .any(|pair| matches!(pair, b"${" | b"$(" | b"{{" | b"#{" | b"<%" | b"%s" | b"%(" | b"{}" | b"@{"))
        || braced_name(value)
        || is_pattern(value)
}

/// `[0-9a-f]+`, `(?:x)`, `[^\w]`: what others are compared with.
fn is_pattern(value: &[u8]) -> bool {
    const MARKS: [&[u8]; 7] = [b"-9]", b"-z]", b"-Z]", b"-f]", b"-F]", b"[^", b"(?:"];
    MARKS.iter().any(|mark| memchr::memmem::find(value, mark).is_some())
}

/// Whether there is a `{name}` in it.
fn braced_name(value: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'{', value) else { return false };
    let Some(length) = memchr::memchr(b'}', &value[open..]) else { return false };
    let name = &value[open + 1..open + length];
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:[]()".contains(byte))
}
