//! Finds the first of many short words in a text, whatever their case.
//!
//! Four tables say for every byte which words may have it at their first, second, third and fourth place; where all of them
//! agree, the words themselves are compared. No step waits for the one before, as it would in an automaton.

use std::{cmp::Reverse, ops::Range};

/// How many places of a word the tables know.
const PLACES: usize = 4;
/// How many bits there are for words to share.
const GROUPS: usize = 64;
/// So many places are looked at in one step.
const STEP: usize = 8;
/// For which these bytes are needed.
const WINDOW: usize = STEP + PLACES - 1;

/// Words to look for.
pub(super) struct Words {
    /// For each place and byte, the groups with a word that has it there.
    masks: Box<[[u64; 256]; PLACES]>,
    /// Words by group; longer ones first.
    groups: Vec<Vec<Word>>,
}

struct Word {
    number: usize,
    /// In small letters.
    text: Box<[u8]>,
    /// Its first bytes as a number, and which bits of that number count.
    head: u128,
    counts: u128,
}

/// As many bytes as are compared at once.
const HEAD: usize = size_of::<u128>();

impl Words {
    /// Of these, numbered in their order. Words of one byte are not found, and empty ones neither.
    pub(super) fn new<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut words: Vec<_> =
            words.into_iter().map(|word| word.to_ascii_lowercase().into_boxed_slice()).enumerate().collect();
        words.retain(|(_, word)| word.len() > 1);
        // Neighbours begin alike, so a group has few first bytes; those too short for the last table would open it for others.
        words.sort_by(|(_, one), (_, other)| (one.len() >= PLACES, one).cmp(&(other.len() >= PLACES, other)));
        let each = words.len().div_ceil(GROUPS).max(1);
        let mut masks = Box::new([[0; 256]; PLACES]);
        let mut groups = Vec::new();
        for (group, members) in words.chunks(each).enumerate() {
            for (_, word) in members {
                for (place, mask) in masks.iter_mut().enumerate() {
                    match word.get(place) {
                        Some(byte) => {
                            mask[usize::from(*byte)] |= 1 << group;
                            mask[usize::from(byte.to_ascii_uppercase())] |= 1 << group;
                        }
                        None => mask.iter_mut().for_each(|each| *each |= 1 << group),
                    }
                }
            }
            let mut members: Vec<_> = members.iter().map(|(number, text)| Word::new(*number, text)).collect();
            members.sort_by_key(|word| Reverse(word.text.len()));
            groups.push(members);
        }
        Self { masks, groups }
    }

    /// The first word from a place on, and the longest of those that begin there.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let mut at = from;
        loop {
            let masks = match text.get(at..)? {
                [] => return None,
                rest => match rest.first_chunk() {
                    Some(bytes) => self.masks(bytes),
                    None => self.masks_at_end(rest),
                },
            };
            if masks.iter().fold(0, |all, mask| all | mask) != 0
                && let Some(found) = self.word_among(text, at, &masks)
            {
                return Some(found);
            }
            at += STEP;
        }
    }

    /// The groups at some places in a row, given the bytes from the first of them on.
    #[inline]
    fn masks(&self, bytes: &[u8; WINDOW]) -> [u64; STEP] {
        std::array::from_fn(|step| self.groups_at(std::array::from_fn(|place| bytes[step + place])))
    }

    /// The same where the text ends. No word has a zero in it.
    #[inline(never)]
    fn masks_at_end(&self, rest: &[u8]) -> [u64; STEP] {
        let mut bytes = [0; WINDOW];
        bytes.iter_mut().zip(rest).for_each(|(byte, rest)| *byte = *rest);
        self.masks(&bytes)
    }

    fn word_among(&self, text: &[u8], at: usize, masks: &[u64; STEP]) -> Option<(usize, Range<usize>)> {
        let is_open = |(step, mask): (usize, &u64)| u32::from(*mask != 0) << step;
        let mut steps: u32 = masks.iter().enumerate().map(is_open).sum();
        while steps != 0 {
            let step = steps.trailing_zeros() as usize;
            let found = self.word_at(text, at + step, masks[step]);
            if found.is_some() {
                return found;
            }
            steps &= steps - 1;
        }
        None
    }

    #[inline]
    fn groups_at(&self, bytes: [u8; PLACES]) -> u64 {
        let [first, second, third, fourth] = bytes.map(usize::from);
        self.masks[0][first] & self.masks[1][second] & self.masks[2][third] & self.masks[3][fourth]
    }

    fn word_at(&self, text: &[u8], at: usize, mut mask: u64) -> Option<(usize, Range<usize>)> {
        let (text, mut longest) = (&text[at..], None::<&Word>);
        let head = head(text);
        while mask != 0 {
            let group = &self.groups[mask.trailing_zeros() as usize];
            mask &= mask - 1;
            if let Some(word) = group.iter().find(|word| word.begins(text, head))
                && longest.is_none_or(|longest| word.text.len() > longest.text.len())
            {
                longest = Some(word);
            }
        }
        longest.map(|word| (word.number, at..at + word.text.len()))
    }
}

impl Word {
    fn new(number: usize, text: &[u8]) -> Self {
        let bits = 8 * text.len().min(HEAD);
        let counts = u128::MAX >> (8 * HEAD - bits);
        Self { number, text: text.into(), head: head(text) & counts, counts }
    }

    /// Whether a text, whose head is given too, begins with this word.
    #[inline]
    fn begins(&self, text: &[u8], head: u128) -> bool {
        let tail = |text: &[u8]| {
            text.get(HEAD..self.text.len()).is_some_and(|tail| tail.eq_ignore_ascii_case(&self.text[HEAD..]))
        };
        (head ^ self.head) & self.counts == 0
            && text.len() >= self.text.len()
            && (self.text.len() <= HEAD || tail(text))
    }
}

/// The first bytes of a text in small letters, as a number; what is missing is zero.
fn head(text: &[u8]) -> u128 {
    let mut bytes = text.first_chunk::<HEAD>().copied().unwrap_or_else(|| {
        let mut bytes = [0; HEAD];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    });
    bytes.make_ascii_lowercase();
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, Input, MatchKind};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_of_the_first_is_found_in_any_case_and_at_the_very_end() {
        let words = Words::new([&b"ab"[..], b"abcd", b"b", b"cd", b""]);
        assert_eq!(words.find(b"xxABCDx", 0), Some((1, 2..6)));
        assert_eq!(words.find(b"xxABCDx", 3), Some((3, 4..6)));
        assert_eq!(words.find(b"bbbbbbAb", 0), Some((0, 6..8)));
        assert_eq!(words.find(b"a", 0), None);
        assert_eq!(words.find(b"ab", 7), None);
    }

    proptest! {
        #[test]
        fn an_automaton_finds_the_same(
            words in prop::collection::vec("[a-eA-C_]{2,6}", 1..150), text in "[a-eA-C_\0é]{0,200}", from in 0usize..10,
        ) {
            let mut builder = AhoCorasick::builder();
            let automaton = builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest).build(&words);
            let automaton = automaton.unwrap();
            let from = from.min(text.len());
            let expected = automaton.find(Input::new(text.as_bytes()).range(from..)).map(|found| found.range());
            let ours = Words::new(words.iter().map(String::as_bytes)).find(text.as_bytes(), from);
            prop_assert_eq!(ours.as_ref().map(|(_, range)| range.clone()), expected);
            if let Some((number, range)) = ours {
                prop_assert!(text.as_bytes()[range].eq_ignore_ascii_case(words[number].as_bytes()));
            }
        }
    }
}
