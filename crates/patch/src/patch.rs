//! What a patch says, as data. Everything borrows from the patch's own text.

/// A parsed patch: what to do with which file, in the order written. No path is named twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    pub operations: Vec<Operation<'a>>,
}

/// One thing to do with one file. Paths are as written: relative or absolute, never checked against a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Makes a file; one that exists is replaced. `content` is empty or ends with a newline.
    Add { path: &'a str, content: String },
    /// Removes a file.
    Delete { path: &'a str },
    /// Changes a file, moves it, or both. Without chunks it is a pure rename and `move_to` is set.
    Update { path: &'a str, move_to: Option<&'a str>, chunks: Vec<Chunk<'a>> },
}

impl<'a> Operation<'a> {
    /// The file the operation is about, before any move.
    pub fn path(&self) -> &'a str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }

    /// Where the file ends up, if that is elsewhere.
    pub fn move_to(&self) -> Option<&'a str> {
        match self {
            Self::Add { .. } | Self::Delete { .. } => None,
            Self::Update { move_to, .. } => *move_to,
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
