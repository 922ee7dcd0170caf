//! The tool index: finds tools by the words and the meaning of a request.
//!
//! Words are weighed by BM25F, field by field. Meaning is the cosine of static word vectors. After
//! tools are added or removed, the index equals one that is built from scratch.

mod entry;
mod fields;
mod saved;

use std::fmt;

use serde::Serialize;

pub(crate) use entry::{IndexEntry, IndexedParameter, MAX_EXAMPLE_BYTES, ParameterKind};
pub use saved::DamagedIndex;

use crate::{
    Card, ToolOperation, ToolRequest, Usage,
    hash::WordMap,
    lexicon::{Term, TermLexicon},
    numbers::{to_f32, to_u32},
    similarity::{ExampleFrequencies, RequestSignature},
    text,
    vectors::{self, DIM, MeaningVector, PackedVector},
};

/// BM25 saturation: limits the weight of a repeated word.
const K1: f32 = 1.3;

/// Weight of meaning, where the best word score is 1. Vectors cover English words, so for a Chinese
/// request they see only the glossary's translations.
const MEANING_WEIGHT: f32 = 0.6;
const MEANING_WEIGHT_CHINESE: f32 = 0.09;

/// Number of words above which the weight of meaning falls, because the mean of many word vectors
/// says little.
const LONG_REQUEST_WORDS: f32 = 10.0;

/// Minimum spread of meaning scores. Among a few similar tools a smaller spread is chance.
const MIN_SPREAD: f32 = 0.2;

/// Minimum of the best word score that others are divided by. Among a few tools any word is common.
const MIN_BEST_WORDS: f32 = 1.5;

/// Weight of a tool name that agrees with the operation of the request.
const AGREEMENT_WEIGHT: f32 = 0.12;

/// Weight of a request that equals one the tool answered before.
const LIKENESS_WEIGHT: f32 = 1.5;

/// Weight of a successful use, relative to an example of the author. It decides between tools that
/// fit about equally, but does not promote a tool that does not fit.
const USE_WEIGHT: f32 = 0.6;

/// Maximum number of such requests that a tool keeps.
const MAX_USES: usize = 12;

/// Minimum cosine at which a tool without any word of the request is related to it.
const MIN_RELATED_MEANING: f32 = 0.5;

/// Minimum likeness to an answered request at which a tool is related. Stop words alone give a
/// little likeness.
const MIN_RELATED_LIKENESS: f32 = 0.1;

/// Weight of a tool name in the request. It exceeds all others together, so a known name always
/// wins.
const NAME_WEIGHT: f32 = 10.0;

/// A tool in an index. Ids of removed tools are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ToolId(u32);

impl ToolId {
    /// Returns the position among the cards of the index, as long as none was removed.
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A searchable index of tools.
#[derive(Debug, Default)]
pub struct Index {
    lexicon: TermLexicon,
    /// For each term the tools that contain it, in order, with its weight there.
    postings: Vec<Vec<(ToolId, f32)>>,
    entries: Vec<Option<IndexEntry>>,
    /// The meaning of each tool; zero for removed ones.
    meanings: Vec<PackedVector>,
    by_key: WordMap<String, ToolId>,
    /// Tools by name, without separators and capitals.
    by_name: WordMap<String, Vec<ToolId>>,
    free: Vec<ToolId>,
    example_frequencies: ExampleFrequencies,
}

/// A tool that a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToolHit {
    /// The tool in the index.
    pub id: ToolId,
    /// The score, comparable only within the same search.
    pub score: f32,
    /// The score of its words.
    pub words: f32,
    /// The cosine of its meaning, from -1 to 1.
    pub meaning: f32,
    /// The likeness of the request to one that the tool answered, from 0 to 1.
    pub likeness: f32,
}

impl ToolHit {
    /// Returns true if the tool has something in common with the request, and is not just the best
    /// of unrelated tools.
    pub fn is_related(&self) -> bool {
        self.words > 0.0 || self.likeness >= MIN_RELATED_LIKENESS || self.meaning >= MIN_RELATED_MEANING
    }
}

impl Index {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an index of tools.
    pub fn from_cards(cards: &[Card]) -> Self {
        let mut index = Self::new();
        for card in cards {
            index.add(card);
        }
        index
    }

