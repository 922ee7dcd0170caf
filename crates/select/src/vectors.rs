//! Static word vectors: the meaning of words, in a table that is part of the program.
//!
//! `xtask/vectors.py` creates the table from the sources in `data/README.md`. It is used in place,
//! without parsing or copying, and words are found by binary search.

use std::{cmp::Ordering, sync::LazyLock};

/// Number of dimensions of a vector.
pub(crate) const DIM: usize = 96;

/// A vector that is being summed.
pub(crate) type MeaningVector = [f32; DIM];

/// Factor of a packed vector. The components of a unit vector are small, so that few exceed a byte.
const SCALE: f32 = 300.0;

/// The numbers of a row, by their three bits.
const NUMBERS: [f32; 8] = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 0.0];

/// Maximum number of pieces of an unknown word.
const MAX_WORD_PIECES: usize = 8;

/// Returns the table that is part of the program.
pub(crate) fn table() -> &'static VectorTable {
    static TABLE: LazyLock<VectorTable> =
        LazyLock::new(|| VectorTable::new(include_bytes!("../data/vectors.bin")));
    &TABLE
}

/// Words in alphabetical order, each with its vector.
#[derive(Debug)]
pub(crate) struct VectorTable {
    /// The end of each word in `words`.
    ends: &'static [[u8; 4]],
    /// The factor of each row.
    scales: &'static [[u8; 4]],
    /// `DIM` numbers of three bits for each word, eight of them in three bytes.
    rows: &'static [[[u8; 3]; DIM / 8]],
    words: &'static [u8],
}

impl VectorTable {
    /// Reads the format of `xtask/vectors.py`: the number of words, the dimensions, then one column
    /// after the other.
    fn new(bytes: &'static [u8]) -> Self {
        let number =
            |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        let count = number(0);
        debug_assert_eq!(number(4), DIM, "the table was made for another dimension");
        let (ends, rest) = bytes[8..].split_at(count * 4);
        let (scales, rest) = rest.split_at(count * 4);
        let (rows, words) = rest.split_at(count * DIM * 3 / 8);
        Self {
            ends: ends.as_chunks().0,
            scales: scales.as_chunks().0,
            rows: rows.as_chunks().0.as_chunks().0,
            words,
        }
    }

    /// Returns the rows whose sum is the vector of a word: its own row, or those of its WordPiece
    /// tokens.
    pub(crate) fn rows_of(&self, word: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut rest = word.as_bytes();
        while !rest.is_empty() {
            let prefix: &[u8] = if rows.is_empty() { b"" } else { b"##" };
            // All pieces are ASCII letters, so a piece never ends within a character.
            let found = (1..=rest.len()).rev().find_map(|end| Some((self.find(prefix, &rest[..end])?, end)));
            match found {
                Some((row, end)) if rows.len() < MAX_WORD_PIECES => {
                    rows.push(row);
                    rest = &rest[end..];
                }
                _ => return Vec::new(),
            }
        }
        rows
    }

    /// Adds rows to a vector.
    pub(crate) fn add(&self, rows: &[u32], weight: f32, to: &mut MeaningVector) {
        for row in rows {
            let factor = f32::from_le_bytes(self.scales[*row as usize]) * weight;
            for (sums, [low, middle, high]) in
                to.as_chunks_mut::<8>().0.iter_mut().zip(self.rows[*row as usize])
            {
                let bits = u32::from_le_bytes([low, middle, high, 0]);
                for (sum, at) in sums.iter_mut().zip((0..24).step_by(3)) {
                    *sum += factor * NUMBERS[(bits >> at & 7) as usize];
                }
            }
        }
    }

    fn find(&self, prefix: &[u8], rest: &[u8]) -> Option<u32> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.word(middle).iter().cmp(prefix.iter().chain(rest)) {
                Ordering::Equal => return u32::try_from(middle).ok(),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn word(&self, at: usize) -> &'static [u8] {
        let end = |at: usize| u32::from_le_bytes(self.ends[at]) as usize;
        &self.words[at.checked_sub(1).map_or(0, end)..end(at)]
    }
}

/// A unit vector with one byte for each component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PackedVector(pub(crate) [i8; DIM]);

impl Default for PackedVector {
    /// Returns the zero vector, which has the cosine 0 with every other.
    fn default() -> Self {
        Self([0; DIM])
    }
}

impl PackedVector {
    /// Returns the cosine of two unit vectors, from -1 to 1.
    pub(crate) fn cosine(&self, other: &Self) -> f32 {
        let sum: i32 = self.0.iter().zip(&other.0).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        // The maximum is `DIM` times 127 squared, which is exact.
        #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
        let sum = sum as f32;
        sum / (SCALE * SCALE)
    }
}

/// Normalizes and packs a vector, unless it is zero.
#[expect(clippy::cast_possible_truncation, reason = "clamped to a byte before")]
pub(crate) fn pack(vector: &MeaningVector) -> Option<PackedVector> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let packed = vector.map(|x| (x / length * SCALE).round().clamp(-127.0, 127.0) as i8);
    (length > f32::EPSILON).then_some(PackedVector(packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(words: &str) -> PackedVector {
        let mut sum = [0.0; DIM];
        for word in words.split(' ') {
            table().add(&table().rows_of(word), 1.0, &mut sum);
        }
        pack(&sum).unwrap()
    }

    #[test]
    fn the_table_is_whole_and_in_order() {
        let table = table();
        assert_eq!(table.rows.len(), table.ends.len());
        assert_eq!(u32::from_le_bytes(*table.ends.last().unwrap()) as usize, table.words.len());
        assert!((1..table.ends.len()).all(|at| table.word(at - 1) < table.word(at)));
    }

    #[test]
    fn like_words_are_near_and_others_are_not() {
        let weather = meaning("weather forecast");
        assert!(weather.cosine(&meaning("rain temperature")) > weather.cosine(&meaning("stock price")) + 0.2);
        assert!(meaning("movie").cosine(&meaning("film")) > 0.5);
    }

    #[test]
    fn an_unknown_word_is_made_of_pieces() {
        assert_eq!(table().rows_of("geocoding").len(), 3);
        assert_eq!(table().rows_of("天气"), Vec::<u32>::new());
        assert!(table().rows_of(&"xq".repeat(20)).len() <= MAX_WORD_PIECES);
    }

    #[test]
    fn nothing_has_no_direction() {
        assert_eq!(pack(&[0.0; DIM]), None);
        assert!(PackedVector::default().cosine(&meaning("weather")).abs() < f32::EPSILON);
    }
}
