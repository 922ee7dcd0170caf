//! Compares a request with the requests that a tool answered before.
//!
//! The words of a request differ from those of a description: about half are stop words (`what is
//! in …`), and the rest are mostly values. So both get a small weight, and a value is replaced by
//! its kind: `main.rs` equals `lib.rs`.

use std::hash::Hasher;

use crate::{
    hash::{WordHasher, WordMap},
    intent::is_path,
    numbers::to_f32,
    request::spans,
    text::{self, TextToken},
    vectors::{self, DIM, PackedVector},
};

/// A request, reduced to the data for comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestSignature {
    /// Hashes of its words, sorted. The two lowest bits are the kind of word.
    pub(crate) words: Box<[u32]>,
    /// The meaning of the words that are not values.
    pub(crate) meaning: PackedVector,
}

/// Weights of the kinds of words: a stop word, a word, a pair of characters, a kind of value.
const KIND_WEIGHTS: [f32; 4] = [0.2, 1.0, 0.5, 0.6];
const STOP_WORD: u32 = 0;
const WORD: u32 = 1;
const PAIR: u32 = 2;
const VALUE: u32 = 3;

/// Weight of a word that no example has. It is probably another value.
const UNKNOWN_WORD_WEIGHT: f32 = 0.5;

/// Minimum number of its own words that a request must have to be remembered.
const MIN_DISTINCTIVE_WORDS: usize = 2;

/// Minimum overlap of words, and minimum cosine. Requests below both are not similar at all.
const MIN_WORD_OVERLAP: f32 = 0.25;
const MIN_MEANING_COSINE: f32 = 0.4;

/// Weight of the same meaning in other words.
const MEANING_WEIGHT: f32 = 0.8;

/// File extensions of pictures.
const PICTURES: [&str; 7] = ["png", "jpg", "jpeg", "gif", "webp", "bmp", "svg"];

impl RequestSignature {
    pub(crate) fn new(text: &str) -> Self {
        let (mut words, mut meaning) = (Vec::new(), [0.0; DIM]);
        for span in spans(text) {
            let word = span.text.trim().trim_end_matches(['.', ',', ';', '?', '!', ')']);
            match value_kind(word, span.is_quoted) {
                Some(kind) => words.push(hash_word(kind, VALUE)),
                None => text::tokenize(span.text, |token| {
                    words.extend(hash_token(token));
                    if let TextToken::Word(word) = token
                        && !text::is_stop(word)
                    {
                        vectors::table().add(&vectors::table().rows_of(word), 1.0, &mut meaning);
                    }
                }),
            }
        }
        words.sort_unstable();
        words.dedup();
        Self { words: words.into(), meaning: vectors::pack(&meaning).unwrap_or_default() }
    }
}

impl RequestSignature {
    /// Returns true if the request says enough to be compared: `go on` and `yes` fit anything.
    pub(crate) fn is_distinctive(&self) -> bool {
        self.words.iter().filter(|word| matches!(**word & 3, WORD | PAIR)).count() >= MIN_DISTINCTIVE_WORDS
    }
}

/// Returns the kind of value of a word, if it is one.
fn value_kind(word: &str, is_quoted: bool) -> Option<&'static str> {
    let ending = word.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if ending.is_some_and(|ending| PICTURES.contains(&&*ending)) && is_path(word) {
        Some("picture")
    } else if is_path(word) {
        Some("path")
    } else if word.contains("://") {
        Some("address")
    } else if is_quoted {
        Some("quotation")
    } else if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        Some("number")
    } else {
        None
    }
}

fn hash_token(token: TextToken<'_>) -> Option<u32> {
    match token {
        TextToken::Word(word) if text::is_stop(word) => Some(hash_word(word, STOP_WORD)),
        TextToken::Word(_) => Some(hash_word(&token.term(), WORD)),
        TextToken::Pair(pair) => Some(hash_word(pair, PAIR)),
        // Pairs represent it better.
        TextToken::Glyph(_) => None,
    }
}

fn hash_word(word: &str, kind: u32) -> u32 {
    let mut hash = WordHasher::default();
    hash.write(word.as_bytes());
    let [a, b, c, d, ..] = hash.finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) & !3 | kind
}

