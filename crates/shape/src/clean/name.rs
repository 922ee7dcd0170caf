//! Recognizes names whose value is a secret: `DB_PASSWORD`, `apiKey`, `client-secret`, but not
//! `max_tokens`.

use std::sync::LazyLock;

use super::bytes::{ByteSet, WordSet};

/// The kind of value that a name announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Password,
    Secret,
    Token,
    Key,
    /// Only if its value is long and random: `primaryKey` may belong to a storage account or a
    /// table.
    LongKey,
    /// Only if its value is random: the name of a variable such as `ACME_KEY` or `HASH_SALT`.
    Variable,
}

impl NameKind {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Secret => "secret",
            Self::Token => "token",
            Self::Key | Self::LongKey | Self::Variable => "key",
        }
    }
}

/// Maximum length of a checked name.
const MAX_NAME_BYTES: usize = 80;

/// Endings of the last word of a name, and the kind each implies.
const ENDINGS: [(NameKind, &str); 4] = [
    (NameKind::Password, "password passwd pwd passphrase passcode masterauth passwort"),
    (NameKind::Token, "token"),
    (NameKind::Secret, "secret dockerconfigjson"),
    (
        NameKind::Key,
        "apikey accesskey secretkey privatekey privkey authkey signingkey encryptionkey accountkey masterkey",
    ),
];

/// Words for a password, a key or a token in other languages. Only letters without case, or both
/// cases.
const FOREIGN: [(NameKind, &str); 3] = [
    (
        NameKind::Password,
        "密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|пароль|Пароль|ПАРОЛЬ|κωδικός|Κωδικός|κωδικός πρόσβασης|\
         Κωδικός πρόσβασης|كلمة المرور|كلمة السر|סיסמה|סיסמא|पासवर्ड|รหัสผ่าน|mật khẩu|jelszó|\
         passord|passordet|lösenordet|adgangskoden|palavra-passe|palavra passe|kata sandi|lozinka|\
         geslo|contrasenya|contraseña|mot de passe|senha|wachtwoord|kennwort|lösenord|adgangskode|\
         salasana|hasło|heslo|şifre|Şifre|parola",
    ),
    (NameKind::Key, "密钥|密鑰|秘钥|秘密鍵"),
    (NameKind::Token, "令牌"),
];

/// Lists the names of secrets in other languages.
pub(super) fn foreign() -> impl Iterator<Item = (&'static str, NameKind)> {
    FOREIGN.iter().flat_map(|(kind, names)| names.split('|').map(|name| (name, *kind)))
}

/// Words by their effect on a name.
struct NameWords {
    /// Words without effect on the word before them: `SECRET_KEY_BASE`, `TOKEN_VALUE`,
    /// `PASSWORD_PROD`.
    neutral: WordSet,
    /// Words that make a key a secret.
    key_qualifiers: WordSet,
    /// Words that make a key a secret if its value looks like one.
    long_key_qualifiers: WordSet,
    /// Words that make a key in a variable something else: places in tables, stores and caches, and
    /// public keys.
    not_keys: WordSet,
    /// Other last words of a variable with a random value.
    variables: WordSet,
    /// Words that make a token something else: places in texts, pages of answers, words of a
    /// vocabulary.
    not_tokens: WordSet,
    /// Whole words for a password.
    short_passwords: WordSet,
    /// Words that merely end like a password.
    not_passwords: WordSet,
}

static WORDS: LazyLock<NameWords> = LazyLock::new(|| NameWords {
    neutral: WordSet::new(
        "base value prod production dev development test staging stage live old new current previous \
         default main raw str string text plain plaintext primary secondary backup env b64 base64 hex \
         confirmation confirm again ro rw hs256 data",
    ),
    key_qualifiers: WordSet::new(
        "api access secret private encryption encrypt decryption signing sign master app account storage \
         service auth license licence deploy ssh hmac jwt cookie symmetric shared root webhook consumer \
         client write integration aes rsa crypto cipher security token password session ingest ingestion \
         sas host functions subscription priv wallet wg preshared openai anthropic stripe azure gemini \
         mistral groq datadog dd mailgun sendgrid algolia appcenter rails vapid maps fernet server admin \
         unseal recovery wifi fi wpa wep function enc insert",
    ),
    long_key_qualifiers: WordSet::new("primary secondary tls ssl"),
    not_keys: WordSet::new(
        "public pub publishable site verify cache restore foreign sort range partition row object \
         idempotency dedup route routing hash s3 map group unique index lookup message event registry",
    ),
    variables: WordSet::new("salt pepper private"),
    not_tokens: WordSet::new(
        "next page continuation continue pagination sync eos bos pad unk sep cls mask stop start end max \
         min per prev last special first image prompt output input cancellation cancel resume change \
         sequence fencing parse syntax lex two one single multi second render",
    ),
    short_passwords: WordSet::new("pass pw psk psw creds"),
    not_passwords: WordSet::new(
        "bypass compass trespass encompass overpass surpass underpass multipass onepass",
    ),
});

