//! Parses the separator between a name and its value.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{NameKind, SecretName};
use crate::clean::bytes::compiled;

/// The separator between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameSeparator {
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
    /// Only space or `|`: only a random text is a value.
    Column,
    /// `%3D`, as in URLs.
    Encoded,
}

/// Matches the text after a name: closing colours and quotes, the length in `char password[16]`,
/// space, and a sign. Comparisons and default values need quotes. `Token::Ident`, `key://` and
/// `token =~ x` have no value. A prompt may have text before its colon: `Unseal Key 1:`, `AWS
/// Secret Access Key [None]:`.
static SIGN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"^(?:\x1b\[[\d;]*m?)*\\*(?:(?<close>["'`])[\])?]*|[\]?]+)?(?:\[\d*\])?(?<gap>[ \t]{0,40})"#,
        r"(?:(?<quotes>==|\|\||\?\?)|(?<none>::|=~|://)|(?<assign>=>|->|:=|[:=]|：|＝|\d{1,2}:)",
        r"|(?<offer>[\[(][^\])]{0,31}[\])]:)|(?<encoded>(?:%2[027]|%3[ADad])+)",
        r"|(?<verb>(?:是|为|為|は|는|은|é|è|—|är|คือ|là |היא|هي)(?::|：)?))?",
    ))
});

/// `for bob: `, `generated = `, `of bob is `
static PHRASE_WITH_OWNER: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?i:for|(?:is )?generated|of)\b[^:=\[]{0,58}?(?:[:=]| is )"));
/// `is set to `, `changed to `
static PHRASE_WITH_VERB: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(?i:is|was|to|set|reset|changed|updated)\b(?:[ \t]+(?:to|set|changed)\b)*[ \t]*:?")
});
/// Matches such phrases in other languages.
static FOREIGN_PHRASE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?i:es|est|ist|lautet|jest|er|je|adalah)\b[ \t]*:?"));
/// Matches the text before `password` in a `.netrc` line: the user, or the name of a machine, which
/// is more than a word.
static ENTRY: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?:^|[ \t])(?:login[ \t]+\S+|machine[ \t]+\S*[.\d-]\S*)[ \t]+$"));

impl SecretName<'_> {
    /// Returns the separator after the name, and the offset at which the value may start.
    pub(super) fn separator(&self) -> Option<(NameSeparator, usize)> {
        // Most names are followed by their sign immediately.
        match self.near(self.name.end) {
            [b':', b' ', ..] => return Some((NameSeparator::Assignment, self.name.end + 1)),
            [b'=', next, ..] if !b"=~>".contains(next) => {
                return Some((NameSeparator::Assignment, self.name.end + 1));
            }
            _ => {}
        }
        let sign = SIGN.captures(self.near(self.name.end))?;
        let has = |group: &str| sign.name(group).is_some();
        let gap = sign.name("gap")?;
        let (spaced, end) = (self.name.end + gap.end(), self.name.end + sign.get(0)?.end());
        let (is_closed, next) = (has("close"), self.byte(spaced + 1));
        let separator = match self.byte(spaced) {
            _ if has("none") => return None,
            _ if has("quotes") => (NameSeparator::Quotes, end),
            _ if has("verb") => (NameSeparator::Phrase, end),
            // `arn:…:secret:name`
            b':' if self.before() == b':' && next != b' ' && next != b'=' => return None,
            _ if has("assign") || has("offer") && !gap.is_empty() => (NameSeparator::Assignment, end),
            _ if has("encoded") => {
                let is_separator = sign["encoded"].windows(2).any(|pair| pair == b"%3");
                return is_separator.then_some((NameSeparator::Encoded, end));
            }
            b'>' if self.follows(&super::TAG) || is_closed && self.follows(&super::NAMED_BY_KEY) => {
                (NameSeparator::Tag, spaced + 1)
            }
            b',' if is_closed => (NameSeparator::Quotes, spaced + 1),
            b',' if self.before() == 0 && next != b' ' => (NameSeparator::Column, spaced + 1),
            b'(' if !is_closed && b"\"'".contains(&next) && !self.is_verb() => {
                (NameSeparator::Quotes, spaced + 1)
            }
            b'|' => (NameSeparator::Column, spaced + 1),
            _ if !gap.is_empty() && !is_closed => return self.spaced_separator(spaced),
            _ => return None,
        };
        Some(separator)
    }

    /// Returns the separator of a name with only space behind it.
    fn spaced_separator(&self, at: usize) -> Option<(NameSeparator, usize)> {
        let rest = self.near(at);
        if matches!(self.byte(at), b'"' | b'\'') {
            // `secret "name" created`
            let separator =
                if self.kind == NameKind::Secret { NameSeparator::Column } else { NameSeparator::Quotes };
            return Some((separator, at));
        }
        // `password 0 …`, as in router configurations.
        if self.byte(at).is_ascii_digit() && self.byte(at + 1) == b' ' {
            return Some((NameSeparator::Column, at + 2));
        }
        if self.before() == b'-' {
            return (self.byte(at) != b'-').then_some((NameSeparator::Flag, at));
        }
        // `pass `x` to it`, `what to pass to it`
        if self.is_verb() && (rest.starts_with(b"`") || rest.starts_with(b"to ")) {
            return None;
        }
        let is_password = self.kind == NameKind::Password;
        if let Some(owned) = PHRASE_WITH_OWNER.find(rest) {
            return Some((NameSeparator::Phrase, at + owned.end()));
        }
        let said = PHRASE_WITH_VERB.find(rest).or_else(|| FOREIGN_PHRASE.find(rest).filter(|_| is_password));
        if let Some(said) = said {
            return Some((NameSeparator::Phrase, at + said.end()));
        }
        let is_directive = || {
            self.line[..self.name.start].iter().all(u8::is_ascii_whitespace)
                && [&b"requirepass"[..], b"masterauth", b"password", b"_authToken"].contains(&self.text())
                && !rest.trim_ascii().contains(&b' ')
        };
        let separator = match is_password && self.follows(&ENTRY) {
            true => NameSeparator::Plain,
            false if is_directive() => NameSeparator::Flag,
            false => NameSeparator::Column,
        };
        Some((separator, at))
    }

    /// Returns true if the name may be a verb: `base.pass("x")`.
    fn is_verb(&self) -> bool {
        let name = self.text();
        name.eq_ignore_ascii_case(b"pass") || name.ends_with(b".pass")
    }
}
