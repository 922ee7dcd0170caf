//! Reads unified diffs in the format of `git diff` and `diff -u`: new, deleted, renamed and changed
//! files.
//!
//! Text before and between the files, such as a commit message, is skipped. Modes, copies, binary
//! and combined diffs cannot be applied and are errors.

mod header;

use crate::{ChunkLine, FileEnd, FileOperation, ParseError, PatchChunk, parse::push_line};
use header::FileHeader;

/// Returns true if a text is probably a unified diff.
pub(crate) fn is_unified_diff(text: &str) -> bool {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_header = line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        if is_header || line.starts_with("diff --git ") || line.starts_with("@@ -") {
            return true;
        }
    }
    false
}

/// Returns the operations of a diff.
pub(crate) fn operations(text: &str) -> Result<Vec<FileOperation<'_>>, ParseError> {
    let mut reader = DiffReader { lines: text.lines().collect(), at: 0 };
    let mut operations = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
            return Err(reader.error("a combined diff of a merge cannot be applied; diff against one parent"));
        } else if line.starts_with("@@ ") {
            return Err(
                reader.error("a hunk without the name of its file: `---` and `+++` lines are missing")
            );
        } else if line.starts_with("diff --git ") || reader.is_at_names() {
            operations.push(reader.file()?);
        } else {
            reader.at += 1;
        }
    }
    Ok(operations)
}

/// Reads the lines of a diff.
struct DiffReader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> DiffReader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn is_at_names(&self) -> bool {
        let next = self.lines.get(self.at + 1);
        self.peek().is_some_and(|line| line.starts_with("--- "))
            && next.is_some_and(|line| line.starts_with("+++ "))
    }

    fn error(&self, why: impl Into<String>) -> ParseError {
        ParseError::Diff { line: self.at + 1, why: why.into() }
    }

    fn file(&mut self) -> Result<FileOperation<'a>, ParseError> {
        let start = self.at;
        let header = self.header()?;
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with("@@ ")) {
            hunks.push(self.hunk()?);
        }
        header.operation(hunks).map_err(|why| ParseError::Diff { line: start + 1, why })
    }

    /// Reads the lines before the hunks.
    fn header(&mut self) -> Result<FileHeader<'a>, ParseError> {
        let mut header = FileHeader::default();
        if let Some(names) = self.peek().and_then(|line| line.strip_prefix("diff --git ")) {
            header.git_names = Some(names);
            self.at += 1;
        }
        while let Some(line) = self.peek() {
            if self.is_at_names() {
                header.old = line.strip_prefix("--- ");
                header.new = self.lines.get(self.at + 1).and_then(|line| line.strip_prefix("+++ "));
                self.at += 2;
                break;
            }
            if header.git_names.is_none() || !header.add_line(line).map_err(|why| self.error(why))? {
                break;
            }
            self.at += 1;
        }
        Ok(header)
    }

    fn hunk(&mut self) -> Result<PatchChunk<'a>, ParseError> {
        let ranges = self.peek().and_then(HunkRanges::parse);
        let Some(HunkRanges { old_start, mut old, mut new }) = ranges else {
            return Err(self.error("the line numbers of the hunk cannot be read"));
        };
        self.at += 1;
        let line = if old == 0 { old_start } else { old_start.saturating_sub(1) };
        let mut chunk = PatchChunk { line: Some(line), ..PatchChunk::default() };
        while old > 0 || new > 0 || self.is_at_missing_newline() {
            let Some(line) = self.peek() else {
                return Err(self.error("the diff ends within a hunk; it may have been cut off"));
            };
            match line.as_bytes().first() {
                Some(b'\\') => note_missing_newline(&mut chunk),
                None | Some(b' ') if old > 0 && new > 0 => (old, new) = (old - 1, new - 1),
                Some(b'-') if old > 0 => old -= 1,
                Some(b'+') if new > 0 => new -= 1,
                _ => return Err(self.error("the hunk has not the lines that its line numbers say")),
            }
            push_line(&mut chunk.lines, line);
            self.at += 1;
        }
        Ok(chunk)
    }

    fn is_at_missing_newline(&self) -> bool {
        self.peek().is_some_and(|line| line.starts_with('\\'))
    }
}

/// Records that the previous line is the last of its file and has no newline.
fn note_missing_newline(chunk: &mut PatchChunk<'_>) {
    chunk.end = match chunk.lines.last() {
        // The new file has one, unless a later line says otherwise.
        Some(ChunkLine::Remove(_)) => FileEnd::Newline,
        _ => FileEnd::NoNewline,
    };
}

/// The numbers in `@@ -1,5 +1,6 @@`. A missing count is 1.
struct HunkRanges {
    old_start: usize,
    old: usize,
    new: usize,
}

impl HunkRanges {
    fn parse(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |text: &str| {
            let (start, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
        };
        let ((old_start, old), (_, new)) = (range(old)?, range(new)?);
        Some(Self { old_start, old, new })
    }
}

#[cfg(test)]
mod tests;
