//! Whether a value that stands where a secret may stand is one: placeholders, code, references and words are not.

use std::{ops::Range, sync::LazyLock};

use super::{name::Kind, words::Words};

/// A longer value is a document, not a secret.
pub(super) const MAX_BYTES: usize = 4096;

/// How a value is written, which says what else it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// In quotes: not an expression.
    Quoted,
    /// Without: in code this would be an expression.
    Bare,
    /// The whole rest of an `NAME=value` line: not an expression either, save for `$`.
    Environment,
}

/// Words that make a placeholder of whatever they are in.
const PLACEHOLDER_WORDS: &[&str] = &[
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "placeholder",
    "example",
    "xxxx",
    "****",
    "....",
    "redacted",
    "dummy",
    "replace",
    "not-a-real",
    "notreal",
    "not_real",
    "mysecret",
    "my-secret",
    "my_secret",
    "mytoken",
    "my-token",
    "my_token",
    "mypassword",
    "my-password",
    "my_password",
    "insert",
    "sample",
    "foobar",
    "goes-here",
    "goes_here",
    "-here",
    "_here",
    "yoursecret",
    "your-",
    "your_",
    "yourpass",
    "yourtoken",
    "yourapi",
    "yourkey",
    "fake-",
    "fake_",
    "todo",
    "fixme",
    "undefined",
    "hidden",
    "masked",
    "filtered",
    "1234567890",
    "abcdefgh",
    "deadbeef",
    "…",
    "•••",
    "0000000000",
    "<your",
    "none",
    "null",
    "abc123",
    "abcd1234",
    "test-token",
    "test_token",
    "testtoken",
    "...",
];

/// The ones that a long random text may hold by chance, so that they count in short values only.
const SHORT_WORD_BYTES: usize = 4;
const LONG_VALUE_BYTES: usize = 24;

static PLACEHOLDERS: LazyLock<Words> =
    LazyLock::new(|| Words::new(PLACEHOLDER_WORDS.iter().map(|word| word.as_bytes())));

/// Words with digits that are names of things.
const KNOWN_WORDS: &[&[u8]] = &[
    b"utf8",
    b"utf8mb4",
    b"utf16",
    b"int8",
    b"int16",
    b"int32",
    b"int64",
    b"uint8",
    b"uint16",
    b"uint32",
    b"uint64",
    b"float32",
    b"float64",
    b"base32",
    b"base58",
    b"base62",
    b"base64",
    b"sha1",
    b"sha224",
    b"sha256",
    b"sha384",
    b"sha512",
    b"md5",
    b"ed25519",
    b"ed448",
    b"x509",
    b"x25519",
    b"oauth2",
    b"oauth",
    b"argon2",
    b"argon2i",
    b"argon2id",
    b"pbkdf2",
    b"aes128",
    b"aes256",
    b"hs256",
    b"hs384",
    b"hs512",
    b"rs256",
    b"rs384",
    b"rs512",
    b"es256",
    b"es384",
    b"ps256",
    b"http2",
    b"ipv4",
    b"ipv6",
    b"blake2b",
    b"blake3",
    b"rsa2048",
    b"rsa4096",
    b"string2",
    b"varchar255",
    b"pkcs1",
    b"pkcs8",
    b"pkcs11",
    b"pkcs12",
    b"secp256k1",
    b"secp256r1",
    b"p256",
    b"p384",
    b"scram-sha-256",
    b"k8s",
    b"s3",
    b"i18n",
    b"latin1",
    b"iso8859",
    b"win32",
    b"x86",
    b"x64",
    b"arm64",
    b"amd64",
    b"ntlmv2",
    b"wpa2",
    b"wpa3",
    b"auth0",
];

#[derive(Debug, Clone, Copy)]
struct Tally {
    lower: usize,
    upper: usize,
    digits: usize,
    /// `_`, `-`, `.`, `:` and `/`, with which words are joined.
    joints: usize,
    symbols: usize,
    spaces: usize,
    case_changes: usize,
    /// What else is in it, as of [`FLAGS`].
    flags: u8,
}

/// `(`, `[`, `{`, `<` and their like.
const BRACKET: u8 = 1;
/// What two-character operators begin with.
const OPERATOR: u8 = 2;
/// What marks a place where something is put in.
const TEMPLATE: u8 = 4;
const DOT: u8 = 8;
/// What a path has between its parts.
const SLASH: u8 = 16;

