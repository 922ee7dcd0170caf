//! Splits a text into the pieces that a tokenizer encodes one by one.

use std::sync::LazyLock;

use regex_automata::{Anchored, Input, meta::Regex};

/// Letters, numbers, punctuation and line ends, as GPT-4 splits them.
const CL100K: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+";

/// The same since GPT-4o: a word begins at a capital letter.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+";

/// Blanks that none of the above begins with.
const BLANKS: &str = r"\s+";

/// Splits text as one tokenizer does.
pub(crate) struct PieceSplitter(Option<Regex>);

impl PieceSplitter {
    pub(crate) fn cl100k() -> &'static Self {
        static SPLITTER: LazyLock<PieceSplitter> = LazyLock::new(|| PieceSplitter::new(CL100K));
        &SPLITTER
    }

    pub(crate) fn o200k() -> &'static Self {
        static SPLITTER: LazyLock<PieceSplitter> = LazyLock::new(|| PieceSplitter::new(O200K));
        &SPLITTER
    }

    /// The patterns are constants, and a test compiles them.
    fn new(words: &str) -> Self {
        Self(Regex::new_many(&[words, BLANKS]).ok())
    }

    /// Returns the pieces of a text. Together they are the text.
    pub(crate) fn split<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (piece, later) = rest.split_at(self.first_piece(rest)?);
            rest = later;
            Some(piece)
        })
    }

    /// Returns the length of the first piece; `None` at the end.
    fn first_piece(&self, text: &str) -> Option<usize> {
        let found = self.0.as_ref()?.find(Input::new(text).anchored(Anchored::Yes));
        let Some(found) = found.filter(|found| !found.is_empty()) else {
            return (!text.is_empty()).then_some(text.len());
        };
        let end = found.end();
        let blanks = &text[..end];
        // The last of several blanks belongs to the word behind them: `\s+(?!\S)` in the usual form
        // of these patterns, which this kind of regular expression cannot express.
        let last = blanks.chars().next_back().map_or(0, char::len_utf8);
        let is_shared = found.pattern().as_usize() == 1 && end < text.len() && last < end;
        Some(if is_shared { end - last } else { end })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        PieceSplitter::o200k().split(text).collect()
    }

    #[test]
    fn words_take_the_blank_before_them() {
        assert_eq!(
            pieces("let  x = 1234;\n\n  y"),
            ["let", " ", " x", " =", " ", "123", "4", ";\n\n", " ", " y"]
        );
        assert_eq!(pieces("a   "), ["a", "   "]);
        assert_eq!(pieces("camelCase don't"), ["camel", "Case", " don't"]);
        let old: Vec<_> = PieceSplitter::cl100k().split("camelCase don't").collect();
        assert_eq!(old, ["camelCase", " don", "'t"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "\\PC{0,40}[ \\n\\ta\u{3000}]{0,8}\\PC{0,4}") {
            for splitter in [PieceSplitter::o200k(), PieceSplitter::cl100k()] {
                prop_assert!(splitter.split(&text).all(|piece| !piece.is_empty()));
                prop_assert_eq!(splitter.split(&text).collect::<String>(), &text[..]);
            }
        }
    }
}
