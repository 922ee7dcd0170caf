//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Writes bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

/// Reads the 64 digits of a SHA-256.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    // `from_str_radix` alone would also accept a sign.
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_as_they_were_written() {
        let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 8).unwrap());
        assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), &"ä".repeat(32), &"+0".repeat(32)] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}
