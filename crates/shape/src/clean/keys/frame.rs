//! Strips the text that programs print around each line: `L1: `, `name:1:`, diff markers, colours.

use std::borrow::Cow;

/// Strips the colour sequences of a line.
pub(super) fn bare(line: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(0x1b, line) else { return Cow::Borrowed(line) };
    let (mut text, mut rest) = (line[..first].to_vec(), &line[first..]);
    while let Some(byte) = rest.first() {
        let sequence = sequence_length(rest);
        if sequence == 0 {
            text.push(*byte);
        }
        rest = &rest[sequence.max(1)..];
    }
    Cow::Owned(text)
}

/// Returns the length of the sequence that starts here: `ESC [`, numbers, and a letter.
fn sequence_length(text: &[u8]) -> usize {
    let Some(rest) = text.strip_prefix(b"\x1b[") else { return 0 };
    let numbers = rest.iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
    (text.len() - rest.len() + numbers + 1).min(text.len())
}

/// Returns the text after a frame, or the whole line if it does not begin with the frame. Numbers,
/// blanks, and the markers of diffs and matches may differ.
pub(super) fn behind<'a>(frame: &[u8], line: &'a [u8]) -> &'a [u8] {
    let (mut frame, mut rest) = (frame, line);
    while let [sign, more @ ..] = frame {
        frame = more;
        rest = match (sign, rest) {
            (b'0'..=b'9', [b'0'..=b'9', ..]) => {
                frame = skip_while(frame, u8::is_ascii_digit);
                skip_while(rest, u8::is_ascii_digit)
            }
            (b' ' | b'\t', _) => skip_while(rest, u8::is_ascii_whitespace),
            (_, [first, after @ ..]) if sign == first || are_alike(*sign, *first) => after,
            _ => return line,
        };
    }
    rest
}

fn skip_while(text: &[u8], is_part: fn(&u8) -> bool) -> &[u8] {
    let length = text.iter().take_while(|byte| is_part(byte)).count();
    &text[length..]
}

fn are_alike(one: u8, other: u8) -> bool {
    [&b":-"[..], b"+- "].iter().any(|signs| signs.contains(&one) && signs.contains(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_known_again_by_all_but_its_numbers_and_marks() {
        let cases: [(&[u8], &[u8], &[u8]); 8] = [
            (b"L1: ", b"L12: abc", b"abc"),
            (b"L1: ", b"L2:", b""),
            (b"a/k.pem:1:", b"a/k.pem-30-abc", b"abc"),
            (b"     9\t", b"    10\tabc", b"abc"),
            (b"+", b"-abc", b"abc"),
            (b"", b"  abc", b"  abc"),
            (b"k.pem:", b"other:abc", b"other:abc"),
            (b"L1: ", b"", b""),
        ];
        for (frame, line, rest) in cases {
            assert_eq!(behind(frame, line), rest, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn colours_are_taken_off_and_all_else_stays() {
        assert_eq!(*bare(b"\x1b[1;32m+\x1b[m\x1b[Kabc\x1b[m"), *b"+abc");
        assert_eq!(*bare(b"a\x1bb\x1b["), *b"a\x1bb");
    }
}
