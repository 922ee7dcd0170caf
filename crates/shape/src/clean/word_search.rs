//! Searches a text for many words at once.
//!
//! A bit set of the first three bytes of all words rules out most positions. An Aho-Corasick
//! automaton of the same words takes milliseconds and megabytes to build, which is most of the cost
//! of a short run.

use std::ops::Range;

/// Number of bits that are kept of a byte.
const FOLDED_BITS: u32 = 6;
/// Number of different folded starts.
const STARTS: usize = 1 << (3 * FOLDED_BITS);

/// A search for words of at least two bytes, without case. The longest word wins at the leftmost
/// match.
pub(super) struct WordSearch {
    /// One bit for each folded start of a word.
    starts: Vec<u64>,
    /// The words in lower case, in order, without duplicates.
    words: Vec<Box<[u8]>>,
    /// For each word, the longest other word that it starts with.
    prefixes: Vec<Option<usize>>,
}

impl WordSearch {
    /// Creates a search.
    pub(super) fn new(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let lower = |word: &[u8]| word.to_ascii_lowercase().into_boxed_slice();
        let mut words: Vec<_> = words.into_iter().map(|word| lower(word.as_ref())).collect();
        words.sort_unstable();
        words.dedup();
        let (mut starts, mut prefixes) = (vec![0; STARTS / 64], Vec::with_capacity(words.len()));
        for (at, word) in words.iter().enumerate() {
            prefixes.push(at.checked_sub(1).and_then(|last| longest(&words, &prefixes, last, word)));
            let start = word.iter().take(2).fold(0, |start, byte| folded(start, *byte));
            let mut add = |byte| {
                let start = folded(start, byte);
                starts[start / 64] |= 1 << (start % 64);
            };
            match word.get(2) {
                Some(third) => add(*third),
                None => (0..=u8::MAX).for_each(add),
            }
        }
        Self { starts, words, prefixes }
    }

    /// Returns the next match from this offset on: the number of the word in order, and its range.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let rest = text.get(from..)?;
        let (begin, behind) = rest.split_at_checked(2)?;
        let mut start = begin.iter().fold(0, |start, byte| folded(start, *byte));
        // The last position has two bytes only.
        behind.iter().chain(&[0]).enumerate().find_map(|(at, byte)| {
            start = folded(start, *byte);
            if self.starts[start / 64] >> (start % 64) & 1 == 0 {
                return None;
            }
            let word = self.longest_at(&rest[at..])?;
            let start = from + at;
            Some((word, start..start + self.words[word].len()))
        })
    }

    /// Returns true if the text contains a word.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.find(text, 0).is_some()
    }

    /// Returns a word and all other words that it starts with, the longest first.
    pub(super) fn with_prefixes(&self, word: usize) -> impl Iterator<Item = (usize, &[u8])> {
        let words = std::iter::successors(Some(word), |word| self.prefixes[*word]);
        words.map(|word| (word, &*self.words[word]))
    }

    /// Returns the longest word that a text starts with.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        let is_before = |word: &[u8]| word.iter().copied().le(text.iter().map(u8::to_ascii_lowercase));
        let last = self.words.partition_point(|word| is_before(word)).checked_sub(1)?;
        longest(&self.words, &self.prefixes, last, text)
    }
}

/// Returns the longest word that a text starts with, given the last word that is not behind it in
/// order. All words that the text starts with are between that word and its own prefixes.
fn longest(words: &[Box<[u8]>], prefixes: &[Option<usize>], last: usize, text: &[u8]) -> Option<usize> {
    let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    std::iter::successors(Some(last), |word| prefixes[*word]).find(|word| starts(&words[*word]))
}

/// Appends a byte to a folded start, and drops the fourth. Both cases of a letter are equal, and no
/// digit is equal to a letter.
fn folded(start: usize, byte: u8) -> usize {
    (start << FOLDED_BITS | usize::from(byte & 0x1f | (byte & 0x40) >> 1)) % STARTS
}

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, Input, MatchKind};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_word_comes_with_all_words_it_starts_with() {
        let search = WordSearch::new(["sk-", "sk-ant-", "SK-OR", "sk-ant-api", "sk"]);
        let (word, range) = search.find(b"a sk-ant-apo", 0).unwrap();
        assert_eq!(range, 2..9);
        let words: Vec<_> = search.with_prefixes(word).map(|(_, word)| word).collect();
        assert_eq!(words, [&b"sk-ant-"[..], b"sk-", b"sk"]);
    }

    proptest! {
        #[test]
        fn it_finds_what_an_automaton_finds(
            words in proptest::collection::vec("[abAB1é]{2,5}", 1..12),
            text in "[abABc1é]{0,40}",
            from in 0usize..12,
        ) {
            let search = WordSearch::new(&words);
            let automaton = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(&words)
                .unwrap();
            let from = from.min(text.len());
            let expected = automaton.find(Input::new(&text).range(from..)).map(|found| found.range());
            prop_assert_eq!(search.find(text.as_bytes(), from).map(|(_, range)| range), expected);
        }
    }
}
