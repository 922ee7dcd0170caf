//! Parses the text of a patch into a [`ParsedPatch`]. As lenient as models need, and linear in the
//! length of the text.
//!
//! Accepted beyond the grammar: whitespace around marker and header lines, a here-document or a
//! code fence around the patch, a first chunk without `@@`, empty lines for empty context lines,
//! and several consecutive `@@` lines.

use std::{collections::HashSet, fmt};

use crate::{
    ChunkLine, FileOperation, ParsedPatch, PatchChunk,
    unified_diff::{self, is_unified_diff},
};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Maximum size of a patch. A model writes thousands of bytes; anything larger is a mistake or an
/// attack.
pub const MAX_PATCH_BYTES: usize = 16 << 20;

/// Parses a patch.
pub fn parse(text: &str) -> Result<ParsedPatch<'_>, ParseError> {
    if text.len() > MAX_PATCH_BYTES {
        return Err(ParseError::TooLarge { bytes: text.len() });
    }
    let lines: Vec<&str> = text.trim().lines().collect();
    let body = match between_markers(&lines) {
        Ok(body) => body,
        Err(ParseError::NoBegin) if is_unified_diff(text) => {
            let operations = unified_diff::operations(text)?;
            check_unique_paths(&operations)?;
            return Ok(ParsedPatch { operations });
        }
        Err(error) => between_markers(unwrap_fence(&lines).ok_or_else(|| error.clone())?)?,
    };
    let mut reader = PatchReader { lines: body, at: 0 };
    let mut operations = Vec::new();
    while let Some(line) = reader.peek() {
        operations.push(reader.operation(line)?);
    }
    check_unique_paths(&operations)?;
    Ok(ParsedPatch { operations })
}

/// The error of parsing a patch, in the words that models of this family know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    TooLarge { bytes: usize },
    NoBegin,
    NoEnd,
    BadHeader { line: usize, text: String },
    BadPath { line: usize, path: String, why: &'static str },
    EmptyUpdate { line: usize, path: String },
    NoLines { line: usize },
    NoMarker { line: usize, text: String },
    BadLine { line: usize, text: String },
    Repeated { path: String },
    Diff { line: usize, why: String },
}

impl ParseError {
    /// Returns the message in the words of a command-line program.
    pub fn for_terminal(&self) -> String {
        match (self, self.line()) {
            (Self::Repeated { .. }, _) => self.to_string(),
            (Self::Diff { .. }, Some(line)) => format!("Invalid diff on line {line}: {}", self.reason()),
            (_, Some(line)) => format!("Invalid patch hunk on line {line}: {}", self.reason()),
            (_, None) => format!("Invalid patch: {}", self.reason()),
        }
    }

    fn line(&self) -> Option<usize> {
        match self {
            Self::TooLarge { .. } | Self::NoBegin | Self::NoEnd | Self::Repeated { .. } => None,
            Self::BadHeader { line, .. }
            | Self::BadPath { line, .. }
            | Self::EmptyUpdate { line, .. }
            | Self::NoLines { line }
            | Self::NoMarker { line, .. }
            | Self::BadLine { line, .. }
            | Self::Diff { line, .. } => Some(*line),
        }
    }

