//! Escape sequences of `$'…'`.

/// Decodes the escape sequences in a text that name a character by its number: `\x41`, `\101`,
/// `\u0041`. Other backslashes stay.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (character, length) = numbered(after).unwrap_or(('\\', 0));
        out.push(character);
        rest = after.get(length..).unwrap_or_default();
    }
    out + rest
}

/// Returns the character that an escape sequence stands for, and the length of the sequence.
fn numbered(text: &str) -> Option<(char, usize)> {
    let (prefix, radix, max_digits) = match text.as_bytes().first()? {
        b'x' => (1, 16, 2),
        b'u' => (1, 16, 4),
        b'U' => (1, 16, 8),
        b'0'..=b'7' => (0, 8, 3),
        _ => return None,
    };
    let digits = text.get(prefix..)?;
    let length = digits.chars().take(max_digits).take_while(|digit| digit.is_digit(radix)).count();
    let number = u32::from_str_radix(digits.get(..length)?, radix).ok()?;
    Some((char::from_u32(number)?, prefix + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_characters() {
        for (text, decoded) in [
            (r"\x67it", "git"),
            (r"\147\u0069t", "git"),
            (r"a\nb\\", r"a\nb\\"),
            (r"\xzz \x", r"\xzz \x"),
            ("\\é\\U00000041", "\\éA"),
            ("\\", "\\"),
        ] {
            assert_eq!(decode(text), decoded);
        }
    }
}
