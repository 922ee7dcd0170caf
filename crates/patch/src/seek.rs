//! Finds lines in a file: exactly, then in more and more lenient passes. Linear in the file for
//! each pattern and pass, and bounded in total.
//!
//! Lines are hashed once per pass, so that finding a block means finding a run of numbers (Knuth,
//! Morris and Pratt). Matches are then verified by comparing the lines.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
};

/// Maximum number of hashes compared for one file: far more than an ordinary patch needs, and a
/// fraction of a second.
const MAX_COMPARISONS: usize = 1 << 28;

/// Maximum number of hashes compared to find other places that match. Less, because they are only a
/// hint.
const MAX_OTHER_COMPARISONS: usize = 1 << 22;

/// The leniency of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchPass {
    /// All characters are equal.
    Exact,
    /// Equal except for whitespace at the ends of lines.
    TrailingBlanks,
    /// Equal except for whitespace at both ends, such as indentation.
    Indentation,
    /// Equal except for whitespace at both ends and for typographic dashes, quotes and spaces.
    Typography,
}

impl MatchPass {
    const ALL: [Self; 4] = [Self::Exact, Self::TrailingBlanks, Self::Indentation, Self::Typography];

    /// Returns what was ignored, for the sentence "matched ignoring …"; none for an exact match.
    pub fn ignoring(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::TrailingBlanks => Some("trailing whitespace"),
            Self::Indentation => Some("indentation"),
            Self::Typography => Some("typographic characters and indentation"),
        }
    }

    fn previous(self) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|pass| *pass < self)
    }

    /// Returns the part of a line that this pass compares.
    pub(crate) fn view(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => line.into(),
            Self::TrailingBlanks => line.trim_end().into(),
            Self::Indentation => line.trim().into(),
            Self::Typography => fold_typography(line.trim()),
        }
    }
}

/// Replaces typographic dashes, quotes and spaces with those of ASCII.
fn fold_typography(line: &str) -> Cow<'_, str> {
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

/// The reason why a block was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeekError {
    Absent,
    /// The limit of comparisons was reached.
    Exhausted,
}

/// The position of a block in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeekMatch {
    pub(crate) at: usize,
    pub(crate) pass: MatchPass,
}

/// The lines of a file with their hashes.
#[derive(Debug)]
pub(crate) struct LineSeeker<'t> {
    lines: Vec<&'t str>,
    hashes: [OnceCell<Vec<u64>>; 4],
    budget: usize,
    spent: Cell<usize>,
}

impl<'t> LineSeeker<'t> {
    pub(crate) fn new(lines: Vec<&'t str>) -> Self {
        Self { lines, hashes: [const { OnceCell::new() }; 4], budget: MAX_COMPARISONS, spent: Cell::new(0) }
    }

    pub(crate) fn lines(&self) -> &[&'t str] {
        &self.lines
    }

    /// Finds the first position of `pattern` at or after `start`. An empty pattern is found at
    /// `start`.
    pub(crate) fn seek(&self, pattern: &[&str], start: usize) -> Result<SeekMatch, SeekError> {
        for pass in MatchPass::ALL {
            if let Some(at) = self.find(pattern, pass, start) {
                return Ok(SeekMatch { at, pass });
            }
            if self.spent.get() > self.budget {
                return Err(SeekError::Exhausted);
            }
        }
        Err(SeekError::Absent)
    }

    /// Finds `pattern` at the very end of the file, not before `start`.
    pub(crate) fn seek_end(&self, pattern: &[&str], start: usize) -> Result<SeekMatch, SeekError> {
        let at =
            self.lines.len().checked_sub(pattern.len()).filter(|at| *at >= start).ok_or(SeekError::Absent)?;
        let pass = MatchPass::ALL
            .into_iter()
            .find(|pass| self.is_at(pattern, *pass, at))
            .ok_or(SeekError::Absent)?;
        Ok(SeekMatch { at, pass })
    }

    /// Finds further matches after `found`, at most `limit`, while that is cheap.
    pub(crate) fn others(&self, pattern: &[&str], found: SeekMatch, limit: usize) -> Vec<usize> {
        let mut others = Vec::new();
        let mut start = found.at + 1;
        while others.len() < limit && self.spent.get() < MAX_OTHER_COMPARISONS {
            let Some(at) = self.find(pattern, found.pass, start) else { break };
            others.push(at);
            start = at + 1;
        }
        others
    }

    fn find(&self, pattern: &[&str], pass: MatchPass, start: usize) -> Option<usize> {
        if pattern.is_empty() {
            return Some(start);
        }
        let file = self.hashes(pass);
        let wanted = hashes(pattern, pass);
        let fallback = failure_function(&wanted);
        let mut from = start;
        while self.spent.get() <= self.budget {
            let haystack = file.get(from..).filter(|rest| rest.len() >= wanted.len())?;
            let at = find_run(haystack, &wanted, &fallback);
            self.spent.set(self.spent.get() + wanted.len() + at.unwrap_or(haystack.len()));
            let at = from + at?;
            if self.is_at(pattern, pass, at) {
                return Some(at);
            }
            // Unequal lines with equal hashes: a deliberate collision. It counts towards the limit.
            from = at + 1;
        }
        None
    }

    fn hashes(&self, pass: MatchPass) -> &[u64] {
        self.hashes[pass as usize].get_or_init(|| match pass.previous() {
            None => hashes(&self.lines, pass),
            Some(before) => {
                // A pass only removes bytes, so a line of the same length has the same hash. That
                // holds for most lines.
                let lines = self.lines.iter().zip(self.hashes(before));
                let rehash = |(line, old): (&&str, &u64)| {
                    let view = pass.view(line);
                    if view.len() == before.view(line).len() { *old } else { hash(view.as_bytes()) }
                };
                lines.map(rehash).collect()
            }
        })
    }

    fn is_at(&self, pattern: &[&str], pass: MatchPass, at: usize) -> bool {
        self.lines[at..].iter().zip(pattern).all(|(line, wanted)| pass.view(line) == pass.view(wanted))
    }
}

fn hashes(lines: &[&str], pass: MatchPass) -> Vec<u64> {
    lines.iter().map(|line| hash(pass.view(line).as_bytes())).collect()
}

/// A fast hash without collision resistance: matches are compared afterwards.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |hash: u64, word: &[u8; 8]| {
        let product = u128::from(hash ^ u64::from_le_bytes(*word)) * u128::from(FACTOR);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        let folded = product as u64 ^ (product >> 64) as u64;
        folded
    };
    mix(words.iter().fold(FACTOR ^ bytes.len() as u64, mix), &last)
}

/// Finds the first position of `wanted`, which is not empty, in `haystack`.
fn find_run(haystack: &[u64], wanted: &[u64], fallback: &[usize]) -> Option<usize> {
    let mut matched = 0;
    let mut at = 0;
    while at < haystack.len() {
        if matched == 0 {
            // Most of the time is spent here, where the search can be vectorised.
            at += haystack[at..].iter().position(|hash| *hash == wanted[0])?;
        }
        while matched > 0 && wanted[matched] != haystack[at] {
            matched = fallback[matched - 1];
        }
        if wanted[matched] == haystack[at] {
            matched += 1;
        }
        at += 1;
        if matched == wanted.len() {
            return Some(at - matched);
        }
    }
    None
}

/// Returns for each prefix of `wanted` the length of its longest proper suffix that is also a
/// prefix.
fn failure_function(wanted: &[u64]) -> Vec<usize> {
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
