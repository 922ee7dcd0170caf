//! Where a value ends, byte by byte: brackets and quotes, of JSON and Python alike.

/// The brackets and the quote that are open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BracketNesting {
    depth: usize,
    quote: Option<u8>,
    is_escaped: bool,
}

impl BracketNesting {
    /// Inside of so many brackets.
    pub(super) fn inside(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    /// Takes a byte, and says whether it closes the outermost bracket.
    pub(super) fn closes(&mut self, byte: u8) -> bool {
        if let Some(quote) = self.quote {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                _ if byte == quote => self.quote = None,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' | b'\'' => self.quote = Some(byte),
            b'{' | b'[' | b'(' => self.depth += 1,
            b'}' | b']' | b')' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }

    pub(super) fn is_quoted(self) -> bool {
        self.quote.is_some()
    }

    /// The length of the bracketed text at the beginning, if it comes to its end.
    pub(super) fn length_of(text: &str) -> Option<usize> {
        let mut nesting = Self::default();
        text.bytes().position(|byte| nesting.closes(byte)).map(|at| at + 1)
    }
}
