//! What stands between a name and its value.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{NameKind, SecretName};
use crate::clean::bytes::compiled;

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

/// What is behind a name: colours and quotes that end, the length of `char password[16]`, space, and a sign. A comparison and
/// what counts if there is no such variable need quotes; `Token::Ident`, `key://` and `token =~ x` have no value. A
/// prompt may offer something before its colon: `Unseal Key 1:`, `AWS Secret Access Key [None]:`.
static SIGN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"^(?:\x1b\[[\d;]*m?)*\\*(?:(?<close>["'`])[\])?]*|[\]?]+)?(?:\[\d*\])?(?<gap>[ \t]{0,40})"#,
        r"(?:(?<quotes>==|\|\||\?\?)|(?<none>::|=~|://)|(?<assign>=>|->|:=|[:=]|：|＝|\d{1,2}:)",
        r"|(?<offer>[\[(][^\])]{0,31}[\])]:)|(?<encoded>(?:%2[027]|%3[ADad])+)",
        r"|(?<verb>(?:是|为|為|は|는|은|é|è|—|är|คือ|là |היא|هي)(?::|：)?))?",
    ))
});

/// `for bob: `, `generated = `, `of bob is `
static OWNED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?i:for|(?:is )?generated|of)\b[^:=\[]{0,58}?(?:[:=]| is )"));
/// `is set to `, `changed to `
static SAID: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(?i:is|was|to|set|reset|changed|updated)\b(?:[ \t]+(?:to|set|changed)\b)*[ \t]*:?")
});
/// The same in other languages.
static SAID_ELSEWHERE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?i:es|est|ist|lautet|jest|er|je|adalah)\b[ \t]*:?"));
/// What comes before `password` in a line of `.netrc`: the user, or the name of a machine, which is more than a word.
static ENTRY: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?:^|[ \t])(?:login[ \t]+\S+|machine[ \t]+\S*[.\d-]\S*)[ \t]+$"));

impl SecretName<'_> {
    /// Returns what stands after the name, and where the value may start.
    pub(super) fn separator(&self) -> Option<(Separator, usize)> {
        // Most names are followed by their sign at once.
        match self.near(self.name.end) {
            [b':', b' ', ..] => return Some((Separator::Assignment, self.name.end + 1)),
            [b'=', next, ..] if !b"=~>".contains(next) => {
                return Some((Separator::Assignment, self.name.end + 1));
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
            _ if has("quotes") => (Separator::Quotes, end),
            _ if has("verb") => (Separator::Phrase, end),
            // `arn:…:secret:name`
            b':' if self.before() == b':' && next != b' ' && next != b'=' => return None,
            _ if has("assign") || has("offer") && !gap.is_empty() => (Separator::Assignment, end),
            _ if has("encoded") => {
                let is_separator = sign["encoded"].windows(2).any(|pair| pair == b"%3");
                return is_separator.then_some((Separator::Encoded, end));
            }
            b'>' if self.follows(&super::TAG) || is_closed && self.follows(&super::NAMED_BY_KEY) => {
                (Separator::Tag, spaced + 1)
            }
            b',' if is_closed => (Separator::Quotes, spaced + 1),
            b',' if self.before() == 0 && next != b' ' => (Separator::Column, spaced + 1),
            b'(' if !is_closed && b"\"'".contains(&next) && !self.is_verb() => {
                (Separator::Quotes, spaced + 1)
            }
            b'|' => (Separator::Column, spaced + 1),
            _ if !gap.is_empty() && !is_closed => return self.spaced_separator(spaced),
            _ => return None,
        };
        Some(separator)
    }

    /// Returns the separator of a name with only space behind it.
    fn spaced_separator(&self, at: usize) -> Option<(Separator, usize)> {
        let rest = self.near(at);
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
        // `pass `x` to it`, `what to pass to it`
        if self.is_verb() && (rest.starts_with(b"`") || rest.starts_with(b"to ")) {
            return None;
        }
        let is_password = self.kind == NameKind::Password;
        if let Some(owned) = OWNED.find(rest) {
            return Some((Separator::Phrase, at + owned.end()));
        }
        let said = SAID.find(rest).or_else(|| SAID_ELSEWHERE.find(rest).filter(|_| is_password));
        if let Some(said) = said {
            return Some((Separator::Phrase, at + said.end()));
        }
        let is_directive = || {
            self.line[..self.name.start].iter().all(u8::is_ascii_whitespace)
                && [&b"requirepass"[..], b"masterauth", b"password", b"_authToken"].contains(&self.text())
                && !rest.trim_ascii().contains(&b' ')
        };
        let separator = match is_password && self.follows(&ENTRY) {
            true => Separator::Plain,
            false if is_directive() => Separator::Flag,
            false => Separator::Column,
        };
        Some((separator, at))
    }

    /// Returns whether the name may be the verb: `base.pass("x")`.
    fn is_verb(&self) -> bool {
        let name = self.text();
        name.eq_ignore_ascii_case(b"pass") || name.ends_with(b".pass")
    }
}
