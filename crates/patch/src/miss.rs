//! Lines that are not in the file, told so that whoever wrote the patch can set it right in one try: the nearest lines,
//! where they are, and what differs, blanks made visible.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{
    Chunk, Pass,
    seek::{Lost, Seeker, hash},
};

/// Lines of a pattern that are compared and shown. More than this is not read anyway.
const SHOWN_LINES: usize = 60;

/// Characters of a line that are shown.
const SHOWN_CHARS: usize = 240;

/// Places one line may vote for; a line that is everywhere tells nothing.
const VOTES: usize = 64;

/// What was looked for and not found, and what is there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// Which chunk, from 0.
    pub chunk: usize,
    pub looked_for: LookedFor,
    /// A reason that explains it all.
    pub reason: Option<Reason>,
    pub nearest: Option<Nearest>,
}

/// What was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookedFor {
    /// The text of an `@@` line.
    Context(String),
    /// The kept and removed lines of a chunk, or the text an edit would replace.
    Lines(String),
}

/// Why lines that are in the file were not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// They are at this line, above an earlier chunk or its `@@` line.
    Earlier(usize),
    /// They are at this line, but not at the end of the file as `*** End of File` said.
    NotAtEnd(usize),
    /// The file has no lines at all.
    EmptyFile,
}

/// The most similar lines of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The first of them, from 1.
    pub line: usize,
    /// The last of them.
    pub end: usize,
    /// Both side by side: `-` is what was looked for, `+` what the file has.
    pub difference: String,
}

impl Miss {
    pub(crate) fn of_context(seeker: &Seeker<'_>, chunk: usize, context: &str, from: usize) -> Self {
        let (reason, nearest) = explained(seeker, &[context], from);
        Self { chunk, looked_for: LookedFor::Context(cut(context)), reason, nearest }
    }

    pub(crate) fn of_lines(seeker: &Seeker<'_>, index: usize, chunk: &Chunk<'_>, from: usize) -> Self {
        let old: Vec<&str> = chunk.old_lines().collect();
        let elsewhere = if chunk.at_end { anywhere(seeker, &old, from) } else { None };
        let (reason, nearest) = match elsewhere {
            Some(line) => (Some(Reason::NotAtEnd(line)), None),
            None => explained(seeker, &old, from),
        };
        Self { chunk: index, looked_for: LookedFor::Lines(listed(&old)), reason, nearest }
    }

    /// The whole story for whoever wrote the patch.
    pub fn describe(&self, path: &str) -> String {
        let mut story = match &self.looked_for {
            LookedFor::Context(context) => format!("Failed to find context '{context}' in {path}"),
            LookedFor::Lines(lines) => format!("Failed to find expected lines in {path}:\n{lines}"),
        };
        match self.reason {
            Some(Reason::Earlier(line)) => story.push_str(&format!(
                "\n\nThey are at line {line}, above the place of an earlier chunk or of the @@ line. Write the chunks in the \
                 order of the file."
            )),
            Some(Reason::NotAtEnd(line)) => story.push_str(&format!(
                "\n\nThey are at line {line}, which is not the end of the file. Leave out '*** End of File'."
            )),
            Some(Reason::EmptyFile) => story.push_str("\n\nThe file is empty."),
            None => {}
        }
        if let Some(Nearest { line, end, difference }) = &self.nearest {
            let place = if line == end { format!("line {line}") } else { format!("lines {line}-{end}") };
            story.push_str(&format!(
                "\n\nNearest is {place}. '-' is what you wrote, '+' is what the file has; · is a space, → a tab, ␍ a carriage \
                 return, ⍽ a no-break space:\n{difference}Take over the '+' lines with real spaces and tabs, and try again."
            ));
        }
        story
    }
}

fn explained(seeker: &Seeker<'_>, old: &[&str], from: usize) -> (Option<Reason>, Option<Nearest>) {
    if seeker.lines().is_empty() {
        return (Some(Reason::EmptyFile), None);
    }
    if let Some(line) = anywhere(seeker, old, 0) {
        return (Some(Reason::Earlier(line)), None);
    }
    (None, nearest(seeker.lines(), &old[..old.len().min(SHOWN_LINES)], from))
}

fn anywhere(seeker: &Seeker<'_>, old: &[&str], from: usize) -> Option<usize> {
    match seeker.seek(old, from) {
        Ok(found) => Some(found.at + 1),
        Err(Lost::Absent | Lost::Exhausted) => None,
    }
}

/// Finds the most similar lines: those where most lines agree but for blanks, else where one line is most alike.
fn nearest(file: &[&str], old: &[&str], from: usize) -> Option<Nearest> {
    let keys: Vec<u64> = file.iter().map(|line| key(line)).collect();
    let wanted: Vec<u64> = old.iter().map(|line| key(line)).collect();
    let start = voted(&keys, &wanted, from).or_else(|| most_alike(file, old))?;
    // Two lines more than were looked for, in case the file has lines in between.
    let end = (start + old.len() + 2).min(keys.len());
    let operations = capture_diff_slices(Algorithm::Myers, &wanted, &keys[start..end]);
    Some(shown(&operations, old, &file[start..end], start))
}

