//! Values that have the name of a secret: `NAME=value`, `"name": "value"`, `--name value`, `<name>value</name>`, and what
//! else people write.

mod later;
mod separator;

use std::ops::Range;

pub(super) use self::later::find_pending;
use self::separator::Separator;
use super::{
    bytes::ByteSet,
    found::{Form, Found, Next, Pending},
    line::Line,
    name::{self, NameKind},
    value::{self, Written},
};

/// How far a name may go to either side of the word that was found in it.
const MAX_NAME_SIDE: usize = 64;
/// How many spaces may stand between a name, its separator and its value.
const MAX_SPACES: usize = 40;
/// How much a prompt may offer between a name and its colon.
const MAX_OFFER: usize = 32;
/// How much text may stand between a name and its separator: `Password for 'bob': `.
const MAX_PHRASE: usize = 60;

const NAMED: &str = "value of a name that says it is a secret";

/// Looks at the name around a word, and at what follows.
pub(super) fn find(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let name = name_around(line, &word);
    let Some(kind) = name::kind(&line[with_qualifier(line, &name)]) else { return Next::at(word.end) };
    find_named(line, name, kind, found)
}

/// Looks at what follows a name that certainly is one of a secret.
pub(super) fn find_named(
    line: &Line<'_>,
    name: Range<usize>,
    kind: NameKind,
    found: &mut Vec<Found>,
) -> Next {
    let end = name.end;
    let seen = Named { line, name, kind, why: NAMED };
    if let Some(secret) = seen.value() {
        let resume = secret.range.end;
        found.push(secret);
        return Next::at(resume);
    }
    Next { resume: end, pending: seen.pending(found) }
}

/// Looks at what follows a name in another language, if that is a whole word.
pub(super) fn find_label(
    line: &Line<'_>,
    word: Range<usize>,
    kind: NameKind,
    found: &mut Vec<Found>,
) -> Option<Next> {
    let is_part =
        |at: Option<usize>| at.is_some_and(|at| line.get(at).is_some_and(u8::is_ascii_alphanumeric));
    let is_whole = !is_part(word.start.checked_sub(1)) && !is_part(Some(word.end));
    is_whole.then(|| find_named(line, word, kind, found))
}

fn name_around(line: &[u8], word: &Range<usize>) -> Range<usize> {
    static NAME: ByteSet = ByteSet::new(b"_-.").and_alphanumeric();
    let Range { mut start, mut end } = NAME.around(line, word, MAX_NAME_SIDE);
    // `\n` in a JSON string is not part of the name after it.
    if start > 0
        && line[start - 1] == b'\\'
        && matches!(line[start], b'n' | b'r' | b't')
        && start < word.start
    {
        start += 1;
    }
    while start < word.start && matches!(line[start], b'-' | b'.') {
        start += 1;
    }
    while end > word.end && matches!(line[end - 1], b'-' | b'.') {
        end -= 1;
    }
    start..end
}

/// `API key`: the word before a lone `key` says which.
fn with_qualifier(line: &[u8], name: &Range<usize>) -> Range<usize> {
    let before = &line[..name.start];
    if !line[name.clone()].eq_ignore_ascii_case(b"key") || before.last() != Some(&b' ') {
        return name.clone();
    }
    let words = &before[..before.len() - 1];
    let word = words.iter().rev().take(MAX_NAME_SIDE).take_while(|byte| byte.is_ascii_alphabetic()).count();
    words.len() - word..name.end
}

/// A name of a secret in a line.
struct Named<'a> {
    line: &'a Line<'a>,
    name: Range<usize>,
    kind: NameKind,
    /// Why its value would be taken for a secret.
    why: &'static str,
}

