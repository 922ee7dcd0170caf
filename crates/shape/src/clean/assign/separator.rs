//! What stands between a name and its value.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{MAX_OFFER, MAX_PHRASE, NameKind, Named, is_quote};
use crate::clean::labels;

/// How long an entry of `.netrc` may be up to its password.
const MAX_ENTRY: usize = 256;
/// What stands for a secret that was cleaned before.
static LABEL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(labels::MARK));

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
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
    /// `%3D`, as in addresses.
    Encoded,
}

impl Named<'_> {
    /// What stands after the name, and where the value may start.
    pub(super) fn separator(&self) -> Option<(Separator, usize)> {
        let mut at = self.skip_style(self.name.end);
        while self.byte(at) == b'\\' {
            at += 1;
        }
        let is_closed = is_quote(self.byte(at));
        at += usize::from(is_closed);
        while matches!(self.byte(at), b']' | b'?' | b')') && (is_closed || self.byte(at) != b')') {
            at += 1;
        }
        at = self.skip_length(at);
        let mut spaced = self.skip_number(self.skip_spaces(at));
        if spaced > at {
            spaced = self.skip_offer(spaced);
        }
        if let Some(value) = self.after_verb(spaced) {
            return Some((Separator::Phrase, value));
        }
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
            (b',', next) if self.before() == 0 && next != b' ' => (Separator::Column, spaced + 1),
            (b'(', b'"' | b'\'') if !is_closed && !self.is_verb() => (Separator::Quotes, spaced + 1),
            (b'|', _) => (Separator::Column, spaced + 1),
            (b'%', b'2' | b'3') => return self.encoded_separator(spaced),
            // The wide `：` and `＝`.
            (0xEF, 0xBC) if matches!(self.byte(spaced + 2), 0x9A | 0x9D) => {
                (Separator::Assignment, spaced + 3)
            }
            _ if spaced > at && !is_closed => return self.spaced_separator(spaced),
            _ => return None,
        };
        Some(separator)
    }

    /// A name with only space behind it.
    fn spaced_separator(&self, at: usize) -> Option<(Separator, usize)> {
        if matches!(self.byte(at), b'"' | b'\'') {
            // `secret "name" created`
            let separator = if self.kind == NameKind::Secret { Separator::Column } else { Separator::Quotes };
            return Some((separator, at));
        }
        // `password 0 …`, the way it is kept in configurations of routers.
        if self.byte(at).is_ascii_digit() && self.byte(at + 1) == b' ' {
            return Some((Separator::Column, at + 2));
        }
        if self.before() == b'-' {
            return (self.byte(at) != b'-').then_some((Separator::Flag, at));
        }
        let rest = self.line.get(at..)?;
        // `pass `x` to it`, `what to pass to it`
        if self.is_verb() && (rest.starts_with(b"`") || rest.starts_with(b"to ")) {
            return None;
        }
        let word = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let is_word = |words: &[&[u8]]| words.iter().any(|each| rest[..word].eq_ignore_ascii_case(each));
        if is_word(&[b"for", b"generated", b"of"]) {
            // The colon of a label is none of the phrase.
            let near = &rest[..rest.len().min(MAX_PHRASE)];
            let near = &near[..LABEL.find(near).unwrap_or(near.len())];
            let end = near.iter().position(|byte| b":=".contains(byte));
            let end = end.or_else(|| memchr::memmem::find(near, b" is ").map(|at| at + 3))?;
            return Some((Separator::Phrase, at + end + 1));
        }
        // `is set to`, `changed to`
        if is_word(&[b"is", b"was", b"to", b"set", b"reset", b"changed", b"updated"])
            || self.kind == NameKind::Password
                && is_word(&[b"es", b"est", b"ist", b"lautet", b"jest", b"er", b"je", b"adalah"])
        {
            let value = self.skip_spaces(at + word);
            let next = &self.line[value..];
            if [&b"generated"[..], b"set to ", b"to ", b"changed to "]
                .iter()
                .any(|each| next.starts_with(each))
            {
                return self.spaced_separator(value);
            }
            return Some((Separator::Phrase, value + usize::from(self.byte(value) == b':')));
        }
        let before = &self.line[..self.name.start];
        // Not further back, or a line of nothing but names would cost its square.
        let near = &before[before.len().saturating_sub(MAX_ENTRY)..];
        let is_netrc = self.kind == NameKind::Password && is_entry(near);
        let is_directive = before.iter().all(u8::is_ascii_whitespace)
            && [&b"requirepass"[..], b"masterauth", b"password", b"_authToken"]
                .contains(&&self.line[self.name.clone()])
            && rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() == 1;
        if is_netrc {
            return Some((Separator::Plain, at));
        }
        Some((if is_directive { Separator::Flag } else { Separator::Column }, at))
    }

    /// Whether the name may be the verb: `base.pass("x")`.
    fn is_verb(&self) -> bool {
        let name = &self.line[self.name.clone()];
        name.eq_ignore_ascii_case(b"pass") || name.ends_with(b".pass")
    }

    /// Behind what says `is` in other languages: `密码是 value`, `la password è value`, `Пароль — value`.
    fn after_verb(&self, at: usize) -> Option<usize> {
        const VERBS: [&str; 14] =
            ["是", "为", "為", "は", "는", "은", "é", "è", "—", "är", "คือ", "là ", "היא", "هي"];
        // `là` alone begins with a letter that others have too.
        let is_verb = |byte: &u8| *byte == b'l' || !byte.is_ascii();
        let rest = self.line.get(at..).filter(|rest| rest.first().is_some_and(is_verb))?;
        let verb = VERBS.iter().find(|verb| rest.starts_with(verb.as_bytes()))?;
        let rest = &rest[verb.len()..];
        let colon = [":", "："].iter().find(|colon| rest.starts_with(colon.as_bytes()));
        Some(at + verb.len() + colon.map_or(0, |colon| colon.len()))
    }

    /// Past what a prompt offers: `AWS Secret Access Key [None]: `
    fn skip_offer(&self, at: usize) -> usize {
        if !matches!(self.byte(at), b'[' | b'(') {
            return at;
        }
        let offer = self.line[at..].iter().take(MAX_OFFER).position(|byte| b"])".contains(byte)).unwrap_or(0);
        if self.byte(at + offer + 1) == b':' { at + offer + 1 } else { at }
    }

    /// Past `%22%3A%22` and its like, if a colon or an equals sign is among them.
    fn encoded_separator(&self, mut at: usize) -> Option<(Separator, usize)> {
        let mut is_separator = false;
        while let [b'%', high, low] = *self.line.get(at..at + 3)? {
            match (high, low.to_ascii_uppercase()) {
                (b'3', b'A' | b'D') => is_separator = true,
                (b'2', b'0' | b'2' | b'7') => {}
                _ => break,
            }
            at += 3;
        }
        is_separator.then_some((Separator::Encoded, at))
    }

    /// Past the length of `char password[] =` and `char password[16] =`.
    fn skip_length(&self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        let digits = rest.iter().skip(1).take(MAX_OFFER).take_while(|byte| byte.is_ascii_digit()).count();
        let is_length = rest.first() == Some(&b'[') && rest.get(digits + 1) == Some(&b']');
        if is_length { at + digits + 2 } else { at }
    }

    /// `Unseal Key 1: `
    fn skip_number(&self, at: usize) -> usize {
        let digits =
            self.line.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_number = (1..3).contains(&digits) && self.byte(at + digits) == b':';
        if is_number { at + digits } else { at }
    }
}

/// Whether this is what comes before `password` in a line of `.netrc`: the user, or the name of a machine, which is more than a
/// word.
fn is_entry(before: &[u8]) -> bool {
    let mut words = before.rsplit(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty());
    let (last, label) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_machine = || label == b"machine" && last.iter().any(|byte| b".-0123456789".contains(byte));
    label == b"login" || is_machine()
}
