//! Sets of bytes and of words, for values, names and markers.

use std::{collections::HashSet, ops::Range};

use regex::bytes::Regex;

/// Maximum length of a word in a [`WordSet`].
const MAX_WORD_BYTES: usize = 16;

/// A set of bytes.
pub(super) struct ByteSet([bool; 256]);

impl ByteSet {
    /// Creates a set of these bytes.
    pub(super) const fn new(bytes: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut at = 0;
        while at < bytes.len() {
            set[bytes[at] as usize] = true;
            at += 1;
        }
        Self(set)
    }

    /// Adds letters and digits.
    pub(super) const fn and_alphanumeric(mut self) -> Self {
        let mut byte = 0_u8;
        while byte < 128 {
            self.0[byte as usize] |= byte.is_ascii_alphanumeric();
            byte += 1;
        }
        self
    }

    /// Returns true if a byte is in the set.
    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }

    /// Counts the bytes at the start of a text that are in the set.
    pub(super) fn run(&self, text: &[u8]) -> usize {
        text.iter().position(|byte| !self.has(*byte)).unwrap_or(text.len())
    }

    /// Counts the bytes before the first one that is in the set.
    pub(super) fn until(&self, text: &[u8]) -> usize {
        text.iter().position(|byte| self.has(*byte)).unwrap_or(text.len())
    }

    /// Expands a range to both sides over bytes of the set, by at most `most` bytes each.
    pub(super) fn expand(&self, text: &[u8], part: &Range<usize>, most: usize) -> Range<usize> {
        let before = text[..part.start].iter().rev().take(most).take_while(|byte| self.has(**byte)).count();
        let after = &text[part.end..text.len().min(part.end + most)];
        part.start - before..part.end + self.run(after)
    }
}

/// A set of short words, matched without case.
pub(super) struct WordSet(HashSet<&'static [u8]>);

impl WordSet {
    /// Creates a set of lower-case words, separated by blanks.
    pub(super) fn new(words: &'static str) -> Self {
        Self(words.split_ascii_whitespace().map(str::as_bytes).collect())
    }

    /// Returns true if a word is in the set.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let mut lower = [0; MAX_WORD_BYTES];
        let Some(lower) = lower.get_mut(..word.len()) else { return false };
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        self.0.contains(&*lower)
    }
}

/// Compiles a byte pattern of this crate, in which `.` matches any byte.
#[expect(clippy::expect_used, reason = "every pattern is a constant that tests use")]
pub(super) fn compiled(pattern: &str) -> Regex {
    Regex::new(&format!("(?s-u){pattern}")).expect("a valid pattern")
}
