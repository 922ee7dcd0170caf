//! Parser errors without the names of Rust types, which mean nothing to a model.

/// Rust's name of a number type, and the values it accepts.
const TYPES: [(&str, &str); 12] = [
    ("usize", "a whole number from 0 to 18446744073709551615"),
    ("u64", "a whole number from 0 to 18446744073709551615"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u16", "a whole number from 0 to 65535"),
    ("u8", "a whole number from 0 to 255"),
    ("isize", "a whole number from -9223372036854775808 to 9223372036854775807"),
    ("i64", "a whole number from -9223372036854775808 to 9223372036854775807"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i8", "a whole number from -128 to 127"),
    ("f64", "a number"),
    ("f32", "a number"),
];

/// Prefixes that serde puts before the name of a type.
const KINDS: [(&str, &str); 4] = [
    ("struct ", "an object"),
    ("enum ", "one of the allowed values"),
    ("tuple ", "a list"),
    ("internally tagged enum ", "an object"),
];

/// Rewrites an error in terms of JSON.
pub(super) fn in_words(error: &str) -> String {
    let Some((problem, expected)) = error.split_once(", expected ") else { return error.to_owned() };
    let end = expected.find(" at line ").unwrap_or(expected.len());
    let (expected, place) = expected.split_at(end);
    let number = expected.strip_prefix("a nonzero ");
    let of_type = TYPES.iter().find(|(name, _)| *name == number.unwrap_or(expected));
    let of_kind = KINDS.iter().find(|(name, _)| expected.starts_with(name));
    let words = of_type.or(of_kind).map_or(expected, |(_, words)| words);
    let nonzero = if number.is_some() { " other than 0" } else { "" };
    format!("{problem}, expected {words}{nonzero}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_rust_are_told_as_what_they_take() {
        let cases = [
            (
                "invalid value: integer `-1`, expected u32 at line 1 column 3",
                "invalid value: integer `-1`, expected a whole number from 0 to 4294967295 at line 1 column 3",
            ),
            ("invalid type: map, expected f64", "invalid type: map, expected a number"),
            ("invalid type: null, expected struct Args", "invalid type: null, expected an object"),
            ("invalid type: null, expected a string", "invalid type: null, expected a string"),
            (
                "invalid value: integer `0`, expected a nonzero u8",
                "invalid value: integer `0`, expected a whole number from 0 to 255 other than 0",
            ),
            ("EOF while parsing", "EOF while parsing"),
        ];
        for (error, expected) in cases {
            assert_eq!(in_words(error), expected);
        }
    }
}
