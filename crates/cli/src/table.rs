//! Tables: complete for programs, and no wider than the terminal for people.

use std::io::{self, IsTerminal};

use unicode_width::UnicodeWidthChar;

use crate::colour;

/// Maximum width of every column but the last.
const MAX_COLUMN_WIDTH: usize = 80;

/// Minimum width of the last column, before other columns are left out for it.
const MIN_LAST_WIDTH: usize = 16;

/// Columns with titles. The last one may have any width, if there is room.
pub(crate) struct TextTable<'a, const N: usize> {
    /// If all are empty, the table is a list without a title line.
    pub(crate) titles: [&'a str; N],
    /// Columns that may be left out if there is no room, in this order.
    pub(crate) expendable: &'a [&'a str],
    pub(crate) rows: Vec<[String; N]>,
}

impl<const N: usize> TextTable<'_, N> {
    /// Formats the table for stdout.
    pub(crate) fn text(&self) -> String {
        if !io::stdout().is_terminal() {
            return self.lines(usize::MAX).concat();
        }
        let size = rustix::termios::tcgetwinsize(io::stdout());
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        let mut lines = self.lines(if columns == 0 { usize::MAX } else { columns });
        if let Some(head) =
            lines.first_mut().filter(|_| self.has_titles() && colour::is_wanted(&io::stdout()))
        {
            *head = format!("\x1b[1m{}\x1b[0m\n", head.trim_end());
        }
        lines.concat()
    }

    /// Returns the lines, the titles first, each at most this wide.
    fn lines(&self, room: usize) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| columns(&row[column]));
            cells.chain([columns(self.titles[column])]).max().unwrap_or(0)
        };
        let mut widths: Vec<_> = (0..N).map(|column| (column, width(column))).collect();
        for title in self.expendable {
            if needed(&widths) > room {
                widths.retain(|(column, _)| self.titles[*column] != *title);
            }
        }
        let before = needed(&widths) - widths.last().map_or(0, |(_, width)| MIN_LAST_WIDTH.min(*width));
        let last = room.saturating_sub(before).max(MIN_LAST_WIDTH);
        let line = |cells: [&str; N]| {
            let cell = |(at, (column, width)): (usize, &(usize, usize))| {
                if at + 1 == widths.len() {
                    return shortened(cells[*column], last);
                }
                // A longer cell sticks out; padding all others to its width would make them
                // unreadable.
                let missing = (*width).min(MAX_COLUMN_WIDTH).saturating_sub(columns(cells[*column]));
                format!("{}{}", cells[*column], " ".repeat(missing))
            };
            let cells: Vec<_> = widths.iter().enumerate().map(cell).collect();
            format!("{}\n", cells.join("  ").trim_end())
        };
        let rows = self.rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
        let titles = self.has_titles().then(|| line(self.titles));
        titles.into_iter().chain(rows).collect()
    }

    fn has_titles(&self) -> bool {
        self.titles.iter().any(|title| !title.is_empty())
    }
}

/// Returns the width that columns need, with the minimum for the last one.
fn needed(widths: &[(usize, usize)]) -> usize {
    let all = widths.iter().enumerate().map(|(at, (_, width))| {
        let most = if at + 1 == widths.len() { MIN_LAST_WIDTH } else { MAX_COLUMN_WIDTH };
        (*width).min(most)
    });
    all.sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

fn shortened(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let fits = |each: &char| room.checked_sub(wide(*each)).map(|left| room = left).is_some();
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Returns the width of a text in terminal cells: a Chinese character takes two, a combining accent
/// none.
fn columns(text: &str) -> usize {
    text.chars().map(wide).sum()
}

fn wide(character: char) -> usize {
    character.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(room: usize) -> Vec<String> {
        let row = |name: &str, rest: &str| [name, "12", "2026-11-16T04:12:09Z", rest].map(str::to_owned);
        TextTable {
            titles: ["TOOL", "CALLS", "LAST", "MOSTLY"],
            expendable: &["LAST", "CALLS"],
            rows: vec![row("shell_command", "exit code 1, and a long story about how it came to this")],
        }
        .lines(room)
    }

    #[test]
    fn a_table_is_as_wide_as_there_is_room() {
        assert!(lines(usize::MAX)[1].ends_with("came to this\n"));
        assert_eq!(
            lines(80),
            [
                "TOOL           CALLS  LAST                  MOSTLY\n",
                "shell_command  12     2026-11-16T04:12:09Z  exit code 1, and a long story about…\n"
            ]
        );
        assert_eq!(lines(58)[1], "shell_command  12     exit code 1, and a long story about…\n");
        assert_eq!(lines(36)[1], "shell_command  exit code 1, and a l…\n");
        for room in [40, 60, 80, 120] {
            assert!(lines(room).iter().all(|line| line.trim_end().chars().count() <= room), "{room}");
        }
    }

    #[test]
    fn a_character_as_wide_as_two_takes_the_room_of_two() {
        let row = |name: &str, said: &str| [name, said].map(str::to_owned);
        let table = TextTable {
            titles: ["TOOL", "SAID"],
            expendable: &[],
            rows: vec![row("读文件", "把所有的文件都读一遍然后告诉我"), row("read", "as before")],
        };
        assert_eq!(
            table.lines(25),
            ["TOOL    SAID\n", "读文件  把所有的文件都读…\n", "read    as before\n"],
            "eight columns before it, and seventeen of which a wide character and the dots leave none"
        );
        assert_eq!(table.lines(24)[1], "读文件  把所有的文件都…\n", "no half of one");
    }
}
