//! Serializes an index, so that a program need not analyze ten thousand cards again.
//!
//! Saved bytes are untrusted: a checksum detects damage, and every number is checked before use.

use std::{hash::Hasher, sync::LazyLock};

use serde_json::json;

use super::{Index, IndexEntry, ToolId, entry::IndexedParameter};
use crate::{
    Card,
    hash::WordHasher,
    lexicon::{Term, TermLexicon},
    numbers::to_u32,
    similarity::RequestSignature,
    text,
    vectors::{DIM, PackedVector},
};

/// The format version. Other versions are rejected.
const MAGIC: [u8; 8] = *b"wlindex4";

/// The bytes are not an index, or not one of this version. Build the index from its cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedIndex;

impl std::fmt::Display for DamagedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this is not a saved index, or it is damaged; build it again from its tools")
    }
}

impl std::error::Error for DamagedIndex {}

impl Index {
    /// Serializes the index.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = MAGIC.to_vec();
        to.extend(format_fingerprint().to_le_bytes());
        self.write(&mut to);
        let sum = checksum(&to);
        to.extend(sum.to_le_bytes());
        to
    }

    fn write(&self, to: &mut Vec<u8>) {
        let terms = self.lexicon.terms();
        number(to, to_u32(terms.len()));
        for term in terms {
            string(to, term);
        }
        number(to, to_u32(self.len()));
        for id in self.ids() {
            let Some(entry) = self.entry(id) else { continue };
            string(to, &entry.name);
            string(to, &entry.server);
            to.extend(entry.digest.to_le_bytes());
            to.extend(entry.flags());
            numbers(to, &entry.name_terms);
            number(to, to_u32(entry.terms.len()));
            for term in &entry.terms {
                number(to, *term);
                to.extend(self.term_count(*term, id).to_le_bytes());
            }
            number(to, to_u32(entry.parameters.len()));
            for parameter in &entry.parameters {
                to.extend(parameter.flags());
                numbers(to, &parameter.terms);
                numbers(to, &parameter.values);
            }
            number(to, to_u32(entry.examples.len()));
            for signature in &entry.examples {
                numbers(to, &signature.words);
                to.extend(signature.meaning.0.map(i8::cast_unsigned));
            }
            to.extend(self.meanings[id.0 as usize].0.map(i8::cast_unsigned));
        }
    }

    /// Reads an index that [`to_bytes`](Self::to_bytes) wrote. Compare its [`digest`](Self::digest)
    /// to check that it has the right tools.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedIndex> {
        let (body, expected) = bytes.split_last_chunk().ok_or(DamagedIndex)?;
        if u64::from_le_bytes(*expected) != checksum(body) {
            return Err(DamagedIndex);
        }
        let body = body.strip_prefix(&MAGIC).ok_or(DamagedIndex)?;
        let body = body.strip_prefix(&format_fingerprint().to_le_bytes()).ok_or(DamagedIndex)?;
        IndexReader(body).index().ok_or(DamagedIndex)
    }

    /// Returns the index of these tools, in this order. Known tools are taken over and not analyzed
    /// again.
    ///
    /// The index is built from scratch if most of its words belong to removed tools. Otherwise an
    /// index that is saved and renewed repeatedly would only grow.
    #[must_use]
    pub fn renewed(mut self, cards: &[Card]) -> Self {
        let mut renewed = Self { lexicon: std::mem::take(&mut self.lexicon), ..Self::default() };
        renewed.postings.resize_with(renewed.lexicon.len(), Vec::new);
        for card in cards {
            let known = self.by_key.get(&card.key()).and_then(|id| Some((*id, self.entry(*id)?)));
            match known.filter(|(_, entry)| entry.digest == card.digest()) {
                Some((id, entry)) => {
                    let counts = entry.terms.iter().map(|term| (*term, self.term_count(*term, id)));
                    renewed.take(entry.clone(), counts, self.meanings[id.0 as usize]);
                }
                None => drop(renewed.add(card)),
            }
        }
        let used = renewed.postings.iter().filter(|postings| !postings.is_empty()).count();
        if used < renewed.lexicon.len() / 2 { Self::from_cards(cards) } else { renewed }
    }

    /// Returns a key under which an index of similar tools is saved.
    ///
    /// It is the smallest hash of a tool, so it usually stays the same when a few tools change.
    /// Another list of tools has another key.
    pub fn family_hash(cards: &[Card]) -> u64 {
        let hash = |card: &Card| checksum(format!("{}\0{}", card.key(), card.category).as_bytes());
        cards.iter().map(hash).min().unwrap_or_default()
    }

    /// Returns true if [`renewed`](Self::renewed) with these tools would change nothing.
    pub fn matches_cards(&self, cards: &[Card]) -> bool {
        let known = self.entries.iter().map(|entry| entry.as_ref().map(|entry| entry.digest));
        known.eq(cards.iter().map(|card| Some(card.digest())))
    }

    /// Appends a tool from another index, unless there is one of that name.
    fn take(
        &mut self,
        entry: IndexEntry,
        counts: impl Iterator<Item = (Term, f32)>,
        meaning: PackedVector,
    ) -> Option<()> {
        let id = ToolId(to_u32(self.entries.len()));
        if self.by_key.insert(entry.key(), id).is_some() {
            return None;
        }
        for (term, count) in counts {
            self.postings[term as usize].push((id, count));
        }
        self.example_frequencies.add(entry.signatures());
        self.by_name.entry(text::plain(&entry.name)).or_default().push(id);
        self.meanings.push(meaning);
        self.entries.push(Some(entry));
        Some(())
    }
}

