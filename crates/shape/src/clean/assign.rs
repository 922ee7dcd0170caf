//! Values that have the name of a secret: `NAME=value`, `"name": "value"`, `--name value`, `<name>value</name>`, and what
//! else people write.

use std::ops::Range;

use super::{
    bytes::Bytes,
    found::{Found, Next, Pending},
    name::{self, Kind},
    rules,
    value::{self, Written},
};

/// How far a name may go to either side of the word that was found in it.
const MAX_NAME_SIDE: usize = 64;
/// How many spaces may stand between a name, its separator and its value.
const MAX_SPACES: usize = 40;
/// How long an entry of `.netrc` may be up to its password.
const MAX_ENTRY: usize = 512;
/// How much text may stand between a name and its separator: `Password for 'bob': `.
const MAX_PHRASE: usize = 60;

const NAMED: &str = "value of a name that says it is a secret";

/// Looks at the name around a word, and at what follows.
pub(super) fn find(line: &[u8], word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let name = name_around(line, &word);
    let Some(kind) = name::kind(&line[with_qualifier(line, &name)]) else { return Next::at(word.end) };
    let seen = Named { line, name: name.clone(), kind };
    if let Some(range) = seen.value() {
        let resume = range.end;
        found.push(Found::value(line, range, kind.label(), NAMED));
        return Next::at(resume);
    }
    let pending = seen.pending(found);
    Next { resume: word.end.max(name.end), pending }
}

/// Looks at a line whose secret was announced by the one before. It may be in the next one still.
pub(super) fn find_pending(line: &[u8], pending: Pending) -> Result<Found, Option<Pending>> {
    let (range, kind) = match pending {
        Pending::Value(kind) => (announced(line, kind)?, kind),
        Pending::Whole(kind) => {
            let text = line.trim_ascii();
            let start = line.len() - line.trim_ascii_start().len();
            let is_secret = value::is_secret(text, Written::Quoted, kind);
            (is_secret.then_some(start..start + text.len()).ok_or(None)?, kind)
        }
    };
    Ok(Found::value(line, range, kind.label(), "value of a name in the line before"))
}

/// The value of `value:` or `default =`.
fn announced(line: &[u8], kind: Kind) -> Result<Range<usize>, Option<Pending>> {
    let start = line.iter().position(|byte| !b" \t\"'-,{".contains(byte)).ok_or(None)?;
    let word = line[start..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = start..start + word;
    if ![&b"value"[..], b"default"].iter().any(|each| line[name.clone()].eq_ignore_ascii_case(each)) {
        return Err(None);
    }
    let seen = Named { line, name, kind };
    seen.value().ok_or_else(|| seen.is_followed_by_block().then_some(Pending::Whole(kind)))
}

fn name_around(line: &[u8], word: &Range<usize>) -> Range<usize> {
    static NAME: Bytes = Bytes::alphanumeric_and(b"_-.");
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
    line: &'a [u8],
    name: Range<usize>,
    kind: Kind,
}

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `=` or `:`
    Assignment,
    /// `==`, `,` between quoted strings, `(`: only a quoted string can be a value.
    Quotes,
    /// `<name>`
    Tag,
    /// `--name value`
    Flag,
    /// `password for 'bob': value`, `password is value`
    Phrase,
    /// `login x password y`
    Plain,
    /// Nothing but space or `|`: only what looks random is a value.
    Column,
}

