//! The header of one file in a diff: its names and the kind of change.

use std::borrow::Cow;

use crate::{ChunkLine, FileEnd, FileOperation, PatchChunk};

/// The lines of a diff about a file before its hunks.
#[derive(Debug, Default)]
pub(super) struct FileHeader<'a> {
    /// The names after `diff --git`.
    pub(super) git_names: Option<&'a str>,
    /// The names after `---` and `+++`.
    pub(super) old: Option<&'a str>,
    pub(super) new: Option<&'a str>,
    rename_from: Option<&'a str>,
    rename_to: Option<&'a str>,
    is_new: bool,
    is_deleted: bool,
}

const NOWHERE: &str = "/dev/null";
/// The only supported mode of a new file.
const PLAIN_FILE: &str = "100644";

impl<'a> FileHeader<'a> {
    /// Reads a line of a git header. Returns false if it is not one.
    pub(super) fn add_line(&mut self, line: &'a str) -> Result<bool, String> {
        let unsupported = |what: &str| Err(format!("{what} cannot be applied"));
        if let Some(mode) = line.strip_prefix("new mode ") {
            return Err(format!("a change of mode (to {mode}) cannot be applied; use chmod for it"));
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            self.is_new = true;
            match mode.trim() {
                PLAIN_FILE => {}
                "120000" => return unsupported("a symbolic link"),
                "160000" => return unsupported("a submodule"),
                other => {
                    return Err(format!(
                        "a new file of mode {other} cannot be made; use {PLAIN_FILE} and chmod"
                    ));
                }
            }
        } else if line.starts_with("deleted file mode ") {
            self.is_deleted = true;
        } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
            return unsupported("a copy of a file");
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return unsupported("a diff of a binary file");
        } else if let Some(path) = line.strip_prefix("rename from ") {
            self.rename_from = Some(path);
        } else if let Some(path) = line.strip_prefix("rename to ") {
            self.rename_to = Some(path);
        } else {
            let others = ["old mode ", "index ", "similarity index ", "dissimilarity index "];
            return Ok(others.iter().any(|start| line.starts_with(start)));
        }
        Ok(true)
    }

    /// Returns the operation of a file with these hunks.
    pub(super) fn operation(self, chunks: Vec<PatchChunk<'a>>) -> Result<FileOperation<'a>, String> {
        if let (Some(from), Some(to)) = (self.rename_from, self.rename_to) {
            let (path, move_to) = (unquote(from)?, Some(unquote(to)?));
            return Ok(FileOperation::Update { path, move_to, chunks });
        }
        let (old, new) = self.names()?;
        if self.is_new || old == NOWHERE {
            let content = content(&chunks)?;
            return Ok(FileOperation::Add { path: new, content, must_be_new: true });
        }
        if self.is_deleted || new == NOWHERE {
            return Ok(FileOperation::Delete { path: old, removes: Some(chunks) });
        }
        if chunks.is_empty() {
            return Err(format!("nothing is said about what becomes of `{new}`"));
        }
        if chunks.iter().all(changes_nothing) {
            return Err(format!("only line endings change in `{new}`, which cannot be applied"));
        }
        // `diff -u old new` names two files and means the new one. Git marks a moved file
        // explicitly.
        Ok(FileOperation::Update { path: new, move_to: None, chunks })
    }

    /// Returns the old and the new name, without the prefixes of git.
    fn names(&self) -> Result<(Cow<'a, str>, Cow<'a, str>), String> {
        if let (Some(old), Some(new)) = (self.old, self.new) {
            let name = |line: &'a str| unquote(line.split('\t').next().unwrap_or(line).trim_end());
            return Ok(without_prefixes(name(old)?, name(new)?));
        }
        let names = self.git_names.unwrap_or_default();
        let both = if names.starts_with('"') {
            let end = quoted_end(names).ok_or("a quoted name has no end")?;
            Some((unquote(&names[..end])?, unquote(names[end..].trim_start())?))
        } else {
            // A name may contain spaces; both are equal except for the prefix.
            let mut blanks = names.match_indices(' ').map(|(at, _)| (&names[..at], &names[at + 1..]));
            let is_same = |(old, new): &(&str, &str)| prefixed(old, new).is_some() || old == new;
            blanks.find(is_same).map(|(old, new)| (old.into(), new.into()))
        };
        both.map(|(old, new)| without_prefixes(old, new))
            .ok_or_else(|| format!("the names in `{names}` differ"))
    }
}

