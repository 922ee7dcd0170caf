//! Numbers for secrets, so that a reader can tell whether two of them are the same without seeing either.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
    io::Write,
    sync::LazyLock,
};

/// What stands where a secret was begins with this.
pub(super) const MARK: &[u8] = b"[REDACTED:";

/// How many secrets are told apart; what comes later has no number.
const MAX_SECRETS: usize = 65_536;

/// The labels given so far. Secrets are remembered by their hash only.
#[derive(Debug, Default)]
pub(super) struct Labels {
    given: HashMap<u64, Box<[u8]>, BuildHasherDefault<Hashed>>,
}

/// For keys that are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(0, bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Labels {
    /// What to write for a secret: the same for the same one, whichever rule found it again.
    pub(super) fn of(&mut self, hash: u64, rule: &str, out: &mut Vec<u8>) {
        if let Some(label) = self.given.get(&hash) {
            out.extend_from_slice(label);
            return;
        }
        let (start, number) = (out.len(), self.given.len() + 1);
        out.extend_from_slice(MARK);
        out.extend_from_slice(rule.as_bytes());
        if number <= MAX_SECRETS {
            // Memory does not run out of room.
            let _written = write!(out, "#{number}");
        }
        out.push(b']');
        if number <= MAX_SECRETS {
            self.given.insert(hash, out[start..].into());
        }
    }
}

/// Of all bytes, in words of eight, and of what they are asked for. Whoever writes the text does not know where it starts,
/// so cannot choose two with the same.
pub(super) fn hash(salt: u64, secret: &[u8]) -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(ODD);
        (product >> 64) as u64 ^ (product & 0xffff_ffff_ffff_ffff) as u64
    };
    // Mixed before the first word, which could undo it otherwise and ask two questions as one.
    let start = mix(*SEED, salt << 32 ^ secret.len() as u64);
    let (words, _) = secret[..secret.len().saturating_sub(1)].as_chunks::<8>();
    let hash = words.iter().fold(start, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    mix(mix(hash, last_word(secret)), ODD)
}

/// The last eight bytes, of which some may be in the word before too; all, if there are fewer.
#[inline]
fn last_word(secret: &[u8]) -> u64 {
    if let Some(word) = secret.last_chunk() {
        return u64::from_le_bytes(*word);
    }
    match (secret.first_chunk(), secret.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => secret.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}