/// A line without blanks, typography and case, as a hash: lines that agree in this are meant to be the same.
fn key(line: &str) -> u64 {
    let plain = Pass::Typography.view(line);
    let mut bytes: Vec<u8> = plain.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    bytes.make_ascii_lowercase();
    hash(&bytes)
}

/// The start for which most lines speak; of equals, the one nearest to where the search began.
fn voted(keys: &[u64], wanted: &[u64], from: usize) -> Option<usize> {
    let blank = key("");
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for line in wanted.iter().filter(|line| **line != blank) {
        places.entry(*line).or_default();
    }
    for (at, line) in keys.iter().enumerate() {
        if let Some(places) = places.get_mut(line)
            && places.len() <= VOTES
        {
            places.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let Some(places) = places.get(line) else { continue };
        // A rare line weighs more than a closing brace.
        let weight = VOTES * 2 / places.len().max(1);
        for at in places {
            *votes.entry(at.saturating_sub(offset)).or_default() += weight;
        }
    }
    let best =
        votes.into_iter().max_by_key(|(start, weight)| (*weight, usize::MAX - start.abs_diff(from), *start));
    best.map(|(start, _)| start)
}

/// Where the longest line looked for has its nearest likeness, by the pairs of characters they share.
fn most_alike(file: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let pairs = Pairs::of(longest);
    let scored = file.iter().enumerate().map(|(at, line)| (pairs.likeness(&Pairs::of(line)), at));
    let (likeness, at) = scored.max_by_key(|(likeness, at)| (*likeness, usize::MAX - at))?;
    (likeness >= 50).then(|| at.saturating_sub(offset))
}

/// Which pairs of bytes a line has, roughly: a bit for each of 1024 classes.
struct Pairs([u64; 16]);

impl Pairs {
    fn of(line: &str) -> Self {
        let mut bits = [0; 16];
        for pair in line.trim().as_bytes().windows(2).take(4096) {
            let class = (usize::from(pair[0]) * 31 + usize::from(pair[1]) * 7) % 1024;
            bits[class / 64] |= 1 << (class % 64);
        }
        Self(bits)
    }

    /// Shared pairs in percent of all.
    fn likeness(&self, other: &Self) -> u32 {
        let count = |bits: &[u64; 16]| bits.iter().map(|word| word.count_ones()).sum::<u32>();
        let shared: u32 = self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum();
        200 * shared / (count(&self.0) + count(&other.0)).max(1)
    }
}

/// Writes both sides under each other.
fn shown(operations: &[DiffOp], old: &[&str], file: &[&str], start: usize) -> Nearest {
    let mut rows = Vec::new();
    for operation in operations {
        let (old_range, new_range) = (operation.old_range(), operation.new_range());
        if matches!(operation, DiffOp::Equal { .. }) {
            for (wanted, at) in old_range.zip(new_range) {
                rows.extend((old[wanted] != file[at]).then_some(Row::Wanted(old[wanted])));
                rows.push(Row::Has(at, old[wanted] == file[at]));
            }
        } else {
            rows.extend(old_range.map(|wanted| Row::Wanted(old[wanted])));
            rows.extend(new_range.map(|at| Row::Has(at, false)));
        }
    }
    // Of the file's lines at the end, no more than there are lines that they stand for.
    let spare = rows.iter().rev().take_while(|row| matches!(row, Row::Has(_, false))).count();
    let replaced = rows.iter().rev().skip(spare).take_while(|row| matches!(row, Row::Wanted(_))).count();
    rows.truncate(rows.len() - spare.saturating_sub(replaced));
    let numbers = rows.iter().filter_map(|row| match row {
        Row::Has(at, _) => Some(start + at + 1),
        Row::Wanted(_) => None,
    });
    let (line, end) = (numbers.clone().min().unwrap_or(start + 1), numbers.max().unwrap_or(start + 1));
    let difference = rows.iter().map(|row| row.written(file, start)).collect();
    Nearest { line, end, difference }
}

/// One row of what is shown.
enum Row<'a> {
    Wanted(&'a str),
    /// A line of the file, and whether it is just what was looked for.
    Has(usize, bool),
}

impl Row<'_> {
    fn written(&self, file: &[&str], start: usize) -> String {
        match *self {
            Row::Wanted(text) => format!("-{:>6}  {}\n", "", visible(text)),
            Row::Has(at, true) => format!(" {:>6}  {}\n", start + at + 1, cut(file[at])),
            Row::Has(at, false) => format!("+{:>6}  {}\n", start + at + 1, visible(file[at])),
        }
    }
}

/// A line with the blanks that matter made visible: all but single spaces between words.
fn visible(line: &str) -> String {
    let line = cut(line);
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

/// Characters that take no room on a screen and make lines differ all the same.
fn is_hidden(character: char) -> bool {
    matches!(character, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{AD}')
}

fn listed(lines: &[&str]) -> String {
    let shown = &lines[..lines.len().min(SHOWN_LINES)];
    let mut list = shown.iter().map(|line| cut(line)).collect::<Vec<_>>().join("\n");
    if lines.len() > shown.len() {
        let more = lines.len() - shown.len();
        let noun = if more == 1 { "line" } else { "lines" };
        list.push_str(&format!("\n… and {more} more {noun}"));
    }
    list
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
