//! The terminal: modes, keys, and where the picture goes. The only module that names crossterm.

use std::{
    io::{self, Stdout, Write},
    panic,
    sync::{
        Once,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use crossterm::{
    cursor, event,
    event::{EventStream, KeyboardEnhancementFlags},
    execute, terminal,
};
use futures_util::StreamExt;
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport,
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Rect, Size},
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};
use ratatui_textarea::{Input, Key};

use crate::{app::fitting_height, session::Display, text_lines::draw_finished};

/// Something from the terminal.
#[derive(Debug)]
pub(crate) enum TerminalEvent {
    Key(Input),
    Paste(String),
    Resized,
}

/// Maximum number of lines that are inserted at once.
const MAX_INSERTED_LINES: usize = 200;

/// The modes that are on, for the one place that switches them off: 0 for none. A panic or a signal
/// has no access to anything else.
static MODES: AtomicU8 = AtomicU8::new(0);
const RAW: u8 = 1;
const KEYBOARD: u8 = 2;
const ALTERNATE: u8 = 4;

/// A terminal in the modes of a session. They end when it is dropped.
pub(crate) struct Screen {
    terminal: Terminal<TrackedBackend>,
    display: Display,
    height: u16,
    size: Size,
    /// In full screen: the finished lines, of which the last are drawn.
    kept: Vec<Line<'static>>,
}

/// Maximum number of finished lines that are kept in full screen.
const MAX_KEPT_LINES: usize = 10_000;

impl Screen {
    /// Switches the terminal to the modes of a session.
    pub(crate) fn open(display: Display) -> io::Result<Self> {
        restore_on_panic();
        let guard = ModesGuard;
        enter(display)?;
        let (width, rows) = terminal::size()?;
        let size = Size::new(width, rows);
        let row = match display {
            Display::Inline => start_row(rows),
            Display::Fullscreen => 0,
        };
        let height = 3;
        let terminal = new_terminal(display, height, row)?;
        std::mem::forget(guard);
        Ok(Self { terminal, display, height, size, kept: Vec::new() })
    }

    pub(crate) fn width(&self) -> u16 {
        self.size.width
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
                self.kept.extend(finished);
                let over = self.kept.len().saturating_sub(MAX_KEPT_LINES);
                self.kept.drain(..over);
                self.draw_all(height, view)?;
            }
        }
        Ok(())
    }

    /// Rings the bell, which terminals show as a notification.
    pub(crate) fn ring() -> io::Result<()> {
        let mut stdout = io::stdout();
        stdout.write_all(b"\x07")?;
        stdout.flush()
    }

    fn draw_all(&mut self, height: u16, view: impl FnOnce(&mut Frame<'_>, Rect)) -> io::Result<()> {
        let screen = Rect::from((Position::ORIGIN, self.size));
        let height = fitting_height(height, screen);
        let above = screen.height - height;
        let first = self.kept.len().saturating_sub(above.into());
        let kept = Paragraph::new(self.kept[first..].to_vec());
        self.terminal.draw(|frame| {
            frame.render_widget(kept, Rect { height: above, ..screen });
            view(frame, Rect { y: above, height, ..screen });
        })?;
        Ok(())
    }

    fn insert(&mut self, mut lines: Vec<Line<'static>>) -> io::Result<()> {
        while !lines.is_empty() {
            let rest = lines.split_off(lines.len().min(MAX_INSERTED_LINES));
            let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
            self.terminal.insert_before(count, |buffer| draw_finished(lines, buffer))?;
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
        let (width, rows) = terminal::size()?;
        self.size = Size::new(width, rows);
        if self.display == Display::Fullscreen {
            return Ok(());
        }
        let height = fitting_height(self.height, Rect::new(0, 0, width, rows));
        let top = cursor::position().map_or(self.top(), |(_, row)| row).min(rows.saturating_sub(1));
        self.begin_at(top, height)
    }

    /// Gives the terminal back while something else uses it. Events must be paused.
    pub(crate) fn lend<T>(&mut self, use_it: impl FnOnce() -> T) -> io::Result<T> {
        self.leave_picture()?;
        restore();
        let result = use_it();
        enter(self.display)?;
        self.resize_after_loan()?;
        Ok(result)
    }

    fn resize_after_loan(&mut self) -> io::Result<()> {
        let (width, rows) = terminal::size()?;
        self.size = Size::new(width, rows);
        let row = start_row(rows);
        self.terminal = new_terminal(self.display, self.height, row)?;
        self.terminal.clear()
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
fn start_row(rows: u16) -> u16 {
    let last = rows.saturating_sub(1);
    match cursor::position() {
        Ok((0, row)) => row.min(last),
        Ok((_, row)) if row < last => row + 1,
        // There is no free row, or the terminal does not tell: make one at its end.
        _ => {
            let mut stdout = io::stdout();
            // If it cannot be written, drawing reports it.
            let _gone = stdout.write_all(b"\r\n").and_then(|()| stdout.flush());
            last
        }
    }
}

fn new_terminal(display: Display, height: u16, row: u16) -> io::Result<Terminal<TrackedBackend>> {
    let backend =
        TrackedBackend { inner: CrosstermBackend::new(io::stdout()), cursor: Position::new(0, row) };
    let viewport = match display {
        Display::Inline => Viewport::Inline(height),
        Display::Fullscreen => Viewport::Fullscreen,
    };
    let mut backend = backend;
    backend.set_cursor_position(Position::new(0, row))?;
    Terminal::with_options(backend, TerminalOptions { viewport })
}

fn enter(display: Display) -> io::Result<()> {
    terminal::enable_raw_mode()?;
    MODES.store(RAW, Ordering::SeqCst);
    let mut stdout = io::stdout();
    execute!(stdout, event::EnableBracketedPaste)?;
    // Terminals that do not know it ignore it. It tells Shift-Enter from Enter.
    let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
    execute!(stdout, event::PushKeyboardEnhancementFlags(flags))?;
    MODES.fetch_or(KEYBOARD, Ordering::SeqCst);
    if display == Display::Fullscreen {
        MODES.fetch_or(ALTERNATE, Ordering::SeqCst);
        execute!(stdout, terminal::EnterAlternateScreen)?;
    }
    Ok(())
}

/// Switches off all modes that are on. May be called at any time, and more than once.
fn restore() {
    let modes = MODES.swap(0, Ordering::SeqCst);
    let mut stdout = io::stdout();
    // Each step is tried even if another fails: the terminal may be gone.
    if modes & KEYBOARD != 0 {
        let _gone = execute!(stdout, event::PopKeyboardEnhancementFlags);
    }
    if modes & ALTERNATE != 0 {
        let _gone = execute!(stdout, terminal::LeaveAlternateScreen);
    }
    if modes & RAW != 0 {
        let _gone = execute!(stdout, event::DisableBracketedPaste, cursor::Show);
        let _gone = terminal::disable_raw_mode();
    }
}

/// A panic is reported on a terminal that shows it.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A tool that panics ends its call, not the session. Only the thread that draws has the
            // terminal.
            if std::thread::current().name() == Some("main") {
                restore();
            }
            report(info);
        }));
    });
}

