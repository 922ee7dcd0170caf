//! Progress on stderr. On a terminal, the last lines show what runs now and are redrawn in place;
//! elsewhere, there are only finished lines.

use std::{
    io::{self, IsTerminal, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use windlass::{CallId, duration_in_words};
use windlass_tui::render::visible::visible_prose;

use crate::{
    colour::is_dumb,
    wrap::{cut, live_columns, width, wrap_for_stderr},
};

/// The least time between two pictures of what runs now.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);

/// The time after which a wait is shown: a shorter one would only flicker.
const SHOWN_WAIT: Duration = Duration::from_secs(1);

/// Maximum number of running calls that are shown.
const MAX_RUNNING_LINES: usize = 8;

/// The terminal, or the file or pipe in its place.
pub(crate) struct ProgressTerminal {
    shared: Arc<SharedTerminal>,
    is_live: bool,
}

/// The picture and the thread that draws it. Only this thread writes to a terminal: one that hangs
/// must not hold up the calls.
#[derive(Default)]
struct SharedTerminal {
    state: Mutex<TerminalState>,
    changed: Condvar,
    written: Condvar,
}

#[derive(Default)]
struct TerminalState {
    /// Finished lines that are not written yet.
    pending: String,
    is_writing: bool,
    /// The last picture, which the next one replaces.
    drawn: Vec<String>,
    running: Vec<LiveCallLine>,
    /// The unfinished line of a text.
    partial: String,
    /// The pause before another request.
    pause_note: Option<String>,
    /// The beginning of a wait for the model, and its name.
    waiting: Option<(Instant, &'static str)>,
    /// A question is open.
    is_paused: bool,
    is_closed: bool,
}

struct LiveCallLine {
    id: CallId,
    title: String,
    began: Instant,
    last_output: String,
}

/// Stops progress until it is dropped.
pub(crate) struct ProgressPause<'a> {
    shared: &'a SharedTerminal,
}

impl ProgressTerminal {
    /// Uses stderr as it is.
    pub(crate) fn new() -> Self {
        let shared = Arc::new(SharedTerminal::default());
        let drawn = Arc::clone(&shared);
        let is_live = io::stderr().is_terminal() && !is_dumb() && {
            let thread = thread::Builder::new().name("windlass-progress".to_owned());
            thread.spawn(move || drawn.draw_until_closed()).is_ok()
        };
        Self { shared, is_live }
    }

    /// Returns true if running calls are shown, and text as it arrives.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Shows finished lines. They are escaped already.
    pub(crate) fn print(&self, text: &str) {
        self.write(&format!("{}\n", wrap_for_stderr(text)));
    }

    fn write(&self, text: &str) {
        if self.is_live {
            self.change(|state| state.pending.push_str(text));
        } else {
            write_to_stderr(text);
        }
    }

    /// Changes the picture. It is drawn soon.
    fn change(&self, change: impl FnOnce(&mut TerminalState)) {
        change(&mut self.shared.state());
        self.shared.changed.notify_one();
    }

    /// Shows finished lines that are not wrapped, and replaces the unfinished one.
    pub(crate) fn print_text(&self, lines: &[String], partial: &str) {
        self.change(|state| {
            state.pending.extend(lines.iter().flat_map(|line| [line, "\n"]));
            partial.clone_into(&mut state.partial);
            (state.waiting, state.pause_note) = (None, None);
        });
    }

    /// Shows a call until it ends.
    pub(crate) fn begin_call(&self, id: &CallId, title: String) {
        let (id, began) = (id.clone(), Instant::now());
        self.change(|state| {
            state.running.push(LiveCallLine { id, title, began, last_output: String::new() });
            (state.waiting, state.pause_note) = (None, None);
        });
    }

    /// Shows the last line of a call's output, with the next picture.
    pub(crate) fn set_output(&self, id: &CallId, text: &str) {
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let mut state = self.shared.state();
        if let (Some(last), Some(call)) = (last, state.running.iter_mut().find(|call| call.id == *id)) {
            call.last_output = visible_prose(last.trim()).into_owned();
        }
    }

    /// Removes a call.
    pub(crate) fn end_call(&self, id: &CallId) {
        self.change(|state| state.running.retain(|call| call.id != *id));
    }

    /// Shows that the model is waited for, unless it is shown already.
    pub(crate) fn begin_waiting(&self, what: &'static str) {
        self.change(|state| {
            if state.waiting.is_none_or(|(_, shown)| shown != what) {
                state.waiting = Some((Instant::now(), what));
            }
        });
    }

    /// Ends every wait: for the model, and before another request.
    pub(crate) fn end_waiting(&self) {
        self.change(|state| (state.waiting, state.pause_note) = (None, None));
    }

    /// Shows the pause before another request.
    pub(crate) fn set_pause_note(&self, note: String) {
        self.change(|state| state.pause_note = Some(note));
    }

    /// Hides what runs, and keeps all lines back until the pause is dropped.
    pub(crate) fn pause(&self) -> ProgressPause<'_> {
        if self.is_live {
            // Lines from before the question.
            self.shared.wait_until_written(|state| state.pending.is_empty());
            self.change(|state| state.is_paused = true);
            self.shared.wait_until_written(|state| state.drawn.is_empty());
        }
        ProgressPause { shared: &self.shared }
    }

    /// Waits until all lines are written, for other output on the same terminal.
    pub(crate) fn flush(&self) {
        if self.is_live {
            self.shared.wait_until_written(|state| !state.has_news());
        }
    }
}

impl Drop for ProgressTerminal {
    fn drop(&mut self) {
        if self.is_live {
            self.change(|state| {
                state.is_closed = true;
                let partial = mem::take(&mut state.partial);
                if !partial.is_empty() {
                    state.pending.extend([partial.as_str(), "\n"]);
                }
            });
            self.shared.wait_until_written(|state| state.drawn.is_empty() && state.pending.is_empty());
        }
    }
}

impl Drop for ProgressPause<'_> {
    fn drop(&mut self) {
        self.shared.state().is_paused = false;
        self.shared.changed.notify_one();
    }
}

