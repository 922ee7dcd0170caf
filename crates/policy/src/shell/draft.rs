//! A command that is being put together: its words are still places in the source.

use std::ops::Range;

use super::{
    Assignment, Dialect, Joined, Redirect, RedirectKind, Simple, What,
    word::{self, Word},
};

/// A command so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) joined: Joined,
    /// Names and values.
    pub(super) assignments: Vec<(Range<usize>, Range<usize>)>,
    pub(super) words: Vec<Range<usize>>,
    pub(super) redirects: Vec<(RedirectKind, Range<usize>)>,
    pub(super) here: Option<String>,
    /// The number of the first command in its substitutions, if there are any.
    pub(super) first_inner: usize,
}

impl Draft {
    /// The command, decoded. Its own number is `number`. The draft is empty afterwards.
    pub(super) fn decode(&mut self, source: &str, dialect: Dialect, number: usize) -> Simple {
        let text = |range: &Range<usize>| source.get(range.clone()).unwrap_or_default();
        let single = |range: &Range<usize>| single(text(range), dialect);
        let assignment = |(name, value): (Range<usize>, Range<usize>)| Assignment {
            name: text(&name).to_owned(),
            value: single(&value),
        };
        let redirect = |(kind, target): (RedirectKind, Range<usize>)| {
            let target = single(&target);
            Redirect { kind: descriptor_or_file(kind, &target), target }
        };
        let mut words = Vec::with_capacity(self.words.len());
        for range in self.words.drain(..) {
            word::decode(text(&range), dialect, &mut words);
        }
        Simple {
            assignments: self.assignments.drain(..).map(assignment).collect(),
            redirects: self.redirects.drain(..).map(redirect).collect(),
            words,
            joined: self.joined,
            here: self.here.take(),
            inner: self.first_inner..number,
        }
    }
}

/// The word of a place that takes exactly one.
fn single(source: &str, dialect: Dialect) -> Word {
    let mut words = Vec::with_capacity(1);
    word::decode(source, dialect, &mut words);
    match words.len() {
        0 | 1 => words.pop().unwrap_or_default(),
        _ => Word { text: source.to_owned(), unclear: Some(What::Brace), ..Word::default() },
    }
}

/// `>&1` copies a descriptor, `>& f` writes a file.
fn descriptor_or_file(kind: RedirectKind, target: &Word) -> RedirectKind {
    if kind == RedirectKind::Descriptor && !is_number(&target.text) { RedirectKind::Write } else { kind }
}

/// Digits, or nothing.
pub(super) fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
