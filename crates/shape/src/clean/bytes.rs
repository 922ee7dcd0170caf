//! Sets of bytes that are asked about for every byte of a line: one load each.

use std::ops::Range;

/// A set of bytes.
pub(super) struct Bytes([bool; 256]);

impl Bytes {
    /// These.
    pub(super) const fn of(bytes: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut at = 0;
        while at < bytes.len() {
            set[bytes[at] as usize] = true;
            at += 1;
        }
        Self(set)
    }

    /// These, letters and digits.
    pub(super) const fn alphanumeric_and(bytes: &[u8]) -> Self {
        let Self(mut set) = Self::of(bytes);
        let mut byte = 0_u8;
        while byte < 128 {
            set[byte as usize] |= byte.is_ascii_alphanumeric();
            byte += 1;
        }
        Self(set)
    }

    /// These and white space.
    pub(super) const fn space_and(bytes: &[u8]) -> Self {
        let Self(mut set) = Self::of(bytes);
        let mut byte = 0_u8;
        while byte < 128 {
            set[byte as usize] |= byte.is_ascii_whitespace();
            byte += 1;
        }
        Self(set)
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        #[cfg(test)]
        asked::add(1);
        self.0[usize::from(byte)]
    }

    /// How many bytes at the start of a text are of the set.
    pub(super) fn run(&self, text: &[u8]) -> usize {
        first(text, |byte| !self.has(byte))
    }

    /// How many bytes come before the first of the set.
    pub(super) fn until(&self, text: &[u8]) -> usize {
        first(text, |byte| self.has(byte))
    }

    /// As far as bytes of the set go on both sides of a part of a text, but no further than so many.
    pub(super) fn around(&self, text: &[u8], part: &Range<usize>, most: usize) -> Range<usize> {
        let before = &text[part.start.saturating_sub(most)..part.start];
        let start = before.iter().rposition(|byte| !self.has(*byte)).map_or(0, |last| last + 1);
        let after = &text[part.end..text.len().min(part.end + most)];
        part.start - (before.len() - start)..part.end + self.run(after)
    }
}

/// Where a short word is in a text of which only the beginning may be looked at: a search that is made ready costs more than that.
pub(super) fn places(text: &[u8], word: &[u8]) -> impl Iterator<Item = usize> {
    let first = word.first().copied().unwrap_or_default();
    memchr::memchr_iter(first, text).filter(move |at| {
        #[cfg(test)]
        asked::add(1);
        text[*at..].starts_with(word)
    })
}

/// How many bytes come before the first that is sought. In fours, so that the end of the text is asked about as seldom.
#[inline]
fn first(text: &[u8], is_sought: impl Fn(u8) -> bool) -> usize {
    let (fours, rest) = text.as_chunks::<4>();
    for (number, four) in fours.iter().enumerate() {
        if let Some(at) = four.iter().position(|byte| is_sought(*byte)) {
            return number * 4 + at;
        }
    }
    let in_rest = rest.iter().position(|byte| is_sought(*byte));
    in_rest.map_or(text.len(), |at| text.len() - rest.len() + at)
}

/// How often a byte was asked about: what cleaning costs, where time cannot be asserted.
#[cfg(test)]
pub(super) mod asked {
    use std::cell::Cell;

    thread_local! {
        static TIMES: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::clean) fn add(times: usize) {
        TIMES.set(TIMES.get() + times);
    }

    /// Since this was taken last.
    pub(in crate::clean) fn take() -> usize {
        TIMES.take()
    }
}