/// Removes `a/` and `b/`, or the other prefixes of git, if both names have one.
fn without_prefixes<'a>(old: Cow<'a, str>, new: Cow<'a, str>) -> (Cow<'a, str>, Cow<'a, str>) {
    let cut = |name: Cow<'a, str>| match name {
        Cow::Borrowed(name) => Cow::Borrowed(&name[2..]),
        Cow::Owned(name) => Cow::Owned(name[2..].to_owned()),
    };
    match (&*old, &*new) {
        (NOWHERE, name) if is_prefixed(name, 'b') => (old, cut(new)),
        (name, NOWHERE) if is_prefixed(name, 'a') => (cut(old), new),
        (one, other) if prefixed(one, other).is_some() => (cut(old), cut(new)),
        (one, other) if is_prefixed(one, 'a') && is_prefixed(other, 'b') => (cut(old), cut(new)),
        _ => (old, new),
    }
}

fn is_prefixed(name: &str, letter: char) -> bool {
    name.strip_prefix(letter).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
}

/// Returns the common name behind prefixes of git: `a/` and `b/`, or those of
/// `diff.mnemonicPrefix`.
fn prefixed<'n>(old: &'n str, new: &str) -> Option<&'n str> {
    let name = |name: &'n str| {
        ["a/", "b/", "c/", "i/", "o/", "w/"].iter().find_map(|prefix| name.strip_prefix(prefix))
    };
    let is_other = old.as_bytes().first() != new.as_bytes().first();
    let rest = name(old)?;
    (is_other && new.get(1..)?.strip_prefix('/')? == rest && new.starts_with(['a', 'b', 'c', 'i', 'o', 'w']))
        .then_some(rest)
}

/// Returns the content of a file that a diff creates.
fn content(chunks: &[PatchChunk<'_>]) -> Result<String, String> {
    let mut content = String::new();
    for line in chunks.iter().flat_map(|chunk| &chunk.lines) {
        let ChunkLine::Insert(text) = line else {
            return Err("a new file has lines of an old one".to_owned());
        };
        content.push_str(text);
        content.push('\n');
    }
    if chunks.last().is_some_and(|chunk| chunk.end == FileEnd::NoNewline) {
        content.pop();
    }
    Ok(content)
}

/// Returns true if old and new lines are equal.
fn changes_nothing(chunk: &PatchChunk<'_>) -> bool {
    let new = chunk.lines.iter().filter_map(|line| match *line {
        ChunkLine::Keep(text) | ChunkLine::Insert(text) => Some(text),
        ChunkLine::Remove(_) => None,
    });
    chunk.end == FileEnd::AsIs && chunk.old_lines().eq(new)
}

/// Returns the end of a quoted name that starts with its quote.
fn quoted_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map(|at| at + 2)
}

/// Decodes a name. Git writes names with special characters in quotes, with escapes as in C.
fn unquote(name: &str) -> Result<Cow<'_, str>, String> {
    let Some(inner) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return if name.contains(['\0', '\\']) {
            Err(format!("the path `{}` has characters a path cannot have here", name.escape_debug()))
        } else {
            Ok(name.into())
        };
    };
    let unreadable = || format!("the quoted path {name} cannot be read");
    let (mut bytes, mut rest) = (Vec::new(), inner.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let [escape, after @ ..] = rest else { return Err(unreadable()) };
        let byte = match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'"' | b'\\' => *escape,
            b'0'..=b'3' => {
                let digits = rest.get(..3).and_then(|digits| str::from_utf8(digits).ok());
                let byte =
                    digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).ok_or_else(unreadable)?;
                rest = &rest[3..];
                bytes.push(byte);
                continue;
            }
            _ => return Err(unreadable()),
        };
        bytes.push(byte);
        rest = after;
    }
    let path = String::from_utf8(bytes).map_err(|_| unreadable())?;
    if path.contains(['\0', '\\']) { Err(unreadable()) } else { Ok(path.into()) }
}
