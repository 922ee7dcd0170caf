//! Keys and other events of the terminal.

use std::{collections::VecDeque, io, time::Duration};

use crossterm::event::{self, EventStream, MouseEventKind};
use futures_util::StreamExt;
use ratatui_textarea::Input;

use super::query::LateReplyFilter;

/// Something from the terminal.
#[derive(Debug)]
pub(crate) enum TerminalEvent {
    Key(Input),
    Paste(String),
    /// The wheel of the mouse, by so many lines upwards.
    Scrolled(isize),
    Resized,
}

/// The number of lines of one step of the wheel, as most emulators scroll.
const WHEEL_LINES: isize = 3;

/// Keys, pasted texts and changes of size. They are read by another thread, which must not run
/// while the terminal is asked something or lent.
pub(crate) struct TerminalEvents {
    stream: Option<EventStream>,
    /// Keys that were typed before the stream was opened.
    typed: VecDeque<Input>,
    late: LateReplyFilter,
}

impl std::fmt::Debug for TerminalEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TerminalEvents").finish_non_exhaustive()
    }
}

impl TerminalEvents {
    /// Begins with these keys.
    pub(super) fn new(typed: Vec<Input>, late: LateReplyFilter) -> Self {
        Self { stream: Some(EventStream::new()), typed: typed.into(), late }
    }

    /// Does something while no other thread reads from the terminal.
    pub(crate) fn paused<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.stream = None;
        // Closing the stream wakes its thread. If that was idle, the wake-up is left for whatever
        // reads next, which would take it for a terminal that does not answer.
        let _woken = event::poll(Duration::ZERO);
        let result = work();
        self.stream = Some(EventStream::new());
        result
    }

    /// Waits for the next event. There is none after the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<io::Result<TerminalEvent>> {
        if let Some(key) = self.typed.pop_front() {
            return Some(Ok(TerminalEvent::Key(key)));
        }
        loop {
            let event = match self.stream.as_mut()?.next().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            match event {
                event::Event::Key(key) if key.kind != event::KeyEventKind::Release => {
                    let key = key.into();
                    if !self.late.takes(&key) {
                        return Some(Ok(TerminalEvent::Key(key)));
                    }
                }
                event::Event::Paste(text) => return Some(Ok(TerminalEvent::Paste(text))),
                event::Event::Resize(..) => return Some(Ok(TerminalEvent::Resized)),
                event::Event::Mouse(mouse) => match mouse.kind {
                    MouseEventKind::ScrollUp => return Some(Ok(TerminalEvent::Scrolled(WHEEL_LINES))),
                    MouseEventKind::ScrollDown => return Some(Ok(TerminalEvent::Scrolled(-WHEEL_LINES))),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}
