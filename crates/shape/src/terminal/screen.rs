//! The last rows of a screen, and the effect of control sequences on them.

use std::{collections::VecDeque, mem};

use super::is_hidden;

/// Maximum number of rows that can still change.
const MAX_ROWS: usize = 200;
/// Height of the screen for cursor positions.
const SCREEN_ROWS: usize = 24;
/// Maximum column the cursor can reach without printing.
const MAX_COLUMN: usize = 1024;
/// Maximum length of a row. A longer row becomes final and continues in the next one without a line
/// break.
const MAX_ROW_CHARS: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct TerminalScreen {
    done: String,
    rows: VecDeque<ScreenRow>,
    row: usize,
    column: usize,
    saved: (usize, usize),
    /// Rows and cursor of the primary screen while the alternate screen is active.
    primary_screen: Option<(VecDeque<ScreenRow>, usize, usize)>,
}

#[derive(Debug, Default, Clone)]
struct ScreenRow {
    cells: Vec<char>,
    /// True if spaces at the end may remain from an erase.
    edited: bool,
}

impl Default for TerminalScreen {
    fn default() -> Self {
        Self {
            done: String::new(),
            rows: VecDeque::from([ScreenRow::default()]),
            row: 0,
            column: 0,
            saved: (0, 0),
            primary_screen: None,
        }
    }
}

impl TerminalScreen {
    pub(super) fn print(&mut self, character: char) {
        if is_hidden(character) {
            // Spell out invisible characters, so that two texts that look alike remain distinct.
            format!("\\u{{{:x}}}", u32::from(character)).chars().for_each(|each| self.put(each));
        } else {
            self.put(character);
        }
    }

    fn put(&mut self, character: char) {
        if self.column >= MAX_ROW_CHARS {
            self.flush_row();
        }
        let column = self.column;
        let cells = &mut self.current().cells;
        if let Some(cell) = cells.get_mut(column) {
            *cell = character;
        } else {
            cells.resize(column, ' ');
            cells.push(character);
        }
        self.column += 1;
    }

    pub(super) fn control(&mut self, control: char) {
        match control {
            '\n' | '\u{b}' | '\u{c}' => self.line_feed(),
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => self.put('\t'),
            // The bell is not visible; shifts select a character set.
            '\u{7}' | '\u{e}' | '\u{f}' => {}
            '\u{7f}' => self.put('␡'),
            other => self.put(char::from_u32(0x2400 + u32::from(other)).unwrap_or('�')),
        }
    }

    pub(super) fn escape(&mut self, action: char) {
        match action {
            '7' => self.saved = (self.row, self.column),
            '8' => self.restore(),
            'D' | 'E' => self.line_feed(),
            'M' => self.row = self.row.saturating_sub(1),
            'c' => self.erase_screen(),
            _ => {}
        }
    }

    pub(super) fn csi(&mut self, action: char, numbers: [u16; 8], private: bool) {
        let first = usize::from(numbers[0]);
        let count = first.max(1);
        if private {
            match (action, first) {
                ('h', 47 | 1047 | 1049) => self.enter_alternate_screen(),
                ('l', 47 | 1047 | 1049) => self.leave_alternate_screen(),
                _ => {}
            }
            return;
        }
        match action {
            'A' => self.row = self.row.saturating_sub(count),
            'B' | 'e' => self.move_down(count),
            'C' | 'a' => self.column = self.column.max((self.column + count).min(MAX_COLUMN)),
            'D' => self.column = self.column.saturating_sub(count),
            'E' => {
                self.move_down(count);
                self.column = 0;
            }
            'F' => {
                self.row = self.row.saturating_sub(count);
                self.column = 0;
            }
            'G' | '`' => self.column = (count - 1).min(MAX_COLUMN),
            'H' | 'f' => {
                self.row = self.rows.len().saturating_sub(SCREEN_ROWS);
                self.move_down(count - 1);
                self.column = usize::from(numbers[1]).saturating_sub(1).min(MAX_COLUMN);
            }
            'J' if first == 0 => self.erase_below(),
            'J' if first >= 2 => self.erase_screen(),
            'K' => self.erase_in_row(first),
            'P' => self.delete(count),
            'X' => self.blank(self.column, self.column.saturating_add(count)),
            '@' => self.insert(count),
            's' => self.saved = (self.row, self.column),
            'u' => self.restore(),
            _ => {}
        }
    }

