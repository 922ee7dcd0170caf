//! The data of a parsed patch. It borrows from the text of the patch.

use std::borrow::Cow;

/// A parsed patch: the operations in the order written. No path occurs twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPatch<'a> {
    pub operations: Vec<FileOperation<'a>>,
}

/// An operation on one file. Paths are as written: relative or absolute, never checked against a
/// file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOperation<'a> {
    /// Creates a file. An existing one is replaced, unless it must be new.
    Add { path: Cow<'a, str>, content: String, must_be_new: bool },
    /// Removes a file. With `removes`, these chunks must remove all of its lines.
    Delete { path: Cow<'a, str>, removes: Option<Vec<PatchChunk<'a>>> },
    /// Changes a file, moves it, or both. Without chunks it is a pure rename and `move_to` is set.
    Update { path: Cow<'a, str>, move_to: Option<Cow<'a, str>>, chunks: Vec<PatchChunk<'a>> },
}

impl FileOperation<'_> {
    /// Returns the path of the file before any move.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } | Self::Update { path, .. } => path,
        }
    }

    /// Returns the new path of the file, if it is moved.
    pub fn move_to(&self) -> Option<&str> {
        match self {
            Self::Add { .. } | Self::Delete { .. } => None,
            Self::Update { move_to, .. } => move_to.as_deref(),
        }
    }
}

/// A change at one place of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchChunk<'a> {
    /// Lines to skip first, outermost first: the texts after `@@`.
    pub contexts: Vec<&'a str>,
    pub lines: Vec<ChunkLine<'a>>,
    /// Set if the old lines are the last ones of the file.
    pub at_end: bool,
    /// The line, from 0, of the old lines or of an insertion, as given by a unified diff. The old
    /// lines must match exactly there, or elsewhere if the file has changed.
    pub line: Option<usize>,
    pub end: FileEnd,
}

/// The end of the file after a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileEnd {
    /// Unchanged; a new last line has a newline.
    #[default]
    AsIs,
    Newline,
    NoNewline,
}

impl<'a> PatchChunk<'a> {
    /// Returns the lines that the file must have: kept and removed ones.
    pub fn old_lines(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.lines.iter().filter_map(|line| match *line {
            ChunkLine::Keep(text) | ChunkLine::Remove(text) => Some(text),
            ChunkLine::Insert(_) => None,
        })
    }
}

/// A line of a chunk, without its prefix and its line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkLine<'a> {
    Keep(&'a str),
    Remove(&'a str),
    Insert(&'a str),
}
