//! Finds lines in a file: exactly, then more and more forgivingly. Linear in the file for each pattern and pass, and
//! bounded over all of them.
//!
//! Lines become numbers once per pass, equal lines equal numbers, so that looking for a block is looking for a run of
//! numbers (Knuth, Morris and Pratt). A line that the file does not have at all ends a search before it begins.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    collections::HashMap,
};

/// Numbers compared for one file before it is given up: far beyond any honest patch, and a fraction of a second.
const BUDGET: usize = 1 << 27;

/// Numbers compared to tell of other places that would have matched; merely a courtesy, so less.
const COURTESY: usize = 1 << 22;

/// How forgiving a match was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// Every character is the same.
    Exact,
    /// But for blanks at the ends of lines.
    TrailingBlanks,
    /// But for blanks at both ends, such as indentation.
    Indentation,
    /// But for typographic dashes, quotes and spaces, too.
    Typography,
}

impl Pass {
    const ALL: [Self; 4] = [Self::Exact, Self::TrailingBlanks, Self::Indentation, Self::Typography];

    /// What was ignored, for the sentence "matched ignoring …"; nothing for an exact match.
    pub fn ignoring(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::TrailingBlanks => Some("trailing whitespace"),
            Self::Indentation => Some("indentation"),
            Self::Typography => Some("typographic characters and indentation"),
        }
    }

    pub(crate) fn view(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => line.into(),
            Self::TrailingBlanks => line.trim_end().into(),
            Self::Indentation => line.trim().into(),
            Self::Typography => folded(line.trim()),
        }
    }
}

/// Dashes, quotes and spaces that look like those of ASCII become those.
fn folded(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return line.into();
    }
    let fold = |character| match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        '\u{00A0}' | '\u{2002}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    };
    line.chars().map(fold).collect::<String>().into()
}

/// Why a block was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Absent,
    /// The budget is used up.
    Exhausted,
}

/// A place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) at: usize,
    pub(crate) pass: Pass,
}

/// The lines of one file, ready to be searched.
#[derive(Debug)]
pub(crate) struct Seeker<'t> {
    lines: Vec<&'t str>,
    indexes: [OnceCell<Index<'t>>; 4],
    spent: Cell<usize>,
}

impl<'t> Seeker<'t> {
    pub(crate) fn new(lines: Vec<&'t str>) -> Self {
        Self { lines, indexes: [const { OnceCell::new() }; 4], spent: Cell::new(0) }
    }

    pub(crate) fn lines(&self) -> &[&'t str] {
        &self.lines
    }

    /// The first place at or after `start` where `pattern` is. An empty pattern is wherever one looks.
    pub(crate) fn seek(&self, pattern: &[&str], start: usize) -> Result<Found, Lost> {
        for pass in Pass::ALL {
            if let Some(at) = self.index(pass).find(pattern, pass, start, &self.spent) {
                return Ok(Found { at, pass });
            }
            if self.spent.get() > BUDGET {
                return Err(Lost::Exhausted);
            }
        }
        Err(Lost::Absent)
    }

    /// Whether `pattern` is at the very end, not before `start`.
    pub(crate) fn seek_end(&self, pattern: &[&str], start: usize) -> Result<Found, Lost> {
        let at = self.lines.len().checked_sub(pattern.len()).filter(|at| *at >= start).ok_or(Lost::Absent)?;
        let same =
            |pass: Pass| self.lines[at..].iter().zip(pattern).all(|(a, b)| pass.view(a) == pass.view(b));
        let pass = Pass::ALL.into_iter().find(|pass| same(*pass)).ok_or(Lost::Absent)?;
        Ok(Found { at, pass })
    }

    /// Further places after `found` that match as well, at most `limit`, as far as that is cheap to know.
    pub(crate) fn others(&self, pattern: &[&str], found: Found, limit: usize) -> Vec<usize> {
        let mut others = Vec::new();
        let mut start = found.at + 1;
        while others.len() < limit && self.spent.get() < COURTESY {
            let Some(at) = self.index(found.pass).find(pattern, found.pass, start, &self.spent) else {
                break;
            };
            others.push(at);
            start = at + 1;
        }
        others
    }

    fn index(&self, pass: Pass) -> &Index<'t> {
        self.indexes[pass as usize].get_or_init(|| Index::new(&self.lines, pass))
    }
}

/// The file as numbers, the way one pass sees it.
#[derive(Debug)]
struct Index<'t> {
    numbers: HashMap<Cow<'t, str>, u32>,
    /// Where each number is last.
    last: Vec<usize>,
    file: Vec<u32>,
}

impl<'t> Index<'t> {
    fn new(lines: &[&'t str], pass: Pass) -> Self {
        let mut index = Self {
            numbers: HashMap::with_capacity(lines.len()),
            last: Vec::new(),
            file: Vec::with_capacity(lines.len()),
        };
        for (at, line) in lines.iter().enumerate() {
            let next = u32::try_from(index.last.len()).unwrap_or(u32::MAX);
            let number = *index.numbers.entry(pass.view(line)).or_insert(next);
            if number == next {
                index.last.push(at);
            } else if let Some(last) = index.last.get_mut(number as usize) {
                *last = at;
            }
            index.file.push(number);
        }
        index
    }

    fn find(&self, pattern: &[&str], pass: Pass, start: usize, spent: &Cell<usize>) -> Option<usize> {
        if pattern.is_empty() {
            return Some(start);
        }
        if pattern.len() > self.file.len() {
            return None;
        }
        let mut wanted = Vec::with_capacity(pattern.len());
        for line in pattern {
            let number = *self.numbers.get(&*pass.view(line))?;
            self.last.get(number as usize).filter(|last| **last >= start)?;
            wanted.push(number);
        }
        let haystack = self.file.get(start..)?;
        let (found, steps) = run(haystack, &wanted);
        spent.set(spent.get() + pattern.len() + steps);
        found.map(|at| start + at)
    }
}

/// Where `wanted` is in `haystack`, and how much was looked at.
fn run(haystack: &[u32], wanted: &[u32]) -> (Option<usize>, usize) {
    let fallback = fallbacks(wanted);
    let mut matched = 0;
    for (at, number) in haystack.iter().enumerate() {
        while matched > 0 && wanted[matched] != *number {
            matched = fallback[matched - 1];
        }
        if wanted[matched] == *number {
            matched += 1;
        }
        if matched == wanted.len() {
            return (Some(at + 1 - matched), at);
        }
    }
    (None, haystack.len())
}

/// For each prefix of `wanted`, the length of its longest proper end that is also its beginning.
fn fallbacks(wanted: &[u32]) -> Vec<usize> {
    let mut fallback = vec![0; wanted.len()];
    let mut matched = 0;
    for at in 1..wanted.len() {
        while matched > 0 && wanted[matched] != wanted[at] {
            matched = fallback[matched - 1];
        }
        if wanted[matched] == wanted[at] {
            matched += 1;
        }
        fallback[at] = matched;
    }
    fallback
}

#[cfg(test)]
mod tests;
