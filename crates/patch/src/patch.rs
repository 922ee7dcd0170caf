//! What a patch says, as data. It borrows from the patch's own text.

use std::borrow::Cow;

/// A parsed patch: what to do with which file, in the order written. No path is named twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    pub operations: Vec<Operation<'a>>,
}

/// One thing to do with one file. Paths are as written: relative or absolute, never checked against a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Makes a file; one that exists is replaced, unless it must be new.
    Add { path: Cow<'a, str>, content: String, must_be_new: bool },
    /// Removes a file. With `removes`, these chunks must leave nothing of it.
    Delete { path: Cow<'a, str>, removes: Option<Vec<Chunk<'a>>> },
    /// Changes a file, moves it, or both. Without chunks it is a pure rename and `move_to` is set.
    Update { path: Cow<'a, str>, move_to: Option<Cow<'a, str>>, chunks: Vec<Chunk<'a>> },
}

impl Operation<'_> {
    /// The file the operation is about, before any move.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } | Self::Update { path, .. } => path,
        }
    }

    /// Where the file ends up, if that is elsewhere.
    pub fn move_to(&self) -> Option<&str> {
        match self {
            Self::Add { .. } | Self::Delete { .. } => None,
            Self::Update { move_to, .. } => move_to.as_deref(),
        }
    }
}

/// One place of a file and what happens there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Lines to go past first, outermost first: the texts after `@@`.
    pub contexts: Vec<&'a str>,
    pub lines: Vec<Line<'a>>,
    /// The old lines are the file's last ones.
    pub at_end: bool,
    /// The line, from 0, where the old lines are, or new ones go in: what a unified diff says. They must be there to the
    /// letter, or at another place if the file has changed.
    pub line: Option<usize>,
    pub end: FileEnd,
}

/// How the file ends after a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileEnd {
    /// As before; a new last line has a newline.
    #[default]
    AsIs,
    Newline,
    NoNewline,
}

impl<'a> Chunk<'a> {
    /// The lines the file must have: kept and removed ones.
    pub fn old_lines(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.lines.iter().filter_map(|line| match *line {
            Line::Keep(text) | Line::Remove(text) => Some(text),
            Line::Insert(_) => None,
        })
    }
}

/// One line of a chunk, without its prefix and its line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    Keep(&'a str),
    Remove(&'a str),
    Insert(&'a str),
}