impl SharedTerminal {
    fn state(&self) -> MutexGuard<'_, TerminalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_written(&self, is_done: impl Fn(&TerminalState) -> bool) {
        let is_busy = |state: &mut TerminalState| state.is_writing || !is_done(state);
        let _done = self.written.wait_while(self.state(), is_busy).unwrap_or_else(PoisonError::into_inner);
    }

    fn draw_until_closed(&self) {
        let mut state = self.state();
        loop {
            let (output, picture) = state.next_output();
            state.drawn = picture;
            if !output.is_empty() {
                state.is_writing = true;
                drop(state);
                write_to_stderr(&output);
                state = self.state();
                state.is_writing = false;
            }
            self.written.notify_all();
            if state.is_closed && state.pending.is_empty() {
                return;
            }
            let interval = if state.is_moving() { REDRAW_INTERVAL } else { Duration::MAX };
            let news = |state: &mut TerminalState| !state.has_news();
            let woken = self.changed.wait_timeout_while(state, interval, news);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            // Pieces of text come in hundreds per second.
            if state.pending.is_empty() && !state.is_paused && !state.is_closed {
                drop(state);
                thread::sleep(REDRAW_INTERVAL);
                state = self.state();
            }
        }
    }
}

impl TerminalState {
    /// Returns the codes and the text to write now, and the picture that they end with.
    fn next_output(&mut self) -> (String, Vec<String>) {
        let picture = if self.is_paused || self.is_closed { Vec::new() } else { self.picture() };
        let text = if self.is_paused { String::new() } else { mem::take(&mut self.pending) };
        if text.is_empty() && picture == self.drawn {
            return (String::new(), picture);
        }
        (format!("{}{text}{}", self.erase(), picture.join("\n")), picture)
    }

