//! Text for the width of a terminal: wrapped between words, or cut to one line.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use unicode_width::UnicodeWidthChar;

/// The width of a terminal that does not report one.
const DEFAULT_COLUMNS: usize = 80;

/// Minimum width that text is wrapped for. Narrower terminals wrap by themselves.
const MIN_COLUMNS: usize = 20;

/// Minimum width that is left beside an indentation.
const MIN_TEXT: usize = 16;

/// The variation selector that turns the character before it into an emoji.
const EMOJI_SIGN: char = '\u{fe0f}';

/// The character that joins emoji to one.
const JOINER: char = '\u{200d}';

/// Returns the width of stdout if it is a terminal.
pub(crate) fn stdout_columns() -> Option<usize> {
    columns_of(&io::stdout())
}

/// Returns the width of stderr if it is a terminal.
pub(crate) fn stderr_columns() -> Option<usize> {
    columns_of(&io::stderr())
}

fn columns_of(output: &(impl AsFd + IsTerminal)) -> Option<usize> {
    if !output.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(output).map_or(0, |size| usize::from(size.ws_col));
    let exported = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = if size > 0 { Some(size) } else { exported() };
    Some(columns.filter(|columns| *columns > 0).unwrap_or(DEFAULT_COLUMNS).max(MIN_COLUMNS))
}

/// Wraps each line of a text. Continued lines are indented like the text of the line: after its
/// blanks, and after a mark such as `- `.
pub(crate) fn wrap_text(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        // A line with escape sequences is one of ours, and made for this width.
        if width(line) <= columns || line.contains('\x1b') {
            out.push_str(line);
        } else {
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let marked = blanks + mark(&line[blanks..]);
            let indent = if marked + MIN_TEXT > columns { 0 } else { marked };
            let (start, rest) = line.split_at(indent);
            let rest = wrap_words(rest, columns - indent);
            out.push_str(start);
            // A continued comment is one, too.
            let next = if start == "# " { start.to_owned() } else { " ".repeat(indent) };
            out.push_str(&rest.join(&format!("\n{next}")));
        }
        out.push_str(end);
    }
    out
}

/// Returns the length of a mark of a list at the start of a line.
fn mark(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && line[digits..].starts_with(". ") {
        return digits + 2;
    }
    if ["- ", "# ", "| ", "$ "].iter().any(|mark| line.starts_with(mark)) { 2 } else { 0 }
}

/// Splits a line into lines of at most this width. Words that are wider are broken; Chinese and
/// other wide characters are words of their own. Blanks where a line is broken are left out.
pub(crate) fn wrap_words(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = vec![String::new()];
    let (mut used, mut blanks) = (0, String::new());
    for word in words(line) {
        let wide = width(word);
        if word.starts_with(' ') {
            blanks.push_str(word);
            continue;
        }
        if used > 0 && used + blanks.len() + wide > columns {
            lines.push(String::new());
            used = 0;
            blanks.clear();
        }
        // Blanks at the start of the text belong to it.
        let blank = blanks.len().min(columns.saturating_sub(2));
        used += blank;
        let pieces = broken(word, columns - blank, columns);
        let count = pieces.len();
        for (at, piece) in pieces.into_iter().enumerate() {
            if let Some(last) = lines.last_mut() {
                last.push_str(&blanks[..if at == 0 { blank } else { 0 }]);
                last.push_str(piece);
            }
            used = if at == 0 { used + width(piece) } else { width(piece) };
            if at + 1 < count {
                lines.push(String::new());
            }
        }
        blanks.clear();
    }
    lines
}

/// Splits a line into words, blanks, and wide characters.
fn words(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut before) = (0, None);
    for (at, character) in line.char_indices() {
        if before.is_some_and(|before| may_break(before, character)) {
            found.push(&line[start..at]);
            start = at;
        }
        // An accent or a selector belongs to the character before it.
        if wide(character) > 0 || character == JOINER || before.is_none() {
            before = Some(character);
        }
    }
    if start < line.len() {
        found.push(&line[start..]);
    }
    found
}

/// Returns true if a word may end between two characters. Punctuation stays with its word.
fn may_break(before: char, after: char) -> bool {
    const CLOSING: &str = "，。、！？；：）」』】》”’";
    match (before, after) {
        (' ', ' ') => false,
        (' ', _) | (_, ' ') => true,
        ('\t', after) => after != '\t',
        (JOINER, _) => false,
        (before, after) => match (wide(before), wide(after)) {
            (2, 2) => !CLOSING.contains(after),
            (2, 1) => after.is_alphanumeric(),
            (1, 2) => before.is_alphanumeric(),
            _ => false,
        },
    }
}

