//! Conversions of counts.

/// Converts a count to a float. Counts of words and tools are small enough to be exact.
#[expect(clippy::cast_precision_loss, reason = "counts of words and tools stay far below 2^24")]
pub(crate) fn to_f32(count: usize) -> f32 {
    count as f32
}

/// Converts a count to four bytes. No count is larger: every text is cut, and memory would run out
/// first.
pub(crate) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
