//! Short words and what is known about each, told by one look at a word.

/// As long as a word can be to be in a dictionary.
const MAX_WORD_BYTES: usize = size_of::<u128>();
/// Places for words; more than twice as many as any dictionary has words, so that few share one.
const PLACES: usize = 512;

/// Words in any case, with bits that say what they are.
pub(super) struct Dictionary(Box<[(u128, u8); PLACES]>);

impl Dictionary {
    /// Of these lists, each with the bit that its words have.
    pub(super) fn new(lists: &[(&[&[u8]], u8)]) -> Self {
        let mut words = Self(Box::new([(0, 0); PLACES]));
        for (list, bit) in lists {
            for packed in list.iter().filter_map(|word| packed(word)) {
                let place = words.place(packed);
                words.0[place] = (packed, words.0[place].1 | bit);
            }
        }
        words
    }

    /// What a word is; nothing, if it is in no list.
    pub(super) fn bits(&self, word: &[u8]) -> u8 {
        packed(word).map_or(0, |packed| self.0[self.place(packed)].1)
    }

    /// Where a word is, or would be.
    fn place(&self, packed: u128) -> usize {
        let folded = (packed ^ (packed >> 64)) & u128::from(u64::MAX);
        let mixed = (folded * 0x9E37_79B9_7F4A_7C15) >> 40;
        let mut place = usize::try_from(mixed % PLACES as u128).unwrap_or(0);
        while self.0[place].0 != packed && self.0[place].0 != 0 {
            place = (place + 1) % PLACES;
        }
        place
    }
}

/// A word in small letters as a number; longer ones are in no list.
fn packed(word: &[u8]) -> Option<u128> {
    let mut bytes = [0; MAX_WORD_BYTES];
    bytes.get_mut(..word.len())?.copy_from_slice(word);
    bytes.make_ascii_lowercase();
    Some(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_any_case_by_all_their_lists() {
        let words = Dictionary::new(&[(&[b"one", b"two"], 1), (&[b"two", b"longer-than-that-is"], 2)]);
        let bits = ["one", "TWO", "three", "", "longer-than-that-is"].map(|word| words.bits(word.as_bytes()));
        assert_eq!(bits, [1, 3, 0, 0, 0]);
    }
}