    /// Returns a hash of the cards that does not depend on their order.
    pub fn digest(&self) -> u64 {
        self.entries.iter().flatten().fold(0, |sum, entry| sum.wrapping_add(entry.digest))
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns true if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Adds a tool. One of the same name and server is replaced.
    pub fn add(&mut self, card: &Card) -> ToolId {
        let key = card.key();
        if let Some(id) = self.by_key.get(&key).copied() {
            self.remove(id);
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.meanings.push(PackedVector::default());
            ToolId(to_u32(self.entries.len() - 1))
        });
        let (terms, meaning) = self.analyze(card);
        self.postings.resize_with(self.lexicon.len(), Vec::new);
        for (term, weight) in &terms {
            let postings = &mut self.postings[*term as usize];
            let at = postings.partition_point(|(each, _)| *each < id);
            postings.insert(at, (id, *weight));
        }
        let terms = terms.into_iter().map(|(term, _)| term).collect();
        let entry = IndexEntry::new(card, terms, &mut self.lexicon);
        self.postings.resize_with(self.lexicon.len(), Vec::new);
        self.example_frequencies.add(entry.signatures());
        self.entries[id.0 as usize] = Some(entry);
        self.meanings[id.0 as usize] = meaning;
        self.by_key.insert(key, id);
        self.by_name.entry(text::plain(&card.name)).or_default().push(id);
        id
    }

    /// Removes a tool. Returns true if it was there.
    pub fn remove(&mut self, id: ToolId) -> bool {
        let Some(entry) = self.entries.get_mut(id.0 as usize).and_then(Option::take) else { return false };
        for term in &entry.terms {
            let postings = &mut self.postings[*term as usize];
            if let Ok(at) = postings.binary_search_by_key(&id, |(each, _)| *each) {
                postings.remove(at);
            }
        }
        self.example_frequencies.remove(entry.signatures());
        self.meanings[id.0 as usize] = PackedVector::default();
        self.by_key.remove(&entry.key());
        if let Some(ids) = self.by_name.get_mut(&text::plain(&entry.name)) {
            ids.retain(|each| *each != id);
        }
        self.free.push(id);
        true
    }

    /// Adds the requests that tools answered. They are not saved with the index, because they are
    /// private and already stored elsewhere.
    pub fn remember(&mut self, usage: &Usage) {
        for answered in usage.requests() {
            let signature = RequestSignature::new(&answered.request);
            let names = answered.tools.iter().map(|name| text::plain(name));
            let mut ids: Vec<_> =
                names.filter_map(|name| self.by_name.get(&name)).flatten().copied().collect();
            ids.sort_unstable();
            ids.dedup();
            if !signature.is_distinctive() || ids.is_empty() {
                continue;
            }
            // The more tools a request needed, the less it says about each.
            let weight = USE_WEIGHT * answered.weight / to_f32(ids.len());
            for id in ids {
                self.add_use(id, &signature, weight);
            }
        }
    }

    fn add_use(&mut self, id: ToolId, signature: &RequestSignature, weight: f32) {
        let Some(entry) = self.entries.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        let is_known = entry.uses.iter().any(|(known, _)| known.words == signature.words);
        if entry.uses.len() < MAX_USES && !is_known {
            self.example_frequencies.remove(entry.signatures());
            entry.uses.push((signature.clone(), weight));
            self.example_frequencies.add(entry.signatures());
        }
    }

    /// Returns the name of a tool.
    pub fn name(&self, id: ToolId) -> Option<&str> {
        self.entry(id).map(|entry| &*entry.name)
    }

    pub(crate) fn entry(&self, id: ToolId) -> Option<&IndexEntry> {
        self.entries.get(id.0 as usize).and_then(Option::as_ref)
    }

