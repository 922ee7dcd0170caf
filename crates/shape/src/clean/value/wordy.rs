//! Decides whether letters make words: of prose, of identifiers, of names with numbers.

use std::sync::LazyLock;

use super::tally::ByteTally;
use crate::clean::bytes::WordSet;

/// Words with digits that are names of things.
const KNOWN_WORDS: &str = "aes128 aes256 amd64 argon2 argon2i argon2id arm64 auth0 base32 base58 base62 base64 blake2b \
    blake3 ed25519 ed448 es256 es384 float32 float64 hs256 hs384 hs512 http2 i18n int16 int32 int64 \
    int8 ipv4 ipv6 iso8859 k8s latin1 md5 ntlmv2 oauth oauth2 p256 p384 pbkdf2 pkcs1 pkcs11 pkcs12 \
    pkcs8 ps256 rs256 rs384 rs512 rsa2048 rsa4096 s3 scram-sha-256 secp256k1 secp256r1 sha1 sha224 \
    sha256 sha384 sha512 string2 uint16 uint32 uint64 uint8 utf16 utf8 utf8mb4 varchar255 win32 \
    wpa2 wpa3 x25519 x509 x64 x86";

/// Letters that follow each letter of the alphabet in words: 331 of 676 pairs, counted in 3,258
/// English words of documents and code. Each makes up at least one in 5,000.
const FOLLOWING: &str = "bcdfgiklmnprstuvwxy aceilorsuy acdehikloprstuy abdegilmorsuvy abcdefghiklmnopqrstvwxy \
    adefilorstuy aeghilmnorsu aeimoprstu abcdefgklmnoprstvxz eou aeilns adefiklmopstuvy abeilmnopsu \
    acdefghiklmnoprstuvwy abcdefgiklmnoprstuvwx adehiloprstuy lu abcdefgiklmnoprstuvwy \
    acehiklmnopqrstuwy acdefhilmoprstuwxy abcdefgilmnoprst aeio adehilnors aceipt beimnopstw ei";

/// The pairs as bits.
static PAIRS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let bits = |letters: &str| letters.bytes().fold(0, |bits, letter| bits | 1 << (letter - b'a'));
    FOLLOWING.split_ascii_whitespace().map(bits).collect()
});

pub(super) fn is_known_word(value: &[u8]) -> bool {
    static KNOWN: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(KNOWN_WORDS));
    KNOWN.has(value)
}

/// Returns true if at least two pairs, and a quarter of all, do not occur in words. In random
/// letters every second pair is such. Of ten random letters this detects seven in eight; of words
/// it misjudges one in 300.
pub(in crate::clean) fn is_unlike_words(value: &[u8]) -> bool {
    let (all, odd) = pairs(value);
    odd >= 2 && odd * 4 >= all
}

/// Returns true if so many pairs do not occur in words that lower-case letters are not a foreign
/// word either: two in five, or one in three of a long text.
pub(super) fn is_like_no_word(value: &[u8]) -> bool {
    let (all, odd) = pairs(value);
    odd * 5 >= all * 2 || all > 10 && odd * 3 >= all
}

/// Counts the pairs of letters, and those of them that do not occur in words.
fn pairs(value: &[u8]) -> (usize, usize) {
    let letters = value.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphabetic));
    letters.fold((0, 0), |(all, odd), pair| (all + 1, odd + usize::from(!are_of_words(pair))))
}

/// Returns true if this pair occurs in words.
fn are_of_words(pair: &[u8]) -> bool {
    let number = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    let [first, second] = [pair[0], pair[1]].map(number);
    PAIRS.get(usize::from(first)).is_some_and(|pairs| second < 26 && pairs >> second & 1 == 1)
}

/// Returns true if every part of the value is a word, a word with a number after it, or a short
/// number.
pub(in crate::clean) fn is_wordy(value: &[u8]) -> bool {
    value.split(|byte| b"_-./:".contains(byte)).all(is_word)
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
    let counted = ByteTally::new(word);
    let is_cased = counted.upper == 0 || counted.lower == 0 || counted.case_changes * 100 < letters * 38;
    is_cased && !(letters >= 12 && is_unlike_words(word)) || is_camel_case(word)
}

/// Returns true for capitalized words as in type names: `CryptoKeyPair`, `SslGenerateMasterKeyFn`,
/// `X509HardwareKeyUsageFlags`, `NSString`.
pub(in crate::clean) fn is_camel_case(value: &[u8]) -> bool {
    let capitals = value.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    words_of(value).is_some_and(|words| words >= 2)
        || (3..=4).contains(&capitals) && words_of(&value[capitals - 1..]).is_some()
}

/// Counts the capitalized words of a value. In random letters capitals are adjacent, or no word
/// follows them.
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
        // `NCrypt` has one letter before the word.
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
        assert!(KNOWN_WORDS.split_ascii_whitespace().all(|word| is_known_word(word.as_bytes())));
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