/// Returns the kind of secret that a name announces.
pub(super) fn kind(name: &[u8]) -> Option<NameKind> {
    if name.len() > MAX_NAME_BYTES || name.len() < 2 {
        return None;
    }
    let is_variable = || !name.iter().any(u8::is_ascii_lowercase);
    let mut rest = name;
    while let Some((before, last)) = last_word(rest) {
        let trimmed = trim_digits(last);
        let kind = kind_of_last(trimmed, last_word(before).map_or(&b""[..], |(_, word)| word))
            .filter(|kind| *kind != NameKind::Variable || is_variable());
        if kind.is_some() || !(trimmed.is_empty() || WORDS.neutral.has(trimmed)) {
            return kind;
        }
        rest = before;
    }
    None
}

/// Returns the kind that the last word of a name implies, given the word before.
fn kind_of_last(word: &[u8], before: &[u8]) -> Option<NameKind> {
    let words = &*WORDS;
    let is_ending = |endings: &str| endings.split(' ').any(|ending| ends_with(word, ending.as_bytes()));
    if let Some((kind, _)) = ENDINGS.iter().find(|(_, endings)| is_ending(endings)) {
        let is_place = *kind == NameKind::Token && words.not_tokens.has(before);
        return (!is_place).then_some(*kind);
    }
    if word.eq_ignore_ascii_case(b"key") {
        let qualifier = trim_digits(before);
        return match qualifier {
            _ if words.key_qualifiers.has(qualifier) => Some(NameKind::Key),
            _ if words.long_key_qualifiers.has(qualifier) => Some(NameKind::LongKey),
            _ if words.not_keys.has(qualifier) || before.is_empty() => None,
            _ => Some(NameKind::Variable),
        };
    }
    // An id is half of a machine's credentials.
    if word.eq_ignore_ascii_case(b"id") {
        return before.eq_ignore_ascii_case(b"secret").then_some(NameKind::Secret);
    }
    if words.variables.has(word) {
        return Some(NameKind::Variable);
    }
    if word.eq_ignore_ascii_case(b"pat") {
        return Some(NameKind::Token);
    }
    if words.short_passwords.has(word) || is_joined_pass(word) {
        // `two-pass`, `first_pass`
        return (!words.not_tokens.has(before)).then_some(NameKind::Password);
    }
    None
}

/// Returns true for `dbpass`, `rootpw`, `requirepass`, but not for `bypass` or `compass`.
fn is_joined_pass(word: &[u8]) -> bool {
    ends_with(word, b"pass") && word.len() <= 16 && !WORDS.not_passwords.has(word)
        || ends_with(word, b"pw") && word.len() <= 8
}

pub(super) fn ends_with(word: &[u8], ending: &[u8]) -> bool {
    word.len() >= ending.len() && word[word.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

fn trim_digits(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    &word[..end]
}

/// Splits off the last word of a name: `DB_PASSWORD`, `dbPassword`, `db-password` and `db.password`
/// have the same words.
fn last_word(name: &[u8]) -> Option<(&[u8], &[u8])> {
    static PART: ByteSet = ByteSet::new(b"").and_alphanumeric();
    let end = name.iter().rposition(|byte| PART.has(*byte))? + 1;
    let mut start = end - 1;
    while start > 0 && PART.has(name[start - 1]) && !turns(&name[..end], start) {
        start -= 1;
    }
    Some((&name[..start], &name[start..end]))
}

/// Returns true if a new word starts here inside `camelCase` or `APIKey`.
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
        .map(|name| kind(name.as_bytes()).map(NameKind::label));
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
