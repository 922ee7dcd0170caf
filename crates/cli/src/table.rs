//! Tables: complete for programs, and no wider than the terminal for people.

use std::io;

use crate::{
    colour,
    wrap::{self, cut, width, wrap_words},
};

/// Maximum width of every column but the last, for programs. A longer cell sticks out.
const MAX_COLUMN_WIDTH: usize = 80;

/// Maximum width of every column but the last if there is not enough room for all.
const MAX_NARROW_WIDTH: usize = 20;

/// Minimum width of a column whose cells are wrapped.
const MIN_COLUMN_WIDTH: usize = 6;

/// Minimum width of the last column. Below it other columns are left out, or the last one gets
/// lines of its own.
const MIN_LAST_WIDTH: usize = 16;

/// Columns between two columns.
const GAP: usize = 2;

/// Columns with titles. The last one may have any width, if there is room.
pub(crate) struct TextTable<'a, const N: usize> {
    /// If all are empty, the table is a list without a title line.
    pub(crate) titles: [&'a str; N],
    /// Columns that may be left out if there is no room, in this order.
    pub(crate) expendable: &'a [&'a str],
    pub(crate) last: LastColumn,
    pub(crate) rows: Vec<[String; N]>,
}

/// The treatment of a last cell that is wider than its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastColumn {
    /// It is wrapped: all of it matters.
    Wrapped,
    /// It is cut to one line: its beginning tells enough.
    Cut,
}

/// The columns that are shown, and their widths.
struct TableLayout {
    /// The index and width of each column but the last.
    columns: Vec<(usize, usize)>,
    /// The width of the last column.
    last: usize,
    /// The last column has lines of its own.
    is_stacked: bool,
}

impl<const N: usize> TextTable<'_, N> {
    /// Formats the table for stdout.
    pub(crate) fn text(&self) -> String {
        let mut lines = wrap::stdout_columns().map_or_else(|| self.complete(), |columns| self.lines(columns));
        if let Some(head) =
            lines.first_mut().filter(|_| self.has_titles() && colour::is_wanted(&io::stdout()))
        {
            *head = format!("\x1b[1m{}\x1b[0m\n", head.trim_end());
        }
        lines.concat()
    }

    /// Returns all cells, for programs and files.
    fn complete(&self) -> Vec<String> {
        let widths: Vec<_> = (0..N).map(|column| self.natural(column).min(MAX_COLUMN_WIDTH)).collect();
        let line = |cells: [&str; N]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| padded(cell, *width));
            format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
        };
        let rows = self.rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
        self.has_titles().then(|| line(self.titles)).into_iter().chain(rows).collect()
    }

    /// Returns the lines, the titles first, each at most this wide.
    fn lines(&self, room: usize) -> Vec<String> {
        let layout = self.layout(room);
        let mut lines = Vec::new();
        if self.has_titles() {
            lines.extend(self.row(self.titles, &layout));
        }
        for row in &self.rows {
            lines.extend(self.row(row.each_ref().map(String::as_str), &layout));
        }
        lines
    }

    fn layout(&self, room: usize) -> TableLayout {
        let has_cells =
            |column: &usize| !self.has_titles() || self.rows.iter().any(|row| !row[*column].is_empty());
        let mut columns: Vec<_> =
            (0..N.saturating_sub(1)).filter(has_cells).map(|column| (column, self.natural(column))).collect();
        let natural = self.natural(N.saturating_sub(1));
        let min_last = natural.min(MIN_LAST_WIDTH);
        let left =
            |columns: &[(usize, usize)]| room.checked_sub(columns.iter().map(|(_, width)| width + GAP).sum());
        if left(&columns).is_none_or(|left| left < natural) {
            for (_, width) in &mut columns {
                *width = (*width).min(MAX_NARROW_WIDTH);
            }
        }
        for title in self.expendable {
            if left(&columns).is_none_or(|left| left < min_last) {
                columns.retain(|(column, _)| self.titles[*column] != *title);
            }
        }
        let is_stacked = left(&columns).is_none_or(|left| left < min_last);
        // The last of the others needs no gap after it then.
        let others = room + if is_stacked { GAP } else { 0 };
        while columns.iter().map(|(_, width)| width + GAP).sum::<usize>() > others {
            // Break no word while another column has room to give.
            let spare = |(column, width): &&mut (usize, usize)| *width > self.longest_word(*column);
            let widest = columns.iter_mut().filter(spare).max_by_key(|(_, width)| *width);
            if let Some((_, width)) = widest {
                *width -= 1;
                continue;
            }
            let widest = columns.iter_mut().max_by_key(|(_, width)| *width);
            match widest.filter(|(_, width)| *width > MIN_COLUMN_WIDTH) {
                Some((_, width)) => *width -= 1,
                None => break,
            }
        }
        let last = if is_stacked { room.saturating_sub(GAP) } else { left(&columns).unwrap_or(min_last) };
        TableLayout { columns, last, is_stacked }
    }

    /// Formats the lines of a row.
    fn row(&self, cells: [&str; N], layout: &TableLayout) -> Vec<String> {
        let mut wrapped: Vec<_> = layout
            .columns
            .iter()
            .map(|(column, width)| (wrap_words(cells[*column], *width), *width))
            .collect();
        let text = cells.last().copied().unwrap_or_default();
        let last = match self.last {
            LastColumn::Wrapped => wrap_words(text, layout.last),
            LastColumn::Cut => vec![cut(text, layout.last)],
        };
        let mut below = Vec::new();
        if layout.is_stacked {
            below = last;
        } else {
            wrapped.push((last, 0));
        }
        let height = wrapped.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
        let line = |at: usize| {
            let cells =
                wrapped.iter().map(|(lines, width)| padded(lines.get(at).map_or("", String::as_str), *width));
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        let below = below.iter().filter(|line| !line.is_empty()).map(|line| format!("  {line}\n"));
        (0..height).map(line).chain(below).collect()
    }

    /// Returns the width that a column needs.
    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| width(&row[column]));
        cells.chain([width(self.titles[column])]).max().unwrap_or(0)
    }

    /// Returns the width of the longest word of a column that can stay whole.
    fn longest_word(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].as_str()).chain([self.titles[column]]);
        let words = cells.flat_map(|cell| cell.split(' ')).map(width);
        words.filter(|width| *width <= MAX_NARROW_WIDTH).max().unwrap_or(0).max(MIN_COLUMN_WIDTH)
    }

    fn has_titles(&self) -> bool {
        self.titles.iter().any(|title| !title.is_empty())
    }
}

