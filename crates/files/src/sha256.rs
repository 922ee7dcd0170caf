//! SHA-256 digests of contents, and their form as text.

use std::io::{self, Read};

use ring::digest::{Context, Digest, SHA256, digest};

/// Maximum number of bytes read at once.
const MAX_CHUNK_BYTES: usize = 256 * 1024;

/// Computes the digest of a content.
pub(crate) fn sha256_of(bytes: &[u8]) -> [u8; 32] {
    to_array(digest(&SHA256, bytes))
}

/// Computes the digest of everything that a reader returns, which should be about `size_bytes`.
pub(crate) fn read_sha256(mut reader: impl Read, size_bytes: u64) -> io::Result<[u8; 32]> {
    let size_bytes = usize::try_from(size_bytes).unwrap_or(MAX_CHUNK_BYTES);
    let mut chunk = vec![0; MAX_CHUNK_BYTES.min(size_bytes.saturating_add(1))];
    let mut context = Context::new(&SHA256);
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(to_array(context.finish())),
            Ok(read) => context.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes a digest as 64 hexadecimal digits.
pub(crate) fn to_hex(sha256: &[u8; 32]) -> String {
    sha256.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses what [`to_hex`] has written.
pub(crate) fn from_hex(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 {
        return None;
    }
    let mut sha256 = [0; 32];
    for (at, byte) in sha256.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(sha256)
}

fn to_array(digest: Digest) -> [u8; 32] {
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest.as_ref());
    sha256
}
