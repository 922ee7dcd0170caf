//! Explains why lines were not found, so that the patch can be corrected in one try. Shows the
//! nearest lines with their position and the differences, with visible whitespace.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{
    MatchPass, PatchChunk,
    parse::shortened,
    seek::{LineSeeker, SeekError, hash},
};

/// Maximum number of lines that are compared and shown.
const MAX_SHOWN_LINES: usize = 60;

/// Maximum number of characters of a line that are shown.
const MAX_SHOWN_CHARS: usize = 240;

/// Maximum number of places that one line may vote for. A line that occurs more often says nothing.
const MAX_VOTES: usize = 64;

/// Lines that were not found, and the nearest lines in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissReport {
    /// The index of the chunk, from 0.
    pub chunk: usize,
    pub looked_for: MissTarget,
    /// The reason, if there is a simple one.
    pub reason: Option<MissReason>,
    pub nearest: Option<NearestLines>,
}

/// The text that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissTarget {
    /// The text of an `@@` line.
    Context(String),
    /// The kept and removed lines of a chunk, or the text that an edit replaces.
    Lines(String),
}

/// The reason why lines were not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissReason {
    /// They are at this line, above an earlier chunk or its `@@` line.
    Earlier(usize),
    /// They are at this line, but not at the end of the file as `*** End of File` requires.
    NotAtEnd(usize),
    /// The file has no lines at all.
    EmptyFile,
}

/// The most similar lines of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestLines {
    /// The number of the first line, from 1.
    pub line: usize,
    /// The number of the last line.
    pub end: usize,
    /// The differences: `-` is the text that was searched for, `+` the text of the file.
    pub difference: String,
}

impl MissReport {
    pub(crate) fn from_context(seeker: &LineSeeker<'_>, chunk: usize, context: &str, from: usize) -> Self {
        let (reason, nearest) = explain(seeker, &[context], from);
        Self { chunk, looked_for: MissTarget::Context(truncate(context)), reason, nearest }
    }

    pub(crate) fn from_lines(
        seeker: &LineSeeker<'_>,
        index: usize,
        chunk: &PatchChunk<'_>,
        from: usize,
    ) -> Self {
        let old: Vec<&str> = chunk.old_lines().collect();
        let elsewhere = if chunk.at_end { anywhere(seeker, &old, from) } else { None };
        let (reason, nearest) = match elsewhere {
            Some(line) => (Some(MissReason::NotAtEnd(line)), None),
            None => explain(seeker, &old, from),
        };
        Self { chunk: index, looked_for: MissTarget::Lines(list_lines(&old)), reason, nearest }
    }

    /// Returns the explanation for the author of the patch.
    pub fn describe(&self, path: &str) -> String {
        let mut text = match &self.looked_for {
            MissTarget::Context(context) => format!("Failed to find context '{context}' in {path}"),
            MissTarget::Lines(lines) => format!("Failed to find expected lines in {path}:\n{lines}"),
        };
        match self.reason {
            Some(MissReason::Earlier(line)) => text.push_str(&format!(
                "\n\nThey are at line {line}, above the place of an earlier chunk or of the @@ line. Write the chunks in the \
                 order of the file."
            )),
            Some(MissReason::NotAtEnd(line)) => text.push_str(&format!(
                "\n\nThey are at line {line}, which is not the end of the file. Leave out '*** End of File'."
            )),
            Some(MissReason::EmptyFile) => text.push_str("\n\nThe file is empty."),
            None => {}
        }
        if let Some(NearestLines { line, end, difference }) = &self.nearest {
            let place = if line == end { format!("line {line}") } else { format!("lines {line}-{end}") };
            text.push_str(&format!(
                "\n\nNearest is {place}. '-' is what you wrote, '+' is what the file has; · is a space, → a tab, ␍ a carriage \
                 return, ⍽ a no-break space:\n{difference}Take over the '+' lines with real spaces and tabs, and try again."
            ));
        }
        text
    }
}

