//! The words that an index knows, each with its term and its vector.

use crate::{
    hash::WordMap,
    numbers::to_u32,
    text::{self, TextToken},
    vectors,
};

/// The number of a term: a stem, a character or a pair of characters.
pub(crate) type Term = u32;

/// The lexicon's data about a word as written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownWord {
    /// Its term; stop words have none.
    pub(crate) term: Option<Term>,
    /// The range of its vector rows in the lexicon's list.
    rows: (u32, u32),
}

/// A map of words and terms. It only grows: a word that no tool uses any more costs a few bytes.
#[derive(Debug, Default)]
pub(crate) struct TermLexicon {
    seen: WordMap<Box<str>, KnownWord>,
    terms: WordMap<Box<str>, Term>,
    rows: Vec<u32>,
}

impl TermLexicon {
    /// Returns the data about a token; adds it if it is new.
    pub(crate) fn learn(&mut self, token: TextToken<'_>) -> KnownWord {
        // Characters are their own terms and have no vector, so nothing is stored for them.
        let TextToken::Word(word) = token else {
            return KnownWord { term: self.learn_term(token), rows: (0, 0) };
        };
        if let Some(known) = self.seen.get(word) {
            return *known;
        }
        let term = self.learn_term(token);
        let from = to_u32(self.rows.len());
        self.rows.extend(vectors::table().rows_of(word));
        let known = KnownWord { term, rows: (from, to_u32(self.rows.len())) };
        self.seen.insert(word.into(), known);
        known
    }

    fn learn_term(&mut self, token: TextToken<'_>) -> Option<Term> {
        let term = token.term();
        if let (Some(term), TextToken::Glyph(_) | TextToken::Pair(_)) = (self.terms.get(&*term), token) {
            return Some(*term);
        }
        if text::is_stop(token.text()) {
            return None;
        }
        if let Some(term) = self.terms.get(&*term) {
            return Some(*term);
        }
        let next = to_u32(self.terms.len());
        self.terms.insert(term.into(), next);
        Some(next)
    }

    /// Returns the number of a token, if any tool has it.
    pub(crate) fn find(&self, token: TextToken<'_>) -> Option<Term> {
        match self.seen.get(token.text()) {
            Some(known) => known.term,
            None if text::is_stop(token.text()) => None,
            None => self.terms.get(&*token.term()).copied(),
        }
    }

    /// Returns the rows of the vector table for a word.
    pub(crate) fn rows(&self, known: KnownWord) -> &[u32] {
        &self.rows[known.rows.0 as usize..known.rows.1 as usize]
    }

    /// Returns all terms, ordered by number.
    pub(crate) fn terms(&self) -> Vec<&str> {
        let mut terms = vec![""; self.terms.len()];
        for (text, term) in &self.terms {
            terms[*term as usize] = text;
        }
        terms
    }

    /// Creates a lexicon of terms, ordered by number. Words are added again as they occur.
    pub(crate) fn from_terms(terms: impl Iterator<Item = String>) -> Self {
        let terms = terms.enumerate().map(|(at, text)| (text.into(), to_u32(at))).collect();
        Self { terms, ..Self::default() }
    }

    /// Returns the number of terms.
    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }
}
