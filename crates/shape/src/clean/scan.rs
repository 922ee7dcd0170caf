//! Searches for everything that a secret can begin with or be named by, and checks the matches.

use std::{collections::BTreeMap, ops::Range, sync::LazyLock};

use super::{
    assign,
    found_secret::{FoundSecret, ScanResume},
    keys,
    line::ScannedLine,
    name::{self, NameKind},
    place::{MAX_NESTED_TOKEN, PLACES, PlaceRule},
    rules::{self, RULES},
    token,
    word_search::WordSearch,
};

/// Parts of names.
const NAME_PARTS: &str =
    "pass pwd pw psk _pat secret token key creds _private _salt pepper masterauth dockerconfigjson";

/// The search for all words at once.
pub(super) struct SecretSearch {
    words: WordSearch,
    /// Matchers of each word, with the length of the word each needs. A longer word hides its own
    /// prefixes.
    looks: Vec<Vec<(usize, SecretMatcher)>>,
}

/// A matcher for a place.
#[derive(Clone, Copy)]
enum SecretMatcher {
    /// Part of a name whose value may follow.
    Name,
    /// The name of a secret in another language.
    Label(NameKind),
    Place(&'static PlaceRule),
    Cookies,
    WebToken,
    /// The start of a key.
    Key,
    /// Start of a block, its end, the prefix of its first line, and a text in its middle.
    Block,
    End,
    Head,
    Middle,
    /// The title of a block in base64.
    Encoded,
}

/// Result of checking a place.
pub(super) enum ScanHit {
    /// Resume here; secrets were added to the list.
    Next(ScanResume),
    /// A private key begins with this title.
    Block { title: Range<usize> },
    /// A private key ends here. Its title may be missing.
    End,
    /// This line is in the middle of a private key.
    Middle,
    /// This is the first line of a private key without a title, which starts here.
    Head { start: usize },
}

pub(super) static SEARCH: LazyLock<SecretSearch> = LazyLock::new(SecretSearch::new);

impl SecretSearch {
    fn new() -> Self {
        let mut words: BTreeMap<Vec<u8>, Vec<SecretMatcher>> = BTreeMap::new();
        for (word, look) in looks() {
            let known = words.entry(word.to_ascii_lowercase()).or_default();
            // Rules with the same prefix are tried together.
            if !(matches!(look, SecretMatcher::Key)
                && known.iter().any(|look| matches!(look, SecretMatcher::Key)))
            {
                known.push(look);
            }
        }
        let (search, own): (_, Vec<_>) = (WordSearch::new(words.keys()), words.into_values().collect());
        let looks = (0..own.len()).map(|word| {
            let words = search.with_prefixes(word);
            words.flat_map(|(at, word)| own[at].iter().map(|look| (word.len(), *look))).collect()
        });
        Self { looks: looks.collect(), words: search }
    }

    /// Returns the next offset at which a secret may begin.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        self.words.find(text, from)
    }

    /// Checks such an offset in its line.
    pub(super) fn look(
        &self,
        word: usize,
        line: &ScannedLine<'_>,
        at: &Range<usize>,
        found: &mut Vec<FoundSecret>,
    ) -> ScanHit {
        let (mut next, before) = (ScanResume::at(at.start + 1), found.len());
        for (length, look) in &self.looks[word] {
            match look.at(line, &(at.start..at.start + length), found) {
                Some(ScanHit::Next(other)) if found.len() > before || other.pending.is_some() => {
                    return ScanHit::Next(other);
                }
                Some(ScanHit::Next(other)) => next = if other.resume > next.resume { other } else { next },
                Some(hit) => return hit,
                None => {}
            }
        }
        ScanHit::Next(next)
    }
}

impl SecretMatcher {
    fn at(self, line: &ScannedLine<'_>, at: &Range<usize>, found: &mut Vec<FoundSecret>) -> Option<ScanHit> {
        let next = |resume: usize| ScanHit::Next(ScanResume::at(resume));
        match self {
            Self::Name => Some(ScanHit::Next(assign::find(line, at.clone(), found))),
            Self::Label(kind) => assign::find_label(line, at.clone(), kind, found).map(ScanHit::Next),
            Self::Place(rule) => rule.look(line, at, found).map(next),
            Self::Cookies => token::cookies(line, at, found).map(next),
            Self::WebToken => token::jwt(line, at.start, found).map(next),
            Self::Key => key(line, at.start, found).map(next),
            Self::Block => {
                let length = keys::title_end(&line[at.start..])?;
                Some(ScanHit::Block { title: at.start..at.start + length })
            }
            Self::End => keys::is_end(&line[at.start..]).then_some(ScanHit::End),
            Self::Head => keys::first_start(line, at).map(|start| ScanHit::Head { start }),
            Self::Middle => keys::is_middle(line, at).then_some(ScanHit::Middle),
            Self::Encoded => {
                let key = token::encoded_key(line, at.start)?;
                if keys::is_wrapped(line, &key.range) {
                    return Some(ScanHit::Head { start: key.range.start });
                }
                let resume = key.range.end;
                found.push(key);
                Some(next(resume))
            }
        }
    }
}

/// Lists all words to search for.
fn looks() -> impl Iterator<Item = (&'static [u8], SecretMatcher)> {
    let keys = RULES.iter().map(|rule| (rule.prefix.as_bytes(), SecretMatcher::Key));
    let names = NAME_PARTS.split(' ').map(|part| (part.as_bytes(), SecretMatcher::Name));
    let labels = name::foreign().map(|(label, kind)| (label.as_bytes(), SecretMatcher::Label(kind)));
    let heads = keys::HEADS.split(' ').map(|head| (head.as_bytes(), SecretMatcher::Head));
    let places = PLACES
        .iter()
        .flat_map(|rule| rule.words.iter().map(move |word| (word.as_bytes(), SecretMatcher::Place(rule))));
    let blocks = [
        (&keys::TITLES[..], SecretMatcher::Block),
        (&keys::ENDS, SecretMatcher::End),
        (&keys::MIDDLES, SecretMatcher::Middle),
        (&[keys::ENCODED], SecretMatcher::Encoded),
        (&[b"cookie:"], SecretMatcher::Cookies),
        (&[b"eyJ"], SecretMatcher::WebToken),
    ];
    let blocks = blocks.into_iter().flat_map(|(words, look)| words.iter().map(move |word| (*word, look)));
    keys.chain(names).chain(labels).chain(places).chain(heads).chain(blocks.collect::<Vec<_>>())
}

/// Finds a key that starts here. A long text that only has the format of one is skipped as a whole,
/// or a line of such texts would take quadratic time.
fn key(line: &[u8], start: usize, found: &mut Vec<FoundSecret>) -> Option<usize> {
    if !starts_word(line, start) {
        return None;
    }
    let key = rules::form_at(&line[start..])?;
    let range = start..start + key.end;
    let resume = range.end;
    if !key.is_real {
        return (range.len() > MAX_NESTED_TOKEN).then_some(resume);
    }
    if key.rule.label == "aws-access-key" {
        token::beside_aws_key(line, range.end, found);
    }
    found.push(FoundSecret { range, label: key.rule.label, why: key.rule.what });
    Some(resume)
}

/// Returns true if a word starts here, also after `\n`, `%3D` or the last letter of a terminal
/// sequence.
pub(super) fn starts_word(line: &[u8], at: usize) -> bool {
    let before = &line[..at];
    match before {
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., b'm'] => {
            let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
            let numbers = before[..at - 1].iter().rev().take_while(is_number).count();
            before[..at - 1 - numbers].ends_with(b"\x1b[")
        }
        [..] => before.is_empty(),
    }
}
