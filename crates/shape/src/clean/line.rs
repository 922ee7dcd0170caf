//! A line that is looked at, with what was learnt about it on the way.

use std::{
    cell::{Cell, OnceCell},
    ops::Deref,
};

use super::{bytes::ByteSet, keys::Shape};

/// The bytes of a line.
pub(super) struct Line<'a> {
    text: &'a [u8],
    run: Cell<Run>,
    shape: OnceCell<Shape>,
}

/// The last run of bytes that a value without quotes may have, from where it was looked at to its end.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    /// How many values were looked at that end where it does.
    looks: usize,
}

/// So many values that end at one place are looked at whole,
const MOST_LOOKS: usize = 16;
/// and after them those that are no longer than this.
const LONG_VALUE: usize = 128;

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        // No place is in a run that ends before it starts.
        Self { text, run: Cell::new(Run { start: 1, end: 0, looks: 0 }), shape: OnceCell::new() }
    }

    /// What all of the line says about private keys, however often something in it could be of one.
    pub(super) fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| Shape::of(self.text))
    }

    /// The value without quotes that starts here: up to white space, or to what cannot be in one. In a line such as
    /// `a=a=a=…` every value goes on to the end, so that each byte would be looked at once for every name. There, all but the
    /// last ones are empty.
    pub(super) fn value(&self, at: usize) -> &'a [u8] {
        static ENDS: ByteSet = ByteSet::new(b"\"',;<>|&`\\\x1b \t\n\r\x0c");
        let rest = self.text.get(at..).unwrap_or_default();
        let run = self.run.get();
        let run = if (run.start..=run.end).contains(&at) {
            Run { looks: run.looks + 1, ..run }
        } else {
            Run { start: at, end: at + ENDS.until(rest), looks: 0 }
        };
        self.run.set(run);
        let length = run.end - at;
        &rest[..if length > LONG_VALUE && run.looks > MOST_LOOKS { 0 } else { length }]
    }
}

impl Deref for Line<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.text
    }
}