/// Returns a hash of an analyzed test card. It changes with the analysis, so that an index of
/// another version is rejected.
fn format_fingerprint() -> u64 {
    static FINGERPRINT: LazyLock<u64> = LazyLock::new(|| {
        let property = json!({"type": "integer", "description": "Number of days.", "enum": ["one", "few"]});
        let probe = Card {
            name: "getWeatherForecast".to_owned(),
            description: "Get the hourly weather forecasts of a city, e.g. 东京的天气预报.".to_owned(),
            category: "Weather services".to_owned(),
            parameters: json!({"type": "object", "required": ["city"], "properties": {"city": property}}),
            examples: vec!["will it be raining in \"Oslo\" on 5 May?".to_owned()],
            ..Card::default()
        };
        let mut bytes = Vec::new();
        Index::from_cards(&[probe]).write(&mut bytes);
        checksum(&bytes)
    });
    *FINGERPRINT
}

pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = WordHasher::default();
    hash.write(bytes);
    hash.finish()
}

fn number(to: &mut Vec<u8>, number: u32) {
    to.extend(number.to_le_bytes());
}

fn numbers(to: &mut Vec<u8>, numbers: &[u32]) {
    number(to, to_u32(numbers.len()));
    for each in numbers {
        number(to, *each);
    }
}

fn string(to: &mut Vec<u8>, text: &str) {
    number(to, to_u32(text.len()));
    to.extend(text.as_bytes());
}

/// Reads bytes from the front.
struct IndexReader<'a>(&'a [u8]);

impl IndexReader<'_> {
    fn index(&mut self) -> Option<Index> {
        let count = self.count()?;
        let terms: Vec<_> = (0..count).map(|_| self.string()).collect::<Option<_>>()?;
        let mut index = Index { lexicon: TermLexicon::from_terms(terms.into_iter()), ..Index::default() };
        index.postings.resize_with(index.lexicon.len(), Vec::new);
        for _ in 0..self.count()? {
            self.tool(&mut index)?;
        }
        self.0.is_empty().then_some(index)
    }

    fn tool(&mut self, index: &mut Index) -> Option<()> {
        let most = to_u32(index.lexicon.len());
        let (name, server) = (self.string()?, self.string()?);
        let digest = u64::from_le_bytes(self.take()?);
        let flags = self.take()?;
        let name_terms = self.terms(most)?;
        let counts: Vec<(Term, f32)> = (0..self.count()?)
            .map(|_| Some((self.term(most)?, f32::from_le_bytes(self.take()?))))
            .collect::<Option<_>>()?;
        if !counts.is_sorted_by(|(a, _), (b, _)| a < b) || counts.iter().any(|(_, count)| !count.is_finite())
        {
            return None;
        }
        let parameters = (0..self.count()?)
            .map(|_| IndexedParameter::from_flags(self.take()?, self.terms(most)?, self.terms(most)?))
            .collect::<Option<_>>()?;
        let examples: Box<[RequestSignature]> = (0..self.count()?)
            .map(|_| {
                let words = self.terms(u32::MAX).filter(|words| words.is_sorted())?;
                Some(RequestSignature { words, meaning: self.meaning()? })
            })
            .collect::<Option<_>>()?;
        let terms = counts.iter().map(|(term, _)| *term).collect();
        let entry = IndexEntry::from_flags(&name, &server, flags, digest)?;
        let entry = IndexEntry { terms, name_terms, parameters, examples, ..entry };
        index.take(entry, counts.into_iter(), self.meaning()?)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Reads a count. Each item has at least one byte, so a count beyond the remaining length is
    /// invalid.
    fn count(&mut self) -> Option<usize> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        (count <= self.0.len()).then_some(count)
    }

    fn term(&mut self, most: u32) -> Option<Term> {
        Some(u32::from_le_bytes(self.take()?)).filter(|term| *term < most)
    }

    fn terms(&mut self, most: u32) -> Option<Box<[Term]>> {
        (0..self.count()?).map(|_| self.term(most)).collect()
    }

    fn meaning(&mut self) -> Option<PackedVector> {
        Some(PackedVector(self.take::<DIM>()?.map(u8::cast_signed)))
    }

    fn string(&mut self) -> Option<String> {
        let length = self.count()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
