//! A request, read once: its words with what they count, in English too where it is Chinese, and what it means.

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

/// How much of a request is read. What a person wants is signature in less; the rest is data.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// How long a request can be a name, and how many names are looked for.
const MAX_NAME_BYTES: usize = 64;
const MAX_NAMES: usize = 32;

/// What someone wants, in their own words.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    intent: RequestIntent,
    words: Vec<(String, WordShape, f32)>,
    /// Words it does not say, which find tools but are no span of what it means.
    implied: Vec<&'static str>,
    meaning: Box<MeaningVector>,
    is_chinese: bool,
    values: RequestValues,
    names: Vec<String>,
    signature: RequestSignature,
}

/// What a request has that could be a value.
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
    /// Reads a request.
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
        // A Chinese character says as much as four letters or so.
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

    /// What it asks for.
    pub fn intent(&self) -> &RequestIntent {
        &self.intent
    }

    /// Whether it is mostly written in Chinese, or another script without spaces.
    pub(crate) fn is_chinese(&self) -> bool {
        self.is_chinese
    }

    /// How many words it has, without those that say nothing.
    pub(crate) fn word_count(&self) -> usize {
        self.words.len()
    }

    /// What it is like another request by.
    pub(crate) fn signature(&self) -> &RequestSignature {
        &self.signature
    }

    /// What it means.
    pub(crate) fn meaning(&self) -> &MeaningVector {
        &self.meaning
    }

    /// What in it may be the name of a tool, in its plain form.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The values it has.
    pub(crate) fn values(&self) -> RequestValues {
        self.values
    }

    /// How much of it a tool's terms cover, weighed by how much each word counts, and how many words that is.
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

    /// Its terms, as far as an index knows them, each once.
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
        // What is signature again counts again, but less.
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

/// All of a short text, and the words of any text that are written as identifiers.
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
