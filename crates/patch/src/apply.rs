//! Puts a patch's chunks into a file's text. What the patch does not change keeps its bytes: context lines that were
//! matched forgivingly stay as the file has them, every line keeps its ending, a missing final newline stays missing
//! unless the last line is replaced.

use std::fmt;

use crate::{
    Chunk, FileEnd, FileLine, Line, Miss, Pass, Text, Unwritable,
    seek::{Found, Lost, Seeker},
};

/// How many other places are told of when a chunk fits several.
const OTHERS: usize = 4;

/// Applies chunks, which follow each other from top to bottom, and returns the file's new bytes. All or nothing.
pub fn apply(text: &Text<'_>, chunks: &[Chunk<'_>]) -> Result<Applied, ApplyError> {
    let lines = text.lines();
    let seeker = Seeker::new(lines.iter().map(|line| line.text).collect());
    let mut places = Vec::with_capacity(chunks.len());
    let mut from = 0;
    // By how many lines the places so far are off from where a diff has them.
    let mut drift = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let search = Search { seeker: &seeker, chunk, index };
        let place = match chunk.line {
            None => search.place(&mut from)?,
            Some(line) => search.place_at(line, &mut drift, &mut from)?,
        };
        places.push(place);
    }
    let end = chunks.iter().map(|chunk| chunk.end).find(|end| *end != FileEnd::AsIs).unwrap_or_default();
    let matches = places.iter().map(|place| place.told.clone()).collect();
    // Additions at the end may come before chunks further up; sorting is stable, so those at one place stay in order.
    places.sort_by_key(|place| place.at);
    Ok(Applied { bytes: written(text, &lines, &places, end)?, matches })
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub bytes: Vec<u8>,
    /// One for each chunk, or for each place of an edit, in order.
    pub matches: Vec<Match>,
}

/// Where something was put, and how sure that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The line in the file as it was, from 1.
    pub line: usize,
    pub pass: Pass,
    /// Lines where it would have fitted as well (the first place is taken); at most four, and not always looked for.
    pub others: Vec<usize>,
    /// Lines to add without lines around them: they went to the end of the file.
    pub appended: bool,
}

impl fmt::Display for Match {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}", self.line)?;
        if self.appended {
            write!(out, " (the end of the file, as no lines were given around it)")?;
        }
        if let Some(what) = self.pass.ignoring() {
            write!(out, " (ignoring {what})")?;
        }
        if !self.others.is_empty() {
            let others: Vec<String> = self.others.iter().map(usize::to_string).collect();
            write!(out, ", the first of several places: also line {}", others.join(", "))?;
        }
        Ok(())
    }
}

/// Why chunks could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{}", .0.describe("the file"))]
    Miss(Box<Miss>),
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    #[error("finding the places of this patch takes too long: split it, or use lines that occur once")]
    TooMuchWork,
}

/// Lines to go in at a place of the file.
pub(crate) struct Place<'a> {
    pub(crate) at: usize,
    pub(crate) lines: Vec<Line<'a>>,
    pub(crate) told: Match,
}

/// The search for one chunk's place.
struct Search<'s, 't, 'a> {
    seeker: &'s Seeker<'t>,
    chunk: &'s Chunk<'a>,
    index: usize,
}

impl<'a> Search<'_, '_, 'a> {
    /// Finds the place at or after `from`, and moves `from` past it.
    fn place(&self, from: &mut usize) -> Result<Place<'a>, ApplyError> {
        let context = self.past_contexts(from)?;
        let old: Vec<&str> = self.chunk.old_lines().collect();
        if old.is_empty() {
            return Ok(self.at_the_end());
        }
        let shorter = old.split_last().filter(|(last, _)| last.is_empty()).map(|(_, shorter)| shorter);
        // First as usual; then, in case the chunk repeats its `@@` line as its first line, just there.
        for start in [Some(*from), context].into_iter().flatten() {
            for old in [Some(&old[..]), shorter].into_iter().flatten() {
                let Some(found) = self.seek(old, start)?.filter(|found| start == *from || found.at == start)
                else {
                    continue;
                };
                *from = found.at + old.len();
                return Ok(self.placed(found, old));
            }
        }
        Err(ApplyError::Miss(Box::new(Miss::of_lines(self.seeker, self.index, self.chunk, *from))))
    }

    /// Finds the place that a diff names by its line, or where the same lines are further on.
    fn place_at(&self, line: usize, drift: &mut isize, from: &mut usize) -> Result<Place<'a>, ApplyError> {
        let old: Vec<&str> = self.chunk.old_lines().collect();
        let lines = self.seeker.lines();
        let expected = line.saturating_add_signed(*drift);
        let is_there = expected >= *from && lines.get(expected..).is_some_and(|rest| rest.starts_with(&old));
        let at = if is_there {
            expected
        } else {
            let elsewhere = if old.is_empty() { None } else { self.seek(&old, *from)? };
            let exact = elsewhere.filter(|found| found.pass == Pass::Exact).map(|found| found.at);
            exact.ok_or_else(|| {
                ApplyError::Miss(Box::new(Miss::of_lines(self.seeker, self.index, self.chunk, *from)))
            })?
        };
        let found = Found { at, pass: Pass::Exact };
        // A diff knows its place; only where the file has changed may there be others.
        let others = if is_there { Vec::new() } else { self.seeker.others(&old, found, OTHERS) };
        *drift = at.cast_signed() - line.cast_signed();
        *from = at + old.len();
        let others = others.into_iter().map(|at| at + 1).collect();
        let told = Match { line: at + 1, pass: Pass::Exact, others, appended: false };
        Ok(Place { at, lines: self.chunk.lines.clone(), told })
    }

    /// Goes past the `@@` lines; returns where the last of them is.
    fn past_contexts(&self, from: &mut usize) -> Result<Option<usize>, ApplyError> {
        let mut last = None;
        for &context in &self.chunk.contexts {
            match self.seeker.seek(&[context], *from) {
                Ok(found) => {
                    last = Some(found.at);
                    *from = found.at + 1;
                }
                Err(Lost::Exhausted) => return Err(ApplyError::TooMuchWork),
                // Some models write the line numbers of a unified diff here; they say nothing that is needed.
                Err(Lost::Absent) if is_unified_range(context) => {}
                Err(Lost::Absent) => {
                    let miss = Miss::of_context(self.seeker, self.index, context, *from);
                    return Err(ApplyError::Miss(Box::new(miss)));
                }
            }
        }
        Ok(last)
    }

    fn seek(&self, old: &[&str], start: usize) -> Result<Option<Found>, ApplyError> {
        let found =
            if self.chunk.at_end { self.seeker.seek_end(old, start) } else { self.seeker.seek(old, start) };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Lost::Absent) => Ok(None),
            Err(Lost::Exhausted) => Err(ApplyError::TooMuchWork),
        }
    }

    /// The chunk where its old lines were found, perhaps all but an empty last one.
    fn placed(&self, found: Found, old: &[&str]) -> Place<'a> {
        let limit = if self.chunk.at_end { 0 } else { OTHERS };
        let others = self.seeker.others(old, found, limit).into_iter().map(|at| at + 1).collect();
        let is_whole = old.len() == self.chunk.old_lines().count();
        let lines = if is_whole { self.chunk.lines.clone() } else { without_last_blank(&self.chunk.lines) };
        let told = Match { line: found.at + 1, pass: found.pass, others, appended: false };
        Place { at: found.at, lines, told }
    }

    /// Lines with nothing around them go to the end, before an empty last line.
    fn at_the_end(&self) -> Place<'a> {
        let lines = self.seeker.lines();
        let at = lines.len() - usize::from(lines.last() == Some(&""));
        let told = Match { line: at + 1, pass: Pass::Exact, others: Vec::new(), appended: true };
        Place { at, lines: self.chunk.lines.clone(), told }
    }
}

