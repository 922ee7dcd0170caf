//! Whether letters make words: of texts, of names in code, of things with numbers in their names.

use super::tally::tally;

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

pub(super) fn is_known_word(value: &[u8]) -> bool {
    value.len() <= 13 && KNOWN_WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

pub(super) fn is_consonant_heavy(value: &[u8]) -> bool {
    let vowels = value.iter().filter(|byte| b"aeiouAEIOU".contains(byte)).count();
    vowels * 100 < value.len() * 24
}

/// Whether every part of the value is a word, a word with a number behind it, or a short number.
pub(in crate::clean) fn is_wordy(value: &[u8]) -> bool {
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
