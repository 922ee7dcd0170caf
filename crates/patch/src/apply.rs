//! Applies the chunks of a patch to the text of a file.
//!
//! Bytes that the patch does not change are kept. Context lines that matched in a lenient pass stay
//! as they are in the file, and every line keeps its ending. A missing final newline stays missing
//! unless the last line is replaced.

use std::fmt;

use crate::{
    ChunkLine, FileEnd, FileLine, MatchPass, MissReport, PatchChunk, Text, UnencodableChar,
    seek::{LineSeeker, SeekError, SeekMatch},
};

/// Maximum number of other places that are reported when a chunk matches several.
const MAX_OTHERS: usize = 4;

/// Applies chunks, which are in the order of the file, and returns the new bytes of the file.
/// Either all chunks are applied or none.
pub fn apply(text: &Text<'_>, chunks: &[PatchChunk<'_>]) -> Result<AppliedChange, ApplyError> {
    let lines = text.lines();
    let seeker = LineSeeker::new(lines.iter().map(|line| line.text).collect());
    let mut places = Vec::with_capacity(chunks.len());
    let mut from = 0;
    // The difference between the lines found so far and the line numbers of the diff.
    let mut drift = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let search = ChunkSearch { seeker: &seeker, chunk, index };
        let place = match chunk.line {
            None => search.place(&mut from)?,
            Some(line) => search.place_at(line, &mut drift, &mut from)?,
        };
        places.push(place);
    }
    let end = chunks.iter().map(|chunk| chunk.end).find(|end| *end != FileEnd::AsIs).unwrap_or_default();
    let matches = places.iter().map(|place| place.position.clone()).collect();
    // Additions at the end may come before chunks further up. The sort is stable, so chunks at one
    // place stay in order.
    places.sort_by_key(|place| place.at);
    Ok(AppliedChange { bytes: render(text, &lines, &places, end)?, matches })
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    pub bytes: Vec<u8>,
    /// One position for each chunk, or for each replacement of an edit, in order.
    pub matches: Vec<MatchPosition>,
}

/// The position of a change, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchPosition {
    /// The line in the file before the change, from 1.
    pub line: usize,
    pub pass: MatchPass,
    /// Other lines where it would have matched; the first match is used. At most four, and not
    /// always searched.
    pub others: Vec<usize>,
    /// Set if there were only lines to add, without context: they went to the end of the file.
    pub appended: bool,
}

impl fmt::Display for MatchPosition {
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

/// The error of applying chunks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{}", .0.describe("the file"))]
    Miss(Box<MissReport>),
    #[error(transparent)]
    Unencodable(#[from] UnencodableChar),
    #[error("finding the places of this patch takes too long: split it, or use lines that occur once")]
    TooMuchWork,
}

/// The lines of a chunk and their position in the file.
pub(crate) struct PlacedChunk<'a> {
    pub(crate) at: usize,
    pub(crate) lines: Vec<ChunkLine<'a>>,
    pub(crate) position: MatchPosition,
}

/// The search for the position of a chunk.
struct ChunkSearch<'s, 't, 'a> {
    seeker: &'s LineSeeker<'t>,
    chunk: &'s PatchChunk<'a>,
    index: usize,
}

