//! The size of one message and the number of its values, counted before anything parses it.

/// Maximum size of one message of a server.
pub(crate) const MAX_MESSAGE: usize = 32 * 1024 * 1024;
/// Maximum cost of the values of one message. 15 million numbers in 30 MiB took 2 GiB and 13 s to
/// parse.
const MAX_VALUE_COST: usize = 1_000_000;
/// Cost of an array, of which an empty one is as large as a number.
const ARRAY_COST: usize = 2;
/// Cost of an object, whose first member allocates a whole node.
const OBJECT_COST: usize = 8;

/// Size and values of one message so far.
#[derive(Debug, Default)]
pub(crate) struct MessageCost {
    bytes: usize,
    values: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl MessageCost {
    /// Adds a part of messages that are one line each. Returns true if one is too large.
    pub(crate) fn add_lines(&mut self, part: &[u8]) -> bool {
        part.iter().any(|byte| {
            if *byte == b'\n' {
                *self = Self::default();
                return false;
            }
            self.add_byte(*byte)
        })
    }

    /// Adds a part of one message. Returns true if it is too large.
    pub(crate) fn add(&mut self, part: &[u8]) -> bool {
        part.iter().any(|byte| self.add_byte(*byte))
    }

    /// Adds one byte. Returns true if the message is too large.
    pub(crate) fn add_byte(&mut self, byte: u8) -> bool {
        self.bytes += 1;
        match byte {
            // A text has no line break, so that nothing before a line decides how it counts.
            b'\n' => (self.is_in_string, self.is_escaped) = (false, false),
            b'"' if !self.is_in_string => self.is_in_string = true,
            b'"' if !self.is_escaped => self.is_in_string = false,
            b'\\' if self.is_in_string => {
                self.is_escaped = !self.is_escaped;
                return self.is_too_large();
            }
            b',' if !self.is_in_string => self.values += 1,
            b'[' if !self.is_in_string => self.values += ARRAY_COST,
            b'{' if !self.is_in_string => self.values += OBJECT_COST,
            _ => {}
        }
        self.is_escaped = false;
        self.is_too_large()
    }

    fn is_too_large(&self) -> bool {
        self.bytes > MAX_MESSAGE || self.values > MAX_VALUE_COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded_and_texts_are_not_counted() {
        let text = format!("{{\"text\":\"{}\\\"[[[[\"}}\n", "a,[{".repeat(MAX_VALUE_COST));
        assert!(!MessageCost::default().add_lines(text.as_bytes()));
        for values in ["0,".repeat(MAX_VALUE_COST + 1), "{".repeat(MAX_VALUE_COST / 8 + 1)] {
            assert!(MessageCost::default().add_lines(values.as_bytes()));
        }
    }

    #[test]
    fn a_quote_in_an_earlier_line_hides_nothing() {
        let mut cost = MessageCost::default();
        assert!(!cost.add(b": a comment with a \"\ndata: ["));
        assert!(cost.add("0,".repeat(MAX_VALUE_COST + 1).as_bytes()));
    }
}
