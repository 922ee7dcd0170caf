//! Detects the encoding of a file and decodes its lines, without reading the whole file.

use windlass_patch::{Encoding, Text};

/// Returns the encoding of a text file from its beginning.
pub(super) fn sniff(head: &[u8]) -> Encoding {
    if head.starts_with(b"\xFF\xFE") {
        return Encoding::Utf16Le;
    }
    if head.starts_with(b"\xFE\xFF") {
        return Encoding::Utf16Be;
    }
    Text::decode(whole_characters(head)).map_or(Encoding::Utf8, |text| text.encoding())
}

/// Drops an incomplete character at the end.
pub(super) fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Decodes lines. Also returns the name of the encoding if it is unusual. Invalid bytes become
/// U+FFFD.
pub(super) fn decode(
    encoding: Encoding,
    lines: &[Vec<u8>],
    from_start: bool,
) -> (Vec<String>, Option<&'static str>) {
    let (mut texts, encoding) = match encoding {
        Encoding::Utf16Le => (lines.iter().map(|line| wide(line, u16::from_le_bytes)).collect(), encoding),
        Encoding::Utf16Be => (lines.iter().map(|line| wide(line, u16::from_be_bytes)).collect(), encoding),
        Encoding::Utf8 | Encoding::Utf8Bom | Encoding::Legacy(_) => narrow(encoding, lines),
    };
    if from_start
        && let Some(first) = texts.first_mut()
        && let Some(rest) = first.strip_prefix('\u{feff}')
    {
        *first = rest.to_owned();
    }
    for text in &mut texts {
        if text.ends_with('\r') {
            text.pop();
        }
    }
    let plain = matches!(encoding, Encoding::Utf8 | Encoding::Utf8Bom);
    (texts, (!plain).then(|| encoding.name()))
}

fn wide(line: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = line.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Decodes all lines together, which gives the detection the most data.
fn narrow(encoding: Encoding, lines: &[Vec<u8>]) -> (Vec<String>, Encoding) {
    let joined = lines.iter().map(|line| whole_characters(line)).collect::<Vec<_>>().join(&b'\n');
    let (text, encoding) = match encoding {
        Encoding::Legacy(legacy) => (legacy.decode_without_bom_handling(&joined).0.into_owned(), encoding),
        Encoding::Utf8 => match Text::decode(&joined) {
            Ok(text) if matches!(text.encoding(), Encoding::Legacy(_)) => {
                (text.content().to_owned(), text.encoding())
            }
            _ => (String::from_utf8_lossy(&joined).into_owned(), encoding),
        },
        _ => (String::from_utf8_lossy(&joined).into_owned(), encoding),
    };
    let texts = if lines.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() };
    (texts, encoding)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_many_lines_come_out_as_went_in(
            lines in prop::collection::vec(prop::collection::vec(any::<u8>().prop_filter("no end", |b| *b != b'\n'), 0..40), 0..8),
        ) {
            let head = lines.join(&b'\n');
            let encoding = sniff(&head);
            prop_assert_eq!(decode(encoding, &lines, true).0.len(), lines.len());
        }

        #[test]
        fn text_comes_out_as_it_went_in(lines in prop::collection::vec("[^\r\n\u{feff}]{0,30}", 1..8)) {
            let raw: Vec<_> = lines.iter().map(|line| line.clone().into_bytes()).collect();
            prop_assert_eq!(decode(Encoding::Utf8, &raw, true), (lines, None));
        }
    }
}