const FLAGS: [u8; 256] = {
    let mut flags = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        flags[byte as usize] = match byte {
            b'{' | b'<' => BRACKET | TEMPLATE,
            b'(' | b')' | b'[' | b']' | b'}' | b'>' | b'`' => BRACKET,
            b':' | b'-' | b'?' | b'=' => OPERATOR,
            b'$' | b'#' | b'%' | b'@' => TEMPLATE,
            b'.' => DOT,
            b'/' | b'\\' => SLASH,
            _ => 0,
        };
        byte += 1;
    }
    flags
};

/// What a byte counts as: small letters are 0 and capitals 1, which makes a change of case cheap to see.
const CLASSES: [u8; 256] = {
    let mut classes = [5; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            b'_' | b'-' | b'.' | b':' | b'/' => 3,
            b' ' | b'\t' => 4,
            _ => 5,
        };
        byte += 1;
    }
    classes
};

fn tally(value: &[u8]) -> Tally {
    let (mut counts, mut case_changes, mut before, mut flags) = ([0; 6], 0, 5, 0);
    for byte in value {
        let class = CLASSES[usize::from(*byte)];
        counts[usize::from(class)] += 1;
        case_changes += usize::from(before | class == 1 && before != class);
        before = class;
        flags |= FLAGS[usize::from(*byte)];
    }
    let [lower, upper, digits, joints, spaces, symbols] = counts;
    Tally { lower, upper, digits, joints, symbols, spaces, case_changes, flags }
}

/// Whether a value is a secret, given the kind of name it has.
pub(super) fn is_secret(value: &[u8], written: Written, kind: Kind) -> bool {
    let least = if kind == Kind::Password { 6 } else { 8 };
    if value.len() < least || value.len() > MAX_BYTES {
        return false;
    }
    let tally = tally(value);
    if tally.spaces > 0 {
        return kind == Kind::Password && written == Written::Quoted && is_app_password(value);
    }
    // In the order of what they cost.
    let is_text = || written != Written::Bare || !is_expression(value, tally);
    is_strong(value, tally, kind, written)
        && !is_template(value, tally)
        && is_text()
        && !is_reference(value, tally)
        && !is_placeholder(value)
}

/// `abcd efgh ijkl mnop`, as Google writes passwords for programs.
fn is_app_password(value: &[u8]) -> bool {
    value.len() == 19
        && value.iter().enumerate().all(|(at, byte)| match at % 5 {
            4 => *byte == b' ',
            _ => byte.is_ascii_lowercase(),
        })
}

/// Whether a value that certainly stands in the place of a password is one: words are, placeholders are not.
pub(super) fn is_password(value: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"password",
        b"passwd",
        b"pass",
        b"pwd",
        b"secret",
        b"token",
        b"pw",
        b"user",
        b"username",
        b"key",
        b"apikey",
        b"api_key",
        b"api-key",
        b"test",
        b"string",
        b"str",
        b"postgres",
        b"root",
        b"admin",
        b"guest",
        b"x-oauth-basic",
    ];
    let tally = tally(value);
    (3..=MAX_BYTES).contains(&value.len())
        && !is_template(value, tally)
        && !is_placeholder(value)
        && !is_expression(value, tally)
        && !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
        && !value.windows(2).all(|pair| pair[0] == pair[1])
}

/// Whether a token of no certain place is random enough to be a secret: long, of mixed kinds, not words.
pub(super) fn is_random(value: &[u8], least: usize) -> bool {
    let tally = tally(value);
    value.len() >= least
        && tally.spaces == 0
        && tally.symbols <= value.len() / 4
        && tally.digits >= 2
        && tally.lower + tally.upper >= 2
        && !is_template(value, tally)
        && !is_placeholder(value)
        && !is_reference(value, tally)
        && !is_wordy(value)
}

/// Whether the part of a key behind its prefix was made up for a document.
pub(super) fn is_placeholder_key(key: &[u8]) -> bool {
    let mut seen = [0_u64; 4];
    for byte in key {
        seen[usize::from(byte / 64)] |= 1 << (byte % 64);
    }
    let different: u32 = seen.iter().map(|bits| bits.count_ones()).sum();
    different <= 6 && key.len() >= 12 || is_placeholder(key)
}

