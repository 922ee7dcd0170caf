//! Words that names are made of, and what they make of a name.

use std::sync::LazyLock;

use crate::clean::dictionary::Dictionary;

/// What a word may be to a name, one bit each.
pub(super) const NEUTRAL_WORD: u8 = 1;
pub(super) const KEY_QUALIFIER: u8 = 2;
pub(super) const NOT_A_TOKEN: u8 = 4;
pub(super) const SHORT_PASSWORD: u8 = 8;
pub(super) const NOT_A_PASSWORD: u8 = 16;
pub(super) const LONG_KEY_QUALIFIER: u8 = 32;
pub(super) const NOT_A_KEY: u8 = 64;
pub(super) const VARIABLE: u8 = 128;

/// What a word may be.
pub(super) fn bits(word: &[u8]) -> u8 {
    static WORDS: LazyLock<Dictionary> = LazyLock::new(|| {
        Dictionary::new(&[
            (NEUTRAL, NEUTRAL_WORD),
            (KEY_QUALIFIERS, KEY_QUALIFIER),
            (NOT_TOKENS, NOT_A_TOKEN),
            (SHORT_PASSWORDS, SHORT_PASSWORD),
            (NOT_PASSWORDS, NOT_A_PASSWORD),
            (LONG_KEY_QUALIFIERS, LONG_KEY_QUALIFIER),
            (NOT_KEYS, NOT_A_KEY),
            (VARIABLES, VARIABLE),
        ])
    });
    WORDS.bits(word)
}

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
const LONG_KEY_QUALIFIERS: &[&[u8]] = &[b"primary", b"secondary", b"tls", b"ssl"];

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
    b"two",
    b"one",
    b"single",
    b"multi",
    b"second",
    b"render",
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