impl<'a> ChunkSearch<'_, '_, 'a> {
    /// Finds the position at or after `from`, and moves `from` past it.
    fn place(&self, from: &mut usize) -> Result<PlacedChunk<'a>, ApplyError> {
        let context = self.past_contexts(from)?;
        let old: Vec<&str> = self.chunk.old_lines().collect();
        if old.is_empty() {
            return Ok(self.append());
        }
        let shorter = old.split_last().filter(|(last, _)| last.is_empty()).map(|(_, shorter)| shorter);
        // Search from the current line first. Then try the `@@` line itself, in case the chunk
        // repeats it as its first line.
        for start in [Some(*from), context].into_iter().flatten() {
            for old in [Some(&old[..]), shorter].into_iter().flatten() {
                let Some(found) = self.seek(old, start)?.filter(|found| start == *from || found.at == start)
                else {
                    continue;
                };
                *from = found.at + old.len();
                return Ok(self.place_match(found, old));
            }
        }
        Err(ApplyError::Miss(Box::new(MissReport::from_lines(self.seeker, self.index, self.chunk, *from))))
    }

    /// Finds the position by the line number of a diff, or by searching for the same lines further
    /// on.
    fn place_at(
        &self,
        line: usize,
        drift: &mut isize,
        from: &mut usize,
    ) -> Result<PlacedChunk<'a>, ApplyError> {
        let old: Vec<&str> = self.chunk.old_lines().collect();
        let lines = self.seeker.lines();
        let expected = line.saturating_add_signed(*drift);
        let is_there = expected >= *from && lines.get(expected..).is_some_and(|rest| rest.starts_with(&old));
        let at = if is_there {
            expected
        } else {
            let elsewhere = if old.is_empty() { None } else { self.seek(&old, *from)? };
            let exact = elsewhere.filter(|found| found.pass == MatchPass::Exact).map(|found| found.at);
            exact.ok_or_else(|| {
                ApplyError::Miss(Box::new(MissReport::from_lines(self.seeker, self.index, self.chunk, *from)))
            })?
        };
        let found = SeekMatch { at, pass: MatchPass::Exact };
        // The line number of a diff is unambiguous. Only if the file has changed can there be other
        // places.
        let others = if is_there { Vec::new() } else { self.seeker.others(&old, found, MAX_OTHERS) };
        *drift = at.cast_signed() - line.cast_signed();
        *from = at + old.len();
        let others = others.into_iter().map(|at| at + 1).collect();
        let position = MatchPosition { line: at + 1, pass: MatchPass::Exact, others, appended: false };
        Ok(PlacedChunk { at, lines: self.chunk.lines.clone(), position })
    }

    /// Skips the `@@` lines, and returns the position of the last one.
    fn past_contexts(&self, from: &mut usize) -> Result<Option<usize>, ApplyError> {
        let mut last = None;
        for &context in &self.chunk.contexts {
            match self.seeker.seek(&[context], *from) {
                Ok(found) => {
                    last = Some(found.at);
                    *from = found.at + 1;
                }
                Err(SeekError::Exhausted) => return Err(ApplyError::TooMuchWork),
                // Some models write the line numbers of a unified diff here. They are not needed.
                Err(SeekError::Absent) if is_unified_range(context) => {}
                Err(SeekError::Absent) => {
                    let miss = MissReport::from_context(self.seeker, self.index, context, *from);
                    return Err(ApplyError::Miss(Box::new(miss)));
                }
            }
        }
        Ok(last)
    }

    fn seek(&self, old: &[&str], start: usize) -> Result<Option<SeekMatch>, ApplyError> {
        let found =
            if self.chunk.at_end { self.seeker.seek_end(old, start) } else { self.seeker.seek(old, start) };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(SeekError::Absent) => Ok(None),
            Err(SeekError::Exhausted) => Err(ApplyError::TooMuchWork),
        }
    }

    /// Places the chunk where its old lines were found, perhaps without an empty last one.
    fn place_match(&self, found: SeekMatch, old: &[&str]) -> PlacedChunk<'a> {
        let limit = if self.chunk.at_end { 0 } else { MAX_OTHERS };
        let others = self.seeker.others(old, found, limit).into_iter().map(|at| at + 1).collect();
        let is_whole = old.len() == self.chunk.old_lines().count();
        let lines = if is_whole { self.chunk.lines.clone() } else { without_last_blank(&self.chunk.lines) };
        let position = MatchPosition { line: found.at + 1, pass: found.pass, others, appended: false };
        PlacedChunk { at: found.at, lines, position }
    }

    /// Places lines without context at the end, before an empty last line.
    fn append(&self) -> PlacedChunk<'a> {
        let lines = self.seeker.lines();
        let at = lines.len() - usize::from(lines.last() == Some(&""));
        let position =
            MatchPosition { line: at + 1, pass: MatchPass::Exact, others: Vec::new(), appended: true };
        PlacedChunk { at, lines: self.chunk.lines.clone(), position }
    }
}

/// Returns the chunk without its last old line, which is empty, and without an empty last new line.
fn without_last_blank<'a>(lines: &[ChunkLine<'a>]) -> Vec<ChunkLine<'a>> {
    let mut lines = lines.to_vec();
    if let Some(at) = lines.iter().rposition(|line| !matches!(line, ChunkLine::Insert(_))) {
        match lines[at] {
            ChunkLine::Keep(text) => lines[at] = ChunkLine::Insert(text),
            ChunkLine::Remove(_) | ChunkLine::Insert(_) => drop(lines.remove(at)),
        }
    }
    if let Some(at) = lines.iter().rposition(|line| !matches!(line, ChunkLine::Remove(_))) {
        match lines[at] {
            ChunkLine::Insert("") => drop(lines.remove(at)),
            ChunkLine::Keep("") => lines[at] = ChunkLine::Remove(""),
            ChunkLine::Insert(_) | ChunkLine::Keep(_) | ChunkLine::Remove(_) => {}
        }
    }
    lines
}

/// Returns true for `-1,5 +1,6 @@`, with or without a suffix.
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

/// Renders the file with the chunks applied.
pub(crate) fn render(
    text: &Text<'_>,
    lines: &[FileLine<'_>],
    places: &[PlacedChunk<'_>],
    end: FileEnd,
) -> Result<Vec<u8>, UnencodableChar> {
    let content = String::with_capacity(text.content().len() + 1024);
    let mut out = ContentWriter { content, file: text.content(), ending: text.ending(), is_open: false };
    let mut at = 0;
    for place in places {
        let start = place.at.max(at);
        out.keep(&lines[at..start]);
        at = start;
        for line in &place.lines {
            match line {
                ChunkLine::Insert(text) => out.insert(text),
                ChunkLine::Keep(_) => {
                    out.keep(lines.get(at..=at).unwrap_or_default());
                    at += 1;
                }
                ChunkLine::Remove(_) => at += 1,
            }
        }
    }
    out.keep(lines.get(at..).unwrap_or_default());
    out.end(end);
    text.encoding().into_bytes(out.content)
}

/// Writes the new content line by line.
struct ContentWriter<'t> {
    content: String,
    file: &'t str,
    /// The ending of new lines.
    ending: &'static str,
    /// Set if the last line has no ending yet.
    is_open: bool,
}

impl ContentWriter<'_> {
    /// Copies consecutive lines of the file at once.
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

    /// Adds or removes the final newline.
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

    /// Ends a line that was the last of the file and no longer is.
    fn close(&mut self) {
        if self.is_open {
            self.content.push_str(self.ending);
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests;