fn explain(seeker: &LineSeeker<'_>, old: &[&str], from: usize) -> (Option<MissReason>, Option<NearestLines>) {
    if seeker.lines().is_empty() {
        return (Some(MissReason::EmptyFile), None);
    }
    if let Some(line) = anywhere(seeker, old, 0) {
        return (Some(MissReason::Earlier(line)), None);
    }
    (None, nearest(seeker.lines(), &old[..old.len().min(MAX_SHOWN_LINES)], from))
}

fn anywhere(seeker: &LineSeeker<'_>, old: &[&str], from: usize) -> Option<usize> {
    match seeker.seek(old, from) {
        Ok(found) => Some(found.at + 1),
        Err(SeekError::Absent | SeekError::Exhausted) => None,
    }
}

/// Finds the most similar lines: where most lines are equal except for whitespace, or else where
/// one line is most similar.
fn nearest(file: &[&str], old: &[&str], from: usize) -> Option<NearestLines> {
    let keys: Vec<u64> = file.iter().map(|line| key(line)).collect();
    let wanted: Vec<u64> = old.iter().map(|line| key(line)).collect();
    let start = voted(&keys, &wanted, from).or_else(|| most_alike(file, old))?;
    // Two more lines than searched for, in case the file has additional lines.
    let end = (start + old.len() + 2).min(keys.len());
    let operations = capture_diff_slices(Algorithm::Myers, &wanted, &keys[start..end]);
    Some(render_nearest(&operations, old, &file[start..end], start))
}

/// Returns a hash of a line without whitespace, typography and case. Lines with equal hashes are
/// taken as the same.
fn key(line: &str) -> u64 {
    let plain = MatchPass::Typography.view(line);
    let mut bytes: Vec<u8> = plain.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    bytes.make_ascii_lowercase();
    hash(&bytes)
}

