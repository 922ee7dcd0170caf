//! Whether a name says that its value is a secret: `DB_PASSWORD`, `apiKey`, `client-secret`, but not `max_tokens`.

/// What a name says its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Password,
    Secret,
    Token,
    Key,
}

impl Kind {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Secret => "secret",
            Self::Token => "token",
            Self::Key => "key",
        }
    }
}

/// The longest name that is looked at.
const MAX_NAME_BYTES: usize = 80;
const MAX_WORDS: usize = 12;

/// What a last word ends with, and what that makes of the name.
const ENDINGS: &[(&[u8], Kind)] = &[
    (b"password", Kind::Password),
    (b"passwort", Kind::Password),
    (b"passwd", Kind::Password),
    (b"passphrase", Kind::Password),
    (b"passcode", Kind::Password),
    (b"pwd", Kind::Password),
    (b"secret", Kind::Secret),
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
    b"admin",
    b"webhook",
    b"consumer",
    b"client",
    b"write",
    b"integration",
    b"server",
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
];

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

/// What a name says its value is, if that is a secret.
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    if name.len() > MAX_NAME_BYTES || name.len() < 2 {
        return None;
    }
    let (words, count) = words(name);
    let mut words = &words[..count];
    while let Some((last, before)) = words.split_last() {
        let trimmed = trim_digits(last);
        let kind = kind_of_last(trimmed, before.last().copied().unwrap_or(b""));
        if kind.is_some() || !(trimmed.is_empty() || is_one_of(trimmed, NEUTRAL)) {
            return kind;
        }
        words = before;
    }
    None
}

fn kind_of_last(word: &[u8], before: &[u8]) -> Option<Kind> {
    if word.eq_ignore_ascii_case(b"key") {
        let is_public = before.eq_ignore_ascii_case(b"public");
        return (!is_public && is_one_of(trim_digits(before), KEY_QUALIFIERS)).then_some(Kind::Key);
    }
    if [&b"pass"[..], b"pw", b"psk", b"psw", b"creds"].iter().any(|short| word.eq_ignore_ascii_case(short))
        || is_joined_pass(word)
    {
        return Some(Kind::Password);
    }
    let (_, kind) = ENDINGS.iter().find(|(ending, _)| ends_with(word, ending))?;
    let is_place = *kind == Kind::Token && is_one_of(before, NOT_TOKENS);
    (!is_place).then_some(*kind)
}

/// `dbpass`, `rootpw`, `requirepass`, but not `bypass` or `compass`.
fn is_joined_pass(word: &[u8]) -> bool {
    const OTHERS: &[&[u8]] = &[
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
    ends_with(word, b"pass") && word.len() <= 12 && !is_one_of(word, OTHERS)
        || ends_with(word, b"pw") && word.len() <= 8
}

fn ends_with(word: &[u8], ending: &[u8]) -> bool {
    word.len() >= ending.len() && word[word.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

fn is_one_of(word: &[u8], words: &[&[u8]]) -> bool {
    let first = word.first().map_or(0, u8::to_ascii_lowercase);
    words.iter().any(|each| each[0] == first && word.eq_ignore_ascii_case(each))
}

fn trim_digits(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    &word[..end]
}

/// The words of a name: `DB_PASSWORD`, `dbPassword`, `db-password` and `db.password` have the same. The last ones, if
/// there are too many.
fn words(name: &[u8]) -> ([&[u8]; MAX_WORDS], usize) {
    let mut words: [&[u8]; MAX_WORDS] = [b""; MAX_WORDS];
    let mut count = 0;
    let mut start = 0;
    for at in 0..=name.len() {
        let ends = at == name.len() || !name[at].is_ascii_alphanumeric();
        let turns = !ends && at > start && turns(name, at);
        if !(ends || turns) {
            continue;
        }
        if at > start {
            if count == MAX_WORDS {
                words.rotate_left(1);
                count -= 1;
            }
            words[count] = &name[start..at];
            count += 1;
        }
        start = if ends { at + 1 } else { at };
    }
    (words, count)
}

/// Whether a new word starts here inside `camelCase` or `APIKey`.
fn turns(name: &[u8], at: usize) -> bool {
    let (before, here) = (name[at - 1], name[at]);
    let next_is_lower = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    here.is_ascii_uppercase()
        && (before.is_ascii_lowercase()
            || before.is_ascii_digit()
            || before.is_ascii_uppercase() && next_is_lower)
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
            "primary_key",
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
