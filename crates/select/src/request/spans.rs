//! Splits a request into spans: its own words, and values that it mentions.

use crate::{intent::is_path, text};

/// Weight of a quotation, path or address. It is more often a value than a description of the tool.
const MENTION_WEIGHT: f32 = 0.5;

/// Maximum length of a word. A longer one is pasted data, such as a picture in base64. Scripts
/// without spaces are exempt.
const MAX_WORD_BYTES: usize = 200;

/// Maximum length of a quotation, in bytes. A quote that closes later was an apostrophe.
const MAX_QUOTATION_BYTES: usize = 400;

const QUOTES: [(char, char); 8] =
    [('"', '"'), ('`', '`'), ('“', '”'), ('‘', '’'), ('「', '」'), ('『', '』'), ('《', '》'), ('«', '»')];

/// A substring with the weight of its words, which is 0 for data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RequestSpan<'a> {
    pub(crate) text: &'a str,
    pub(crate) weight: f32,
    pub(crate) is_quoted: bool,
}

/// Returns all spans of a text, in order.
pub(crate) fn spans(text: &str) -> Vec<RequestSpan<'_>> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some((before, quoted, after)) = quotation(rest) {
        spans.extend(words(before));
        spans.push(RequestSpan { text: quoted, weight: MENTION_WEIGHT, is_quoted: true });
        rest = after;
    }
    spans.extend(words(rest));
    spans
}

/// Returns the text before, inside and after the first pair of quotes.
fn quotation(text: &str) -> Option<(&str, &str, &str)> {
    text.char_indices().find_map(|(at, c)| {
        let (open, close) = QUOTES.iter().find(|(open, _)| *open == c)?;
        let inner = &text[at + open.len_utf8()..];
        let near = text::cut(inner, MAX_QUOTATION_BYTES);
        let end = near.find(*close)?;
        Some((&text[..at], &inner[..end], &inner[end + close.len_utf8()..]))
    })
}

fn words(text: &str) -> impl Iterator<Item = RequestSpan<'_>> {
    text.split_inclusive(char::is_whitespace).map(|word| {
        let is_place = word.contains("://") || word.contains('@') || is_path(word.trim());
        let is_data = word.len() > MAX_WORD_BYTES && word.is_ascii();
        let mentioned = if is_place { MENTION_WEIGHT } else { 1.0 };
        RequestSpan { text: word, weight: if is_data { 0.0 } else { mentioned }, is_quoted: false }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentioned(text: &str) -> Vec<&str> {
        spans(text).into_iter().filter(|part| part.weight < 1.0).map(|part| part.text.trim()).collect()
    }

    #[test]
    fn quotations_paths_and_addresses_are_mentioned() {
        assert_eq!(mentioned("find \"foo bar\" in /etc/hosts"), ["foo bar", "/etc/hosts"]);
        assert_eq!(mentioned("打开《三体》 https://a.b/c"), ["三体", "https://a.b/c"]);
        assert_eq!(mentioned("show me Cargo.toml"), ["Cargo.toml"]);
    }

    #[test]
    fn a_quote_that_never_closes_mentions_nothing() {
        assert_eq!(mentioned("5\" screens and more"), Vec::<&str>::new());
    }
}
