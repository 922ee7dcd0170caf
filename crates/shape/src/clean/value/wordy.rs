//! Whether letters make words: of texts, of names in code, of things with numbers in their names.

use std::sync::LazyLock;

use super::tally::tally;
use crate::clean::{bytes::Bytes, dictionary::Dictionary};

/// Words with digits that are names of things.
const KNOWN_WORDS: &[&[u8]] = &[
    b"aes128",
    b"aes256",
    b"amd64",
    b"argon2",
    b"argon2i",
    b"argon2id",
    b"arm64",
    b"auth0",
    b"base32",
    b"base58",
    b"base62",
    b"base64",
    b"blake2b",
    b"blake3",
    b"ed25519",
    b"ed448",
    b"es256",
    b"es384",
    b"float32",
    b"float64",
    b"hs256",
    b"hs384",
    b"hs512",
    b"http2",
    b"i18n",
    b"int16",
    b"int32",
    b"int64",
    b"int8",
    b"ipv4",
    b"ipv6",
    b"iso8859",
    b"k8s",
    b"latin1",
    b"md5",
    b"ntlmv2",
    b"oauth",
    b"oauth2",
    b"p256",
    b"p384",
    b"pbkdf2",
    b"pkcs1",
    b"pkcs11",
    b"pkcs12",
    b"pkcs8",
    b"ps256",
    b"rs256",
    b"rs384",
    b"rs512",
    b"rsa2048",
    b"rsa4096",
    b"s3",
    b"scram-sha-256",
    b"secp256k1",
    b"secp256r1",
    b"sha1",
    b"sha224",
    b"sha256",
    b"sha384",
    b"sha512",
    b"string2",
    b"uint16",
    b"uint32",
    b"uint64",
    b"uint8",
    b"utf16",
    b"utf8",
    b"utf8mb4",
    b"varchar255",
    b"win32",
    b"wpa2",
    b"wpa3",
    b"x25519",
    b"x509",
    b"x64",
    b"x86",
];

pub(super) fn is_known_word(value: &[u8]) -> bool {
    static KNOWN: LazyLock<Dictionary> = LazyLock::new(|| Dictionary::new(&[(KNOWN_WORDS, 1)]));
    KNOWN.bits(value) != 0
}

/// Which letters follow each letter of the alphabet in words: 331 of 676 pairs, counted in 3,258 English words of documents
/// and code, where each makes up at least one in 5,000.
const FOLLOWING: [&[u8]; 26] = [
    b"bcdfgiklmnprstuvwxy",
    b"aceilorsuy",
    b"acdehikloprstuy",
    b"abdegilmorsuvy",
    b"abcdefghiklmnopqrstvwxy",
    b"adefilorstuy",
    b"aeghilmnorsu",
    b"aeimoprstu",
    b"abcdefgklmnoprstvxz",
    b"eou",
    b"aeilns",
    b"adefiklmopstuvy",
    b"abeilmnopsu",
    b"acdefghiklmnoprstuvwy",
    b"abcdefgiklmnoprstuvwx",
    b"adehiloprstuy",
    b"lu",
    b"abcdefgiklmnoprstuvwy",
    b"acehiklmnopqrstuwy",
    b"acdefhilmoprstuwxy",
    b"abcdefgilmnoprst",
    b"aeio",
    b"adehilnors",
    b"aceipt",
    b"beimnopstw",
    b"ei",
];

/// The same, one bit for each pair.
const PAIRS: [u32; 26] = {
    let mut pairs = [0; 26];
    let mut first = 0;
    while first < 26 {
        let mut at = 0;
        while at < FOLLOWING[first].len() {
            pairs[first] |= 1 << (FOLLOWING[first][at] - b'a');
            at += 1;
        }
        first += 1;
    }
    pairs
};

/// Whether a quarter of the neighbouring letters, and at least two pairs, are not such as words have. Every second one is in
/// random letters; of ten of those, seven in eight are known by it, and of words one in 300.
pub(in crate::clean) fn is_unlike_words(value: &[u8]) -> bool {
    let (all, odd) = pairs(value);
    odd >= 2 && odd * 4 >= all
}

/// Whether so many pairs are not such as words have that small letters alone are no word of another language either: two in
/// five, and of a long text one in three.
pub(super) fn is_like_no_word(value: &[u8]) -> bool {
    let (all, odd) = pairs(value);
    odd * 5 >= all * 2 || all > 10 && odd * 3 >= all
}

