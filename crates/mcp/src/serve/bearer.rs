//! The token that clients must present over HTTP.

use std::fmt;

use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};

/// Minimum length of a token that a user chooses.
const MIN_LENGTH: usize = 32;

/// A token that cannot be printed by accident. It is compared in constant time.
#[derive(Clone)]
pub struct BearerToken {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(hidden)")
    }
}

/// The reason why a token cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BearerTokenError {
    /// It is too short.
    #[error("the token must have at least {MIN_LENGTH} characters")]
    Short,
    /// It has characters that a header cannot carry.
    #[error("the token may have only visible ASCII characters")]
    Characters,
    /// The system has no randomness.
    #[error("the system has no random numbers")]
    Randomness,
}

impl BearerToken {
    /// Takes a token that the user has chosen.
    pub fn parse(token: &str) -> Result<Self, BearerTokenError> {
        if token.len() < MIN_LENGTH {
            return Err(BearerTokenError::Short);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BearerTokenError::Characters);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_unspecified| BearerTokenError::Randomness)?;
        let tag = hmac::sign(&key, token.as_bytes());
        Ok(Self { key, tag })
    }

    /// Makes a new token, and returns it with its text.
    pub fn generate() -> Result<(Self, String), BearerTokenError> {
        let mut bytes = [0_u8; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_unspecified| BearerTokenError::Randomness)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Self::parse(&text)?, text))
    }

    /// Returns true if a client has presented this token. Comparing the codes of both tokens takes
    /// the same time wherever they differ.
    pub fn accepts(&self, presented: &str) -> bool {
        hmac::verify(&self.key, presented.as_bytes(), self.tag.as_ref()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_accepted() {
        let (token, text) = BearerToken::generate().unwrap();
        assert!(token.accepts(&text));
        assert!(!token.accepts(&text[1..]) && !token.accepts("") && !token.accepts(&format!("{text}0")));
        assert!(!format!("{token:?}").contains(&text));
    }

    #[test]
    fn a_weak_token_is_refused() {
        assert_eq!(BearerToken::parse("secret").unwrap_err(), BearerTokenError::Short);
        let spaced = "a token with spaces in it, quite long";
        assert_eq!(BearerToken::parse(spaced).unwrap_err(), BearerTokenError::Characters);
    }
}
