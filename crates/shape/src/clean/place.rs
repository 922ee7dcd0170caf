//! Secrets known by their place: in addresses, headers, options of programs, arguments of functions, and what else has a
//! place for them. Each place is a word to search for and a pattern that begins there.

mod table;

use std::{ops::Range, sync::OnceLock};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use regex::bytes::Regex;

pub(super) use self::table::PLACES;
use super::{bytes::compiled, found::Found, value};

/// A longer token that is no secret is not looked into: a line of nothing but such would cost its square.
pub(super) const LONG_TOKEN: usize = 128;

/// What is between a word and its secret may be another secret from this length on.
const MIN_KEY_BYTES: usize = 16;

/// How much of a line a pattern is given from its word on, unless its rule says otherwise.
const MAX_REACH: usize = 512;

/// A place where a secret stands.
pub(super) struct PlaceRule {
    /// What is searched for, in any case.
    pub(super) words: Vec<&'static str>,
    /// A text that must be near the word.
    near: &'static str,
    /// A text that must not be near it.
    far: &'static str,
    before: Before,
    /// How much of the line is looked at before the word, and from its start on.
    back: usize,
    reach: usize,
    /// The secret is its group `s`.
    pattern: String,
    regex: OnceLock<Regex>,
    /// Decides about what was found there.
    is_secret: fn(&[u8]) -> bool,
    label: &'static str,
    why: &'static str,
}

/// What must be before the word of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Anything,
    /// No letter or digit.
    Edge,
    /// No letter, digit or `-`.
    Start,
    /// A sign that parts the fields of an address.
    Field,
}

impl Before {
    fn holds(self, byte: Option<u8>) -> bool {
        match self {
            Self::Anything => true,
            Self::Edge => byte.is_none_or(|byte| !byte.is_ascii_alphanumeric()),
            Self::Start => byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'-'),
            Self::Field => byte.is_some_and(|byte| b"?&-_; ,".contains(&byte)),
        }
    }
}

impl PlaceRule {
    /// Makes a rule of words, separated by `|`, and a pattern that begins with them.
    fn new(words: &'static str, pattern: impl Into<String>, is_secret: fn(&[u8]) -> bool) -> Self {
        Self {
            words: words.split('|').collect(),
            near: "",
            far: "",
            before: Before::Anything,
            back: 0,
            reach: MAX_REACH,
            pattern: pattern.into(),
            regex: OnceLock::new(),
            is_secret,
            label: "password",
            why: "a place for a password",
        }
    }

    /// Looks at the place of one of the words, and says where to go on if there is something.
    pub(super) fn look(&self, line: &[u8], word: &Range<usize>, found: &mut Vec<Found>) -> Option<usize> {
        if !self.before.holds(word.start.checked_sub(1).map(|at| line[at])) {
            return None;
        }
        let from = word.start.saturating_sub(self.back);
        let behind = &line[word.end..line.len().min(word.start + self.reach).max(word.end)];
        // What is behind the same word is looked at there, or a line of nothing else would cost its square. One more may
        // be part of something: `docker login docker.io`.
        let again = memchr::memmem::find_iter(behind, &line[word.clone()]).nth(1);
        let text = &line[from..word.end + again.unwrap_or(behind.len())];
        let regex = self.regex.get_or_init(|| compiled(&self.pattern));
        let secret = regex.captures(text)?.name("s")?;
        let range = unquoted(line, from + secret.start()..from + secret.end());
        let is_near = || {
            let from = word.start.saturating_sub(MAX_REACH);
            let near = &line[from..line.len().min(word.end + MAX_REACH)];
            let has = |text: &str| memchr::memmem::find(near, text.as_bytes()).is_some();
            has(self.near) && (self.far.is_empty() || !has(self.far))
        };
        let (end, between) = (range.end, range.start.saturating_sub(word.end));
        if (self.is_secret)(&line[range.clone()]) && is_near() {
            found.push(Found::value(line, range, self.label, self.why));
            return Some(if between < MIN_KEY_BYTES { end } else { word.end });
        }
        (range.len() > LONG_TOKEN).then_some(end)
    }
}

/// Leaves out the quotes around a text, and blanks inside of them.
fn unquoted(line: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &line[range.clone()];
    let [quote @ (b'"' | b'\''), inside @ .., last] = text else { return range };
    let inside = if last == quote { inside } else { &text[1..] };
    let start = range.start + 1 + inside.len() - inside.trim_ascii_start().len();
    start..start + inside.trim_ascii().len()
}

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
pub(super) const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
pub(super) const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Returns whether a text is a user and a password in base64.
fn is_basic_pair(text: &[u8]) -> bool {
    (8..4096).contains(&text.len())
        && !value::is_placeholder(text)
        && STANDARD.decode(text).is_ok_and(|pair| {
            let text = str::from_utf8(&pair).unwrap_or_default();
            text.split_once(':').is_some_and(|(_, password)| password.len() > 2)
                && !text.contains(char::is_control)
        })
}
