//! One search for everything a secret can begin with or be named by, and which matcher looks at what is found.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, Input};

use super::{
    assign,
    bytes::search_for,
    call,
    found::{Found, Next},
    keys,
    line::Line,
    option,
    place::{self, beyond},
    rules::{self, KeyMatch, RULES},
    spoken, token,
};

type Matcher = fn(&Line<'_>, Range<usize>, &mut Vec<Found>) -> Next;

/// Words and signs, and who looks at what is around them. Formats of keys are added from the table of rules.
const ANCHORS: &[(&str, Matcher)] = &[
    ("pass", assign::find),
    ("pwd", assign::find),
    ("pw", assign::find),
    ("psk", assign::find),
    ("_pat", assign::find),
    ("secret", assign::find),
    ("token", assign::find),
    ("key", assign::find),
    ("creds", assign::find),
    ("_private", assign::find),
    ("_salt", assign::find),
    ("pepper", assign::find),
    ("credentials", spoken::pair),
    ("login", spoken::pair),
    ("user/pass", spoken::pair),
    ("authident", spoken::pair),
    ("session=", place::session),
    ("mnemonic", spoken::seed),
    ("seed phrase", spoken::seed),
    ("seed_phrase", spoken::seed),
    ("seedphrase", spoken::seed),
    ("recovery phrase", spoken::seed),
    ("recovery_phrase", spoken::seed),
    ("://", place::url),
    ("sig=", place::signature),
    ("signature=", place::signature),
    ("authorization", place::authorization),
    ("bearer", place::bearer),
    ("basic ", place::basic),
    ("auth", place::registry),
    ("cookie:", place::cookie),
    ("identified", place::identified),
    ("eyJ", token::jwt),
    (":AA", token::telegram),
    ("Q~", token::azure),
    ("discord", token::discord),
    (":5432:", place::pgpass),
    (":5433:", place::pgpass),
    (":6432:", place::pgpass),
    (":*:", place::pgpass),
    ("--password-stdin", option::piped),
    ("--with-token", option::piped),
    ("chpasswd", option::piped),
    ("passwd --stdin", option::piped),
    ("passphrase-fd", option::piped),
    ("sudo -S", option::piped),
    ("securestring", option::secure_string),
    ("masterauth", assign::find),
    ("dockerconfigjson", assign::find),
    ("jdbc:oracle:thin:", place::oracle),
    ("sqlplus ", place::oracle),
    ("\"d\":", token::jwk),
    ("\"key\":", place::account),
];

/// What is searched for.
pub(super) struct Search {
    words: AhoCorasick,
    matchers: Vec<Anchor>,
}

#[derive(Clone, Copy)]
enum Anchor {
    Matcher(Matcher),
    /// The start of a key; if it is none, a matcher may still make something of it.
    Key(Option<Matcher>),
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

pub(super) static SEARCH: LazyLock<Search> = LazyLock::new(Search::new);

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").field("anchors", &self.matchers.len()).finish_non_exhaustive()
    }
}

impl Search {
    fn new() -> Self {
        let anchors = anchors();
        let words = search_for(anchors.iter().map(|(text, _)| *text));
        Self { words, matchers: anchors.into_iter().map(|(_, anchor)| anchor).collect() }
    }

    /// The next place from which something may begin.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let found = self.words.find(Input::new(text).range(from.min(text.len())..))?;
        Some((found.pattern().as_usize(), found.range()))
    }

    /// Looks at such a place in its line.
    pub(super) fn look(
        &self,
        pattern: usize,
        line: &Line<'_>,
        at: Range<usize>,
        found: &mut Vec<Found>,
    ) -> Hit {
        let next = match self.matchers[pattern] {
            Anchor::Matcher(matcher) => matcher(line, at, found),
            Anchor::Block => match keys::title_end(&line[at.start..]) {
                Some(length) => return Hit::Block { title: at.start..at.start + length },
                None => Next::at(at.end),
            },
            Anchor::End if keys::is_end(&line[at.start..]) => return Hit::End,
            Anchor::Head => match keys::first_start(line, &at) {
                Some(start) => return Hit::Head { start },
                None => Next::at(at.start + 1),
            },
            Anchor::Middle if keys::is_middle(line, &at) => return Hit::Middle,
            Anchor::Encoded => match token::encoded_key(line, &at) {
                Some(key) if keys::is_wrapped(line, &key.range) => {
                    return Hit::Head { start: key.range.start };
                }
                Some(key) => {
                    let resume = key.range.end;
                    found.push(key);
                    Next::at(resume)
                }
                None => Next::at(at.end),
            },
            Anchor::End | Anchor::Middle => Next::at(at.start + 1),
            Anchor::Key(otherwise) => {
                key(line, &at, found).unwrap_or_else(|| made_up(line, at, otherwise, found))
            }
        };
        Hit::Next(next)
    }
}

