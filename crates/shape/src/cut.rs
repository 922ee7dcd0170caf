//! Cuts long text to a budget: keeps the start and the end, and counts the middle.

/// Maximum size of an output that the model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// A number of bytes.
    Bytes(usize),
    /// A number of tokens, at four bytes each.
    Tokens(usize),
}

impl Default for Budget {
    fn default() -> Self {
        Self::Bytes(10_000)
    }
}

const BYTES_PER_TOKEN: usize = 4;

impl Budget {
    /// Returns the budget in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Tokens(tokens) => tokens.saturating_mul(BYTES_PER_TOKEN),
        }
    }

    /// Limits the budget to this number of tokens.
    pub(crate) fn at_most(self, tokens: usize) -> Self {
        Self::Tokens(tokens.min(self.bytes() / BYTES_PER_TOKEN))
    }

    /// Returns the budget that remains after a text.
    pub(crate) fn less(self, text: &str) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.saturating_sub(text.len())),
            Self::Tokens(tokens) => Self::Tokens(tokens.saturating_sub(text.len().div_ceil(BYTES_PER_TOKEN))),
        }
    }

    /// Cuts the text to this budget, or returns `None` if it fits. The marker is not counted;
    /// `elsewhere` is appended to it.
    pub fn cut(self, text: &str, elsewhere: &str) -> Option<String> {
        let budget = self.bytes();
        if text.len() <= budget {
            return None;
        }
        let head = text.floor_char_boundary(budget / 2);
        let tail = text.ceil_char_boundary(text.len() - (budget - budget / 2));
        let removed = &text[head..tail];
        let marker = match self {
            Self::Bytes(_) => format!("…{} chars truncated…", removed.chars().count()),
            Self::Tokens(_) => {
                format!("…{} tokens truncated…", (text.len() - budget).div_ceil(BYTES_PER_TOKEN))
            }
        };
        Some(format!("{}{marker}{elsewhere}{}", &text[..head], &text[tail..]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(Budget::Bytes(5).cut("12345", ""), None);
        assert_eq!(Budget::Tokens(2).cut("12345678", ""), None);
    }

    #[test]
    fn the_marker_counts_what_is_gone() {
        assert_eq!(Budget::Bytes(4).cut("ab-----yz", "").unwrap(), "ab…5 chars truncated…yz");
        assert_eq!(Budget::Tokens(1).cut("ab------yz", "").unwrap(), "ab…2 tokens truncated…yz");
        assert_eq!(Budget::Bytes(0).cut("abc", "").unwrap(), "…3 chars truncated…");
    }

    #[test]
    fn characters_are_never_split() {
        assert_eq!(Budget::Bytes(4).cut("aé—éz", "").unwrap(), "a…3 chars truncated…z");
    }

    proptest! {
        #[test]
        fn a_cut_is_bounded_and_keeps_both_ends(text in ".{0,400}", budget in 0usize..100) {
            if let Some(cut) = Budget::Bytes(budget).cut(&text, "") {
                let (head, rest) = cut.split_once('…').unwrap();
                let tail = rest.rsplit_once('…').unwrap().1;
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= budget);
            } else {
                prop_assert!(text.len() <= budget);
            }
        }
    }
}
