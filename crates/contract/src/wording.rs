//! Numbers with their nouns, for texts that models and people read.

use std::fmt;

/// `1 line`, `2 lines`: a number and a noun that takes an `s`.
pub fn counted<N: fmt::Display + From<u8> + PartialEq + Copy>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}