    fn reason(&self) -> String {
        match self {
            Self::TooLarge { bytes } => format!(
                "it has {bytes} bytes and at most {MAX_PATCH_BYTES} are read. Split it into several patches"
            ),
            Self::NoBegin => format!("The first line of the patch must be '{BEGIN}'"),
            Self::NoEnd => format!("The last line of the patch must be '{END}'"),
            Self::BadHeader { text, .. } => format!(
                "'{text}' is not a valid hunk header. Valid hunk headers: '{ADD}{{path}}', '{DELETE}{{path}}', \
                 '{UPDATE}{{path}}'"
            ),
            Self::BadPath { path, why, .. } => format!("the path '{path}' {why}"),
            Self::EmptyUpdate { path, .. } => format!("Update file hunk for path '{path}' is empty"),
            Self::NoLines { .. } => "Update hunk does not contain any lines".into(),
            Self::NoMarker { text, .. } => {
                format!("Expected update hunk to start with a @@ context marker, got: '{text}'")
            }
            Self::BadLine { text, .. } => format!(
                "Unexpected line found in update hunk: '{text}'. Every line should start with ' ' (context line), '+' \
                 (added line), or '-' (removed line)"
            ),
            Self::Repeated { path } => format!("multiple operations target {path}"),
            Self::Diff { why, .. } => why.clone(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.line()) {
            (Self::Repeated { .. }, _) => write!(out, "{}", self.reason()),
            (Self::Diff { .. }, Some(line)) => write!(out, "invalid diff at line {line}: {}", self.reason()),
            (_, Some(line)) => write!(out, "invalid hunk at line {line}, {}", self.reason()),
            (_, None) => write!(out, "invalid patch: {}", self.reason()),
        }
    }
}

impl std::error::Error for ParseError {}

/// Returns the lines between the first and the last marker.
fn between_markers<'l, 'a>(lines: &'l [&'a str]) -> Result<&'l [&'a str], ParseError> {
    let Some(([first], rest)) = lines.split_at_checked(1) else { return Err(ParseError::NoBegin) };
    if first.trim() != BEGIN {
        return Err(ParseError::NoBegin);
    }
    match rest.split_last() {
        Some((last, body)) if last.trim() == END => Ok(body),
        _ => Err(ParseError::NoEnd),
    }
}

/// Returns the lines inside a here-document or a code fence around the patch.
fn unwrap_fence<'l, 'a>(lines: &'l [&'a str]) -> Option<&'l [&'a str]> {
    let [first, inner @ .., last] = lines else { return None };
    let heredoc = matches!(*first, "<<EOF" | "<<'EOF'" | "<<\"EOF\"") && last.ends_with("EOF");
    let fence = first.starts_with("```") && last.trim_end() == "```";
    ((heredoc || fence) && inner.len() >= 2).then_some(inner)
}

/// Reads the lines between the markers.
struct PatchReader<'l, 'a> {
    lines: &'l [&'a str],
    at: usize,
}

