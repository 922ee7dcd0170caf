//! Finds UTF-16 text among other text: every ASCII character in it has a zero byte beside it.
//!
//! Lines are checked one by one, so the result does not depend on chunk boundaries. Zeros that
//! separate entries, as in `/proc/self/environ`, do not count.

use std::{borrow::Cow, ops::Range};

/// Minimum number of alternating zero bytes in UTF-16 text.
const MIN_ZEROS: usize = 4;

/// Width of the characters of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharWidth {
    Narrow,
    /// A zero before each byte.
    Wide,
    /// A zero before each byte but the first, as at the start of a text.
    WideFirst,
}

impl CharWidth {
    /// Widens the bytes that were added to `out` since `from`.
    pub(crate) fn apply(self, out: &mut Vec<u8>, from: usize) {
        if self != Self::Narrow {
            let added = out.split_off(from);
            let zeros = added.into_iter().flat_map(|byte| [0, byte]);
            out.extend(zeros.skip(usize::from(self == Self::WideFirst)));
        }
    }
}

/// A text without the zero halves of its characters.
#[derive(Debug)]
pub(crate) struct NarrowedText<'a> {
    raw: &'a [u8],
    narrow: Option<NarrowedBytes>,
}

#[derive(Debug)]
struct NarrowedBytes {
    text: Vec<u8>,
    parts: Vec<NarrowedSpan>,
}

/// A span of the narrowed text: it holds each raw byte or every second one.
#[derive(Debug)]
struct NarrowedSpan {
    seen: usize,
    raw: usize,
    step: usize,
}

impl<'a> NarrowedText<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { raw, narrow: NarrowedBytes::new(raw) }
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.narrow.as_ref().map_or(self.raw, |narrow| &narrow.text)
    }

    /// Returns the raw range of a narrowed range, and its width. A wide range includes the zero
    /// before its first byte but not the one after its last. Thus a zero belongs to the line of the
    /// byte after it, in either byte order.
    pub(crate) fn raw(&self, seen: &Range<usize>) -> (Range<usize>, CharWidth) {
        let Some(narrow) = self.narrow.as_ref().filter(|_| !seen.is_empty()) else {
            let at = self.behind(seen.start);
            return (at..at + seen.len(), CharWidth::Narrow);
        };
        let (start, end) = (narrow.behind(seen.start), narrow.behind(seen.end));
        if end - start < 2 * seen.len() - 1 || end - start == seen.len() {
            return (narrow.place(seen.start)..end, CharWidth::Narrow);
        }
        (start..end, if self.raw[start] == 0 { CharWidth::Wide } else { CharWidth::WideFirst })
    }

    /// Returns the raw offset after this number of narrowed bytes.
    pub(crate) fn behind(&self, seen: usize) -> usize {
        self.narrow.as_ref().map_or(seen, |narrow| narrow.behind(seen))
    }

    /// Returns the number of narrowed bytes before a raw offset.
    pub(crate) fn before(&self, raw: usize) -> usize {
        self.narrow.as_ref().map_or(raw, |narrow| narrow.before(raw))
    }
}

impl NarrowedBytes {
    fn new(raw: &[u8]) -> Option<Self> {
        memchr::memchr(0, raw)?;
        let mut narrow = Self { text: Vec::new(), parts: Vec::new() };
        let (mut kept, mut start) = (0, 0);
        while start < raw.len() {
            let end = memchr::memchr(b'\n', &raw[start..]).map_or(raw.len(), |newline| start + newline + 1);
            for zeros in wide_parts(&raw[start..end]) {
                let zeros = start + zeros.start..start + zeros.end;
                narrow.keep(raw, kept..zeros.start, 1);
                narrow.keep(raw, zeros.start + 1..zeros.end, 2);
                kept = zeros.end;
            }
            start = end;
        }
        // Copy nothing if there is no wide text, the usual case for binary data.
        if kept == 0 {
            return None;
        }
        narrow.keep(raw, kept..raw.len(), 1);
        Some(narrow)
    }

    fn keep(&mut self, raw: &[u8], part: Range<usize>, step: usize) {
        if !part.is_empty() {
            self.parts.push(NarrowedSpan { seen: self.text.len(), raw: part.start, step });
            match step {
                1 => self.text.extend_from_slice(&raw[part]),
                _ => self.text.extend(raw[part].iter().step_by(step)),
            }
        }
    }