/// The chunk without its last old line, which is empty, and without an empty last new line.
fn without_last_blank<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    let mut lines = lines.to_vec();
    if let Some(at) = lines.iter().rposition(|line| !matches!(line, Line::Insert(_))) {
        match lines[at] {
            Line::Keep(text) => lines[at] = Line::Insert(text),
            Line::Remove(_) | Line::Insert(_) => drop(lines.remove(at)),
        }
    }
    if let Some(at) = lines.iter().rposition(|line| !matches!(line, Line::Remove(_))) {
        match lines[at] {
            Line::Insert("") => drop(lines.remove(at)),
            Line::Keep("") => lines[at] = Line::Remove(""),
            Line::Insert(_) | Line::Keep(_) | Line::Remove(_) => {}
        }
    }
    lines
}

/// `-1,5 +1,6 @@`, with or without more behind it.
fn is_unified_range(context: &str) -> bool {
    let range = |word: Option<&str>, sign: char| {
        let digits = word.and_then(|word| word.strip_prefix(sign));
        digits.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit())
                && rest.bytes().all(|b| b.is_ascii_digit() || b == b',')
        })
    };
    let mut words = context.split_whitespace();
    range(words.next(), '-') && range(words.next(), '+') && words.next() == Some("@@")
}

/// The file with its places filled in.
pub(crate) fn written(
    text: &Text<'_>,
    lines: &[FileLine<'_>],
    places: &[Place<'_>],
    end: FileEnd,
) -> Result<Vec<u8>, Unwritable> {
    let content = String::with_capacity(text.content().len() + 1024);
    let mut out = Writer { content, file: text.content(), ending: text.ending(), is_open: false };
    let mut at = 0;
    for place in places {
        let start = place.at.max(at);
        out.keep(&lines[at..start]);
        at = start;
        for line in &place.lines {
            match line {
                Line::Insert(text) => out.insert(text),
                Line::Keep(_) => {
                    out.keep(lines.get(at..=at).unwrap_or_default());
                    at += 1;
                }
                Line::Remove(_) => at += 1,
            }
        }
    }
    out.keep(lines.get(at..).unwrap_or_default());
    out.end(end);
    text.encoding().into_bytes(out.content)
}

/// Writes line after line.
struct Writer<'t> {
    content: String,
    file: &'t str,
    /// What new lines end with.
    ending: &'static str,
    /// The last line written has no ending yet.
    is_open: bool,
}

impl Writer<'_> {
    /// Copies neighbouring lines of the file at one go.
    fn keep(&mut self, lines: &[FileLine<'_>]) {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        self.close();
        let end = last.start + last.text.len() + last.ending.len();
        self.content.push_str(&self.file[first.start..end]);
        self.is_open = last.ending.is_empty();
    }

    fn insert(&mut self, text: &str) {
        self.close();
        self.content.push_str(text);
        self.content.push_str(self.ending);
    }

    /// Gives the last line the end it must have.
    fn end(&mut self, end: FileEnd) {
        match end {
            FileEnd::AsIs => {}
            FileEnd::Newline => self.close(),
            FileEnd::NoNewline => {
                let trimmed =
                    self.content.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
                if let Some(length) = trimmed.map(str::len) {
                    self.content.truncate(length);
                }
            }
        }
    }

    /// A line that was the file's last and is so no longer needs an ending.
    fn close(&mut self) {
        if self.is_open {
            self.content.push_str(self.ending);
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests;