/// Whether the value says of itself that another one goes there.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let is_long = value.len() > LONG_VALUE_BYTES;
    let counts = |word: &Range<usize>| {
        !is_long
            || word.len() > SHORT_WORD_BYTES
            || !value[word.clone()].iter().all(u8::is_ascii_alphabetic)
            || is_edge(value, word.start.checked_sub(1)) && is_edge(value, Some(word.end))
    };
    let mut at = 0;
    let named = std::iter::from_fn(|| {
        let (_, word) = PLACEHOLDERS.find(value, at)?;
        at = word.start + 1;
        Some(word)
    })
    .any(|word| counts(&word));
    named || value.len() > 2 && value.iter().all(|byte| *byte == value[0])
}

fn is_edge(value: &[u8], at: Option<usize>) -> bool {
    at.and_then(|at| value.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Whether something is put in here later: `${X}`, `$(x)`, `{{ x }}`, `<x>`, `%s`, `%X%`, `$X`.
fn is_template(value: &[u8], tally: Tally) -> bool {
    // What is wrapped has a bracket, and everything else one of its marks.
    if tally.flags & (TEMPLATE | BRACKET) == 0 {
        return false;
    }
    let (first, last) = (value.first().copied().unwrap_or(0), value.last().copied().unwrap_or(0));
    let is_variable =
        first == b'$' && value.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let is_positional = first == b'$' && value[1..].iter().all(u8::is_ascii_digit);
    let is_wrapped =
        matches!((first, last), (b'<', b'>') | (b'[', b']') | (b'{', b'}') | (b'%', b'%') | (b'(', b')'));
    is_wrapped
        || is_positional
        || is_variable && value[1..].iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(byte))
        || value
            .windows(2)
            .any(|pair| matches!(pair, b"${" | b"$(" | b"{{" | b"#{" | b"<%" | b"%s" | b"%(" | b"{}" | b"@{"))
        || braced_name(value)
}

/// Whether there is a `{name}` in it.
fn braced_name(value: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'{', value) else { return false };
    let Some(length) = memchr::memchr(b'}', &value[open..]) else { return false };
    let name = &value[open + 1..open + length];
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:[]()".contains(byte))
}

/// Whether this is code rather than text: a call, an index, a path of names, a type.
fn is_expression(value: &[u8], tally: Tally) -> bool {
    // `==` at the end fills up base64.
    let unpadded = value.strip_suffix(b"==").unwrap_or(value);
    let has_operator = || unpadded.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"?." | b"=="));
    let starts_as_code =
        matches!(value.first(), Some(b'&' | b'*' | b'@' | b'$' | b'!' | b'%' | b'^' | b'|' | b'.' | b'?'));
    starts_as_code
        || tally.flags & BRACKET != 0
        || tally.flags & OPERATOR != 0 && has_operator()
        || tally.flags & DOT != 0 && is_path_of_names(value)
}

/// `var.db_password`, `process.env.API_KEY`, `settings.SECRET_KEY2`.
fn is_path_of_names(value: &[u8]) -> bool {
    value.split(|byte| *byte == b'.').all(|part| {
        part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') && is_wordy(part)
    })
}

/// Whether this names something that is elsewhere: an address, a path, a version, a time, a number, a hash.
fn is_reference(value: &[u8], tally: Tally) -> bool {
    const PREFIXES: &[&[u8]] = &[
        b"sha1:",
        b"sha256:",
        b"sha512:",
        b"sha1-",
        b"sha256-",
        b"sha384-",
        b"sha512-",
        b"SHA256:",
        b"MD5:",
        b"md5:",
        b"arn:",
        b"op://",
        b"vault:",
        b"ENC[",
        b"secretsmanager:",
        b"projects/",
        b"ssh-rsa",
        b"ssh-ed25519",
        b"data:",
        b"file:",
        b"env:",
        b"ref+",
        b"!vault",
        b"urn:",
        b"0x",
        b"s3://",
        b"gs://",
        b"http://",
        b"https://",
        b"kms:",
        b"ssm:",
        b"$2a$",
        b"$2b$",
        b"$2y$",
        b"$argon2",
        b"$6$",
        b"$5$",
        b"$1$",
        b"$apr1$",
        b"{SSHA}",
        b"pbkdf2",
        b"{crypt}",
        b"uuid:",
        b"awskms",
        b"keyring:",
    ];
    if tally.joints + tally.symbols == 0 && !value.starts_with(b"0x") {
        return false;
    }
    let has_letters = tally.lower + tally.upper > 0;
    PREFIXES.iter().any(|prefix| prefix[..2] == value[..2] && value.starts_with(prefix))
        || !has_letters && tally.joints > 0
        || tally.flags & (SLASH | DOT) != 0 && is_path(value)
        || is_version_or_time(value, tally)
}

