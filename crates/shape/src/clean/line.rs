//! A line under scan, with cached results.

use std::{
    cell::{Cell, OnceCell},
    ops::Deref,
};

use super::{bytes::ByteSet, keys::KeyLineShape};

/// The bytes of a line.
pub(super) struct ScannedLine<'a> {
    text: &'a [u8],
    run: Cell<ValueRun>,
    shape: OnceCell<KeyLineShape>,
}

/// The last run of bytes that an unquoted value may have, from the first check to its end.
#[derive(Clone, Copy)]
struct ValueRun {
    start: usize,
    end: usize,
    /// Number of checked values that end where it ends.
    looks: usize,
}

/// Maximum number of values with the same end that are checked at any length.
const MAX_LOOKS: usize = 16;
/// Maximum length of the values checked after those.
const LONG_VALUE: usize = 128;

impl<'a> ScannedLine<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        // An empty run: it contains no offset.
        Self { text, run: Cell::new(ValueRun { start: 1, end: 0, looks: 0 }), shape: OnceCell::new() }
    }

    /// Returns the properties of the line that concern private keys. Computed once, however many
    /// matches need them.
    pub(super) fn shape(&self) -> &KeyLineShape {
        self.shape.get_or_init(|| KeyLineShape::new(self.text))
    }

    /// Returns the unquoted value that starts here, up to white space or a delimiter. In a line
    /// such as `a=a=a=…` every value extends to the end, so each byte would be read once per name.
    /// There, all but the last values are returned as empty.
    pub(super) fn value(&self, at: usize) -> &'a [u8] {
        static ENDS: ByteSet = ByteSet::new(b"\"',;<>|&`\\\x1b \t\n\r\x0c");
        let rest = self.text.get(at..).unwrap_or_default();
        let run = self.run.get();
        let run = if (run.start..=run.end).contains(&at) {
            ValueRun { looks: run.looks + 1, ..run }
        } else {
            ValueRun { start: at, end: at + ENDS.until(rest), looks: 0 }
        };
        self.run.set(run);
        let length = run.end - at;
        &rest[..if length > LONG_VALUE && run.looks > MAX_LOOKS { 0 } else { length }]
    }
}

impl Deref for ScannedLine<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.text
    }
}
