//! Decides whether a value in the place of a secret is one. Placeholders, code, references and
//! words are not.

mod placeholder;
mod reference;
mod tally;
mod wordy;

use std::sync::LazyLock;

use self::{
    placeholder::is_template,
    reference::{is_expression, is_reference},
    tally::ByteTally,
    wordy::{is_known_word, is_like_no_word, is_wordy, words_of},
};
pub(super) use self::{
    placeholder::{is_placeholder, is_placeholder_key, says_placeholder},
    wordy::{is_camel_case, is_unlike_words},
};
use super::{bytes::WordSet, name::NameKind};

/// Maximum length of a secret; a longer value is a document.
pub(super) const MAX_BYTES: usize = 4096;

/// Minimum length of a token that begins with `abc123`. A shorter token is from documentation; a
/// password is not.
const MIN_TYPED_TOKEN: usize = 16;

/// Quoting of a value, which limits what else it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueQuoting {
    /// In quotes, so not an expression.
    Quoted,
    /// Without quotes: in code this would be an expression.
    Bare,
    /// The rest of a `NAME=value` line: not an expression either, except for `$`.
    Environment,
}

/// Returns true if a value is a secret, given the kind of its name.
pub(super) fn is_secret(value: &[u8], written: ValueQuoting, kind: NameKind) -> bool {
    let least = if kind == NameKind::Password { 6 } else { 8 };
    if value.len() < least || value.len() > MAX_BYTES {
        return false;
    }
    let tally = ByteTally::new(value);
    if tally.spaces > 0 {
        return kind == NameKind::Password && written == ValueQuoting::Quoted && is_app_password(value);
    }
    // Cheap checks come first.
    let is_text = || written != ValueQuoting::Bare || !is_expression(value, tally);
    is_strong(value, tally, kind, written)
        && !is_template(value, tally)
        && is_text()
        && (!is_reference(value, tally) || kind == NameKind::Key && is_private_number(value))
        && !says_placeholder(value)
        && (kind == NameKind::Password || value.len() >= MIN_TYPED_TOKEN || !is_placeholder(value))
}