impl Named<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.line.get(at).copied().unwrap_or(0)
    }

    fn skip_spaces(&self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        at + rest.iter().take(MAX_SPACES).take_while(|byte| **byte == b' ' || **byte == b'\t').count()
    }

    /// The value, if it is a secret.
    fn value(&self) -> Option<Found> {
        let (separator, at) = self.separator()?;
        // `/etc/passwd` is the name of a file, and `--- PASS: TestIt` says that a test has.
        if self.before() == b'/' && !matches!(separator, Separator::Assignment | Separator::Tag)
            || self.line[..self.name.end].ends_with(b"--- PASS")
        {
            return None;
        }
        let at = self.skip_tag(self.skip_style(self.skip_spaces(at)));
        let (range, written) = self.token(at, separator);
        if let Some(key) = Found::key(self.line, &range) {
            return Some(key);
        }
        let text = &self.line[range.clone()];
        let is_secret = match separator {
            Separator::Assignment if written == Written::Bare && self.is_declared() => false,
            Separator::Assignment | Separator::Tag | Separator::Flag => {
                value::is_secret(text, written, self.kind)
            }
            Separator::Encoded => value::is_secret(text, Written::Quoted, self.kind),
            // The next of a list of names has none in front of it.
            Separator::Quotes => {
                value::is_secret(text, written, self.kind) && text.len() >= 7 && !value::is_camel_case(text)
            }
            // People speak of tokens and keys of other kinds.
            Separator::Phrase => {
                let is_password = self.kind == NameKind::Password && text.len() >= 7;
                value::is_secret(text, written, self.kind) && (is_password || value::is_random(text, 12))
            }
            Separator::Plain => value::is_password(text),
            Separator::Column => {
                let is_password =
                    self.kind == NameKind::Password && value::is_secret(text, written, self.kind);
                let is_hex_key =
                    self.kind == NameKind::Key && text.len() >= 64 || self.is_to_log_in_with(text);
                // What a colon follows is a name itself, and what a dash is in front of is an option.
                self.byte(range.end) != b':'
                    && !text.starts_with(b"-")
                    && ((is_mixed(text) || is_hex_key) && value::is_random(text, self.least_random())
                        || has_both_cases(text)
                            && text.len() >= 12
                            && is_password
                            && (text.iter().any(u8::is_ascii_digit) || value::is_unlike_words(text)))
            }
        };
        let is_phrase = || {
            written == Written::Quoted
                && name::ends_with(&self.line[self.name.clone()], b"passphrase")
                && value::is_passphrase(text)
        };
        let (label, why) = (self.kind.label(), self.why);
        if is_secret || is_phrase() {
            return Some(Found { range, label, why });
        }
        let range = match separator {
            Separator::Assignment => self.argument(at).or_else(|| self.after_type(range.end)),
            Separator::Column => self.after_type(range.start),
            _ => None,
        };
        range.map(|range| Found::value(self.line, range, label, why))
    }

    /// How long a value that looks random must be to be one, where nothing but space is in front of it.
    fn least_random(&self) -> usize {
        let is_word = self.line[self.name.clone()].eq_ignore_ascii_case(b"password");
        if is_word { 8 } else { 12 }
    }

    /// Past the colours of a terminal.
    fn skip_style(&self, mut at: usize) -> usize {
        while let Some(rest) = self.line.get(at..).filter(|rest| rest.starts_with(b"\x1b[")) {
            let numbers = rest[2..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            at += 2 + numbers + usize::from(self.byte(at + 2 + numbers) == b'm');
        }
        at
    }

    /// Past a tag of YAML, such as `!!str`, and the type that PHP writes, such as `string(12)`.
    fn skip_tag(&self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        if rest.starts_with(b"string(") {
            let length = rest.iter().take(MAX_OFFER).position(|byte| *byte == b')').unwrap_or(0);
            return if self.byte(at + length + 1) == b' ' { at + length + 2 } else { at };
        }
        if !rest.starts_with(b"!!") {
            return at;
        }
        self.skip_spaces(at + rest.iter().position(|byte| *byte == b' ').unwrap_or(0))
    }

    /// `[]byte("value")`, `SecretStr('value')`: what is wrapped in one call.
    fn argument(&self, at: usize) -> Option<Range<usize>> {
        static CALLED: ByteSet = ByteSet::new(b"_.:[]&!").and_alphanumeric();
        let rest = self.line.get(at..)?;
        let rest = &rest[..rest.len().min(value::MAX_BYTES)];
        let open = CALLED.run(&rest[..rest.len().min(MAX_PHRASE)]);
        let quote = rest.get(open + 1).filter(|byte| rest[open] == b'(' && is_quote(**byte))?;
        let range = quoted(rest, open + 1, 0, *quote, at);
        value::is_random(&self.line[range.clone()], 12).then_some(range)
    }

    /// The byte before the name and the quotes around it.
    fn before(&self) -> u8 {
        self.name.start.checked_sub(1).map_or(0, |at| self.line[at])
    }

    fn is_tag(&self) -> bool {
        let before = &self.line[..self.name.start];
        let tag = before
            .iter()
            .rev()
            .take(MAX_NAME_SIDE)
            .find(|byte| !byte.is_ascii_alphanumeric() && **byte != b':');
        tag == Some(&b'<')
    }

    /// The value at a place: what is between quotes, or up to something that ends it.
    fn token(&self, at: usize, separator: Separator) -> (Range<usize>, Written) {
        static MARKS: ByteSet = ByteSet::new(b"frbuFRBULN@");
        static ENDS: ByteSet = ByteSet::new(b"\"'` \t\n\r\x0c");
        let rest = self.line.get(at..).unwrap_or_default();
        // One byte more than a value may have, so that a longer one is none.
        let rest = &rest[..rest.len().min(value::MAX_BYTES + 8)];
        if separator == Separator::Tag {
            // `<user>:<password>@host` is no element.
            let end = memchr::memchr(b'<', rest).filter(|end| rest[*end..].starts_with(b"</")).unwrap_or(0);
            return (at..at + end, Written::Quoted);
        }
        let marks = MARKS.run(&rest[..rest.len().min(2)]);
        let slashes = rest[marks..].iter().take_while(|byte| **byte == b'\\').count();
        if let Some(quote) = rest.get(marks + slashes).filter(|byte| is_quote(**byte)) {
            let range = quoted(rest, marks + slashes, slashes, *quote, at);
            // `NAME=value` in a text about names; base64 has that sign at its end only.
            let is_set = |pair: &[u8]| pair[0] == b'=' && pair[1] != b'=';
            let is_code = *quote == b'`' && self.line[range.clone()].windows(2).any(is_set);
            return (if is_code { at..at } else { range }, Written::Quoted);
        }
        if separator == Separator::Quotes {
            return (at..at, Written::Quoted);
        }
        if separator == Separator::Encoded {
            let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"_-.~!*".contains(byte));
            return (at..at + end.unwrap_or(rest.len()), Written::Quoted);
        }
        // In a language without spaces, the text goes on after a value.
        let is_ascii = self.line[self.name.clone()].is_ascii();
        let ends = if is_ascii { None } else { rest.iter().position(|byte| !byte.is_ascii()) };
        let rest = &rest[..ends.unwrap_or(rest.len())];
        if separator == Separator::Assignment && self.is_environment() {
            let range = at..at + ENDS.until(rest);
            let text = &self.line[range.clone()];
            let has = |byte| memchr::memchr(byte, text).is_some();
            let is_call = memchr::memchr2(b'(', b'[', text).is_some() && (has(b')') || has(b'['));
            return (range, if is_call { Written::Bare } else { Written::Environment });
        }
        let text = self.line.value(at);
        (at..at + bare(&text[..text.len().min(rest.len())]), Written::Bare)
    }

    /// Whether the name starts a line such as `NAME=value` or `export NAME=value`, without a space at the `=`.
    fn is_environment(&self) -> bool {
        let is_start = || {
            let before = self.line[..self.name.start].trim_ascii();
            before.is_empty() || [&b"export"[..], b"set", b"ENV", b"setx"].contains(&before)
        };
        let name = &self.line[self.name.clone()];
        self.byte(self.name.end) == b'=' && is_start() && !name.iter().any(u8::is_ascii_lowercase)
    }

    /// `const apiKey: string = "value"`, `var apiKey string = "value"`: the name is followed by a type.
    fn after_type(&self, at: usize) -> Option<Range<usize>> {
        let rest = self.line.get(at..)?;
        let equals = rest.iter().take(MAX_PHRASE).position(|byte| *byte == b'=')?;
        let is_type =
            rest[..equals].iter().all(|byte| byte.is_ascii_alphanumeric() || b" <>[]&'?|_:.".contains(byte));
        let value = self.skip_spaces(at + equals + 1);
        if !is_type || !is_quote(self.byte(value)) {
            return None;
        }
        let (range, written) = self.token(value, Separator::Quotes);
        value::is_secret(&self.line[range.clone()], written, self.kind).then_some(range)
    }

    /// Whether somebody logs in with a value of hexadecimal digits, which may be a hash of something otherwise: `auth token …`,
    /// `app secret …`, and the `secret_id …` of a table.
    fn is_to_log_in_with(&self, text: &[u8]) -> bool {
        const OWNERS: [&[u8]; 8] =
            [b"auth", b"access", b"api", b"app", b"client", b"bearer", b"refresh", b"personal"];
        let name = &self.line[self.name.clone()];
        let before = self.line[..self.name.start].trim_ascii_end();
        let has_owner = || OWNERS.iter().any(|word| name::ends_with(before, word));
        let is_whole = || [&b"token"[..], b"secret"].iter().any(|word| name.eq_ignore_ascii_case(word));
        text.len() >= 32 && (is_whole() && has_owner() || name::ends_with(name, b"id"))
    }

    /// `pub const API_KEY: KeyType`: what follows is a type.
    fn is_declared(&self) -> bool {
        const WORDS: [&[u8]; 9] =
            [b"pub", b"const", b"static", b"let", b"mut", b"var", b"val", b"readonly", b"trait"];
        let Some(before) = self.line[..self.name.start].strip_suffix(b" ") else { return false };
        let word = before.iter().rev().take(MAX_OFFER).take_while(|byte| byte.is_ascii_alphabetic()).count();
        self.byte(self.name.end) == b':' && WORDS.contains(&&before[before.len() - word..])
    }

    /// Whether this name is itself the value of `name` or `key`.
    fn is_named_by_key(&self) -> bool {
        let before = &self.line[..self.name.start];
        let end = before.iter().rposition(|byte| !b" \t\"'=:>\\".contains(byte)).map_or(0, |last| last + 1);
        let word = before[..end].iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = &before[end - word..end];
        end < before.len()
            && [&b"name"[..], b"key", b"parametername", b"variable"]
                .iter()
                .any(|each| word.eq_ignore_ascii_case(each))
    }
}