/// Everything that is searched for.
fn anchors() -> Vec<(&'static [u8], Anchor)> {
    let mut anchors: Vec<(&[u8], Anchor)> =
        ANCHORS.iter().map(|(text, matcher)| (text.as_bytes(), Anchor::Matcher(*matcher))).collect();
    anchors.extend(option::programs().map(|name| (name, Anchor::Matcher(option::option))));
    anchors.extend(spoken::labels().map(|label| (label, Anchor::Matcher(spoken::label))));
    anchors.extend(call::names().map(|name| (name, Anchor::Matcher(call::called))));
    anchors.extend(keys::TITLES.map(|title| (title, Anchor::Block)));
    anchors.extend(keys::ENDS.map(|end| (end, Anchor::End)));
    anchors.extend(keys::HEADS.map(|head| (head, Anchor::Head)));
    anchors.extend(keys::MIDDLES.map(|middle| (middle, Anchor::Middle)));
    anchors.push((keys::ENCODED, Anchor::Encoded));
    let spelled: Vec<_> =
        ANCHORS.iter().map(|(text, matcher)| (text.to_ascii_lowercase(), *matcher)).collect();
    for rule in RULES.iter() {
        let prefix = rule.prefix.as_bytes();
        if !anchors.iter().any(|(text, anchor)| *text == prefix && matches!(anchor, Anchor::Key(_))) {
            // A longer anchor hides a shorter one in it, so it must do that one's work as well.
            let lower = rule.prefix.to_ascii_lowercase();
            let hidden = spelled.iter().find(|(text, _)| lower.contains(text));
            anchors.push((prefix, Anchor::Key(hidden.map(|(_, matcher)| *matcher))));
        }
    }
    anchors
}

fn key(line: &[u8], at: &Range<usize>, found: &mut Vec<Found>) -> Option<Next> {
    if !starts_word(line, at.start) {
        return None;
    }
    let KeyMatch { rule, end, .. } = rules::key_at(&line[at.start..])?;
    let range = at.start..at.start + end;
    let resume = range.end;
    if rule.label == "aws-access-key" {
        token::beside_aws_key(line, range.end, found);
    }
    found.push(Found { range, label: rule.label, why: rule.what });
    Some(Next::at(resume))
}

/// Goes on where no key is. What only has the form of one and is long is not looked into: a line of nothing but such would cost its
/// square.
fn made_up(line: &Line<'_>, at: Range<usize>, otherwise: Option<Matcher>, found: &mut Vec<Found>) -> Next {
    let beyond = beyond(
        &(at.start..at.start + 1),
        &(at.start..at.start + rules::form_at(&line[at.start..]).map_or(0, |form| form.end)),
    );
    match otherwise.map(|matcher| matcher(line, at, found)) {
        Some(next) => Next { resume: next.resume.max(beyond.resume), ..next },
        None => beyond,
    }
}

/// Whether a word starts here: also after `\n`, `%3D` and the end of a terminal sequence, whose last letter is not part of it.
pub(super) fn starts_word(line: &[u8], at: usize) -> bool {
    let before = &line[..at];
    match before {
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., b'm'] => {
            let numbers = before[..at - 1]
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
                .count();
            before[..at - 1 - numbers].ends_with(b"\x1b[")
        }
        [..] => before.is_empty(),
    }
}
