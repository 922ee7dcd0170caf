//! The terminal: modes, keys, and where the picture goes. The only module that names crossterm.

mod backend;
mod events;
mod modes;
mod query;
mod scrollback;

use std::{
    collections::VecDeque,
    io::{self, Write},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use crossterm::{cursor, event};
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport,
    backend::{Backend, ClearType},
    layout::{Position, Rect, Size},
    text::Line,
    widgets::{Paragraph, Widget},
};
use ratatui_textarea::{Input, Key};

use self::{
    backend::{TrackedBackend, size},
    modes::{enter, enter_raw, restore, restore_on_panic},
    query::LateReplyFilter,
    scrollback::Scrollback,
};
pub(crate) use self::{
    events::{TerminalEvent, TerminalEvents},
    modes::{discard_unread, is_lent_to_program, lent_to_program, restore_without_waiting},
};
use crate::{
    app::fitting_height,
    end_watch::{EndProcess, EndWatch},
    pick_list::{PickEnd, PickList},
    session::Display,
};

/// Asks the terminal to put a text on the clipboard (OSC 52). It does not answer.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    write!(stdout, "\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text))?;
    stdout.flush()
}

/// Returns the width of the terminal.
pub(crate) fn width() -> u16 {
    size().width
}

/// Maximum number of lines that are inserted at once.
const MAX_INSERTED_LINES: usize = 200;

/// A terminal in the modes of a session. They end when it is dropped.
pub(crate) struct Screen {
    terminal: Terminal<TrackedBackend>,
    display: Display,
    height: u16,
    size: Size,
    /// In full screen: the finished lines.
    kept: Scrollback,
    /// Set if the terminal tells where its cursor is.
    answers: bool,
    has_light_background: Option<bool>,
    /// Keys that were typed while it was opened.
    typed: Vec<Input>,
    late: LateReplyFilter,
}

impl Screen {
    /// Returns the number of rows of the terminal.
    pub(crate) fn rows(&self) -> u16 {
        self.size.height
    }

    /// Switches the terminal to the modes of a session. It may be asked for its background.
    pub(crate) fn open(display: Display, wants_background: bool) -> io::Result<Self> {
        restore_on_panic();
        let guard = ModesGuard;
        enter_raw()?;
        let reply = query::ask(wants_background)?;
        let answers = reply.cursor.is_some();
        let size = size();
        let row = match display {
            Display::Inline => free_row(reply.cursor, size.height),
            Display::Fullscreen => 0,
        };
        enter(display)?;
        let height = fitting_height(3, Rect::from((Position::ORIGIN, size)));
        let terminal = new_terminal(display, height, row)?;
        std::mem::forget(guard);
        Ok(Self {
            terminal,
            display,
            height,
            size,
            kept: Scrollback::default(),
            answers,
            has_light_background: reply.has_light_background,
            typed: reply.typed,
            late: LateReplyFilter::new(wants_background && !answers),
        })
    }

    pub(crate) fn width(&self) -> u16 {
        self.size.width
    }

    /// Returns true if the terminal said that its background is light.
    pub(crate) fn has_light_background(&self) -> Option<bool> {
        self.has_light_background
    }

    /// Opens the stream of events. They begin with the keys that were typed already.
    pub(crate) fn events(&mut self) -> TerminalEvents {
        TerminalEvents::new(std::mem::take(&mut self.typed), std::mem::take(&mut self.late))
    }

    /// Scrolls if the key is for that. Any other key shows the end again.
    pub(crate) fn scrolls_by(&mut self, key: &Input) -> bool {
        if self.display == Display::Inline {
            return false;
        }
        let page = isize::try_from(self.size.height / 2).unwrap_or(1).max(1);
        match key.key {
            Key::PageUp => self.kept.scroll(page),
            Key::PageDown => self.kept.scroll(-page),
            Key::End => return self.kept.show_end(),
            _ => {
                self.kept.show_end();
                return false;
            }
        }
        true
    }

    /// Scrolls by so many lines upwards.
    pub(crate) fn scroll(&mut self, lines: isize) {
        self.kept.scroll(lines);
    }