/// From behind an opening quote to the closing one, which is escaped as often.
fn quoted(rest: &[u8], open: usize, slashes: usize, quote: u8, at: usize) -> Range<usize> {
    let mut start = open + 1;
    let is_triple = rest[start..].starts_with(&[quote, quote]);
    if is_triple {
        start += 2;
    }
    let mut end = start;
    while let Some(length) = memchr::memchr2(quote, b'\\', rest.get(end..).unwrap_or_default()) {
        end += length;
        let escapes = rest[end..].iter().take_while(|byte| **byte == b'\\').count();
        if escapes <= slashes && rest.get(end + escapes) == Some(&quote) {
            return at + start..at + end;
        }
        end += escapes + 1;
    }
    at + start..at + rest.len().max(start)
}

/// How much of a text without spaces is a value: brackets and stops at its end belong to what is around it. What is too long
/// to be one stays so.
fn bare(text: &[u8]) -> usize {
    let is_around = |byte: &u8| matches!(byte, b')' | b']' | b'}' | b'.' | b':');
    if text.len() > value::MAX_BYTES || !text.last().is_some_and(is_around) || has_open(text) {
        return text.len();
    }
    text.iter().rposition(|byte| !is_around(byte)).map_or(0, |last| last + 1)
}

/// Whether a bracket was opened in the text, so that the one at its end is its own.
fn has_open(text: &[u8]) -> bool {
    static OPEN: ByteSet = ByteSet::new(b"([{");
    text.iter().any(|byte| OPEN.has(*byte))
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Whether there are capitals, small letters and digits: hashes have no capitals.
fn is_mixed(text: &[u8]) -> bool {
    has_both_cases(text) && text.iter().any(u8::is_ascii_digit)
}

fn has_both_cases(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_uppercase) && text.iter().any(u8::is_ascii_lowercase)
}
