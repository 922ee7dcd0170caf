//! Whether a name says that its value is a secret: `DB_PASSWORD`, `apiKey`, `client-secret`, but not `max_tokens`.

use std::sync::LazyLock;

use super::bytes::Bytes;

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

/// What a last word ends with, and what that makes of the name.
const ENDINGS: &[(&[u8], Kind)] = &[
    (b"password", Kind::Password),
    (b"passwort", Kind::Password),
    (b"passwd", Kind::Password),
    (b"passphrase", Kind::Password),
    (b"passcode", Kind::Password),
    (b"pwd", Kind::Password),
    (b"secret", Kind::Secret),
    (b"masterauth", Kind::Password),
    (b"dockerconfigjson", Kind::Secret),
    (b"token", Kind::Token),
    (b"apikey", Kind::Key),
    (b"accesskey", Kind::Key),
    (b"secretkey", Kind::Key),
    (b"privatekey", Kind::Key),
    (b"authkey", Kind::Key),
    (b"signingkey", Kind::Key),
    (b"encryptionkey", Kind::Key),
    (b"accountkey", Kind::Key),
    (b"masterkey", Kind::Key),
    (b"sharedaccesskey", Kind::Key),
];

/// Words that say nothing about what comes before them: `SECRET_KEY_BASE`, `TOKEN_VALUE`, `PASSWORD_PROD`.
const NEUTRAL: &[&[u8]] = &[
    b"base",
    b"value",
    b"prod",
    b"production",
    b"dev",
    b"development",
    b"test",
    b"staging",
    b"stage",
    b"live",
    b"old",
    b"new",
    b"current",
    b"previous",
    b"default",
    b"main",
    b"raw",
    b"str",
    b"string",
    b"text",
    b"plain",
    b"plaintext",
    b"primary",
    b"secondary",
    b"backup",
    b"env",
    b"b64",
    b"base64",
    b"hex",
    b"confirmation",
    b"confirm",
    b"again",
    b"ro",
    b"rw",
    b"hs256",
    b"data",
];

/// What makes a secret of a key.
const KEY_QUALIFIERS: &[&[u8]] = &[
    b"api",
    b"access",
    b"secret",
    b"private",
    b"encryption",
    b"encrypt",
    b"decryption",
    b"signing",
    b"sign",
    b"master",
    b"app",
    b"account",
    b"storage",
    b"service",
    b"auth",
    b"license",
    b"licence",
    b"deploy",
    b"ssh",
    b"hmac",
    b"jwt",
    b"cookie",
    b"symmetric",
    b"shared",
    b"root",
    b"webhook",
    b"consumer",
    b"client",
    b"write",
    b"integration",
    b"aes",
    b"rsa",
    b"crypto",
    b"cipher",
    b"security",
    b"token",
    b"password",
    b"session",
    b"ingest",
    b"ingestion",
    b"sas",
    b"host",
    b"functions",
    b"subscription",
    b"priv",
    b"wallet",
    b"wg",
    b"preshared",
    b"openai",
    b"anthropic",
    b"stripe",
    b"azure",
    b"gemini",
    b"mistral",
    b"groq",
    b"datadog",
    b"dd",
    b"mailgun",
    b"sendgrid",
    b"algolia",
    b"appcenter",
    b"rails",
    b"vapid",
    b"maps",
    b"fernet",
    b"server",
    b"admin",
    b"unseal",
    b"recovery",
    b"wifi",
    b"fi",
    b"wpa",
    b"wep",
    b"function",
    b"enc",
    b"insert",
];

/// What makes a secret of a key whose value looks like one.
const LONG_KEY_QUALIFIERS: &[&[u8]] = &[b"primary", b"secondary"];

/// What makes something else of a key in a variable: places in tables, stores and caches, and what is public.
const NOT_KEYS: &[&[u8]] = &[
    b"public",
    b"pub",
    b"publishable",
    b"site",
    b"verify",
    b"cache",
    b"restore",
    b"foreign",
    b"sort",
    b"range",
    b"partition",
    b"row",
    b"object",
    b"idempotency",
    b"dedup",
    b"route",
    b"routing",
    b"hash",
    b"s3",
    b"map",
    b"group",
    b"unique",
    b"index",
    b"lookup",
    b"message",
    b"event",
    b"registry",
];

/// What else a variable with a random value may end with.
const VARIABLES: &[&[u8]] = &[b"salt", b"pepper", b"private"];

