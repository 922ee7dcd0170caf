//! Whether a name says that its value is a secret: `DB_PASSWORD`, `apiKey`, `client-secret`, but not `max_tokens`.

mod words;

use self::words::{
    KEY_QUALIFIER, LONG_KEY_QUALIFIER, NEUTRAL_WORD, NOT_A_KEY, NOT_A_PASSWORD, NOT_A_TOKEN, SHORT_PASSWORD,
    VARIABLE, bits,
};
use super::{
    bytes::Bytes,
    memo::{self, About},
};

/// What a name says its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Password,
    Secret,
    Token,
    Key,
    /// Only if its value is long and random: `primaryKey` may be of a storage account or of a table.
    LongKey,
    /// Only if its value is random: the name of a variable such as `ACME_KEY` or `HASH_SALT`.
    Variable,
}

impl Kind {
    /// In their order.
    const ALL: [Self; 6] =
        [Self::Password, Self::Secret, Self::Token, Self::Key, Self::LongKey, Self::Variable];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Secret => "secret",
            Self::Token => "token",
            Self::Key | Self::LongKey | Self::Variable => "key",
        }
    }
}

/// The longest name that is looked at.
const MAX_NAME_BYTES: usize = 80;

/// What a last word may end with, given its last byte, and what that makes of the name.
fn endings(last: u8) -> &'static [(&'static [u8], Kind)] {
    match last {
        b'd' => &[(b"password", Kind::Password), (b"passwd", Kind::Password), (b"pwd", Kind::Password)],
        b'e' => &[(b"passphrase", Kind::Password), (b"passcode", Kind::Password)],
        b'h' => &[(b"masterauth", Kind::Password)],
        b'n' => &[(b"token", Kind::Token), (b"dockerconfigjson", Kind::Secret)],
        b't' => &[(b"secret", Kind::Secret), (b"passwort", Kind::Password)],
        b'y' => &[
            (b"apikey", Kind::Key),
            (b"accesskey", Kind::Key),
            (b"secretkey", Kind::Key),
            (b"privatekey", Kind::Key),
            (b"privkey", Kind::Key),
            (b"authkey", Kind::Key),
            (b"signingkey", Kind::Key),
            (b"encryptionkey", Kind::Key),
            (b"accountkey", Kind::Key),
            (b"masterkey", Kind::Key),
        ],
        _ => &[],
    }
}

/// What a name says its value is, if that is a secret.
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    if name.len() > MAX_NAME_BYTES || name.len() < 2 {
        return None;
    }
    let decision = memo::recall(About::Name, name, || kind_of(name).map_or(0, |kind| kind as u8 + 1));
    Kind::ALL.get(usize::from(decision).checked_sub(1)?).copied()
}

fn kind_of(name: &[u8]) -> Option<Kind> {
    let is_variable = || !name.iter().any(u8::is_ascii_lowercase);
    let mut rest = name;
    while let Some((before, last)) = last_word(rest) {
        let trimmed = trim_digits(last);
        let kind = kind_of_last(trimmed, || last_word(before).map_or(&b""[..], |(_, word)| word))
            .filter(|kind| *kind != Kind::Variable || is_variable());
        if kind.is_some() || !(trimmed.is_empty() || bits(trimmed) & NEUTRAL_WORD != 0) {
            return kind;
        }
        rest = before;
    }
    None
}

fn kind_of_last<'a>(word: &[u8], before: impl Fn() -> &'a [u8]) -> Option<Kind> {
    let last = word.last()?.to_ascii_lowercase();
    if last == b'y' && word.eq_ignore_ascii_case(b"key") {
        return match bits(trim_digits(before())) {
            bits if bits & KEY_QUALIFIER != 0 => Some(Kind::Key),
            bits if bits & LONG_KEY_QUALIFIER != 0 => Some(Kind::LongKey),
            bits if bits & NOT_A_KEY != 0 || before().is_empty() => None,
            _ => Some(Kind::Variable),
        };
    }
    if matches!(last, b't' | b'r' | b'e') && bits(word) & VARIABLE != 0 {
        return Some(Kind::Variable);
    }
    // Half of what a machine logs in with.
    if last == b'd' && word.eq_ignore_ascii_case(b"id") {
        return before().eq_ignore_ascii_case(b"secret").then_some(Kind::Secret);
    }
    if last == b't' && word.eq_ignore_ascii_case(b"pat") {
        return Some(Kind::Token);
    }
    if matches!(last, b's' | b'w' | b'k') && (bits(word) & SHORT_PASSWORD != 0 || is_joined_pass(word)) {
        // `two-pass`, `first_pass`
        return (bits(before()) & NOT_A_TOKEN == 0).then_some(Kind::Password);
    }
    let (_, kind) = endings(last).iter().find(|(ending, _)| ends_with(word, ending))?;
    let is_place = *kind == Kind::Token && bits(before()) & NOT_A_TOKEN != 0;
    (!is_place).then_some(*kind)
}

/// `dbpass`, `rootpw`, `requirepass`, but not `bypass` or `compass`.
fn is_joined_pass(word: &[u8]) -> bool {
    ends_with(word, b"pass") && word.len() <= 16 && bits(word) & NOT_A_PASSWORD == 0
        || ends_with(word, b"pw") && word.len() <= 8
}

pub(super) fn ends_with(word: &[u8], ending: &[u8]) -> bool {
    word.len() >= ending.len() && word[word.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

fn trim_digits(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    &word[..end]
}

/// The last word of a name and what is before it: `DB_PASSWORD`, `dbPassword`, `db-password` and `db.password` have the
/// same words.
fn last_word(name: &[u8]) -> Option<(&[u8], &[u8])> {
    static PART: Bytes = Bytes::alphanumeric_and(b"");
    let end = name.iter().rposition(|byte| PART.has(*byte))? + 1;
    let mut start = end - 1;
    while start > 0 && PART.has(name[start - 1]) && !turns(&name[..end], start) {
        start -= 1;
    }
    Some((&name[..start], &name[start..end]))
}

/// Whether a new word starts here inside `camelCase` or `APIKey`.
fn turns(name: &[u8], at: usize) -> bool {
    let (before, here) = (name[at - 1], name[at]);
    here.is_ascii_uppercase()
        && (before.is_ascii_lowercase()
            || before.is_ascii_digit()
            || before.is_ascii_uppercase() && name.get(at + 1).is_some_and(u8::is_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        let kinds = [
            "DB_PASSWORD",
            "dbPassword",
            "PGPASSWORD",
            "SECRET_KEY_BASE",
            "apiKey",
            "APIKey",
            "x-api-key",
            "client_secret",
            "AWS_SECRET_ACCESS_KEY",
            "_authToken",
            "spring.datasource.password",
            "DB_PASS",
            "PASSWORD2",
            "rootpw",
        ]
        .map(|name| kind(name.as_bytes()).map(Kind::label));
        assert_eq!(
            kinds,
            [
                "password", "password", "password", "key", "key", "key", "key", "secret", "key", "token",
                "password", "password", "password", "password"
            ]
            .map(Some)
        );
    }

    #[test]
    fn names_of_other_things_are_not() {
        for name in [
            "max_tokens",
            "password_hash",
            "token_count",
            "public_key",
            "keyboard",
            "next_token",
            "passed",
            "bypass",
            "secrets",
            "token_url",
            "key",
            "cache_key",
            "password_file",
            "AUTHOR",
            "tokenizer",
        ] {
            assert_eq!(kind(name.as_bytes()), None, "{name}");
        }
    }
}
