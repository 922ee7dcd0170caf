//! The backend that draws, with its own knowledge of the cursor and of the size.

use std::io::{self, Stdout};

use crossterm::{cursor::MoveTo, queue, terminal::Clear};
use ratatui::{
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

/// The size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size::new(80, 24);

/// Returns the size of the terminal.
pub(super) fn size() -> Size {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(reported) => known_size(reported.ws_col, reported.ws_row),
        Err(_) => DEFAULT_SIZE,
    }
}

/// Maximum number of columns and rows that are used. A cell takes memory.
const MAX_SIDE: u16 = 1000;

/// A size of zero is that of a serial line, or of a terminal whose program did not set it.
fn known_size(columns: u16, rows: u16) -> Size {
    let known = |reported: u16, default: u16| if reported == 0 { default } else { reported.min(MAX_SIDE) };
    Size::new(known(columns, DEFAULT_SIZE.width), known(rows, DEFAULT_SIZE.height))
}

/// A backend that knows where its cursor was put, instead of asking the terminal: the answer would
/// come in between the keys, which another thread reads.
pub(super) struct TrackedBackend {
    inner: CrosstermBackend<Stdout>,
    cursor: Position,
    /// Set while whole rows are drawn, and not only the cells that changed.
    pub(super) draws_rows: bool,
}

impl TrackedBackend {
    /// Creates a backend whose cursor is there.
    pub(super) fn new(cursor: Position) -> Self {
        Self { inner: CrosstermBackend::new(io::stdout()), cursor, draws_rows: false }
    }
}

/// Returns the cells of whole rows that must be drawn if the rows are cleared before. Those behind
/// a wide character are not: a blank there would move the rest of the row. Blanks at the end of a
/// row are not either: the terminal would wrap them when it becomes narrower, and copy them with
/// the text.
fn drawn_cells<'a>(cells: impl Iterator<Item = (u16, u16, &'a Cell)>) -> Vec<(u16, u16, &'a Cell)> {
    let mut drawn: Vec<(u16, u16, &'a Cell)> = Vec::new();
    let (mut row, mut end, mut kept) = (None, 0, 0);
    for (x, y, cell) in cells {
        if row != Some(y) {
            drawn.truncate(kept);
            (row, end) = (Some(y), 0);
        }
        if x < end {
            continue;
        }
        end = x.saturating_add(u16::try_from(cell.symbol().width()).unwrap_or(1).max(1));
        drawn.push((x, y, cell));
        if !is_blank(cell) {
            kept = drawn.len();
        }
    }
    drawn.truncate(kept);
    drawn
}

fn is_blank(cell: &Cell) -> bool {
    let visible = Modifier::REVERSED | Modifier::UNDERLINED | Modifier::CROSSED_OUT;
    cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(visible)
}

impl Backend for TrackedBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        if !self.draws_rows {
            return self.inner.draw(content);
        }
        let cells: Vec<_> = content.collect();
        let mut stdout = io::stdout();
        for (_, row, _) in cells.iter().filter(|(column, ..)| *column == 0) {
            queue!(stdout, MoveTo(0, *row), Clear(crossterm::terminal::ClearType::UntilNewLine))?;
        }
        self.inner.draw(drawn_cells(cells.into_iter()).into_iter())
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        let last = self.size()?.height.saturating_sub(1);
        self.cursor.y = self.cursor.y.saturating_add(count).min(last);
        self.inner.append_lines(count)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        // An error would be printed when the terminal is dropped, and printing to a terminal that
        // is gone panics.
        let _gone = self.inner.show_cursor();
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        self.inner.set_cursor_position(self.cursor)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.inner.clear_region(clear_type)
    }

    fn size(&self) -> io::Result<Size> {
        Ok(size())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{buffer::Buffer, layout::Rect, text::Line, widgets::Widget};

    use super::*;

    #[test]
    fn rows_have_no_blanks_behind_wide_characters_and_none_at_their_end() {
        let area = Rect::new(0, 0, 12, 3);
        let mut buffer = Buffer::empty(area);
        Line::from("\u{4f60}\u{597d} a").render(area, &mut buffer);
        Line::from("  b").render(Rect { y: 2, height: 1, ..area }, &mut buffer);
        let cells = (0..3).flat_map(|y| (0..12).map(move |x| (x, y)));
        let drawn = drawn_cells(cells.map(|(x, y)| (x, y, &buffer[(x, y)])));
        let drawn: Vec<_> = drawn.into_iter().map(|(x, y, cell)| (x, y, cell.symbol())).collect();
        let expected = [
            (0, 0, "\u{4f60}"),
            (2, 0, "\u{597d}"),
            (4, 0, " "),
            (5, 0, "a"),
            (0, 2, " "),
            (1, 2, " "),
            (2, 2, "b"),
        ];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_size_of_zero_is_replaced() {
        assert_eq!(known_size(0, 0), DEFAULT_SIZE);
        assert_eq!(known_size(0, 3), Size::new(80, 3));
        assert_eq!(known_size(1, 1), Size::new(1, 1));
        assert_eq!(known_size(u16::MAX, u16::MAX), Size::new(MAX_SIDE, MAX_SIDE));
    }
}