    /// Returns true if the picture changes by itself, because of a clock.
    fn is_moving(&self) -> bool {
        !self.is_paused && (!self.running.is_empty() || self.waiting.is_some())
    }

    /// Returns true if there is something to write that is not on the screen.
    fn has_news(&self) -> bool {
        match (self.is_closed, self.is_paused) {
            (true, _) => true,
            (false, true) => !self.drawn.is_empty(),
            (false, false) => !self.pending.is_empty() || self.picture() != self.drawn,
        }
    }

    /// Returns the codes that remove the last picture: to the first of its lines, and clear to the
    /// end of the screen (ECMA-48: CR, CUU, ED).
    fn erase(&mut self) -> String {
        match mem::take(&mut self.drawn).len() {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            lines => format!("\r\x1b[{}A\x1b[J", lines - 1),
        }
    }

    /// Returns the lines about what happens now. The cursor stays in the last one.
    fn picture(&self) -> Vec<String> {
        let columns = live_columns();
        let mut lines = Vec::new();
        if !self.partial.is_empty() {
            lines.push(cut(&self.partial, columns));
        }
        let shown = self.running.iter().take(MAX_RUNNING_LINES);
        lines.extend(shown.map(|call| call.line(columns)));
        if self.running.len() > MAX_RUNNING_LINES {
            lines.push(format!("  and {} more", self.running.len() - MAX_RUNNING_LINES));
        }
        let note = self.pause_note.clone();
        let waiting =
            self.waiting.filter(|(since, _)| self.running.is_empty() && since.elapsed() > SHOWN_WAIT);
        let waiting = waiting.map(|(since, what)| format!("  {what} {}", duration_in_words(since.elapsed())));
        lines.extend(note.or(waiting).map(|line| cut(&line, columns)));
        lines
    }
}

impl LiveCallLine {
    /// Returns `• title  clock  last line of output`. The clock is never cut off.
    fn line(&self, columns: usize) -> String {
        let clock = duration_in_words(self.began.elapsed());
        let clock_columns = width(&clock) + 4;
        let room = columns.saturating_sub(clock_columns);
        let title_room = if self.last_output.is_empty() { room } else { room * 3 / 5 };
        let title = cut(&self.title, title_room);
        let line = format!("• {title}  {clock}");
        if self.last_output.is_empty() {
            return line;
        }
        let left = columns.saturating_sub(width(&line) + 2);
        format!("{line}  {}", cut(&self.last_output, left))
    }
}

fn write_to_stderr(text: &str) {
    // If stderr is gone, there is no place to report it.
    let _gone = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(title: &str, last_output: &str) -> LiveCallLine {
        let (title, last_output) = (title.to_owned(), last_output.to_owned());
        LiveCallLine { id: "c".into(), title, began: Instant::now(), last_output }
    }

    #[test]
    fn a_running_call_fits_and_keeps_its_clock() {
        for columns in [30, 59, 79, 119] {
            for output in ["", &"Compiling ".repeat(30)] {
                let line = running(&"run cargo test --workspace ".repeat(9), output).line(columns);
                assert!(width(&line) <= columns && line.contains("  0.0 s"), "{columns}: {line}");
            }
        }
        assert_eq!(running("run make", "ok").line(79), "• run make  0.0 s  ok");
    }

    #[test]
    fn a_picture_replaces_the_last_one() {
        let mut state = TerminalState { partial: "half a li".to_owned(), ..TerminalState::default() };
        state.running.push(running("run make", ""));
        state.drawn = state.picture();
        assert_eq!(state.drawn, ["half a li", "• run make  0.0 s"]);
        assert_eq!(state.erase(), "\r\u{1b}[1A\u{1b}[J");
        assert_eq!(state.erase(), "");
    }
}