impl Named<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.line.get(at).copied().unwrap_or(0)
    }

    fn skip_spaces(&self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        at + rest.iter().take(MAX_SPACES).take_while(|byte| **byte == b' ' || **byte == b'\t').count()
    }

    fn value(&self) -> Option<Range<usize>> {
        let (separator, at) = self.separator()?;
        // `/etc/passwd` is the name of a file.
        if self.before() == b'/' && !matches!(separator, Separator::Assignment | Separator::Tag) {
            return None;
        }
        let at = self.skip_tag(self.skip_spaces(at));
        let (range, written) = self.token(at, separator);
        let text = &self.line[range.clone()];
        let is_secret = match separator {
            Separator::Assignment | Separator::Tag | Separator::Flag => {
                value::is_secret(text, written, self.kind)
            }
            Separator::Phrase | Separator::Quotes => {
                value::is_secret(text, written, self.kind) && text.len() >= 7
            }
            Separator::Plain => value::is_password(text),
            Separator::Column => {
                let is_password = self.kind == Kind::Password && value::is_secret(text, written, self.kind);
                is_mixed(text) && (value::is_random(text, 12) || text.len() >= 12 && is_password)
            }
        };
        if is_secret || !text.is_empty() && is_whole_key(text) {
            return Some(range);
        }
        if separator != Separator::Assignment {
            return None;
        }
        self.argument(at).or_else(|| self.after_type(range.end))
    }

    /// `Unseal Key 1: `
    fn skip_number(&self, at: usize) -> usize {
        let digits =
            self.line.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_number = (1..3).contains(&digits) && self.byte(at + digits) == b':';
        if is_number { at + digits } else { at }
    }

    /// Past a tag of YAML, such as `!!str`.
    fn skip_tag(&self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        if !rest.starts_with(b"!!") {
            return at;
        }
        self.skip_spaces(at + rest.iter().position(|byte| *byte == b' ').unwrap_or(0))
    }

    /// `[]byte("value")`, `SecretStr('value')`: what is wrapped in one call.
    fn argument(&self, at: usize) -> Option<Range<usize>> {
        static CALLED: Bytes = Bytes::alphanumeric_and(b"_.:[]&!");
        let rest = self.line.get(at..)?;
        let rest = &rest[..rest.len().min(value::MAX_BYTES)];
        let open = CALLED.run(&rest[..rest.len().min(MAX_PHRASE)]);
        let quote = rest.get(open + 1).filter(|byte| rest[open] == b'(' && is_quote(**byte))?;
        let range = quoted(rest, open + 1, 0, *quote, at);
        value::is_random(&self.line[range.clone()], 12).then_some(range)
    }

    /// What stands after the name, and where the value may start.
    fn separator(&self) -> Option<(Separator, usize)> {
        let mut at = self.name.end;
        while self.byte(at) == b'\\' {
            at += 1;
        }
        let is_closed = is_quote(self.byte(at));
        at += usize::from(is_closed);
        while matches!(self.byte(at), b']' | b'?' | b')') && (is_closed || self.byte(at) != b')') {
            at += 1;
        }
        let spaced = self.skip_number(self.skip_spaces(at));
        let separator = match (self.byte(spaced), self.byte(spaced + 1)) {
            // A comparison, or what counts if there is no such variable.
            (b'=', b'=') | (b'|', b'|') | (b'?', b'?') => (Separator::Quotes, spaced + 2),
            // `Token::Ident`, `key://`, `token =~ x`
            (b':', b':') | (b'=', b'~') => return None,
            (b':', b'/') if self.byte(spaced + 2) == b'/' => return None,
            (b'=' | b'-', b'>') | (b':', b'=') => (Separator::Assignment, spaced + 2),
            // `arn:…:secret:name`
            (b':', next) if self.before() == b':' && next != b' ' => return None,
            (b'=' | b':', _) => (Separator::Assignment, spaced + 1),
            (b'>', _) if self.is_tag() || is_closed && self.is_named_by_key() => (Separator::Tag, spaced + 1),
            (b',', _) if is_closed => (Separator::Quotes, spaced + 1),
            (b'(', b'"' | b'\'') if !is_closed => (Separator::Quotes, spaced + 1),
            (b'|', _) => (Separator::Column, spaced + 1),
            _ if spaced > at && !is_closed => return self.spaced_separator(spaced),
            _ => return None,
        };
        Some(separator)
    }

    /// A name with only space behind it.
    fn spaced_separator(&self, at: usize) -> Option<(Separator, usize)> {
        if matches!(self.byte(at), b'"' | b'\'') {
            return Some((Separator::Quotes, at));
        }
        if self.before() == b'-' {
            return (self.byte(at) != b'-').then_some((Separator::Flag, at));
        }
        let rest = self.line.get(at..)?;
        let word = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        match &rest[..word] {
            b"for" | b"generated" | b"of" => {
                let end = rest.iter().take(MAX_PHRASE).position(|byte| b":=".contains(byte))?;
                return Some((Separator::Phrase, at + end + 1));
            }
            b"is" | b"was" | b"to" => {
                let value = self.skip_spaces(at + word);
                if self.line[value..].starts_with(b"generated") {
                    return self.spaced_separator(value);
                }
                return Some((Separator::Phrase, value + usize::from(self.byte(value) == b':')));
            }
            _ => {}
        }
        let before = &self.line[..self.name.start];
        // Not further back, or a line of nothing but names would cost its square.
        let near = &before[before.len().saturating_sub(MAX_ENTRY)..];
        let is_netrc = self.kind == Kind::Password
            && (memchr::memmem::find(near, b"login ").is_some()
                || memchr::memmem::find(near, b"machine ").is_some());
        let is_directive = before.iter().all(u8::is_ascii_whitespace)
            && [&b"requirepass"[..], b"masterauth", b"password", b"_authToken"]
                .contains(&&self.line[self.name.clone()])
            && rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() == 1;
        if is_netrc {
            return Some((Separator::Plain, at));
        }
        Some((if is_directive { Separator::Flag } else { Separator::Column }, at))
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
        static MARKS: Bytes = Bytes::of(b"frbuFRBUL@");
        static ENDS: Bytes = Bytes::space_and(b"\"'`");
        let rest = self.line.get(at..).unwrap_or_default();
        // One byte more than a value may have, so that a longer one is none.
        let rest = &rest[..rest.len().min(value::MAX_BYTES + 8)];
        if separator == Separator::Tag {
            // `<user>:<password>@host` is no element.
            let end = memchr::memmem::find(rest, b"</").unwrap_or(0);
            return (at..at + end, Written::Quoted);
        }
        let marks = MARKS.run(&rest[..rest.len().min(2)]);
        let slashes = rest[marks..].iter().take_while(|byte| **byte == b'\\').count();
        if let Some(quote) = rest.get(marks + slashes).filter(|byte| is_quote(**byte)) {
            return (quoted(rest, marks + slashes, slashes, *quote, at), Written::Quoted);
        }
        if separator == Separator::Quotes {
            return (at..at, Written::Quoted);
        }
        if separator == Separator::Assignment && self.is_environment() {
            let range = at..at + ENDS.until(rest);
            let text = &self.line[range.clone()];
            let is_call = text.contains(&b'(') && text.contains(&b')') || text.contains(&b'[');
            return (range, if is_call { Written::Bare } else { Written::Environment });
        }
        (bare(rest, at), Written::Bare)
    }

    /// Whether the name starts a line such as `NAME=value` or `export NAME=value`, without a space at the `=`.
    fn is_environment(&self) -> bool {
        let name = &self.line[self.name.clone()];
        let before = self.line[..self.name.start].trim_ascii();
        let is_start = [&b""[..], b"export", b"set", b"ENV", b"setx"].contains(&before);
        is_start && self.byte(self.name.end) == b'=' && !name.iter().any(u8::is_ascii_lowercase)
    }

    /// `const apiKey: string = "value"`: the name is followed by a type.
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

    /// `name: DB_PASSWORD` with its `value:` behind it or in the next line; `password: |` with the value there.
    fn pending(&self, found: &mut Vec<Found>) -> Option<Pending> {
        if self.is_followed_by_block() {
            return Some(Pending::Whole(self.kind));
        }
        let rest = self.line[self.name.end..].trim_ascii_end();
        if !self.is_named_by_key() {
            return None;
        }
        if let Some(at) =
            rest.windows(5).take(MAX_PHRASE).position(|window| window.eq_ignore_ascii_case(b"value"))
        {
            let start = self.name.end + at;
            let seen = Named { line: self.line, name: start..start + 5, kind: self.kind };
            if let Some(range) = seen.value() {
                found.push(Found::value(self.line, range, self.kind.label(), NAMED));
            }
            return None;
        }
        rest.iter().all(|byte| b"\"', {".contains(byte)).then_some(Pending::Value(self.kind))
    }

    /// `name: |`, with the value in the next lines.
    fn is_followed_by_block(&self) -> bool {
        let rest = self.line[self.name.end..].trim_ascii_end();
        [&b": |"[..], b": |-", b": >", b": >-", b": |+"].contains(&rest)
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
    while end < rest.len() {
        let escapes = rest[end..].iter().take_while(|byte| **byte == b'\\').count();
        match rest.get(end + escapes) {
            Some(byte) if *byte == quote && escapes <= slashes => break,
            Some(_) => end += escapes + 1,
            None => end = rest.len(),
        }
    }
    at + start..at + end.min(rest.len()).max(start)
}

/// Up to white space or what cannot be in a value without quotes; brackets and stops at the end belong to the text around.
fn bare(rest: &[u8], at: usize) -> Range<usize> {
    static ENDS: Bytes = Bytes::space_and(b"\"',;<>|&`\\\x1b");
    let mut end = ENDS.until(rest);
    while end > 0 && matches!(rest[end - 1], b')' | b']' | b'}' | b'.' | b':') && !has_open(&rest[..end]) {
        end -= 1;
    }
    at..at + end
}

/// Whether a bracket was opened in the text, so that the one at its end is its own.
fn has_open(text: &[u8]) -> bool {
    text.iter().any(|byte| b"([{".contains(byte))
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn is_whole_key(text: &[u8]) -> bool {
    rules::key_at(text).is_some_and(|(_, end)| end == text.len())
}

/// Whether there are capitals, small letters and digits: hashes have no capitals.
fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_uppercase)
        && text.iter().any(u8::is_ascii_lowercase)
        && text.iter().any(u8::is_ascii_digit)
}
