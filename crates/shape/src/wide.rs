//! Text with two bytes a character (UTF-16) among other text: there, every character of ASCII has a zero beside it.
//!
//! Lines are looked at one by one, so that nothing depends on where a text is cut. Zeros that stand between other things, as
//! in `/proc/self/environ`, are none of these.

use std::{borrow::Cow, ops::Range};

/// So many zeros, each behind or before one other byte, make text of what they are in.
const FEWEST: usize = 4;

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Narrow,
    /// With a zero before each byte,
    Wide,
    /// or before each but the first, as where a text begins with it.
    WideFirst,
}

impl Written {
    /// Writes in the same way what was added to a text from a place on.
    pub(crate) fn apply(self, out: &mut Vec<u8>, from: usize) {
        if self != Self::Narrow {
            let added = out.split_off(from);
            let zeros = added.into_iter().flat_map(|byte| [0, byte]);
            out.extend(zeros.skip(usize::from(self == Self::WideFirst)));
        }
    }
}

/// A text as it is looked at: without the zeros that are halves of characters.
#[derive(Debug)]
pub(crate) struct Readable<'a> {
    raw: &'a [u8],
    narrow: Option<Narrow>,
}

#[derive(Debug)]
struct Narrow {
    text: Vec<u8>,
    parts: Vec<Part>,
}

/// A part of what is seen: of what was there, each byte or each second one.
#[derive(Debug)]
struct Part {
    seen: usize,
    raw: usize,
    step: usize,
}

impl<'a> Readable<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { raw, narrow: Narrow::of(raw) }
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.narrow.as_ref().map_or(self.raw, |narrow| &narrow.text)
    }

    /// What was really there, where this is seen, and how it was written. What is wide goes with the zero before its first byte,
    /// but not that behind its last: so a zero is always of the line of the byte behind it, in either order of the two.
    pub(crate) fn raw(&self, seen: &Range<usize>) -> (Range<usize>, Written) {
        let Some(narrow) = self.narrow.as_ref().filter(|_| !seen.is_empty()) else {
            let at = self.behind(seen.start);
            return (at..at + seen.len(), Written::Narrow);
        };
        let (start, end) = (narrow.behind(seen.start), narrow.behind(seen.end));
        if end - start < 2 * seen.len() - 1 || end - start == seen.len() {
            return (narrow.place(seen.start)..end, Written::Narrow);
        }
        (start..end, if self.raw[start] == 0 { Written::Wide } else { Written::WideFirst })
    }

    /// The place behind so much of what is seen.
    pub(crate) fn behind(&self, seen: usize) -> usize {
        self.narrow.as_ref().map_or(seen, |narrow| narrow.behind(seen))
    }

    /// How much is seen of what is before a place.
    pub(crate) fn before(&self, raw: usize) -> usize {
        self.narrow.as_ref().map_or(raw, |narrow| narrow.before(raw))
    }
}

impl Narrow {
    fn of(raw: &[u8]) -> Option<Self> {
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
        // Where nothing is wide, as in most that is not text, nothing is copied.
        if kept == 0 {
            return None;
        }
        narrow.keep(raw, kept..raw.len(), 1);
        Some(narrow)
    }

    fn keep(&mut self, raw: &[u8], part: Range<usize>, step: usize) {
        if !part.is_empty() {
            self.parts.push(Part { seen: self.text.len(), raw: part.start, step });
            match step {
                1 => self.text.extend_from_slice(&raw[part]),
                _ => self.text.extend(raw[part].iter().step_by(step)),
            }
        }
    }

    /// Where a byte was that is seen.
    fn place(&self, seen: usize) -> usize {
        let part = self.parts.partition_point(|part| part.seen <= seen).checked_sub(1);
        part.map_or(0, |part| self.parts[part].raw + (seen - self.parts[part].seen) * self.parts[part].step)
    }

    /// Behind so many bytes that are seen.
    fn behind(&self, seen: usize) -> usize {
        seen.checked_sub(1).filter(|last| *last < self.text.len()).map_or(0, |last| self.place(last) + 1)
    }

    /// How many bytes are seen of those before a place.
    fn before(&self, raw: usize) -> usize {
        let parts = self.parts.partition_point(|part| part.raw < raw);
        let Some(Part { seen, raw: start, step }) = parts.checked_sub(1).map(|last| &self.parts[last]) else {
            return 0;
        };
        let end = self.parts.get(parts).map_or(self.text.len(), |next| next.seen);
        end.min(seen + (raw - start).div_ceil(*step))
    }
}

/// The text without the zeros of wide characters, if it has a line of them.
pub(crate) fn narrowed(text: &str) -> Cow<'_, str> {
    let is_wide = |line: &[u8]| wide_parts(line).any(|zeros| zeros.len() > 2 * FEWEST - 2);
    if memchr::memchr(0, text.as_bytes()).is_none()
        || !text.as_bytes().split(|byte| *byte == b'\n').any(is_wide)
    {
        return Cow::Borrowed(text);
    }
    let narrow = Narrow::of(text.as_bytes()).map(|narrow| narrow.text).unwrap_or_default();
    Cow::Owned(String::from_utf8_lossy(&narrow).into_owned())
}

/// The parts of a line in which every second byte is a zero, from the first zero to behind the last: long ones, and one that is
/// all of its line.
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
    .filter(move |zeros| zeros.len() > 2 * FEWEST - 2 || zeros.start == 0 && zeros.end + 1 >= length)
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
        let seen = Readable::new(&raw);
        assert_eq!(seen.text(), b"a\0b DB=q8Zk\r\n\r\nend");
        let (place, written) = seen.raw(&(7..11));
        assert_eq!((&raw[place], written), (&b"\0q\x008\0Z\0k"[..], Written::Wide));
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
            assert_eq!(Readable::new(text).text(), text);
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