/// Returns true for `0x…`, the format of wallet keys.
fn is_private_number(value: &[u8]) -> bool {
    value
        .strip_prefix(b"0x")
        .is_some_and(|digits| digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Returns true for `correct horse battery staple`, after the name of a passphrase.
pub(super) fn is_passphrase(value: &[u8]) -> bool {
    const PROSE: [&[u8]; 9] =
        [b"the", b"your", b"enter", b"please", b"for", b"key", b"and", b"with", b"passphrase"];
    let words = || value.split(|byte| *byte == b' ');
    value.len() <= MAX_BYTES
        && words().count() >= 4
        && words().all(|word| (3..=12).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase))
        && !words().any(|word| PROSE.contains(&word))
}

/// Returns true for `abcd efgh ijkl mnop`, Google's format of app passwords.
fn is_app_password(value: &[u8]) -> bool {
    value.len() == 19
        && value.iter().enumerate().all(|(at, byte)| match at % 5 {
            4 => *byte == b' ',
            _ => byte.is_ascii_lowercase(),
        })
}

/// Returns true if a value in the certain place of a password is one. Words are, placeholders are
/// not.
pub(super) fn is_password(value: &[u8]) -> bool {
    static WORDS: LazyLock<WordSet> = LazyLock::new(|| {
        WordSet::new(
            "password passwd pass pwd secret token pw user username key apikey api_key api-key test string \
             str postgres root admin guest x-oauth-basic",
        )
    });
    let tally = ByteTally::new(value);
    (3..=MAX_BYTES).contains(&value.len())
        && !is_template(value, tally)
        && !says_placeholder(value)
        && !is_expression(value, tally)
        && !WORDS.has(value)
        && !value.windows(2).all(|pair| pair[0] == pair[1])
}

/// Returns true if a token in an uncertain place is random enough to be a secret: long, of mixed
/// kinds, not words.
pub(super) fn is_random(value: &[u8], least: usize) -> bool {
    is_random_or_typed(value, least) && !is_placeholder(value)
}

/// Like [`is_random`], for a certain place: a typed key sequence counts too.
pub(super) fn is_random_or_typed(value: &[u8], least: usize) -> bool {
    let tally = ByteTally::new(value);
    value.len() >= least
        && tally.spaces == 0
        && tally.symbols <= value.len() / 4
        && (tally.digits >= 2 || has_random_case(tally, tally.letters()))
        && tally.letters() >= 2
        && !is_template(value, tally)
        && !says_placeholder(value)
        && !is_reference(value, tally)
        && !is_wordy(value)
}

fn is_strong(value: &[u8], tally: ByteTally, kind: NameKind, written: ValueQuoting) -> bool {
    let letters = tally.letters();
    if kind == NameKind::LongKey {
        return value.len() >= 40 && tally.lower > 5 && tally.upper > 5 && tally.digits > 0;
    }
    if kind == NameKind::Variable {
        return value.len() >= 24 && tally.digits >= 2 && letters > 0 && !is_wordy(value);
    }
    if letters == 0 {
        return kind == NameKind::Password && tally.digits >= 6;
    }
    if tally.digits == 0 && tally.symbols == 0 {
        let is_mixed = tally.upper >= 2 && tally.lower >= 2 && letters >= 8;
        // An identifier from code is not a plausible value of a password variable.
        let is_set = is_mixed && kind == NameKind::Password && written == ValueQuoting::Environment;
        if !is_set && (kind != NameKind::Password || written == ValueQuoting::Bare) && is_camel_case(value) {
            return false;
        }
        return has_random_case(tally, letters)
            || kind == NameKind::Password && tally.joints == 0 && is_no_word(value, tally, is_mixed)
            || tally.joints == 0 && is_set
            || tally.joints == 0
                && (letters >= 20 || is_mixed && written != ValueQuoting::Bare)
                && is_unlike_words(value);
    }
    if tally.symbols > 0 {
        // Base64 without a digit, or a password such as `P@ssword!`.
        return tally.digits > 0
            || tally.upper > 0 && tally.lower > 0 && written != ValueQuoting::Bare
            || has_random_case(tally, letters);
    }
    if is_known_word(value) {
        return false;
    }
    if kind == NameKind::Password && tally.joints == 0 {
        return true;
    }
    !is_wordy(value)
}

/// Returns true for letters that are neither a word nor capitalized words.
fn is_no_word(value: &[u8], tally: ByteTally, is_mixed: bool) -> bool {
    match tally.upper {
        0 => value.len() >= 8 && value.is_ascii() && is_like_no_word(value),
        _ => is_mixed && words_of(value).is_none(),
    }
}

/// Returns true if the case changes at random. Words change it where they start, random letters at
/// every second place.
fn has_random_case(tally: ByteTally, letters: usize) -> bool {
    letters >= 10 && tally.case_changes * 100 >= letters * 38
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_texts_are_secrets_where_a_secret_is_named() {
        for value in [
            "abcd123XYZ_a1B",
            "q8Zk2mPv0Lr7",
            "hunter2",
            "P@ssw0rd!x",
            "aGVsbG8gd29ybGQhIQ==",
            "0f8fad5bd9cb469fa165",
        ] {
            assert!(is_secret(value.as_bytes(), ValueQuoting::Quoted, NameKind::Password), "{value}");
        }
    }

    #[test]
    fn words_code_and_placeholders_are_not() {
        for value in [
            "string",
            "next_token()",
            "var.db_password",
            "process.env.API_KEY",
            "${TOKEN}",
            "<token>",
            "changeme",
            "xxxxxxxx",
            "$1",
            "getPassword",
            "self.tokens[0]",
            "None",
            "your-key-here",
            "/run/secrets/db_password",
            "sha256",
            "UserPasswordField",
            "oauth2-client",
            "v1.2.3",
            "2026-01-02",
        ] {
            assert!(!is_secret(value.as_bytes(), ValueQuoting::Bare, NameKind::Token), "{value}");
        }
    }
}