    /// Returns all tools.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ToolId> {
        (0..).zip(&self.entries).filter(|(_, entry)| entry.is_some()).map(|(id, _)| ToolId(id))
    }

    /// Returns the word score of one tool, independent of other tools.
    pub(crate) fn word_score(&self, request: &ToolRequest, id: ToolId) -> f32 {
        let terms = request.terms(&self.lexicon).into_iter();
        let counts = terms.map(|(term, weight)| (self.term_count(term, id), weight));
        counts.map(|(count, weight)| weight * count / (K1 + count)).sum()
    }

    /// Returns the weight of a term in a tool.
    fn term_count(&self, term: Term, id: ToolId) -> f32 {
        let postings = &self.postings[term as usize];
        postings.binary_search_by_key(&id, |(each, _)| *each).map_or(0.0, |at| postings[at].1)
    }

    /// Returns the cosine between a tool and a meaning.
    pub(crate) fn cosine_to(&self, id: ToolId, wanted: &PackedVector) -> f32 {
        self.meanings.get(id.0 as usize).map_or(0.0, |meaning| wanted.cosine(meaning))
    }

    pub(crate) fn lexicon(&self) -> &TermLexicon {
        &self.lexicon
    }

    /// Returns the tools that fit best, the best first.
    pub fn search(&self, request: &ToolRequest, limit: usize) -> Vec<ToolHit> {
        let all: Vec<_> = self.ids().collect();
        self.search_among(request, &all, limit)
    }

    /// Searches only among the given tools. The rarity of a word still depends on all tools.
    pub fn search_among(&self, request: &ToolRequest, among: &[ToolId], limit: usize) -> Vec<ToolHit> {
        let words = self.word_scores(request);
        let meaning = self.meaning_scores(request);
        let mut hits: Vec<_> = among
            .iter()
            .filter_map(|id| self.entry(*id).map(|entry| (*id, entry)))
            .map(|(id, entry)| ToolHit {
                id,
                score: 0.0,
                words: words[id.0 as usize],
                meaning: meaning[id.0 as usize],
                likeness: self.likeness(request, entry),
            })
            .collect();
        fuse(&mut hits, request);
        for hit in &mut hits {
            let done = self.entry(hit.id).map_or(ToolOperation::Other, |entry| entry.operation);
            hit.score += LIKENESS_WEIGHT * hit.likeness;
            hit.score += AGREEMENT_WEIGHT * request.intent().operation.agreement(done);
        }
        let named: Vec<_> = request.names().filter_map(|name| self.by_name.get(name)).flatten().collect();
        hits.iter_mut().filter(|hit| named.contains(&&hit.id)).for_each(|hit| hit.score += NAME_WEIGHT);
        let order = |a: &ToolHit, b: &ToolHit| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id));
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits
    }

    /// Returns the likeness of a request to those that a tool answered.
    fn likeness(&self, request: &ToolRequest, entry: &IndexEntry) -> f32 {
        if entry.examples.is_empty() && entry.uses.is_empty() {
            return 0.0;
        }
        let signature = request.signature();
        let uses = entry
            .uses
            .iter()
            .map(|(known, weight)| weight * self.example_frequencies.likeness(signature, [known]));
        uses.fold(self.example_frequencies.likeness(signature, &entry.examples), f32::max)
    }

    /// Returns the word score of each tool.
    fn word_scores(&self, request: &ToolRequest) -> Vec<f32> {
        let mut scores = vec![0.0; self.entries.len()];
        for (term, weight) in request.terms(&self.lexicon) {
            let weight = weight * self.rarity(term);
            for (id, count) in &self.postings[term as usize] {
                scores[id.0 as usize] += weight * count / (K1 + count);
            }
        }
        scores
    }

    /// Returns the inverse document frequency of a term.
    pub(crate) fn rarity(&self, term: Term) -> f32 {
        let with = self.postings.get(term as usize).map_or(0, Vec::len);
        let without = self.len() - with;
        (1.0 + (to_f32(without) + 0.5) / (to_f32(with) + 0.5)).ln()
    }

    /// Returns the cosine of each tool with the meaning of a request.
    fn meaning_scores(&self, request: &ToolRequest) -> Vec<f32> {
        match vectors::pack(request.meaning()) {
            Some(wanted) => self.meanings.iter().map(|meaning| wanted.cosine(meaning)).collect(),
            None => vec![0.0; self.meanings.len()],
        }
    }

    /// Returns the terms of a card with their weights, in order, and its meaning.
    fn analyze(&mut self, card: &Card) -> (Vec<(Term, f32)>, PackedVector) {
        let mut found: Vec<(Term, f32)> = Vec::new();
        let mut meaning: MeaningVector = [0.0; DIM];
        for field in fields::fields(card) {
            let from = found.len();
            text::tokenize(&field.text, |token| {
                let known = self.lexicon.learn(token);
                found.extend(known.term.map(|term| (term, 0.0)));
                if field.meaning > 0.0 {
                    vectors::table().add(self.lexicon.rows(known), field.meaning, &mut meaning);
                }
            });
            let length = to_f32(found.len() - from);
            let weight = field.weight / (1.0 - field.b + field.b * length / field.usual);
            found[from..].iter_mut().for_each(|(_, each)| *each = weight);
        }
        found.sort_unstable_by_key(|(term, _)| *term);
        found.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0.0 };
            same
        });
        (found, vectors::pack(&meaning).unwrap_or_default())
    }
}

/// Combines words and meaning to one score. Words lead: their best is 1, and meaning adds its
/// distance from the median.
fn fuse(hits: &mut [ToolHit], request: &ToolRequest) {
    if hits.is_empty() {
        return;
    }
    let most = hits.iter().map(|hit| hit.words).fold(MIN_BEST_WORDS, f32::max);
    let mut meanings: Vec<_> = hits.iter().map(|hit| hit.meaning).collect();
    let middle = meanings.len() / 2;
    let (_, median, above) = meanings.select_nth_unstable_by(middle, f32::total_cmp);
    let median = *median;
    let spread = (above.iter().copied().fold(median, f32::max) - median).max(MIN_SPREAD);
    let share = if request.is_chinese() {
        MEANING_WEIGHT_CHINESE
    } else {
        MEANING_WEIGHT * (LONG_REQUEST_WORDS / to_f32(request.word_count().max(1))).min(1.0)
    };
    for hit in hits {
        hit.score = hit.words / most + share * (hit.meaning - median) / spread;
    }
}

#[cfg(test)]
mod tests;