    /// Draws: finished lines above, the picture below them.
    pub(crate) fn draw(
        &mut self,
        finished: Vec<Line<'static>>,
        height: u16,
        view: impl FnOnce(&mut Frame<'_>, Rect),
    ) -> io::Result<()> {
        match self.display {
            Display::Inline => {
                self.set_height(height)?;
                self.insert(finished)?;
                self.terminal.draw(|frame| view(frame, frame.area()))?;
                // The cursor is hidden. If the size of the terminal changes, it tells where the
                // picture has gone.
                let top = self.top();
                self.terminal.backend_mut().set_cursor_position(Position::new(0, top))?;
            }
            Display::Fullscreen => {
                self.kept.add(finished);
                self.draw_all(height, view)?;
            }
        }
        Ok(())
    }

    fn draw_all(&mut self, height: u16, view: impl FnOnce(&mut Frame<'_>, Rect)) -> io::Result<()> {
        let kept = &self.kept;
        self.terminal.draw(|frame| {
            // The terminal may have become smaller since the last event.
            let screen = frame.area();
            let height = fitting_height(height, screen).min(screen.height);
            let above = screen.height - height;
            let kept = Paragraph::new(kept.rows(screen.width, above));
            frame.render_widget(kept, Rect { height: above, ..screen });
            view(frame, Rect { y: above, height, ..screen });
        })?;
        Ok(())
    }

    fn insert(&mut self, mut lines: Vec<Line<'static>>) -> io::Result<()> {
        while !lines.is_empty() {
            let rest = lines.split_off(lines.len().min(MAX_INSERTED_LINES));
            let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
            self.terminal.backend_mut().draws_rows = true;
            let inserted = self
                .terminal
                .insert_before(count, |buffer| Paragraph::new(lines).render(buffer.area, buffer));
            self.terminal.backend_mut().draws_rows = false;
            inserted?;
            lines = rest;
        }
        Ok(())
    }

    /// Changes the height of the picture. It stays where it is, and the terminal scrolls if there
    /// is too little room below.
    fn set_height(&mut self, height: u16) -> io::Result<()> {
        let height = fitting_height(height, Rect::from((Position::ORIGIN, self.size)));
        if height == self.height {
            return Ok(());
        }
        let top = self.top();
        self.begin_at(top, height)
    }

    fn top(&mut self) -> u16 {
        self.terminal.get_frame().area().top()
    }

    fn begin_at(&mut self, top: u16, height: u16) -> io::Result<()> {
        let backend = self.terminal.backend_mut();
        backend.set_cursor_position(Position::new(0, top))?;
        backend.clear_region(ClearType::AfterCursor)?;
        self.terminal = new_terminal(self.display, height, top)?;
        self.height = height;
        Ok(())
    }

    /// Adapts to a new size of the terminal. Events must be paused.
    pub(crate) fn resize(&mut self) -> io::Result<()> {
        self.size = size();
        let rows = self.size.height;
        if self.display == Display::Fullscreen {
            return Ok(());
        }
        let height = fitting_height(self.height, Rect::from((Position::ORIGIN, self.size)));
        let top = self.cursor().map_or(self.top(), |cursor| cursor.y).min(rows.saturating_sub(1));
        self.begin_at(top, height)
    }

    /// Gives the terminal back while something else uses it. Events must be paused.
    pub(crate) fn lend<T>(&mut self, use_it: impl FnOnce() -> T) -> io::Result<T> {
        self.leave_picture()?;
        restore();
        let result = use_it();
        self.take_back()?;
        Ok(result)
    }

    /// Switches the modes on again after something else used the terminal, and begins a new picture
    /// below what that left. Events must be paused.
    pub(crate) fn take_back(&mut self) -> io::Result<()> {
        enter_raw()?;
        self.size = size();
        self.height = fitting_height(self.height, Rect::from((Position::ORIGIN, self.size)));
        let row = match self.display {
            Display::Inline => free_row(self.cursor(), self.size.height),
            Display::Fullscreen => 0,
        };
        enter(self.display)?;
        self.terminal = new_terminal(self.display, self.height, row)?;
        self.terminal.clear()
    }

    /// Asks the terminal where its cursor is, unless it did not answer before.
    fn cursor(&self) -> Option<Position> {
        self.answers.then(cursor::position)?.ok().map(Position::from)
    }

    /// Removes the picture, so that what follows begins in its place.
    fn leave_picture(&mut self) -> io::Result<()> {
        if self.display == Display::Inline {
            let top = self.top();
            let backend = self.terminal.backend_mut();
            backend.set_cursor_position(Position::new(0, top))?;
            backend.clear_region(ClearType::AfterCursor)?;
        }
        self.terminal.show_cursor()
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("display", &self.display).finish_non_exhaustive()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _gone = self.leave_picture();
        restore();
    }
}

/// Restores the terminal if opening it fails half way.
struct ModesGuard;

impl Drop for ModesGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns the first row that is free for a picture.
fn free_row(cursor: Option<Position>, rows: u16) -> u16 {
    let last = rows.saturating_sub(1);
    match cursor {
        Some(Position { x: 0, y }) => y.min(last),
        Some(Position { y, .. }) if y < last => y + 1,
        // There is no free row, or the terminal does not tell: make one at its end.
        _ => {
            let mut stdout = io::stdout();
            // If it cannot be written, drawing reports it.
            let _gone = stdout
                .write_all(
                    b"
",
                )
                .and_then(|()| stdout.flush());
            last
        }
    }
}

fn new_terminal(display: Display, height: u16, row: u16) -> io::Result<Terminal<TrackedBackend>> {
    let mut backend = TrackedBackend::new(Position::new(0, row));
    let viewport = match display {
        Display::Inline => Viewport::Inline(height),
        Display::Fullscreen => Viewport::Fullscreen,
    };
    backend.set_cursor_position(Position::new(0, row))?;
    Terminal::with_options(backend, TerminalOptions { viewport })
}

/// Lets the person choose one of several lines; typing narrows them. Returns `None` if they went
/// back. A signal, or a terminal that is gone, ends the process.
pub fn pick(title: &str, choices: &[String], end_process: EndProcess) -> io::Result<Option<usize>> {
    let _watch = EndWatch::start(None, end_process)?;
    let mut screen = Screen::open(Display::Inline, false)?;
    let mut typed = VecDeque::from(std::mem::take(&mut screen.typed));
    let mut list = PickList::new(title, choices);
    let rows = list.rows().max(2);
    loop {
        let room = fitting_height(rows, Rect::from((Position::ORIGIN, screen.size)));
        let lines = list.lines(room.into());
        screen.draw(Vec::new(), rows, |frame, area| frame.render_widget(Paragraph::new(lines), area))?;
        let input = match typed.pop_front() {
            Some(key) => key,
            None => match event::read()? {
                event::Event::Key(key) if key.kind != event::KeyEventKind::Release => Input::from(key),
                event::Event::Resize(..) => {
                    screen.resize()?;
                    continue;
                }
                _ => continue,
            },
        };
        match list.on_key(&input) {
            Some(PickEnd::Chosen(number)) => return Ok(Some(number)),
            Some(PickEnd::Left) => return Ok(None),
            None => {}
        }
    }
}