/// For each word the number of tools that have it in their examples.
#[derive(Debug, Default)]
pub(crate) struct ExampleFrequencies {
    counts: WordMap<u32, u32>,
    tools: usize,
}

impl ExampleFrequencies {
    /// Adds the examples of a tool.
    pub(crate) fn add<'a>(&mut self, examples: impl IntoIterator<Item = &'a RequestSignature>) {
        let words = distinct_words(examples);
        self.tools += usize::from(!words.is_empty());
        for word in words {
            *self.counts.entry(word).or_default() += 1;
        }
    }

    /// Removes the examples of a tool.
    pub(crate) fn remove<'a>(&mut self, examples: impl IntoIterator<Item = &'a RequestSignature>) {
        let words = distinct_words(examples);
        self.tools -= usize::from(!words.is_empty());
        for word in words {
            if let Some(count) = self.counts.get_mut(&word) {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Returns the likeness of a request to the most similar example of a tool, from 0 to 1.
    pub(crate) fn likeness<'a>(
        &self,
        request: &RequestSignature,
        examples: impl IntoIterator<Item = &'a RequestSignature>,
    ) -> f32 {
        let all: f32 = request.words.iter().map(|word| self.weight(*word)).sum();
        let like = examples.into_iter().map(|example| {
            let (mut both, mut its) = (0.0, 0.0);
            for word in &example.words {
                let weight = self.weight(*word);
                its += weight;
                both += if request.words.binary_search(word).is_ok() { weight } else { 0.0 };
            }
            let words = 2.0 * both / (all + its).max(f32::MIN_POSITIVE);
            let meaning = request.meaning.cosine(&example.meaning);
            rescale(words, MIN_WORD_OVERLAP).max(MEANING_WEIGHT * rescale(meaning, MIN_MEANING_COSINE))
        });
        like.fold(0.0, f32::max)
    }

    /// Returns the weight of a word; rare words weigh more.
    fn weight(&self, word: u32) -> f32 {
        let kind = KIND_WEIGHTS[(word & 3) as usize];
        match self.counts.get(&word) {
            Some(count) if *count > 0 => kind * (1.0 + to_f32(self.tools) / to_f32(*count as usize)).ln(),
            _ => kind * UNKNOWN_WORD_WEIGHT,
        }
    }
}

/// Rescales a share so that the minimum becomes 0 and 1 stays 1.
fn rescale(share: f32, line: f32) -> f32 {
    ((share - line) / (1.0 - line)).max(0.0)
}

fn distinct_words<'a>(examples: impl IntoIterator<Item = &'a RequestSignature>) -> Vec<u32> {
    let mut words: Vec<_> =
        examples.into_iter().flat_map(|signature| signature.words.iter().copied()).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signatures(texts: &[&str]) -> Vec<RequestSignature> {
        texts.iter().map(|text| RequestSignature::new(text)).collect()
    }

    #[test]
    fn requests_that_differ_in_their_values_are_alike() {
        let (reads, lists) = (signatures(&["what is in main.go"]), signatures(&["what is in this folder"]));
        let mut frequencies = ExampleFrequencies::default();
        frequencies.add(&reads);
        frequencies.add(&lists);
        let request = RequestSignature::new("what is in README.md?");
        assert!(frequencies.likeness(&request, &reads) > 0.9);
        assert!(frequencies.likeness(&request, &lists) < frequencies.likeness(&request, &reads) / 2.0);
    }

    #[test]
    fn what_is_forgotten_counts_as_if_it_had_never_been() {
        let (one, other) = (signatures(&["run the tests"]), signatures(&["运行测试", "run it"]));
        let mut frequencies = ExampleFrequencies::default();
        frequencies.add(&one);
        let before = frequencies.likeness(&RequestSignature::new("run all tests"), &one);
        frequencies.add(&other);
        frequencies.remove(&other);
        assert!(
            (frequencies.likeness(&RequestSignature::new("run all tests"), &one) - before).abs()
                < f32::EPSILON
        );
    }

    #[test]
    fn nothing_is_like_nothing() {
        assert!(
            ExampleFrequencies::default().likeness(&RequestSignature::new(""), &signatures(&[""]))
                < f32::EPSILON
        );
    }
}
