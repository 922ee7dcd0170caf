//! Counts the kinds of bytes in a value.

/// Number of bytes of each kind in a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ByteTally {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    /// `_`, `-`, `.`, `:` and `/`, which join words.
    pub(super) joints: usize,
    pub(super) symbols: usize,
    pub(super) spaces: usize,
    pub(super) case_changes: usize,
}

impl ByteTally {
    /// Counts the bytes of a value. Bytes beyond ASCII count as lower-case letters; most such
    /// letters have no case.
    pub(super) fn new(value: &[u8]) -> Self {
        let (mut tally, mut before) = (Self::default(), None);
        for byte in value {
            let case = match byte {
                b'a'..=b'z' | 128.. => Some(false),
                b'A'..=b'Z' => Some(true),
                _ => None,
            };
            tally.case_changes += usize::from(case.is_some() && before.is_some() && case != before);
            before = case;
            let count = match byte {
                b'a'..=b'z' | 128.. => &mut tally.lower,
                b'A'..=b'Z' => &mut tally.upper,
                b'0'..=b'9' => &mut tally.digits,
                b'_' | b'-' | b'.' | b':' | b'/' => &mut tally.joints,
                b' ' | b'\t' => &mut tally.spaces,
                _ => &mut tally.symbols,
            };
            *count += 1;
        }
        tally
    }

    pub(super) fn letters(self) -> usize {
        self.lower + self.upper
    }
}