impl<'a> PatchReader<'_, 'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// Returns the number of the current line in the patch, where `*** Begin ParsedPatch` is 1.
    fn number(&self) -> usize {
        self.at + 2
    }

    fn operation(&mut self, header: &'a str) -> Result<FileOperation<'a>, ParseError> {
        let line = self.number();
        let header = header.trim();
        self.at += 1;
        if let Some(path) = header.strip_prefix(ADD) {
            Ok(FileOperation::Add {
                path: check_path(path, line)?.into(),
                content: self.added_content(),
                must_be_new: false,
            })
        } else if let Some(path) = header.strip_prefix(DELETE) {
            Ok(FileOperation::Delete { path: check_path(path, line)?.into(), removes: None })
        } else if let Some(path) = header.strip_prefix(UPDATE) {
            self.update(check_path(path, line)?, line)
        } else {
            Err(ParseError::BadHeader { line, text: truncate(header) })
        }
    }

    fn added_content(&mut self) -> String {
        let mut content = String::new();
        while let Some(text) = self.peek().and_then(|line| line.strip_prefix('+')) {
            content.push_str(text);
            content.push('\n');
            self.at += 1;
        }
        content
    }

    fn update(&mut self, path: &'a str, header: usize) -> Result<FileOperation<'a>, ParseError> {
        let mut move_to = None;
        if let Some(destination) = self.peek().and_then(|line| line.trim_end().strip_prefix(MOVE)) {
            move_to = Some(check_path(destination.trim(), self.number())?);
            self.at += 1;
        }
        let mut chunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim().is_empty() {
                self.at += 1;
            } else if line.starts_with("***") {
                break;
            } else {
                chunks.push(self.chunk(chunks.is_empty())?);
            }
        }
        if chunks.is_empty() && move_to.is_none() {
            return Err(ParseError::EmptyUpdate { line: header, path: truncate(path) });
        }
        // Ignore a move of a file onto itself: taken literally, it would remove the file at the
        // end.
        let move_to = move_to.filter(|to| normalize_lexically(to) != normalize_lexically(path));
        Ok(FileOperation::Update { path: path.into(), move_to: move_to.map(Into::into), chunks })
    }

    fn chunk(&mut self, is_first: bool) -> Result<PatchChunk<'a>, ParseError> {
        let mut chunk = PatchChunk::default();
        let start = self.at;
        while let Some(context) = self.peek().and_then(marker) {
            chunk.contexts.extend((!context.is_empty()).then_some(context));
            self.at += 1;
        }
        if self.at == start && !is_first {
            let text = truncate(self.peek().unwrap_or_default());
            return Err(ParseError::NoMarker { line: self.number(), text });
        }
        while let Some(line) = self.peek() {
            if line.trim_end() == END_OF_FILE && !chunk.lines.is_empty() {
                chunk.at_end = true;
                self.at += 1;
                break;
            }
            if !push_line(&mut chunk.lines, line) {
                break;
            }
            self.at += 1;
        }
        if !chunk.lines.is_empty() {
            return Ok(chunk);
        }
        let line = self.number();
        match self.peek() {
            None => Err(ParseError::NoLines { line }),
            Some(text) if text.trim_end() == END_OF_FILE => Err(ParseError::NoLines { line }),
            Some(text) => Err(ParseError::BadLine { line, text: truncate(text) }),
        }
    }
}

/// Returns the text of an `@@` line, which may be empty.
fn marker(line: &str) -> Option<&str> {
    if line.trim_end() == "@@" { Some("") } else { line.strip_prefix("@@ ") }
}

/// Adds a line to a chunk. Returns false if it is not a line of a chunk. A lone carriage return
/// ends a line in a file, so it also separates the lines to search for.
pub(crate) fn push_line<'a>(lines: &mut Vec<ChunkLine<'a>>, line: &'a str) -> bool {
    match line.as_bytes().first() {
        None => lines.push(ChunkLine::Keep("")),
        Some(b' ') => lines.extend(line[1..].split('\r').map(ChunkLine::Keep)),
        Some(b'-') => lines.extend(line[1..].split('\r').map(ChunkLine::Remove)),
        Some(b'+') => lines.push(ChunkLine::Insert(&line[1..])),
        Some(_) => return false,
    }
    true
}

fn check_path(path: &str, line: usize) -> Result<&str, ParseError> {
    let refuse = |why| Err(ParseError::BadPath { line, path: truncate(path), why });
    let path = path.trim();
    if path.contains('\0') {
        return refuse("contains a NUL character");
    }
    if path.contains('\\') {
        return refuse("has backslashes: write it with '/'");
    }
    Ok(path)
}

fn check_unique_paths(operations: &[FileOperation<'_>]) -> Result<(), ParseError> {
    let mut seen = HashSet::new();
    let named = operations.iter().flat_map(|operation| [Some(operation.path()), operation.move_to()]);
    for path in named.flatten() {
        if !seen.insert(normalize_lexically(path)) {
            return Err(ParseError::Repeated { path: truncate(path) });
        }
    }
    Ok(())
}

/// Returns the components of a path without `.`, repeated slashes and `name/..`. It does not look
/// at the file system, so callers must check symbolic links themselves.
fn normalize_lexically(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    if path.starts_with('/') {
        parts.push("/");
    }
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, parts.last()) {
            ("..", Some(&last)) if last != ".." && last != "/" => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts
}

/// Shortens a line that is quoted in an error.
fn truncate(text: &str) -> String {
    const CHARS: usize = 300;
    match text.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