/// Returns the start with the most votes by equal lines; among equals, the one nearest to `from`.
fn voted(keys: &[u64], wanted: &[u64], from: usize) -> Option<usize> {
    let blank = key("");
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for line in wanted.iter().filter(|line| **line != blank) {
        places.entry(*line).or_default();
    }
    for (at, line) in keys.iter().enumerate() {
        if let Some(places) = places.get_mut(line)
            && places.len() <= MAX_VOTES
        {
            places.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let Some(places) = places.get(line) else { continue };
        // A rare line weighs more than a closing brace.
        let weight = MAX_VOTES * 2 / places.len().max(1);
        for at in places {
            *votes.entry(at.saturating_sub(offset)).or_default() += weight;
        }
    }
    let best =
        votes.into_iter().max_by_key(|(start, weight)| (*weight, usize::MAX - start.abs_diff(from), *start));
    best.map(|(start, _)| start)
}

/// Returns the start where the longest line has its most similar counterpart, by shared pairs of
/// bytes.
fn most_alike(file: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let pairs = BytePairs::new(longest);
    let scored = file.iter().enumerate().map(|(at, line)| (pairs.likeness(&BytePairs::new(line)), at));
    let (likeness, at) = scored.max_by_key(|(likeness, at)| (*likeness, usize::MAX - at))?;
    (likeness >= 50).then(|| at.saturating_sub(offset))
}

/// The set of byte pairs in a line, approximated by one bit for each of 1024 classes.
struct BytePairs([u64; 16]);

impl BytePairs {
    fn new(line: &str) -> Self {
        let mut bits = [0; 16];
        for pair in line.trim().as_bytes().windows(2).take(4096) {
            let class = (usize::from(pair[0]) * 31 + usize::from(pair[1]) * 7) % 1024;
            bits[class / 64] |= 1 << (class % 64);
        }
        Self(bits)
    }

    /// Returns the share of common pairs in percent.
    fn likeness(&self, other: &Self) -> u32 {
        let count = |bits: &[u64; 16]| bits.iter().map(|word| word.count_ones()).sum::<u32>();
        let shared: u32 = self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum();
        200 * shared / (count(&self.0) + count(&other.0)).max(1)
    }
}

/// Renders both sides, line by line.
fn render_nearest(operations: &[DiffOp], old: &[&str], file: &[&str], start: usize) -> NearestLines {
    let mut rows = Vec::new();
    for operation in operations {
        let (old_range, new_range) = (operation.old_range(), operation.new_range());
        if matches!(operation, DiffOp::Equal { .. }) {
            for (wanted, at) in old_range.zip(new_range) {
                rows.extend((old[wanted] != file[at]).then_some(DiffRow::Wanted(old[wanted])));
                rows.push(DiffRow::Has(at, old[wanted] == file[at]));
            }
        } else {
            rows.extend(old_range.map(|wanted| DiffRow::Wanted(old[wanted])));
            rows.extend(new_range.map(|at| DiffRow::Has(at, false)));
        }
    }
    // Drop lines of the file at the end that no searched line corresponds to.
    let spare = rows.iter().rev().take_while(|row| matches!(row, DiffRow::Has(_, false))).count();
    let replaced = rows.iter().rev().skip(spare).take_while(|row| matches!(row, DiffRow::Wanted(_))).count();
    rows.truncate(rows.len() - spare.saturating_sub(replaced));
    let numbers = rows.iter().filter_map(|row| match row {
        DiffRow::Has(at, _) => Some(start + at + 1),
        DiffRow::Wanted(_) => None,
    });
    let (line, end) = (numbers.clone().min().unwrap_or(start + 1), numbers.max().unwrap_or(start + 1));
    let difference = rows.iter().map(|row| row.written(file, start)).collect();
    NearestLines { line, end, difference }
}

/// A row of the rendered difference.
enum DiffRow<'a> {
    Wanted(&'a str),
    /// A line of the file; true if it equals the searched line.
    Has(usize, bool),
}

impl DiffRow<'_> {
    fn written(&self, file: &[&str], start: usize) -> String {
        match *self {
            DiffRow::Wanted(text) => format!("-{:>6}  {}\n", "", visible(text)),
            DiffRow::Has(at, true) => format!(" {:>6}  {}\n", start + at + 1, truncate(file[at])),
            DiffRow::Has(at, false) => format!("+{:>6}  {}\n", start + at + 1, visible(file[at])),
        }
    }
}

/// Makes whitespace in a line visible, except single spaces between words.
fn visible(line: &str) -> String {
    let line = truncate(line);
    let body = line.trim();
    let before = line.len() - line.trim_start().len();
    let within = before..before + body.len();
    let mut out = String::with_capacity(line.len() + 16);
    for (at, character) in line.char_indices() {
        let is_single =
            || within.contains(&at) && !line[..at].ends_with(' ') && !line[at + 1..].starts_with(' ');
        match character {
            ' ' if is_single() => out.push(' '),
            ' ' => out.push('·'),
            '\t' => out.push('→'),
            '\r' => out.push('␍'),
            '\u{A0}' | '\u{202F}' => out.push('⍽'),
            other if other.is_control() || is_hidden(other) => {
                out.push_str(&format!("<U+{:04X}>", u32::from(other)));
            }

            other => out.push(other),
        }
    }
    out
}

/// Returns true for characters that have no width on a screen.
fn is_hidden(character: char) -> bool {
    matches!(character, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{AD}')
}

fn list_lines(lines: &[&str]) -> String {
    let shown = &lines[..lines.len().min(MAX_SHOWN_LINES)];
    let mut list = shown.iter().map(|line| truncate(line)).collect::<Vec<_>>().join("\n");
    if lines.len() > shown.len() {
        let more = lines.len() - shown.len();
        let noun = if more == 1 { "line" } else { "lines" };
        list.push_str(&format!("\n… and {more} more {noun}"));
    }
    list
}

fn truncate(line: &str) -> String {
    shortened(line, MAX_SHOWN_CHARS)
}

#[cfg(test)]
mod tests;
