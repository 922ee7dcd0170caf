//! Numbers secrets, so that a reader can see if two are equal without seeing either.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    io::Write,
    sync::LazyLock,
};

/// Prefix of a redaction label.
pub(super) const MARK: &[u8] = b"[REDACTED:";

/// Maximum number of numbered secrets; later ones get no number.
const MAX_SECRETS: usize = 65_536;

/// The labels given so far. Only hashes of the secrets are stored.
#[derive(Debug, Default)]
pub(super) struct SecretLabels {
    given: HashMap<u64, Box<[u8]>>,
}

impl SecretLabels {
    /// Writes the label of a secret. Equal secrets get equal labels, whichever rule matched.
    pub(super) fn write(&mut self, hash: u64, rule: &str, out: &mut Vec<u8>) {
        if let Some(label) = self.given.get(&hash) {
            out.extend_from_slice(label);
            return;
        }
        let (start, number) = (out.len(), self.given.len() + 1);
        out.extend_from_slice(MARK);
        out.extend_from_slice(rule.as_bytes());
        if number > MAX_SECRETS {
            out.push(b']');
            return;
        }
        // Writing to a vector cannot fail.
        let _written = write!(out, "#{number}]");
        self.given.insert(hash, out[start..].into());
    }
}

/// Hashes a secret with a key of this process, so that the author of a text cannot construct two
/// with the same hash.
pub(super) fn hash(secret: &[u8]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(secret)
}