fn is_path(value: &[u8]) -> bool {
    let rooted = [&b"/"[..], b"./", b"../", b"~/", b"\\\\"].iter().any(|start| value.starts_with(start))
        || value.len() > 3 && value[1] == b':' && b"\\/".contains(&value[2]);
    let parts = || value.split(|byte| b"/\\".contains(byte)).filter(|part| !part.is_empty());
    let is_file = |part: &[u8]| {
        part.iter().rposition(|byte| *byte == b'.').is_some_and(|dot| {
            let extension = &part[dot + 1..];
            (1..=5).contains(&extension.len())
                && extension.iter().all(u8::is_ascii_lowercase)
                && is_wordy(&part[..dot])
        })
    };
    let wordy = parts().filter(|part| is_wordy(part) || is_file(part)).count();
    let all = parts().count();
    rooted && wordy * 2 >= all && wordy > 0 || all > 1 && wordy == all || value.len() < 40 && is_file(value)
}

/// `1.2.3`, `v2.0-rc1`, `2026-01-02T03:04:05Z`, `10.0.0.1:80`, `30s`, `15min`.
fn is_version_or_time(value: &[u8], tally: Tally) -> bool {
    let digits_first = value.strip_prefix(b"v").unwrap_or(value).first().is_some_and(u8::is_ascii_digit);
    digits_first && tally.joints > 0 && tally.lower + tally.upper <= 4 && tally.symbols == 0
}

fn is_strong(value: &[u8], tally: Tally, kind: Kind, written: Written) -> bool {
    let letters = tally.lower + tally.upper;
    if kind == Kind::LongKey {
        return value.len() >= 40 && tally.lower > 5 && tally.upper > 5 && tally.digits > 0;
    }
    if letters == 0 {
        return kind == Kind::Password && tally.digits >= 6;
    }
    if tally.digits == 0 && tally.symbols == 0 {
        let is_mixed = tally.upper >= 2 && tally.lower >= 2 && letters >= 10 && written != Written::Bare;
        return has_random_case(tally, letters)
            || kind == Kind::Password && tally.joints == 0 && has_odd_case(value, tally, letters)
            || (letters >= 20 || is_mixed) && tally.joints == 0 && is_consonant_heavy(value);
    }
    if tally.symbols > 0 {
        // Base64 without a digit, or a password such as `P@ssword!`.
        return tally.digits > 0
            || tally.upper > 0 && tally.lower > 0 && written != Written::Bare
            || has_random_case(tally, letters)
            || kind == Kind::Password && has_odd_case(value, tally, letters);
    }
    if is_known_word(value) {
        return false;
    }
    if kind == Kind::Password && tally.joints == 0 {
        return true;
    }
    !is_wordy(value)
}

fn is_known_word(value: &[u8]) -> bool {
    value.len() <= 13 && KNOWN_WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Words change case where they start; random letters do at every second place.
fn has_random_case(tally: Tally, letters: usize) -> bool {
    letters >= 10 && tally.case_changes * 100 >= letters * 38
}

/// Letters of both cases that no words are made of, although they change less often.
fn has_odd_case(value: &[u8], tally: Tally, letters: usize) -> bool {
    letters >= 10 && tally.case_changes * 100 >= letters * 28 && is_consonant_heavy(value)
}

fn is_consonant_heavy(value: &[u8]) -> bool {
    let vowels = value.iter().filter(|byte| b"aeiouAEIOU".contains(byte)).count();
    vowels * 100 < value.len() * 24
}

/// Whether every part of the value is a word, a word with a number behind it, or a short number.
pub(super) fn is_wordy(value: &[u8]) -> bool {
    value.split(|byte| matches!(byte, b'_' | b'-' | b'.' | b'/' | b':')).all(is_word)
}

fn is_word(part: &[u8]) -> bool {
    let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, number) = part.split_at(letters);
    if number.len() > 4
        || !number.iter().all(u8::is_ascii_digit)
        || letters < 3 && letters > 0 && number.len() > 2
    {
        return is_known_word(part);
    }
    if letters <= 6 {
        return true;
    }
    let counted = tally(word);
    let is_cased = counted.upper == 0 || counted.lower == 0 || counted.case_changes * 100 < letters * 38;
    is_cased && !(letters >= 20 && is_consonant_heavy(word))
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
            assert!(is_secret(value.as_bytes(), Written::Quoted, Kind::Password), "{value}");
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
            assert!(!is_secret(value.as_bytes(), Written::Bare, Kind::Token), "{value}");
        }
    }
}
