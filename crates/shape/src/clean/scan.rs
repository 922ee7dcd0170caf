//! One search for everything a secret can begin with or be named by, and what looks at the places that are found.

use std::{collections::BTreeMap, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, Input};

use super::{
    assign,
    bytes::search_for,
    found::{Found, Next},
    keys,
    line::Line,
    name::{self, NameKind},
    place::{LONG_TOKEN, PLACES, PlaceRule},
    rules::{self, RULES},
    token,
};

/// Parts of names.
const NAME_PARTS: &str =
    "pass pwd pw psk _pat secret token key creds _private _salt pepper masterauth dockerconfigjson";

/// The search for all words at once.
pub(super) struct SecretSearch {
    words: AhoCorasick,
    /// What looks at each word, and how long the word is that it looks for: a longer word hides those that begin it.
    looks: Vec<Vec<(usize, Look)>>,
}

/// A way to look at a place.
#[derive(Clone, Copy)]
enum Look {
    /// Part of a name whose value may follow.
    Name,
    /// The name of a secret in another language.
    Label(NameKind),
    Place(&'static PlaceRule),
    Cookies,
    WebToken,
    /// The start of a key.
    Key,
    /// The start of a block, the end of one, how its first line begins, and what is in its middle.
    Block,
    End,
    Head,
    Middle,
    /// The title of a block in base64.
    Encoded,
}

/// What was found at a place.
pub(super) enum Hit {
    /// Look no further here; secrets were added to the list.
    Next(Next),
    /// A private key has begun; its title is here.
    Block { title: Range<usize> },
    /// One ends here whose title may not have been there.
    End,
    /// This line is of the middle of one.
    Middle,
    /// This is the first line of one without a title, which starts here.
    Head { start: usize },
}

pub(super) static SEARCH: LazyLock<SecretSearch> = LazyLock::new(SecretSearch::new);

impl SecretSearch {
    fn new() -> Self {
        let mut words: BTreeMap<Vec<u8>, Vec<Look>> = BTreeMap::new();
        for (word, look) in looks() {
            let known = words.entry(word.to_ascii_lowercase()).or_default();
            // Rules of one prefix are tried together.
            if !(matches!(look, Look::Key) && known.iter().any(|look| matches!(look, Look::Key))) {
                known.push(look);
            }
        }
        let looks = words.keys().map(|word| {
            let begins = |(each, _): &(&Vec<u8>, _)| word.starts_with(each);
            let hidden = words.iter().filter(begins).rev();
            hidden.flat_map(|(each, looks)| looks.iter().map(|look| (each.len(), *look))).collect()
        });
        Self { looks: looks.collect(), words: search_for(words.keys()) }
    }

    /// Returns the next place from which something may begin.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let found = self.words.find(Input::new(text).range(from.min(text.len())..))?;
        Some((found.pattern().as_usize(), found.range()))
    }

    /// Looks at such a place in its line.
    pub(super) fn look(
        &self,
        word: usize,
        line: &Line<'_>,
        at: &Range<usize>,
        found: &mut Vec<Found>,
    ) -> Hit {
        let (mut next, before) = (Next::at(at.start + 1), found.len());
        for (length, look) in &self.looks[word] {
            match look.at(line, &(at.start..at.start + length), found) {
                Some(Hit::Next(other)) if found.len() > before || other.pending.is_some() => {
                    return Hit::Next(other);
                }
                Some(Hit::Next(other)) => next = if other.resume > next.resume { other } else { next },
                Some(hit) => return hit,
                None => {}
            }
        }
        Hit::Next(next)
    }
}

impl Look {
    fn at(self, line: &Line<'_>, at: &Range<usize>, found: &mut Vec<Found>) -> Option<Hit> {
        let next = |resume: usize| Hit::Next(Next::at(resume));
        match self {
            Self::Name => Some(Hit::Next(assign::find(line, at.clone(), found))),
            Self::Label(kind) => assign::find_label(line, at.clone(), kind, found).map(Hit::Next),
            Self::Place(rule) => rule.look(line, at, found).map(next),
            Self::Cookies => token::cookies(line, at, found).map(next),
            Self::WebToken => token::jwt(line, at.start, found).map(next),
            Self::Key => key(line, at.start, found).map(next),
            Self::Block => {
                let length = keys::title_end(&line[at.start..])?;
                Some(Hit::Block { title: at.start..at.start + length })
            }
            Self::End => keys::is_end(&line[at.start..]).then_some(Hit::End),
            Self::Head => keys::first_start(line, at).map(|start| Hit::Head { start }),
            Self::Middle => keys::is_middle(line, at).then_some(Hit::Middle),
            Self::Encoded => {
                let key = token::encoded_key(line, at.start)?;
                if keys::is_wrapped(line, &key.range) {
                    return Some(Hit::Head { start: key.range.start });
                }
                let resume = key.range.end;
                found.push(key);
                Some(next(resume))
            }
        }
    }
}

/// Lists everything that is searched for.
fn looks() -> impl Iterator<Item = (&'static [u8], Look)> {
    let keys = RULES.iter().map(|rule| (rule.prefix.as_bytes(), Look::Key));
    let names = NAME_PARTS.split(' ').map(|part| (part.as_bytes(), Look::Name));
    let labels = name::foreign().map(|(label, kind)| (label.as_bytes(), Look::Label(kind)));
    let heads = keys::HEADS.split(' ').map(|head| (head.as_bytes(), Look::Head));
    let places = PLACES
        .iter()
        .flat_map(|rule| rule.words.iter().map(move |word| (word.as_bytes(), Look::Place(rule))));
    let blocks = [
        (&keys::TITLES[..], Look::Block),
        (&keys::ENDS, Look::End),
        (&keys::MIDDLES, Look::Middle),
        (&[keys::ENCODED], Look::Encoded),
        (&[b"cookie:"], Look::Cookies),
        (&[b"eyJ"], Look::WebToken),
    ];
    let blocks = blocks.into_iter().flat_map(|(words, look)| words.iter().map(move |word| (*word, look)));
    keys.chain(names).chain(labels).chain(places).chain(heads).chain(blocks.collect::<Vec<_>>())
}

/// Finds a key that starts here. What only has the form of one and is long is not looked into: a line of nothing but such
/// would cost its square.
fn key(line: &[u8], start: usize, found: &mut Vec<Found>) -> Option<usize> {
    if !starts_word(line, start) {
        return None;
    }
    let key = rules::form_at(&line[start..])?;
    let range = start..start + key.end;
    let resume = range.end;
    if !key.is_real {
        return (range.len() > LONG_TOKEN).then_some(resume);
    }
    if key.rule.label == "aws-access-key" {
        token::beside_aws_key(line, range.end, found);
    }
    found.push(Found { range, label: key.rule.label, why: key.rule.what });
    Some(resume)
}

/// Returns whether a word starts here: also after `\n`, `%3D` and the end of a terminal sequence, whose last letter is
/// not part of it.
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
