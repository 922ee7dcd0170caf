//! Byte pair encoding: which tokens a piece of text has.

use std::sync::LazyLock;

use crate::pieces::PieceSplitter;

/// Pieces are encoded in parts of this many bytes. Few pieces are longer, such as lines of dashes;
/// a cut adds one token at most. Without it, the time would grow with the square of the length.
const MAX_PART_BYTES: usize = 512;

/// Encoded size of a token in the data: the two tokens that it is merged from, 18 bits each.
const TOKEN_BYTES: usize = 5;

/// Number of tokens that are single bytes.
const SINGLE_BYTES: usize = 256;

/// A published vocabulary of tokens. Its tables are built when it first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vocabulary {
    /// `o200k_base`: GPT-4o and later models of OpenAI, and gpt-oss.
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// All vocabularies.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    /// Counts the tokens of a text. Special tokens have no meaning in it.
    pub fn count(self, text: &str) -> u64 {
        let (merges, splitter) = match self {
            Self::O200k => (MergeTable::o200k(), PieceSplitter::o200k()),
            Self::Cl100k => (MergeTable::cl100k(), PieceSplitter::cl100k()),
        };
        let mut encoder = PartEncoder { merges, tokens: Vec::new(), joined: Vec::new() };
        let parts = splitter.split(text).flat_map(|piece| piece.as_bytes().chunks(MAX_PART_BYTES));
        parts.map(|part| encoder.count(part)).sum::<usize>() as u64
    }
}

/// No token. Also the rank of a pair that is not merged.
const NONE: u32 = u32::MAX;

/// The tokens that pairs of tokens are merged to.
struct MergeTable {
    data: &'static [u8],
    /// Open addressing: the token of a pair at the hash of the pair, or at the next free place.
    slots: Box<[u32]>,
}

impl MergeTable {
    fn o200k() -> &'static Self {
        static TABLE: LazyLock<MergeTable> =
            LazyLock::new(|| MergeTable::new(include_bytes!("../data/o200k.bin")));
        &TABLE
    }

    fn cl100k() -> &'static Self {
        static TABLE: LazyLock<MergeTable> =
            LazyLock::new(|| MergeTable::new(include_bytes!("../data/cl100k.bin")));
        &TABLE
    }

    fn new(data: &'static [u8]) -> Self {
        let count = (data.len() - SINGLE_BYTES) / TOKEN_BYTES;
        let mut table = Self { data, slots: vec![NONE; (count * 2).next_power_of_two()].into() };
        for token in (0_u32..).skip(SINGLE_BYTES).take(count) {
            let mut slot = table.first_slot(table.pair(token));
            while table.slots[slot] != NONE {
                slot = table.next_slot(slot);
            }
            table.slots[slot] = token;
        }
        table
    }

    /// Returns the token of a byte.
    fn single(&self, byte: u8) -> u32 {
        self.data[usize::from(byte)].into()
    }

    /// Returns the pair that a token is merged from.
    fn pair(&self, token: u32) -> (u32, u32) {
        let start = SINGLE_BYTES + (token as usize - SINGLE_BYTES) * TOKEN_BYTES;
        let bytes = &self.data[start..start + TOKEN_BYTES];
        let number = |low: usize, high: u8| u32::from_le_bytes([bytes[low], bytes[low + 1], high, 0]);
        (number(0, bytes[4] & 0xF), number(2, bytes[4] >> 4))
    }

    /// Returns the token of a pair, which is also the rank of the merge; `NONE` if there is none.
    fn merge(&self, pair: (u32, u32)) -> u32 {
        let mut slot = self.first_slot(pair);
        loop {
            let token = self.slots[slot];
            if token == NONE || self.pair(token) == pair {
                return token;
            }
            slot = self.next_slot(slot);
        }
    }

    fn first_slot(&self, (left, right): (u32, u32)) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the pair.
        let key = u64::from(left) << 18 | u64::from(right);
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        hash as usize & (self.slots.len() - 1)
    }

    fn next_slot(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }
}

/// Encodes one part after the other, in the same memory.
struct PartEncoder {
    merges: &'static MergeTable,
    tokens: Vec<u32>,
    /// The token that each token and its neighbour on the right would be merged to.
    joined: Vec<u32>,
}

impl PartEncoder {
    /// Merges the pair of the lowest rank until none is left, and returns the number of tokens.
    fn count(&mut self, part: &[u8]) -> usize {
        let Self { merges, tokens, joined } = self;
        tokens.clear();
        tokens.extend(part.iter().map(|byte| merges.single(*byte)));
        joined.clear();
        joined.extend(tokens.windows(2).map(|pair| merges.merge((pair[0], pair[1]))));
        while let Some((at, rank)) = joined.iter().copied().enumerate().min_by_key(|(_, rank)| *rank)
            && rank != NONE
        {
            tokens[at] = rank;
            tokens.remove(at + 1);
            joined.remove(at);
            if at < joined.len() {
                joined[at] = merges.merge((rank, tokens[at + 1]));
            }
            if at > 0 {
                joined[at - 1] = merges.merge((tokens[at - 1], rank));
            }
        }
        tokens.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimate;

    /// Texts with their tokens by o200k and cl100k, as `tiktoken` and `bpe-openai` count them.
    const COUNTED: &[(&str, u64, u64)] = include!("../data/counted.rs.in");

    #[test]
    fn texts_are_counted_as_others_count_them() {
        for (text, o200k, cl100k) in COUNTED {
            let counts = Vocabulary::ALL.map(|vocabulary| vocabulary.count(text));
            assert_eq!(counts, [*o200k, *cl100k], "{text:?}");
        }
    }

    #[test]
    fn every_token_is_one_token() {
        for vocabulary in Vocabulary::ALL {
            let (merges, tokens) = match vocabulary {
                Vocabulary::O200k => (MergeTable::o200k(), 199_998),
                Vocabulary::Cl100k => (MergeTable::cl100k(), 100_256),
            };
            let count = merges.slots.iter().filter(|slot| **slot != NONE).count();
            assert_eq!(count + SINGLE_BYTES, tokens);
            for token in (0_u32..).skip(SINGLE_BYTES).take(count) {
                assert_eq!(merges.merge(merges.pair(token)), token);
            }
        }
    }

    #[test]
    fn a_long_line_without_blanks_is_counted_in_parts() {
        for text in ["=".repeat(20_000), "ab".repeat(10_000), "字".repeat(7_000), " ".repeat(20_000)] {
            for vocabulary in Vocabulary::ALL {
                let count = vocabulary.count(&text);
                assert!(count > 0 && count <= text.len() as u64, "{count}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_token_has_at_least_one_byte(text in "\\PC{0,60}\\s{0,5}\\PC{0,5}") {
            for vocabulary in Vocabulary::ALL {
                prop_assert!(vocabulary.count(&text) <= text.len() as u64);
            }
            prop_assert!(estimate(&text) <= text.len() as u64);
        }
    }
}
