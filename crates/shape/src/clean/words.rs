//! Finds the first of many short words in a text, whatever their case.
//!
//! Two tables say for every two bytes in a row which words may have them at their start, and which further on. A pair is
//! looked up at every second place only: the tables know the words that begin there and those that begin one byte later.
//! Where both agree, the words that begin so are compared. No step waits for the one before, as it would in an automaton.

use std::{cmp::Reverse, ops::Range};

/// How many bits there are for words to share, for each of the two places of a pair.
const GROUPS: usize = 16;
/// The one of words of two bytes. It is open whatever follows them, so it has no others.
const SHORT: u16 = 1;
/// So many places are looked at in one step,
const STEP: usize = size_of::<u64>();
/// for which these bytes are needed.
const WINDOW: usize = STEP + 2;
/// What is left of the bytes of a window, and of a pair: the same for both cases of a letter.
const FOLD: u128 = 0x5f5f_5f5f_5f5f_5f5f_5f5f;
const FOLDED: usize = 0x5f5f;
/// How many pairs of bytes there are,
const PAIRS: usize = 1 << 16;
/// and how many lists there are of words by their first three bytes.
const LISTS: usize = 1 << 10;
/// So many bytes of a word are compared at once.
const HEAD: usize = size_of::<u128>();
/// The bit in which small letters differ from capitals.
const CASE: u8 = 0x20;

/// Words to look for.
pub(super) struct Words {
    /// Groups of words for every pair: in the low half those that begin with it, in the high half those that begin with its
    /// second byte. Text is made of few pairs, so what is used of a table stays near the processor.
    first: Box<[u32; PAIRS]>,
    /// The same for words that go on with a pair and began in the one before.
    second: Box<[u32; PAIRS]>,
    /// Words by the lists they are in, each of those that begin alike; longer ones first. Those of two bytes are the last list.
    listed: Vec<Word>,
    /// Where each list begins, and behind them where the last one ends.
    lists: Box<[u16; LISTS + 2]>,
}

struct Word {
    /// Its first bytes as a number, and which bits of them count.
    head: u128,
    counts: u128,
    number: usize,
    text: Box<[u8]>,
}

impl Words {
    /// Of these, numbered in their order. Words of one byte are not found, and empty ones neither.
    pub(super) fn new<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut words: Vec<_> = words.into_iter().map(<[u8]>::to_ascii_lowercase).enumerate().collect();
        words.retain(|(_, word)| word.len() > 1);
        // Neighbours begin alike, so a group has few first pairs; shorter ones open the second table for others.
        words.sort_by(|(_, one), (_, other)| (one.len() > 3, one).cmp(&(other.len() > 3, other)));
        let (short, long): (Vec<_>, Vec<_>) = words.into_iter().partition(|(_, word)| word.len() == 2);
        let each = long.len().div_ceil(GROUPS - 1).max(1);
        let grouped = long.iter().enumerate().map(|(at, (_, word))| (SHORT << (1 + at / each), &**word));
        let grouped: Vec<_> = grouped.chain(short.iter().map(|(_, word)| (SHORT, &**word))).collect();
        let (first, second) = (table(&grouped, 0), table(&grouped, 2));
        let listed = long.iter().map(|(number, word)| (list(head(word)), Word::new(*number, word)));
        let short = short.iter().map(|(number, word)| (LISTS, Word::new(*number, word)));
        let mut words: Vec<_> = listed.chain(short).collect();
        words.sort_by_key(|(list, word)| (*list, Reverse(word.text.len())));
        let mut lists = Box::new([0; LISTS + 2]);
        for (list, _) in &words {
            lists[list + 1..].iter_mut().for_each(|start| *start += 1);
        }
        Self { first, second, listed: words.into_iter().map(|(_, word)| word).collect(), lists }
    }

    /// The first word from a place on, and the longest of those that begin there.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let mut rest = text.get(from..)?;
        while let Some(bytes) = rest.first_chunk() {
            let open = self.open(bytes);
            if open.iter().fold(0, |all, groups| all | groups) != 0
                && let Some(found) = self.word_among(text, text.len() - rest.len(), open)
            {
                return Some(found);
            }
            rest = &rest[STEP..];
        }
        (text.len() - rest.len()..text.len())
            .step_by(STEP)
            .find_map(|at| self.word_among(text, at, self.open(&padded(&text[at..]))))
    }

    /// From which groups a word may begin at the places of a step, two of them in each number.
    #[inline]
    fn open(&self, bytes: &[u8; WINDOW]) -> [u32; STEP / 2] {
        // As one number: byte by byte, it would be loaded so.
        let mut number = [0; size_of::<u128>()];
        number[..WINDOW].copy_from_slice(bytes);
        let number = u128::from_le_bytes(number) & FOLD;
        let pair = |at: usize| usize::from((number >> (16 * at) & 0xffff) as u16);
        std::array::from_fn(|at| self.first[pair(at)] & self.second[pair(at + 1)])
    }

    #[inline]
    fn word_among(&self, text: &[u8], at: usize, open: [u32; STEP / 2]) -> Option<(usize, Range<usize>)> {
        let [one, two, three, four] = open.map(u64::from);
        let halves = [(at, one | two << 32), (at + STEP / 2, three | four << 32)];
        let (at, word) = halves.into_iter().find_map(|(at, open)| match open {
            0 => None,
            open => self.word_in(text, at, open),
        })?;
        Some((word.number, at..at + word.text.len()))
    }

    /// The first word at one of four places that may have one of these groups, and its place.
    fn word_in(&self, text: &[u8], at: usize, mut open: u64) -> Option<(usize, &Word)> {
        while open != 0 {
            let step = open.trailing_zeros() as usize / GROUPS;
            let rest = text.get(at + step..)?;
            let head = head(rest);
            let is_here = |word: &&Word| word.begins(rest, head);
            let mut word = self.list(list(head)).iter().find(is_here);
            if word.is_none() && open >> (GROUPS * step) & u64::from(SHORT) != 0 {
                word = self.list(LISTS).iter().find(is_here);
            }
            if let Some(word) = word {
                return Some((at + step, word));
            }
            open &= !(0xffff << (GROUPS * step));
        }
        None
    }

    #[inline]
    fn list(&self, list: usize) -> &[Word] {
        &self.listed[usize::from(self.lists[list])..usize::from(self.lists[list + 1])]
    }
}

