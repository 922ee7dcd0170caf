//! Converts the bytes of a command to text.

use windlass_contract::host::Whole;

/// Converts an output to text. Invalid UTF-8 is replaced, and a line of its own reports a gap.
pub(crate) fn joined(output: &[u8], gap: Option<(usize, u64)>, whole: Option<&Whole>) -> String {
    let Some((at, missing)) = gap else { return lossy(output) };
    let elsewhere = match whole {
        Some(Whole::File { path, complete: true, .. }) => format!("[whole output: {}]\n", Whole::place(path)),
        _ => String::new(),
    };
    let (head, tail) = output.split_at_checked(at).unwrap_or((output, &[]));
    // The cut may split a character; half of one is useless.
    let head = &head[..head.len() - unfinished(head)];
    let continuing = tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    let tail = &tail[continuing..];
    let missing = missing + (output.len() - head.len() - tail.len()) as u64;
    format!("{}\n... {missing} bytes omitted ...\n{elsewhere}{}", lossy(head), lossy(tail))
}

/// Converts any bytes to text.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the number of bytes at the end that begin an incomplete character.
pub(super) fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|byte| !is_continuation(*byte)).map(|back| back + 1);
    last.filter(|back| bytes.get(bytes.len() - back).is_some_and(|byte| length(*byte) > *back)).unwrap_or(0)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns the length of a character that begins with this byte, or 1 if none can.
fn length(first: u8) -> usize {
    match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(output: &[u8], gap: Option<(usize, u64)>) -> String {
        joined(output, gap, None)
    }

    #[test]
    fn a_gap_is_told_on_its_own_line() {
        assert_eq!(text(b"headtail", Some((4, 100))), "head\n... 100 bytes omitted ...\ntail");
    }

    #[test]
    fn characters_cut_in_two_at_the_gap_are_counted_as_missing() {
        let output = [b"a", &"ö".as_bytes()[..1], &"ü".as_bytes()[1..], b"z"].concat();
        assert_eq!(text(&output, Some((2, 10))), "a\n... 12 bytes omitted ...\nz");
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(text(b"a\xff\xfeb", None), "a\u{fffd}\u{fffd}b");
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_and_wherever_the_gap_nothing_breaks(
            output in prop::collection::vec(any::<u8>(), 0..50), at in 0usize..60, missing in 1u64..100,
        ) {
            prop_assert!(text(&output, Some((at, missing))).contains(" bytes omitted ..."));
        }

        #[test]
        fn a_cut_text_is_unfinished_by_exactly_what_was_cut(word in ".{1,8}", at in 0usize..32) {
            let bytes = &word.as_bytes()[..at.min(word.len())];
            let whole = bytes.len() - unfinished(bytes);
            prop_assert!(word.is_char_boundary(whole));
            prop_assert!(std::str::from_utf8(&bytes[..whole]).is_ok());
        }
    }
}