/// Keys, pasted texts and changes of size. They are read by another thread, which must not run
/// while the terminal is asked something or lent.
pub(crate) struct TerminalEvents(Option<EventStream>);

impl std::fmt::Debug for TerminalEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TerminalEvents").finish_non_exhaustive()
    }
}

impl TerminalEvents {
    pub(crate) fn open() -> Self {
        Self(Some(EventStream::new()))
    }

    /// Does something while no other thread reads from the terminal.
    pub(crate) fn paused<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.0 = None;
        // Closing the stream wakes its thread. If that was idle, the wake-up is left for whatever
        // reads next, which would take it for a terminal that does not answer.
        let _woken = event::poll(Duration::ZERO);
        let result = work();
        self.0 = Some(EventStream::new());
        result
    }

    /// Waits for the next event. There is none after the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<io::Result<TerminalEvent>> {
        loop {
            let event = match self.0.as_mut()?.next().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            match event {
                event::Event::Key(key) if key.kind != event::KeyEventKind::Release => {
                    return Some(Ok(TerminalEvent::Key(key.into())));
                }
                event::Event::Paste(text) => return Some(Ok(TerminalEvent::Paste(text))),
                event::Event::Resize(..) => return Some(Ok(TerminalEvent::Resized)),
                _ => {}
            }
        }
    }
}

/// Lets the person choose one of several lines. Returns `None` if they went back.
pub fn pick(title: &str, choices: &[String]) -> io::Result<Option<usize>> {
    let mut screen = Screen::open(Display::Inline)?;
    let mut selected = 0;
    let rows = u16::try_from(choices.len()).unwrap_or(u16::MAX).saturating_add(1);
    loop {
        let room = usize::from(fitting_height(rows, Rect::from((Position::ORIGIN, screen.size)))) - 1;
        let first = (selected + 1_usize).saturating_sub(room);
        let line = |(number, text): (usize, &String)| {
            let style =
                if number == selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            Line::styled(format!("  {text}"), style)
        };
        let shown = choices.iter().enumerate().skip(first).take(room).map(line);
        let lines: Vec<_> = std::iter::once(Line::from(title.to_owned())).chain(shown).collect();
        screen.draw(Vec::new(), rows, |frame, area| frame.render_widget(Paragraph::new(lines), area))?;
        let input = match event::read()? {
            event::Event::Key(key) if key.kind != event::KeyEventKind::Release => Input::from(key),
            event::Event::Resize(..) => {
                screen.resize()?;
                continue;
            }
            _ => continue,
        };
        match input.key {
            Key::Up => selected = selected.saturating_sub(1),
            Key::Down => selected = (selected + 1).min(choices.len().saturating_sub(1)),
            Key::Enter => return Ok((selected < choices.len()).then_some(selected)),
            Key::Esc | Key::Char('q') => return Ok(None),
            Key::Char('c') if input.ctrl => return Ok(None),
            _ => {}
        }
    }
}

/// A backend that knows where its cursor was put, instead of asking the terminal: the answer would
/// come in between the keys, which another thread reads.
struct TrackedBackend {
    inner: CrosstermBackend<Stdout>,
    cursor: Position,
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
        self.inner.show_cursor()
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
        self.inner.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}
