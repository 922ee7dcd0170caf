//! A parsed request: its weighted words, translated if it is Chinese, and its meaning.

mod implied;
mod spans;

pub(crate) use spans::spans;

use crate::{
    RequestIntent, glossary,
    lexicon::{Term, TermLexicon},
    similarity::RequestSignature,
    text::{self, TextToken},
    vectors::{self, DIM, MeaningVector},
};

/// Maximum number of bytes that are read. A longer request contains data.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// Maximum length of a request that can be a name as a whole, and number of names.
const MAX_NAME_BYTES: usize = 64;
const MAX_NAMES: usize = 32;

/// The request of a user, in natural language.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    intent: RequestIntent,
    words: Vec<(String, WordShape, f32)>,
    /// Words that the request implies. They find tools but do not change its meaning.
    implied: Vec<&'static str>,
    meaning: Box<MeaningVector>,
    is_chinese: bool,
    values: RequestValues,
    names: Vec<String>,
    signature: RequestSignature,
}

/// The number of possible values in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestValues {
    /// Numbers.
    pub(crate) numbers: usize,
    /// Quotations, paths, addresses and names.
    pub(crate) names: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordShape {
    Word,
    Glyphs,
}

impl ToolRequest {
    /// Parses a request.
    pub fn new(text: &str) -> Self {
        let text = text::cut(text, MAX_REQUEST_BYTES);
        let mut words: Vec<(String, WordShape, f32)> = Vec::new();
        let mut meaning = Box::new([0.0; DIM]);
        for span in spans(text).into_iter().filter(|span| span.weight > 0.0) {
            text::tokenize(span.text, |token| add_token(token, span.weight, &mut words, &mut meaning));
        }
        let implied = implied::implied(words.iter().map(|(word, _, _)| word.as_str()));
        let glyphs = text.chars().filter(|c| text::is_glyph(*c)).count();
        let letters = text.chars().filter(char::is_ascii_alphabetic).count();
        for (english, weight) in glossary::translate(text) {
            let weight = weight * 1.0;
            text::tokenize(english, |token| add_token(token, weight, &mut words, &mut meaning));
        }
        let values = values(text);
        let intent = RequestIntent::parse(text);
        let names = names(text);
        // A Chinese character counts like about four letters.
        Self {
            intent,
            words,
            implied,
            meaning,
            is_chinese: glyphs * 4 > letters,
            values,
            names,
            signature: RequestSignature::new(text),
        }
    }

    /// Returns the intent.
    pub fn intent(&self) -> &RequestIntent {
        &self.intent
    }

    /// Returns true if it is mostly Chinese, or in another script without spaces.
    pub(crate) fn is_chinese(&self) -> bool {
        self.is_chinese
    }

    /// Returns the number of words, without stop words.
    pub(crate) fn word_count(&self) -> usize {
        self.words.len()
    }

    /// Returns the signature for comparison with other requests.
    pub(crate) fn signature(&self) -> &RequestSignature {
        &self.signature
    }

    /// Returns the meaning.
    pub(crate) fn meaning(&self) -> &MeaningVector {
        &self.meaning
    }

    /// Returns the possible names of tools in it, in their plain form.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the number of possible values.
    pub(crate) fn values(&self) -> RequestValues {
        self.values
    }

    /// Returns the share of its weighted words that the terms cover, and the number of words.
    pub(crate) fn coverage(&self, lexicon: &TermLexicon, terms: &[Term]) -> (f32, usize) {
        let (mut has, mut all, mut count) = (0.0, 0.0, 0);
        for (word, shape, weight) in &self.words {
            if *shape == WordShape::Glyphs {
                continue;
            }
            count += 1;
            all += weight;
            let found =
                lexicon.find(TextToken::Word(word)).is_some_and(|term| terms.binary_search(&term).is_ok());
            has += if found { *weight } else { 0.0 };
        }
        (if all > 0.0 { has / all } else { 0.0 }, count)
    }

    /// Returns its terms that an index knows, each once.
    pub(crate) fn terms(&self, lexicon: &TermLexicon) -> Vec<(Term, f32)> {
        let found = self.words.iter().filter_map(|(word, shape, weight)| {
            let token = match shape {
                WordShape::Word => TextToken::Word(word),
                WordShape::Glyphs => TextToken::Pair(word),
            };
            lexicon.find(token).map(|term| (term, *weight))
        });
        let implied = self.implied.iter().filter_map(|word| lexicon.find(TextToken::Word(word)));
        let mut found: Vec<_> = found.chain(implied.map(|term| (term, implied::WEIGHT))).collect();
        found.sort_unstable_by_key(|(term, _)| *term);
        // A repeated word counts again, but less.
        found.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.max(next.1) + 0.3 * kept.1.min(next.1);
            }
            same
        });
        found
    }
}

fn add_token(
    token: TextToken<'_>,
    weight: f32,
    words: &mut Vec<(String, WordShape, f32)>,
    meaning: &mut MeaningVector,
) {
    let written = token.text();
    let is_number = written.bytes().all(|byte| byte.is_ascii_digit());
    let weight = if is_number { weight * 0.3 } else { weight };
    let shape = if let TextToken::Word(word) = token {
        let rows = vectors::table().rows_of(word);
        vectors::table().add(&rows, weight, meaning);
        WordShape::Word
    } else {
        WordShape::Glyphs
    };
    if !text::is_stop(written) {
        words.push((written.to_owned(), shape, weight));
    }
}

/// Returns a short text as a whole, and the identifiers of any text.
fn names(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| c.is_whitespace() || "`'\"()“”‘’，。,;:：；?？!！".contains(c) || text::is_glyph(c));
    let is_identifier = |word: &&str| {
        let jointed = word.trim_matches(['.', '-', '/']).contains(['_', '-', '.', '/']);
        jointed || word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase())
    };
    let whole = Some(text).filter(|text| text.len() <= MAX_NAME_BYTES);
    whole
        .into_iter()
        .chain(words.filter(is_identifier))
        .take(MAX_NAMES)
        .map(text::plain)
        .filter(|name| !name.is_empty())
        .collect()
}

fn values(text: &str) -> RequestValues {
    let mut values = RequestValues::default();
    let mut begins = true;
    for span in spans(text) {
        let word = span.text.trim();
        let number = word.contains(|c: char| c.is_ascii_digit());
        let name = span.weight < 1.0 || (!begins && word.starts_with(char::is_uppercase) && word != "I");
        values.numbers += usize::from(number && !span.is_quoted);
        values.names += usize::from(name || (number && word.contains(char::is_alphabetic)));
        begins = word.ends_with(['.', '?', '!']) || (begins && word.is_empty());
    }
    values
}
