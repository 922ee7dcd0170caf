//! Finds lines in a file: exactly, then more and more forgivingly. Linear in the file for each pattern and pass, and
//! bounded over all of them.
//!
//! Lines become hashes once per pass, so that looking for a block is looking for a run of numbers (Knuth, Morris and Pratt).
//! What is found that way is then compared for real.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
};

/// Hashes compared for one file before it is given up: far beyond any honest patch, and a fraction of a second.
const BUDGET: usize = 1 << 28;

/// Hashes compared to tell of other places that would have matched; merely a courtesy, so less.
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

    fn before(self) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|pass| *pass < self)
    }

    /// The line as this pass sees it.
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
    hashes: [OnceCell<Vec<u64>>; 4],
    budget: usize,
    spent: Cell<usize>,
}

impl<'t> Seeker<'t> {
    pub(crate) fn new(lines: Vec<&'t str>) -> Self {
        Self { lines, hashes: [const { OnceCell::new() }; 4], budget: BUDGET, spent: Cell::new(0) }
    }

    pub(crate) fn lines(&self) -> &[&'t str] {
        &self.lines
    }

    /// The first place at or after `start` where `pattern` is. An empty pattern is wherever one looks.
    pub(crate) fn seek(&self, pattern: &[&str], start: usize) -> Result<Found, Lost> {
        for pass in Pass::ALL {
            if let Some(at) = self.find(pattern, pass, start) {
                return Ok(Found { at, pass });
            }
            if self.spent.get() > self.budget {
                return Err(Lost::Exhausted);
            }
        }
        Err(Lost::Absent)
    }

    /// Whether `pattern` is at the very end, not before `start`.
    pub(crate) fn seek_end(&self, pattern: &[&str], start: usize) -> Result<Found, Lost> {
        let at = self.lines.len().checked_sub(pattern.len()).filter(|at| *at >= start).ok_or(Lost::Absent)?;
        let pass = Pass::ALL.into_iter().find(|pass| self.is_at(pattern, *pass, at)).ok_or(Lost::Absent)?;
        Ok(Found { at, pass })
    }

    /// Further places after `found` that match as well, at most `limit`, as far as that is cheap to know.
    pub(crate) fn others(&self, pattern: &[&str], found: Found, limit: usize) -> Vec<usize> {
        let mut others = Vec::new();
        let mut start = found.at + 1;
        while others.len() < limit && self.spent.get() < COURTESY {
            let Some(at) = self.find(pattern, found.pass, start) else { break };
            others.push(at);
            start = at + 1;
        }
        others
    }

    fn find(&self, pattern: &[&str], pass: Pass, start: usize) -> Option<usize> {
        if pattern.is_empty() {
            return Some(start);
        }
        let file = self.hashes(pass);
        let wanted = hashes(pattern, pass);
        let fallback = fallbacks(&wanted);
        let mut from = start;
        while self.spent.get() <= self.budget {
            let haystack = file.get(from..).filter(|rest| rest.len() >= wanted.len())?;
            let at = run(haystack, &wanted, &fallback);
            self.spent.set(self.spent.get() + wanted.len() + at.unwrap_or(haystack.len()));
            let at = from + at?;
            if self.is_at(pattern, pass, at) {
                return Some(at);
            }
            // Equal hashes of unequal lines: someone has made them so, and pays from the budget.
            from = at + 1;
        }
        None
    }

    fn hashes(&self, pass: Pass) -> &[u64] {
        self.hashes[pass as usize].get_or_init(|| match pass.before() {
            None => hashes(&self.lines, pass),
            Some(before) => {
                // A pass only ever takes bytes away, so what has kept its length has kept its hash: most lines, mostly.
                let lines = self.lines.iter().zip(self.hashes(before));
                let rehash = |(line, old): (&&str, &u64)| {
                    let view = pass.view(line);
                    if view.len() == before.view(line).len() { *old } else { hash(view.as_bytes()) }
                };
                lines.map(rehash).collect()
            }
        })
    }

    fn is_at(&self, pattern: &[&str], pass: Pass, at: usize) -> bool {
        self.lines[at..].iter().zip(pattern).all(|(line, wanted)| pass.view(line) == pass.view(wanted))
    }
}

fn hashes(lines: &[&str], pass: Pass) -> Vec<u64> {
    lines.iter().map(|line| hash(pass.view(line).as_bytes())).collect()
}

/// A quick hash that need not withstand anyone, as what it finds is compared.
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

/// Where `wanted`, which is not empty, first is in `haystack`.
fn run(haystack: &[u64], wanted: &[u64], fallback: &[usize]) -> Option<usize> {
    let mut matched = 0;
    let mut at = 0;
    while at < haystack.len() {
        if matched == 0 {
            // Most of the way is here, where the processor can look at several at once.
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

/// For each prefix of `wanted`, the length of its longest proper end that is also its beginning.
fn fallbacks(wanted: &[u64]) -> Vec<usize> {
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