    /// Returns the raw offset of a narrowed byte.
    fn place(&self, seen: usize) -> usize {
        let part = self.parts.partition_point(|part| part.seen <= seen).checked_sub(1);
        part.map_or(0, |part| self.parts[part].raw + (seen - self.parts[part].seen) * self.parts[part].step)
    }

    /// Returns the raw offset after this number of narrowed bytes.
    fn behind(&self, seen: usize) -> usize {
        seen.checked_sub(1).filter(|last| *last < self.text.len()).map_or(0, |last| self.place(last) + 1)
    }

    /// Returns the number of narrowed bytes before a raw offset.
    fn before(&self, raw: usize) -> usize {
        let parts = self.parts.partition_point(|part| part.raw < raw);
        let Some(NarrowedSpan { seen, raw: start, step }) =
            parts.checked_sub(1).map(|last| &self.parts[last])
        else {
            return 0;
        };
        let end = self.parts.get(parts).map_or(self.text.len(), |next| next.seen);
        end.min(seen + (raw - start).div_ceil(*step))
    }
}

/// Removes the zeros of UTF-16 characters, if a line has such text.
pub(crate) fn narrowed(text: &str) -> Cow<'_, str> {
    let is_wide = |line: &[u8]| wide_parts(line).any(|zeros| zeros.len() > 2 * MIN_ZEROS - 2);
    if memchr::memchr(0, text.as_bytes()).is_none()
        || !text.as_bytes().split(|byte| *byte == b'\n').any(is_wide)
    {
        return Cow::Borrowed(text);
    }
    let narrow = NarrowedBytes::new(text.as_bytes()).map(|narrow| narrow.text).unwrap_or_default();
    Cow::Owned(String::from_utf8_lossy(&narrow).into_owned())
}

/// Returns the ranges of a line in which every second byte is zero, from the first zero to the
/// last. A range counts if it is long or covers the line.
fn wide_parts(line: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let length = line.strip_suffix(b"\n").unwrap_or(line).len();
    let mut zeros = memchr::memchr_iter(0, line).peekable();
    std::iter::from_fn(move || {
        let start = zeros.next()?;
        let mut last = start;
        while let Some(next) = zeros.next_if_eq(&(last + 2)) {
            last = next;
        }
        Some(start..last + 1)
    })
    .filter(move |zeros| zeros.len() > 2 * MIN_ZEROS - 2 || zeros.start == 0 && zeros.end + 1 >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn wide_text_is_seen_without_its_zeros_and_found_again_with_them() {
        let raw = [b"a\0b ", &*wide("DB=q8Zk\r\n\r\nend")].concat();
        let seen = NarrowedText::new(&raw);
        assert_eq!(seen.text(), b"a\0b DB=q8Zk\r\n\r\nend");
        let (place, written) = seen.raw(&(7..11));
        assert_eq!((&raw[place], written), (&b"\0q\x008\0Z\0k"[..], CharWidth::Wide));
        assert_eq!(seen.before(10), 7);
        for at in 0..seen.text().len() {
            let behind = seen.behind(at + 1);
            assert_eq!((seen.before(behind), raw[behind - 1]), (at + 1, seen.text()[at]), "{at}");
        }
    }

    #[test]
    fn zeros_between_other_things_stay() {
        for text in [
            &b"A=1\0B=2\0C=3\0D=4\0E=5\0"[..],
            b"\0\0\0\0\0\0\0\0\0\0",
            b"a\0b\0\n",
            b"\x01\0\0\0\x02\0\0\0\x03\0\0\0",
        ] {
            assert_eq!(NarrowedText::new(text).text(), text);
        }
        assert_eq!(narrowed("\0\na\0\n"), "\0\na\0\n");
    }

    #[test]
    fn readers_get_text_of_either_order() {
        let text = "one of these\r\nand\r\n\r\nanother\r\n";
        for bytes in [wide(text), text.encode_utf16().flat_map(u16::to_be_bytes).collect()] {
            assert_eq!(narrowed(str::from_utf8(&bytes).unwrap()), text);
        }
    }
}