/// How many neighbouring letters there are, and how many of those are not such as words have.
fn pairs(value: &[u8]) -> (usize, usize) {
    let letters = value.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphabetic));
    letters.fold((0, 0), |(all, odd), pair| (all + 1, odd + usize::from(!are_of_words(pair))))
}

/// Whether two letters follow each other in words.
fn are_of_words(pair: &[u8]) -> bool {
    let number = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    let [first, second] = [pair[0], pair[1]].map(number);
    PAIRS.get(usize::from(first)).is_some_and(|pairs| second < 26 && pairs >> second & 1 == 1)
}

/// Whether every part of the value is a word, a word with a number behind it, or a short number.
pub(in crate::clean) fn is_wordy(value: &[u8]) -> bool {
    static JOINTS: Bytes = Bytes::of(b"_-./:");
    let mut rest = value;
    loop {
        let (part, after) = rest.split_at(JOINTS.until(rest));
        if !is_word(part) {
            return false;
        }
        let [_, after @ ..] = after else { return true };
        rest = after;
    }
}

fn is_word(part: &[u8]) -> bool {
    let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, number) = part.split_at(letters);
    if number.len() > 4
        || !number.iter().all(u8::is_ascii_digit)
        || letters < 3 && letters > 0 && number.len() > 2
    {
        return is_known_word(part) || is_camel_case(part);
    }
    if letters <= 6 {
        return true;
    }
    let counted = tally(word);
    let is_cased = counted.upper == 0 || counted.lower == 0 || counted.case_changes * 100 < letters * 38;
    is_cased && !(letters >= 12 && is_unlike_words(word)) || is_camel_case(word)
}

/// `CryptoKeyPair`, `SslGenerateMasterKeyFn`, `X509HardwareKeyUsageFlags`, `NSString`: words that begin with a capital each, as in
/// names of types.
pub(in crate::clean) fn is_camel_case(value: &[u8]) -> bool {
    let capitals = value.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    words_of(value).is_some_and(|words| words >= 2)
        || (3..=4).contains(&capitals) && words_of(&value[capitals - 1..]).is_some()
}

/// How many words with a capital each a value is made of. In random letters capitals are beside each other, or what follows
/// them is like no word.
pub(super) fn words_of(value: &[u8]) -> Option<usize> {
    let (mut words, mut short, mut odd, mut at) = (0, 0, 0, 0);
    while at < value.len() {
        let capitals = value[at..].iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        let small = value[at + capitals..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let letters = &value[at..at + capitals + small];
        let digits = value[at + letters.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let word = &value[at..at + letters.len() + digits];
        if word.is_empty() || digits > 0 && !is_known_word(word) {
            return None;
        }
        // `NCrypt` has a letter in front.
        short += usize::from(letters.len() < 2) + capitals.saturating_sub(1);
        odd += letters[capitals.saturating_sub(1)..].windows(2).filter(|pair| !are_of_words(pair)).count();
        (words, at) = (words + 1, at + word.len());
    }
    (words > 0 && value.len() >= words * 3 && short <= 1 && odd * 6 <= value.len() - words).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_found_in_any_case() {
        assert!(KNOWN_WORDS.iter().all(|word| is_known_word(word)));
        assert!(is_known_word(b"SHA256") && is_known_word(b"scram-sha-256") && !is_known_word(b"sha257"));
    }

    #[test]
    fn names_of_types_are_words_and_letters_at_random_are_none() {
        for text in [
            "CryptoKeyPair",
            "SslGenerateMasterKeyFn",
            "X509HardwareKeyUsageFlags",
            "NCryptFreeSecretFn",
            "ed25519PrivateKey",
            "TestVetDirs",
            "NSSecureTextField",
        ] {
            assert!(is_camel_case(text.as_bytes()), "{text}");
        }
        for text in ["xmZYUAuDvgltmfou", "KVWfeJhqPeEM", "Abc12Defgh", "QmZkWpXv", "hunter", "kQxZrTpWmB", ""]
        {
            assert!(!is_camel_case(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn letters_at_random_are_unlike_words() {
        for text in ["xmZYUAuDvgltmfou", "KVWfeJhqPeEM", "zqjxkvbpwt"] {
            assert!(is_unlike_words(text.as_bytes()), "{text}");
        }
        for text in ["correctHorse", "UserPasswordField", "kubernetes", "getAccessTokenFromCache", "string"] {
            assert!(!is_unlike_words(text.as_bytes()), "{text}");
        }
    }
}
