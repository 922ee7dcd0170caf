//! Counts as numbers to reckon with.

/// A count as a fraction. Counts here are of words and tools, far below where this would lose anything.
#[expect(clippy::cast_precision_loss, reason = "counts of words and tools stay far below 2^24")]
pub(crate) fn to_f32(count: usize) -> f32 {
    count as f32
}

/// A count as a number of four bytes. No card, word or tool has a number beyond that: every text is cut, and a machine
/// would run out of memory first.
pub(crate) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
