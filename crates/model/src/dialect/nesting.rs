//! Finds the end of a JSON or Python value by counting brackets and quotes.

/// The open brackets and the open quote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BracketNesting {
    depth: usize,
    quote: Option<u8>,
    is_escaped: bool,
}

impl BracketNesting {
    /// Starts inside `depth` open brackets.
    pub(super) fn inside(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    /// Takes a byte and returns true if it closes the outermost bracket.
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

    /// Returns the length of the bracketed text at the start, if it is complete.
    pub(super) fn length_of(text: &str) -> Option<usize> {
        let mut nesting = Self::default();
        text.bytes().position(|byte| nesting.closes(byte)).map(|at| at + 1)
    }
}
