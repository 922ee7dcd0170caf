//! Numbers for secrets, so that a reader can tell whether two of them are the same without seeing either.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    io::Write,
    sync::LazyLock,
};

/// What stands where a secret was begins with this.
pub(super) const MARK: &[u8] = b"[REDACTED:";

/// How many secrets are told apart; what comes later has no number.
const MAX_SECRETS: usize = 65_536;

/// The labels given so far. Secrets are remembered by their hash only.
#[derive(Debug, Default)]
pub(super) struct SecretLabels {
    given: HashMap<u64, Box<[u8]>>,
}

impl SecretLabels {
    /// Writes the label of a secret: the same for the same one, whichever rule found it again.
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
        // Memory does not run out of room.
        let _written = write!(out, "#{number}]");
        self.given.insert(hash, out[start..].into());
    }
}

/// Hashes a secret with a key of this process, so that the author of a text cannot choose two with the same hash.
pub(super) fn hash(secret: &[u8]) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(secret)
}