/// Breaks a word into pieces, the first of at most `first` columns.
fn broken(word: &str, first: usize, columns: usize) -> Vec<&str> {
    let (mut rest, mut room) = (word, first);
    let mut pieces = Vec::new();
    loop {
        let end = prefix(rest, room);
        if end == rest.len() {
            break;
        }
        // Paths and lists break between their parts, unless most of the line would stay empty.
        let part = rest[..end].rfind(['/', ',', '&', ';']).map(|at| at + 1);
        let end = part.filter(|part| width(&rest[..*part]) * 2 > room).unwrap_or(end);
        // At least one character, however narrow the room.
        let end = if end == 0 { rest.chars().next().map_or(rest.len(), char::len_utf8) } else { end };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        (rest, room) = (after, columns);
    }
    pieces.push(rest);
    pieces
}

/// Returns the length in bytes of the longest beginning that is at most this wide.
fn prefix(text: &str, columns: usize) -> usize {
    let (mut used, mut end, mut before) = (0, 0, 0);
    for (at, character) in text.char_indices() {
        let wide = wide_after(before, character);
        used += wide;
        if used > columns {
            // A selector goes with the character that it changes.
            return if character == EMOJI_SIGN { end } else { at };
        }
        if character != EMOJI_SIGN {
            end = at;
        }
        before = wide;
    }
    text.len()
}

/// Cuts a text to one line of this width, after a word if that costs less than a third of it. A cut
/// is marked with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let end = prefix(text, room);
    let around = text[..end].chars().next_back().zip(text[end..].chars().next());
    let is_between = around.is_some_and(|(before, after)| may_break(before, after));
    let after_word =
        text[..end].rfind(' ').filter(|blank| !is_between && width(&text[..*blank]) * 3 > room * 2);
    format!("{}…", text[..after_word.unwrap_or(end)].trim_end())
}

/// Cuts the beginning of a path to this width, at a name if possible: its end tells more.
pub(crate) fn cut_path(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let starts = path.char_indices().map(|(at, _)| at);
    let fitting = |at: &usize| width(&path[*at..]) < columns;
    let at_name = starts.clone().filter(|at| path[*at..].starts_with('/')).find(fitting);
    let start = at_name.or_else(|| starts.clone().find(fitting)).unwrap_or(path.len());
    format!("…{}", &path[start..])
}

/// Returns the width of a text in terminal cells: a Chinese character takes two, a combining accent
/// none. Terminals differ on sequences of emoji; this is the widest of them.
pub(crate) fn width(text: &str) -> usize {
    let mut before = 0;
    let each = text.chars().map(|character| {
        before = wide_after(before, character);
        before
    });
    each.sum()
}

/// Returns the width of a character after one of this width.
fn wide_after(before: usize, character: char) -> usize {
    if character == EMOJI_SIGN { usize::from(before == 1) } else { wide(character) }
}

fn wide(character: char) -> usize {
    // A tab takes at most this many columns.
    const TAB_COLUMNS: usize = 8;
    if character == '\t' { TAB_COLUMNS } else { character.width().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_only_words_that_are_too_long_break() {
        assert_eq!(wrap_words("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_words("one abcdefghij two", 6), ["one", "abcdef", "ghij", "two"]);
        assert_eq!(wrap_words("/home/project/source", 10), ["/home/", "project/", "source"]);
        assert_eq!(wrap_words("  in the margin", 8), ["  in the", "margin"]);
        assert_eq!(wrap_words("", 8), [""]);
        assert_eq!(wrap_words("one\ttwo\tthree", 16), ["one\t", "two\tthree"]);
        assert_eq!(wrap_words("把所有的文件都读一遍", 7), ["把所有", "的文件", "都读一", "遍"]);
        assert_eq!(wrap_words("run 测试 again", 8), ["run 测试", "again"]);
        assert_eq!(wrap_words("(`汉字`)。", 4), ["(`汉", "字`)", "。"]);
        assert_eq!(wrap_words("说完了。再见", 7), ["说完", "了。再", "见"]);
        for columns in 2..20 {
            let text = "a ❤️ b 👩‍💻 c é 汉字 and/a/path/that/is/long  twice";
            let lines = wrap_words(text, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
            let joined = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            assert_eq!(joined(&lines.concat()), joined(text));
        }
    }

    #[test]
    fn continued_lines_are_indented_like_the_first() {
        assert_eq!(
            wrap_text("  - a list of many words here\nshort\n", 24),
            "  - a list of many words\n    here\nshort\n"
        );
        assert_eq!(wrap_text("12. one two three four five", 20), "12. one two three\n    four five");
    }

    #[test]
    fn a_cut_is_after_a_word_and_never_in_a_character() {
        assert_eq!(cut("one two three", 13), "one two three");
        assert_eq!(cut("one two three", 10), "one two…");
        assert_eq!(cut("one abcdefghijkl", 10), "one abcde…");
        assert_eq!(cut("把所有的文件", 8), "把所有…");
        assert_eq!(cut("one two 把所有的文件", 14), "one two 把所…");
        assert_eq!(cut_path("/home/bob/project/source", 16), "…/project/source");
        assert_eq!(cut_path("/home/bob/project/source", 6), "…ource");
    }
}
