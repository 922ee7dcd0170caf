//! The backend that draws, with its own knowledge of the cursor and of the size.

use std::io::{self, Stdout};

use ratatui::{
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
};

/// The size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size::new(80, 24);

/// Returns the size of the terminal.
pub(super) fn size() -> Size {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(reported) => known_size(reported.ws_col, reported.ws_row),
        Err(_) => DEFAULT_SIZE,
    }
}

/// A size of zero is that of a serial line, or of a terminal whose program did not set it.
fn known_size(columns: u16, rows: u16) -> Size {
    let known = |reported: u16, default: u16| if reported == 0 { default } else { reported };
    Size::new(known(columns, DEFAULT_SIZE.width), known(rows, DEFAULT_SIZE.height))
}

/// A backend that knows where its cursor was put, instead of asking the terminal: the answer would
/// come in between the keys, which another thread reads.
pub(super) struct TrackedBackend {
    inner: CrosstermBackend<Stdout>,
    cursor: Position,
}

impl TrackedBackend {
    /// Creates a backend whose cursor is there.
    pub(super) fn new(cursor: Position) -> Self {
        Self { inner: CrosstermBackend::new(io::stdout()), cursor }
    }
}

impl Backend for TrackedBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        self.inner.draw(content)
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
    use super::*;

    #[test]
    fn a_size_of_zero_is_replaced() {
        assert_eq!(known_size(0, 0), DEFAULT_SIZE);
        assert_eq!(known_size(0, 3), Size::new(80, 3));
        assert_eq!(known_size(1, 1), Size::new(1, 1));
    }
}
