//! A line that is looked at, with what was learnt about it on the way.

use std::{cell::Cell, ops::Deref};

use super::bytes::Bytes;

/// The bytes of a line.
pub(super) struct Line<'a> {
    text: &'a [u8],
    /// The last run of bytes that a value without quotes may have, from where it was looked at to its end.
    run: Cell<(usize, usize)>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        // No place is in a run that ends before it starts.
        Self { text, run: Cell::new((1, 0)) }
    }

    /// Where a value without quotes ends that starts here: at white space, or at what cannot be in one. In a line such as
    /// `a=a=a=…` every value goes on to the end, so that each byte would be looked at once for every name.
    pub(super) fn value_end(&self, at: usize) -> usize {
        static ENDS: Bytes = Bytes::space_and(b"\"',;<>|&`\\\x1b");
        let (start, end) = self.run.get();
        if (start..=end).contains(&at) {
            return end;
        }
        let end = at + ENDS.until(self.text.get(at..).unwrap_or_default());
        self.run.set((at, end));
        end
    }
}

impl Deref for Line<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.text
    }
}