    /// Returns the rows that can no longer change.
    pub(super) fn take_final(&mut self) -> String {
        mem::take(&mut self.done)
    }

    pub(super) fn finish(mut self) -> String {
        // The cursor only moved to the rows below the last text.
        while self.rows.len() > self.row + 1 && self.rows.back().is_some_and(|row| row.cells.is_empty()) {
            self.rows.pop_back();
        }
        let last = self.rows.len() - 1;
        for (at, row) in self.rows.iter().enumerate() {
            row.write(&mut self.done);
            if at < last {
                self.done.push('\n');
            }
        }
        self.done
    }

    fn current(&mut self) -> &mut ScreenRow {
        while self.rows.len() <= self.row {
            self.rows.push_back(ScreenRow::default());
        }
        &mut self.rows[self.row]
    }

    fn line_feed(&mut self) {
        self.column = 0;
        self.row += 1;
        self.current();
        while self.rows.len() > MAX_ROWS {
            if let Some(row) = self.rows.pop_front() {
                row.write(&mut self.done);
                self.done.push('\n');
            }
            self.row = self.row.saturating_sub(1);
            self.saved.0 = self.saved.0.saturating_sub(1);
        }
    }

    /// Moves the cursor down. It stops at the lower edge; only line feeds add rows.
    fn move_down(&mut self, count: usize) {
        let screen = self.rows.len().saturating_sub(SCREEN_ROWS) + SCREEN_ROWS;
        self.row = (self.row + count).min(screen.max(self.rows.len()) - 1).min(MAX_ROWS - 1);
        self.current();
    }

    /// Makes all rows up to the overlong one final. That row continues without a line break.
    fn flush_row(&mut self) {
        let rest = self.rows.split_off(self.row + 1);
        let rows = mem::replace(&mut self.rows, rest);
        let last = rows.len() - 1;
        for (at, row) in rows.iter().enumerate() {
            row.write(&mut self.done);
            if at < last {
                self.done.push('\n');
            }
        }
        self.rows.push_front(ScreenRow::default());
        (self.row, self.column, self.saved) = (0, 0, (0, 0));
    }

    fn restore(&mut self) {
        (self.row, self.column) = self.saved;
        self.current();
    }

    fn erase_in_row(&mut self, which: usize) {
        let column = self.column;
        match which {
            0 => {
                let row = self.current();
                row.cells.truncate(column);
                row.edited = true;
            }
            1 => self.blank(0, column + 1),
            _ => {
                let row = self.current();
                row.cells.clear();
                row.edited = true;
            }
        }
    }

    fn erase_below(&mut self) {
        self.erase_in_row(0);
        self.rows.truncate(self.row + 1);
    }

    fn erase_screen(&mut self) {
        self.rows = VecDeque::from([ScreenRow::default()]);
        (self.row, self.column) = (0, 0);
    }

    fn blank(&mut self, from: usize, to: usize) {
        let row = self.current();
        row.cells.iter_mut().take(to).skip(from).for_each(|cell| *cell = ' ');
        row.edited = true;
    }

    fn delete(&mut self, count: usize) {
        let column = self.column;
        let row = self.current();
        let end = column.saturating_add(count).min(row.cells.len());
        if column < end {
            row.cells.drain(column..end);
            row.edited = true;
        }
    }

    fn insert(&mut self, count: usize) {
        let column = self.column;
        let row = self.current();
        if column < row.cells.len() && row.cells.len() < MAX_ROW_CHARS {
            let blanks = vec![' '; count.min(MAX_COLUMN)];
            row.cells.splice(column..column, blanks);
            row.edited = true;
        }
    }

    fn enter_alternate_screen(&mut self) {
        if self.primary_screen.is_none() {
            let rows = mem::replace(&mut self.rows, VecDeque::from([ScreenRow::default()]));
            self.primary_screen = Some((rows, mem::take(&mut self.row), mem::take(&mut self.column)));
        }
    }

    fn leave_alternate_screen(&mut self) {
        if let Some((rows, row, column)) = self.primary_screen.take() {
            (self.rows, self.row, self.column) = (rows, row, column);
        }
    }
}

impl ScreenRow {
    fn write(&self, out: &mut String) {
        let end = if self.edited {
            self.cells.iter().rposition(|cell| *cell != ' ').map_or(0, |last| last + 1)
        } else {
            self.cells.len()
        };
        out.extend(&self.cells[..end]);
    }
}
