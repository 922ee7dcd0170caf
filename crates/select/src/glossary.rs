//! Translates Chinese words to English, so that a Chinese request finds tools with English
//! descriptions.
//!
//! `data/glossary.txt` was written for this project: one entry a line, the Chinese word and its
//! translations. Text is read from the left, and the longest entry wins.

use std::sync::LazyLock;

use crate::{hash::WordMap, numbers::to_f32, text};

static ENTRIES: LazyLock<WordMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("../data/glossary.txt").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' ')).collect()
});

/// Maximum length of a glossary word, in characters.
const MAX_WORD_CHARS: usize = 8;

/// Returns the English for the Chinese words of a text, in order and with weights.
///
/// A word with several translations counts little more than a word with one: each gets a share that
/// falls with the square root of their number.
pub(crate) fn translate(text: &str) -> Vec<(&'static str, f32)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let entry = text::is_glyph(first).then(|| longest(rest)).flatten();
        if let Some((_, english)) = entry {
            let share = to_f32(english.split(' ').count()).sqrt().recip();
            found.extend(english.split(' ').map(|word| (word, share)));
        }
        rest = &rest[entry.map_or(first.len_utf8(), |(length, _)| length)..];
    }
    found
}

/// Returns the longest entry at the beginning of a text: its length in bytes and its English.
fn longest(text: &str) -> Option<(usize, &'static str)> {
    let glyphs = text.char_indices().take(MAX_WORD_CHARS).take_while(|(_, c)| text::is_glyph(*c));
    let ends: Vec<_> = glyphs.map(|(at, c)| at + c.len_utf8()).collect();
    ends.into_iter().rev().find_map(|end| ENTRIES.get(&text[..end]).map(|english| (end, *english)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_entry_counts() {
        let english = |text| translate(text).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(english("天气预报"), ["weather", "forecast"]);
        assert_eq!(english("OK, 天气 and 火车!"), ["weather", "train"]);
        assert_eq!(english("no Chinese, こんにちは"), Vec::<&str>::new());
    }

    #[test]
    fn every_line_is_an_entry_of_its_own_and_can_be_found() {
        let lines = include_str!("../data/glossary.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.clone().count(), ENTRIES.len());
        for line in lines {
            let (chinese, english) = line.split_once(' ').unwrap();
            assert!(
                chinese.chars().count() <= MAX_WORD_CHARS && chinese.chars().all(text::is_glyph),
                "{line}"
            );
            assert!(!english.is_empty() && english.is_ascii() && !english.contains("  "), "{line}");
        }
    }
}
