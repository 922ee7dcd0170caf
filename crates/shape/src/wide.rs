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
    /// Where each byte was.
    places: Vec<usize>,
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
            return (narrow.places[seen.start]..end, Written::Narrow);
        }
        (start..end, if self.raw[start] == 0 { Written::Wide } else { Written::WideFirst })
    }

    /// The place behind so much of what is seen.
    pub(crate) fn behind(&self, seen: usize) -> usize {
        self.narrow.as_ref().map_or(seen, |narrow| narrow.behind(seen))
    }

    /// How much is seen of what is before a place.
    pub(crate) fn before(&self, raw: usize) -> usize {
        self.narrow.as_ref().map_or(raw, |narrow| narrow.places.partition_point(|place| *place < raw))
    }
}

impl Narrow {
    fn of(raw: &[u8]) -> Option<Self> {
        memchr::memchr(0, raw)?;
        let (mut text, mut places, mut at) = (Vec::new(), Vec::new(), 0);
        for line in raw.split_inclusive(|byte| *byte == b'\n') {
            let mut keep = |part: Range<usize>| {
                text.extend_from_slice(&line[part.clone()]);
                places.extend(part.map(|each| at + each));
            };
            let mut kept = 0;
            for zeros in wide_parts(line) {
                keep(kept..zeros.start);
                zeros.clone().skip(1).step_by(2).for_each(|between| keep(between..between + 1));
                kept = zeros.end;
            }
            keep(kept..line.len());
            at += line.len();
        }
        (text.len() < raw.len()).then_some(Self { text, places })
    }

    /// Behind so many bytes that are seen.
    fn behind(&self, seen: usize) -> usize {
        seen.checked_sub(1).and_then(|last| self.places.get(last)).map_or(0, |last| last + 1)
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
