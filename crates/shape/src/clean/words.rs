//! Finds the first of many short words in a text, whatever their case.
//!
//! Two tables say for every two bytes in a row which words may begin with them, and which may go on with them. Where both
//! agree, the words that begin so are compared. No step waits for the one before, as it would in an automaton.

use std::{cmp::Reverse, ops::Range};

/// How many bytes of a word the tables know.
const PLACES: usize = 4;
/// How many bits there are for words to share.
const GROUPS: usize = 8;
/// So many places are looked at in one step.
const STEP: usize = 8;
/// For which these bytes are needed.
const WINDOW: usize = STEP + PLACES - 1;
/// How many pairs of bytes there are,
const PAIRS: usize = 1 << 16;
/// and how many lists of words by their first pair.
const LISTS: usize = 1 << 10;

/// Words to look for.
pub(super) struct Words {
    /// For two bytes at the first two places of a word and at the next two, the groups with a word that has them there. Text
    /// is made of few pairs, so what is used of the tables stays near the processor.
    begins: Box<[u8; PAIRS]>,
    goes_on: Box<[u8; PAIRS]>,
    /// Words by their first two bytes; longer ones first.
    lists: Vec<Vec<Word>>,
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
        // Neighbours begin alike, so a group has few first pairs; those too short for the second table would open it for others.
        words.sort_by(|(_, one), (_, other)| (one.len() >= PLACES, one).cmp(&(other.len() >= PLACES, other)));
        let each = words.len().div_ceil(GROUPS).max(1);
        // Behind a word of two bytes stands anything.
        let is_short = |(_, (_, word)): &(usize, &(usize, Box<[u8]>))| word.len() == 2;
        let short = words.iter().enumerate().filter(is_short).fold(0, |all, (at, _)| all | 1 << (at / each));
        let (mut begins, mut goes_on) = (pairs(0), pairs(short));
        let mut lists: Vec<Vec<Word>> = (0..LISTS).map(|_| Vec::new()).collect();
        for (at, (number, word)) in words.iter().enumerate() {
            let group = 1 << (at / each);
            mark(&mut begins, word, group);
            mark(&mut goes_on, &word[2..], group);
            lists[list(word[0], word[1])].push(Word::new(*number, word));
        }
        for list in &mut lists {
            list.sort_by_key(|word| Reverse(word.text.len()));
        }
        Self { begins, goes_on, lists }
    }

    /// The first word from a place on, and the longest of those that begin there.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let mut at = from;
        while let Some(bytes) = text.get(at..)?.first_chunk() {
            let open = self.open(bytes);
            if open != 0
                && let Some(found) = self.word_among(text, at, open)
            {
                return Some(found);
            }
            at += STEP;
        }
        self.word_at_end(text, at)
    }

    /// At which of some places in a row a word may begin, one byte for each, given the bytes from the first of them on.
    #[inline]
    fn open(&self, bytes: &[u8; WINDOW]) -> u64 {
        let pairs: [usize; WINDOW - 1] =
            std::array::from_fn(|at| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])));
        let mut open = 0;
        for step in 0..STEP {
            open |= u64::from(self.begins[pairs[step]] & self.goes_on[pairs[step + 2]]) << (8 * step);
        }
        open
    }

    fn word_among(&self, text: &[u8], at: usize, mut open: u64) -> Option<(usize, Range<usize>)> {
        while open != 0 {
            let step = open.trailing_zeros() as usize / 8;
            let found = self.word_at(text, at + step);
            if found.is_some() {
                return found;
            }
            open &= !(0xff << (8 * step));
        }
        None
    }

    #[inline]
    fn word_at(&self, text: &[u8], at: usize) -> Option<(usize, Range<usize>)> {
        let text = text.get(at..)?;
        let head = head(text);
        let [first, second, ..] = head.to_le_bytes();
        let word = self.lists[list(first, second)].iter().find(|word| word.begins(text, head))?;
        Some((word.number, at..at + word.text.len()))
    }

    /// The first word where the text ends. No word has a zero in it.
    #[inline(never)]
    fn word_at_end(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let rest = &text[from..];
        (0..rest.len()).step_by(STEP).find_map(|start| {
            let mut bytes = [0; WINDOW];
            bytes.iter_mut().zip(&rest[start..]).for_each(|(byte, rest)| *byte = *rest);
            self.word_among(text, from + start, self.open(&bytes))
        })
    }
}

/// A table in which every pair has these groups.
fn pairs(groups: u8) -> Box<[u8; PAIRS]> {
    #[expect(clippy::expect_used, reason = "the list has the length that is asked for")]
    vec![groups; PAIRS].into_boxed_slice().try_into().expect("a list of that length")
}

/// Marks the pairs that a part of a word may begin with. Behind its last byte stands anything.
fn mark(table: &mut [u8; PAIRS], part: &[u8], group: u8) {
    let Some((first, rest)) = part.split_first() else { return };
    let both = |byte: &u8| vec![*byte, byte.to_ascii_uppercase()];
    let seconds = rest.first().map_or_else(|| (0..=u8::MAX).collect(), both);
    for first in both(first) {
        for second in &seconds {
            table[usize::from(u16::from_le_bytes([first, *second]))] |= group;
        }
    }
}

/// Which list is of words that begin so, in either case. Others may be in it too.
fn list(first: u8, second: u8) -> usize {
    usize::from(first & 31) << 5 | usize::from(second & 31)
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
#[inline]
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