fn padded(cell: &str, columns: usize) -> String {
    format!("{cell}{}", " ".repeat(columns.saturating_sub(width(cell))))
}

/// Formats names with their values, one per line.
pub(crate) fn pairs(rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let rows = rows.into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
    TextTable { titles: [""; 2], expendable: &[], last: LastColumn::Wrapped, rows }.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(expendable: &'static [&'static str], last: LastColumn) -> TextTable<'static, 4> {
        let row = |name: &str, rest: &str| [name, "12", "2026-11-16T04:12:09Z", rest].map(str::to_owned);
        TextTable {
            titles: ["TOOL", "CALLS", "LAST", "MOSTLY"],
            expendable,
            last,
            rows: vec![row("shell_command", "exit code 1, and a long story about how it came to this")],
        }
    }

    #[test]
    fn a_table_is_as_wide_as_there_is_room() {
        let lines = |room| table(&["LAST", "CALLS"], LastColumn::Cut).lines(room);
        let complete = table(&[], LastColumn::Cut).complete().concat();
        assert!(complete.ends_with("came to this\n"), "{complete}");
        assert_eq!(
            lines(80),
            [
                "TOOL           CALLS  LAST                  MOSTLY\n",
                "shell_command  12     2026-11-16T04:12:09Z  exit code 1, and a long story about…\n"
            ]
        );
        assert_eq!(lines(58)[1], "shell_command  12     exit code 1, and a long story about…\n");
        assert_eq!(lines(36)[1], "shell_command  exit code 1, and a…\n");
        for room in 24..130 {
            for last in [LastColumn::Cut, LastColumn::Wrapped] {
                for expendable in [&["LAST", "CALLS"][..], &[]] {
                    let lines = table(expendable, last).lines(room);
                    assert!(lines.iter().all(|line| width(line.trim_end()) <= room), "{room}: {lines:?}");
                }
            }
        }
    }

    #[test]
    fn a_last_column_without_room_has_lines_of_its_own() {
        assert_eq!(
            table(&[], LastColumn::Wrapped).lines(50),
            [
                "TOOL           CALLS  LAST\n",
                "  MOSTLY\n",
                "shell_command  12     2026-11-16T04:12:09Z\n",
                "  exit code 1, and a long story about how it came\n",
                "  to this\n"
            ]
        );
    }

    #[test]
    fn no_word_is_broken_while_another_column_has_room() {
        let row =
            |status: &'static str| ["26c1f00d", "11-16 04:12Z", "shell_command", status, "1 min 59 s", "ls"];
        let rows = [row("command not found"), row("exit code 3, rated good")];
        let rows = rows.map(|row| row.map(str::to_owned)).to_vec();
        let titles = ["CALL", "TIME", "TOOL", "STATUS", "TOOK", "INPUT"];
        let table = TextTable { titles, expendable: &[], last: LastColumn::Cut, rows };
        for room in [50, 60, 80] {
            let lines = table.lines(room);
            let names = lines.iter().filter(|line| line.contains("shell_command")).count();
            assert_eq!(names, 2, "{room}: {lines:#?}");
        }
    }

    #[test]
    fn a_character_as_wide_as_two_takes_the_room_of_two() {
        let row = |name: &str, said: &str| [name, said].map(str::to_owned);
        let table = TextTable {
            titles: ["TOOL", "SAID"],
            expendable: &[],
            last: LastColumn::Cut,
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