/// What makes something else of a token: places in texts, pages of answers, words of a vocabulary.
const NOT_TOKENS: &[&[u8]] = &[
    b"next",
    b"page",
    b"continuation",
    b"continue",
    b"pagination",
    b"sync",
    b"eos",
    b"bos",
    b"pad",
    b"unk",
    b"sep",
    b"cls",
    b"mask",
    b"stop",
    b"start",
    b"end",
    b"max",
    b"min",
    b"per",
    b"prev",
    b"last",
    b"special",
    b"first",
    b"image",
    b"prompt",
    b"output",
    b"input",
    b"cancellation",
    b"cancel",
    b"resume",
    b"change",
    b"sequence",
    b"fencing",
    b"parse",
    b"syntax",
    b"lex",
];

/// Whole words for a password.
const SHORT_PASSWORDS: &[&[u8]] = &[b"pass", b"pw", b"psk", b"psw", b"creds"];

/// Words that end like one.
const NOT_PASSWORDS: &[&[u8]] = &[
    b"bypass",
    b"compass",
    b"trespass",
    b"encompass",
    b"overpass",
    b"surpass",
    b"underpass",
    b"multipass",
    b"onepass",
];

/// What a word may be to a name, one bit each.
const NEUTRAL_WORD: u8 = 1;
const KEY_QUALIFIER: u8 = 2;
const NOT_A_TOKEN: u8 = 4;
const SHORT_PASSWORD: u8 = 8;
const NOT_A_PASSWORD: u8 = 16;
const LONG_KEY_QUALIFIER: u8 = 32;
const NOT_A_KEY: u8 = 64;
const VARIABLE: u8 = 128;

/// Places for words; more than twice as many as there are words.
const PLACES: usize = 512;

/// The words of the lists above by what they are, so that one look at a word tells.
static WORDS: LazyLock<[(u128, u8); PLACES]> = LazyLock::new(|| {
    let lists = [
        (NEUTRAL, NEUTRAL_WORD),
        (KEY_QUALIFIERS, KEY_QUALIFIER),
        (NOT_TOKENS, NOT_A_TOKEN),
        (SHORT_PASSWORDS, SHORT_PASSWORD),
        (NOT_PASSWORDS, NOT_A_PASSWORD),
        (LONG_KEY_QUALIFIERS, LONG_KEY_QUALIFIER),
        (NOT_KEYS, NOT_A_KEY),
        (VARIABLES, VARIABLE),
    ];
    let mut words = [(0, 0); PLACES];
    for (word, bit) in lists.iter().flat_map(|(list, bit)| list.iter().map(move |word| (word, bit))) {
        if let Some(packed) = packed(word) {
            let place = place(&words, packed);
            words[place] = (packed, words[place].1 | bit);
        }
    }
    words
});

/// A short word in small letters as a number; longer ones are in no list.
fn packed(word: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..word.len())?.copy_from_slice(word);
    bytes.make_ascii_lowercase();
    Some(u128::from_le_bytes(bytes))
}

/// Where a word is, or would be.
fn place(words: &[(u128, u8); PLACES], packed: u128) -> usize {
    let folded = (packed ^ (packed >> 64)) & u128::from(u64::MAX);
    let mixed = (folded * 0x9E37_79B9_7F4A_7C15) >> 40;
    let mut place = usize::try_from(mixed % PLACES as u128).unwrap_or(0);
    while words[place].0 != packed && words[place].0 != 0 {
        place = (place + 1) % PLACES;
    }
    place
}

/// What a word may be.
fn bits(word: &[u8]) -> u8 {
    let words = &*WORDS;
    packed(word).filter(|_| !word.is_empty()).map_or(0, |packed| words[place(words, packed)].1)
}

/// What a name says its value is, if that is a secret.
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    if name.len() > MAX_NAME_BYTES || name.len() < 2 {
        return None;
    }
    let is_variable = !name.iter().any(u8::is_ascii_lowercase);
    let mut rest = name;
    while let Some((before, last)) = last_word(rest) {
        let trimmed = trim_digits(last);
        let kind = kind_of_last(trimmed, || last_word(before).map_or(&b""[..], |(_, word)| word))
            .filter(|kind| *kind != Kind::Variable || is_variable);
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
        return Some(Kind::Password);
    }
    let (_, kind) =
        ENDINGS.iter().find(|(ending, _)| ending.last() == Some(&last) && ends_with(word, ending))?;
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
