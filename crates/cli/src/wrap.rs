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

/// The first character of an escape sequence, which takes no columns. Ours are colours: the last
/// character is `m`.
const ESCAPE: char = '\u{1b}';

/// The character that joins emoji to one.
const JOINER: char = '\u{200d}';

/// Wraps a text for stderr if it is a terminal; other readers get it as it is.
pub(crate) fn wrap_for_stderr(text: &str) -> String {
    stderr_columns().map_or_else(|| text.to_owned(), |columns| wrap_text(text, columns))
}

/// Returns the width of stdout if it is a terminal.
pub(crate) fn stdout_columns() -> Option<usize> {
    columns_of(&io::stdout())
}

/// Returns the width of stderr if it is a terminal.
fn stderr_columns() -> Option<usize> {
    columns_of(&io::stderr())
}

/// Returns the width for text on stderr that leaves its last column free. A cursor there is where
/// terminals differ.
pub(crate) fn live_columns() -> usize {
    stderr_columns().unwrap_or(DEFAULT_COLUMNS) - 1
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
/// blanks, and after a mark such as `- `. Marks of comments and quotes are repeated.
pub(crate) fn wrap_text(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        out.push_str(&wrap_hanging(line, columns).join("\n"));
        out.push_str(end);
    }
    out
}

/// Wraps one line as [`wrap_text`] does.
pub(crate) fn wrap_hanging(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let (start, rest) = line.split_at(blanks + mark(&line[blanks..]));
    let indent = width(start);
    if indent + MIN_TEXT > columns {
        return wrap_words(line, columns);
    }
    let next = match &start[blanks..] {
        "# " | "| " | "> " => start.to_owned(),
        _ => " ".repeat(indent),
    };
    let mut lines = wrap_words(rest, columns - indent);
    for (at, line) in lines.iter_mut().enumerate() {
        line.insert_str(0, if at == 0 { start } else { &next });
    }
    lines
}

/// Returns the length of a mark of a list at the start of a line, which may have a colour.
fn mark(line: &str) -> usize {
    let mut seen = cells(line).filter(|cell| !cell.is_colour).map(|cell| cell.character).peekable();
    let mut digits = false;
    while seen.next_if(char::is_ascii_digit).is_some() {
        digits = true;
    }
    let is_mark = match seen.next() {
        Some('.') => digits,
        Some('-' | '*' | '#' | '|' | '>' | '$' | '•') => !digits,
        _ => false,
    };
    if is_mark && seen.next() == Some(' ') { line.find(' ').map_or(0, |at| at + 1) } else { 0 }
}

/// Splits a line into lines of at most this width. Words that are wider are broken; Chinese and
/// other wide characters are words of their own. Blanks where a line is broken are left out.
pub(crate) fn wrap_words(line: &str, columns: usize) -> Vec<String> {
    wrap_line(line, columns, "")
}

/// Wraps one line as [`wrap_words`] does. Continued lines begin with `indent`.
pub(crate) fn wrap_line(line: &str, columns: usize, indent: &str) -> Vec<String> {
    let margin = width(indent);
    let columns = columns.max(margin + 2);
    let mut lines = vec![String::new()];
    let (mut used, mut is_empty, mut blanks) = (0, true, String::new());
    for word in words(line) {
        if word.starts_with(' ') {
            blanks.push_str(word);
            continue;
        }
        if !is_empty && used + blanks.len() + width(word) > columns {
            lines.push(indent.to_owned());
            used = margin;
            blanks.clear();
        }
        // Blanks at the start of the text belong to it.
        blanks.truncate(columns - 2);
        used += blanks.len();
        for (at, piece) in
            broken(word, columns.saturating_sub(used), columns - margin).into_iter().enumerate()
        {
            if at > 0 {
                lines.push(indent.to_owned());
                used = margin;
            }
            if let Some(last) = lines.last_mut() {
                last.push_str(&blanks);
                last.push_str(piece);
            }
            used += width(piece);
            blanks.clear();
        }
        is_empty = false;
    }
    lines
}

/// Splits a line into words, blanks, and wide characters.
fn words(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut before) = (0, None);
    // A colour belongs to the word after it.
    let seen = |cell: &DisplayCell| !cell.is_colour || cell.character == ESCAPE;
    for DisplayCell { at, character, .. } in cells(line).filter(seen) {
        if before.is_some_and(|before| may_break(before, character)) {
            found.push(&line[start..at]);
            start = at;
        }
        // An accent or a selector belongs to the character before it.
        if wide(character) > 0 || character == JOINER || matches!(before, None | Some(' ')) {
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
        // Paths, lists and names break between their parts, unless most of the line stays empty.
        let parts = cells(&rest[..end]).filter(|cell| !cell.is_colour);
        let part = parts.filter(|cell| "/,&;_".contains(cell.character)).last().map(|cell| cell.at + 1);
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
    let (mut used, mut end) = (0, 0);
    for DisplayCell { at, character, columns: wide, .. } in cells(text) {
        used += wide;
        if used > columns {
            // A selector goes with the character that it changes.
            return if character == EMOJI_SIGN { end } else { at };
        }
        if character != EMOJI_SIGN {
            end = at;
        }
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
    cells(text).map(|cell| cell.columns).sum()
}

/// A character, its place in bytes, and the columns that it takes after the one before it.
struct DisplayCell {
    at: usize,
    character: char,
    columns: usize,
    is_colour: bool,
}

fn cells(text: &str) -> impl Iterator<Item = DisplayCell> {
    let (mut before, mut goes_on) = (0, false);
    text.char_indices().map(move |(at, character)| {
        let is_colour = goes_on || character == ESCAPE;
        goes_on = is_colour && character != 'm';
        let columns = match character {
            _ if is_colour => 0,
            EMOJI_SIGN => usize::from(before == 1),
            _ => wide(character),
        };
        before = columns;
        DisplayCell { at, character, columns, is_colour }
    })
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
        assert_eq!(wrap_text("  | one two three four", 20), "  | one two three\n  | four");
        assert_eq!(
            wrap_text("\u{1b}[1m•\u{1b}[0m run one two three", 18),
            "\u{1b}[1m•\u{1b}[0m run one two\n  three"
        );
    }

    #[test]
    fn colours_take_no_columns_and_stay_whole() {
        let coloured = "\u{1b}[1;31mone\u{1b}[0m two \u{1b}[1;32mthree\u{1b}[0m";
        assert_eq!(wrap_words(coloured, 13), [coloured]);
        let lines = ["\u{1b}[1;31mone\u{1b}[0m two", "\u{1b}[1;32mthree\u{1b}[0m"];
        assert_eq!(wrap_words(coloured, 8), lines);
        let long = format!("\u{1b}[1;31m{}\u{1b}[0m", "a".repeat(9));
        assert_eq!(wrap_words(&long, 6), ["\u{1b}[1;31maaaaaa", "aaa\u{1b}[0m"]);
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