/// What the pairs say that are so far from the start of a word. A byte that a word does not have may be any.
fn table(words: &[(u16, &[u8])], from: usize) -> Box<[u32; PAIRS]> {
    const BYTES: usize = 1 << 8;
    let (mut anywhere, mut firsts, mut seconds, mut pairs) = (0, [0; BYTES], [0; BYTES], Vec::new());
    for (group, word) in words {
        for shift in [0, 1] {
            let groups = u32::from(*group) << (GROUPS * shift);
            let byte = |at: usize| word.get(at).map(|byte| usize::from(*byte) & FOLDED & (BYTES - 1));
            match (from.checked_sub(shift).and_then(byte), byte(from + 1 - shift)) {
                (None, None) => anywhere |= groups,
                (Some(first), None) => firsts[first] |= groups,
                (None, Some(second)) => seconds[second] |= groups,
                (Some(first), Some(second)) => pairs.push((first, second, groups)),
            }
        }
    }
    let mut table = vec![0; PAIRS];
    let folded = || (0..BYTES).filter(|byte| byte & !FOLDED == 0);
    for (second, first) in folded().flat_map(|second| folded().map(move |first| (second, first))) {
        table[first + second * BYTES] = anywhere | firsts[first] | seconds[second];
    }
    for (first, second, groups) in pairs {
        table[first + second * BYTES] |= groups;
    }
    #[expect(clippy::expect_used, reason = "the list has the length that is asked for")]
    table.into_boxed_slice().try_into().expect("a list of that length")
}

/// The first bytes of a text; what is missing is zero, which no word has in it.
#[inline]
fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    text.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    })
}

#[inline]
fn head(text: &[u8]) -> u128 {
    u128::from_le_bytes(padded(text))
}

/// Which list is of words that begin so, in either case. Others may be in it too.
#[inline]
fn list(head: u128) -> usize {
    let mixed = ((head & 0x00df_dfdf) as u32).wrapping_mul(0x9E37_79B1);
    (mixed >> 22) as usize % LISTS
}

impl Word {
    fn new(number: usize, text: &[u8]) -> Self {
        let counts = |byte: &u8| if byte.is_ascii_alphabetic() { !CASE } else { u8::MAX };
        let counts: Vec<_> = text.iter().map(counts).collect();
        let (head, counts) = (head(text), head(&counts));
        Self { number, text: text.into(), head: head & counts, counts }
    }

    /// Whether a text, whose head is given too, begins with this word.
    #[inline]
    fn begins(&self, text: &[u8], head: u128) -> bool {
        let tail = |text: &[u8]| {
            text.get(HEAD..self.text.len()).is_some_and(|tail| tail.eq_ignore_ascii_case(&self.text[HEAD..]))
        };
        head & self.counts == self.head && (self.text.len() <= HEAD || tail(text))
    }
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
