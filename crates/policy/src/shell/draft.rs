//! A command under construction: its words are still ranges in the source.

use std::ops::Range;

use super::{
    CommandSeparator, RedirectKind, ShellDialect, ShellRedirect, SimpleCommand, UnclearKind,
    VariableAssignment,
    word::{self, ShellWord},
};

/// An unfinished command.
#[derive(Default)]
pub(super) struct CommandDraft {
    pub(super) joined: CommandSeparator,
    /// Names and values.
    pub(super) assignments: Vec<(Range<usize>, Range<usize>)>,
    pub(super) words: Vec<Range<usize>>,
    pub(super) redirects: Vec<(RedirectKind, Range<usize>)>,
    pub(super) here: Option<String>,
    /// The index of the first command in its substitutions, if there are any.
    pub(super) first_inner: usize,
}

impl CommandDraft {
    /// Decodes the command, whose index is `number`. The draft is empty afterwards.
    pub(super) fn decode(&mut self, source: &str, dialect: ShellDialect, number: usize) -> SimpleCommand {
        let text = |range: &Range<usize>| source.get(range.clone()).unwrap_or_default();
        let single = |range: &Range<usize>| single(text(range), dialect);
        let assignment = |(name, value): (Range<usize>, Range<usize>)| VariableAssignment {
            name: text(&name).to_owned(),
            value: single(&value),
        };
        let redirect = |(kind, target): (RedirectKind, Range<usize>)| {
            let target = single(&target);
            ShellRedirect { kind: descriptor_or_file(kind, &target), target }
        };
        let mut words = Vec::with_capacity(self.words.len());
        for range in self.words.drain(..) {
            word::decode(text(&range), dialect, &mut words);
        }
        SimpleCommand {
            assignments: self.assignments.drain(..).map(assignment).collect(),
            redirects: self.redirects.drain(..).map(redirect).collect(),
            words,
            joined: self.joined,
            here: self.here.take(),
            inner: self.first_inner..number,
        }
    }
}

/// Decodes a word where exactly one is allowed, or the list of an array.
fn single(source: &str, dialect: ShellDialect) -> ShellWord {
    if source.starts_with('(') && source.ends_with(')') {
        return ShellWord {
            text: source.to_owned(),
            unclear: Some(UnclearKind::Array),
            ..ShellWord::default()
        };
    }
    let mut words = Vec::with_capacity(1);
    word::decode(source, dialect, &mut words);
    match words.len() {
        0 | 1 => words.pop().unwrap_or_default(),
        _ => ShellWord { text: source.to_owned(), unclear: Some(UnclearKind::Brace), ..ShellWord::default() },
    }
}

/// Tells `>&1`, which duplicates a descriptor, from `>& f`, which writes a file.
fn descriptor_or_file(kind: RedirectKind, target: &ShellWord) -> RedirectKind {
    if kind == RedirectKind::Descriptor && !is_number(&target.text) { RedirectKind::Write } else { kind }
}

/// Returns true for digits, or an empty text.
pub(super) fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
