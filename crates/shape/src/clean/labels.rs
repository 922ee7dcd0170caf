//! Numbers for secrets, so that a reader can tell whether two of them are the same without seeing either.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, DefaultHasher, Hasher},
};

/// How many secrets are told apart; what comes later has no number.
const MAX_SECRETS: usize = 65_536;

/// The labels given so far. Secrets are remembered by their hash only.
#[derive(Debug, Default)]
pub(super) struct Labels {
    given: HashMap<u64, Box<str>, BuildHasherDefault<Hashed>>,
}

/// For keys that are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Labels {
    /// What to write for a secret: the same for the same one, whichever rule found it again.
    pub(super) fn of(&mut self, hash: u64, rule: &str, out: &mut Vec<u8>) {
        let number = self.given.len() + 1;
        if let Some(label) = self.given.get(&hash) {
            out.extend_from_slice(label.as_bytes());
        } else if number > MAX_SECRETS {
            out.extend_from_slice(format!("[REDACTED:{rule}]").as_bytes());
        } else {
            let label = format!("[REDACTED:{rule}#{number}]");
            out.extend_from_slice(label.as_bytes());
            self.given.insert(hash, label.into());
        }
    }
}

pub(super) fn hash(secret: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(secret);
    hasher.finish()
}
