//! Wrapping of lines at words, by the width that a terminal gives each character.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use unicode_width::UnicodeWidthChar;

/// The width of terminals that do not report one.
const DEFAULT_COLUMNS: usize = 80;

/// Narrower terminals wrap lines by themselves.
pub(crate) const MIN_COLUMNS: usize = 24;

/// The distance between tab stops is at most this.
const TAB_COLUMNS: usize = 8;

/// Returns the number of columns of the terminal at stderr.
pub(crate) fn terminal_columns() -> usize {
    columns_of_terminal(&io::stderr())
}

/// Returns the number of columns of a terminal.
pub(crate) fn columns_of_terminal(terminal: &impl AsFd) -> usize {
    let columns = rustix::termios::tcgetwinsize(terminal).map_or(0, |size| size.ws_col.into());
    if columns == 0 { DEFAULT_COLUMNS } else { columns }
}

/// Wraps lines for stderr if it is a terminal; other readers get them as they are.
pub(crate) fn wrap_for_stderr(text: &str) -> String {
    if !io::stderr().is_terminal() {
        return text.to_owned();
    }
    let columns = terminal_columns();
    let lines = text.split('\n').flat_map(|line| wrap_line(line, columns, &indent_of(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the indentation of the lines that continue this one: its blanks, and the bar of quoted
/// output.
fn indent_of(line: &str) -> String {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let bar = if line[blanks..].starts_with("| ") { "| " } else { "  " };
    format!("{}{bar}", &line[..blanks])
}

/// Wraps one line. A word is broken only if it is wider than a line. Colours take no columns.
pub(crate) fn wrap_line(line: &str, columns: usize, indent: &str) -> Vec<String> {
    let room = columns.max(MIN_COLUMNS) - 1;
    let (mut lines, mut last) = (Vec::new(), UnfinishedLine::default());
    let mut is_colour = false;
    for c in line.chars() {
        let width = if c == '\u{1b}' || is_colour { 0 } else { char_columns(c) };
        is_colour = c == '\u{1b}' || is_colour && c != 'm';
        if last.columns + width > room && c != ' ' {
            lines.push(last.break_off(indent));
        }
        last.push(c, width, is_colour);
    }
    lines.push(last.text);
    lines
}

/// Cuts a line to a number of columns. A cut is marked with `…`.
pub(crate) fn cut_line(line: &str, columns: usize) -> String {
    if columns_of(line) <= columns {
        return line.to_owned();
    }
    let (mut cut, mut used) = (String::new(), 1);
    for c in line.chars() {
        used += char_columns(c);
        if used > columns {
            break;
        }
        cut.push(c);
    }
    format!("{cut}…")
}

/// Returns the number of columns of a text without colours.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    if c == '\t' { TAB_COLUMNS } else { c.width().unwrap_or(0) }
}

/// A line that is being filled.
#[derive(Default)]
struct UnfinishedLine {
    text: String,
    columns: usize,
    /// The last place for a break: its byte, and the columns before it.
    break_at: Option<(usize, usize)>,
}

impl UnfinishedLine {
    fn push(&mut self, c: char, width: usize, is_colour: bool) {
        // Scripts with wide characters have no blanks between words.
        if width == 2 && !self.text.trim().is_empty() {
            self.break_at = Some((self.text.len(), self.columns));
        }
        self.text.push(c);
        self.columns += width;
        let is_blank = c == ' ' && !is_colour && !self.text.trim().is_empty();
        if is_blank || width == 2 {
            self.break_at = Some((self.text.len(), self.columns));
        }
    }

    /// Returns what is before the break. The rest is the beginning of the next line.
    fn break_off(&mut self, indent: &str) -> String {
        let (at, columns) = self.break_at.take().unwrap_or((self.text.len(), self.columns));
        let rest = self.text.split_off(at);
        let rest_columns = self.columns - columns;
        let done = std::mem::replace(&mut self.text, format!("{indent}{rest}"));
        self.columns = columns_of(indent) + rest_columns;
        done.trim_end_matches(' ').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_fit() {
        let text = "  | the quick brown fox jumps over the lazy dog and goes on to somewhere else";
        for columns in [30, 60, 80, 120] {
            let lines = wrap_line(text, columns, &indent_of(text));
            assert!(lines.iter().all(|line| columns_of(line) < columns && line.starts_with("  | ")));
            let words: Vec<_> = lines.iter().flat_map(|line| line[4..].split(' ')).collect();
            assert_eq!(words, text[4..].split(' ').collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_word_wider_than_the_line_is_broken_and_wide_characters_break_anywhere() {
        assert_eq!(wrap_line(&"a".repeat(50), 31, "  "), ["a".repeat(30), format!("  {}", "a".repeat(20))]);
        let wide = wrap_line(&"文".repeat(20), 31, "");
        assert_eq!(wide, ["文".repeat(15), "文".repeat(5)]);
    }

    #[test]
    fn colours_take_no_columns() {
        let coloured = format!("\u{1b}[31m{}\u{1b}[0m {}", "a".repeat(20), "b".repeat(9));
        assert_eq!(wrap_line(&coloured, 31, ""), [coloured.as_str()]);
    }

    #[test]
    fn a_cut_is_marked_and_fits() {
        assert_eq!(cut_line("abcdef", 6), "abcdef");
        assert_eq!(cut_line("abcdef", 5), "abcd…");
        assert_eq!(cut_line("文文文", 4), "文…");
    }
}
