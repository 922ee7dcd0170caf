//! Properties of every redacted text, for tests and for the fuzz target.

use windlass_shape::{Cleaner, Secrets};

/// A value that the cleaner knows, which is no secret by its form or place.
pub(crate) const KNOWN: &str = "Kn0wn-q8Zk2m";

/// The text without secrets, given in pieces of these lengths, again and again.
pub(crate) fn cleaned(text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let secrets = Secrets::knowing([("KNOWN".to_owned(), KNOWN.to_owned())]);
    let mut cleaner = Cleaner::new(&secrets);
    let (mut out, mut rest) = (Vec::new(), text);
    for cut in cuts.iter().cycle().take_while(|_| !cuts.is_empty()) {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*cut).clamp(1, rest.len()));
        cleaner.push_to(piece, &mut out);
        rest = after;
    }
    cleaner.push_to(rest, &mut out);
    out.extend(cleaner.finish());
    out
}

/// Chunk boundaries make no difference, text stays text, and known values are gone.
pub(crate) fn hold(text: &[u8], cuts: &[usize]) {
    let whole = cleaned(text, &[]);
    assert!(cleaned(text, cuts) == whole, "cut at {cuts:?}: {}", text.escape_ascii());
    assert!(str::from_utf8(text).is_err() || str::from_utf8(&whole).is_ok(), "{}", text.escape_ascii());
    let is_known = |part: &[u8]| part == KNOWN.as_bytes();
    assert!(!whole.windows(KNOWN.len()).any(is_known), "{}", text.escape_ascii());
}
