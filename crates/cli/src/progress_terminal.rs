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
    word_wrap::{columns_of, cut_line, terminal_columns, wrap_for_stderr},
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
}

struct SharedTerminal {
    is_live: bool,
    state: Mutex<TerminalState>,
    changed: Condvar,
}

#[derive(Default)]
struct TerminalState {
    /// The last picture, which the next one replaces.
    drawn: Vec<String>,
    running: Vec<LiveCallLine>,
    /// The unfinished line of a text.
    partial: String,
    /// The pause before another request.
    pause_note: Option<String>,
    /// The beginning of a wait for the model, and its name.
    waiting: Option<(Instant, &'static str)>,
    /// The open question, and the lines for the time after it.
    is_paused: bool,
    held_back: String,
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
        let is_live = io::stderr().is_terminal() && !is_dumb();
        let shared = SharedTerminal { is_live, state: Mutex::default(), changed: Condvar::new() };
        let shared = Arc::new(shared);
        if is_live {
            let drawn = Arc::clone(&shared);
            // It ends when this is dropped. Without it, only the clocks stand still.
            let _started = thread::Builder::new()
                .name("windlass-progress".to_owned())
                .spawn(move || drawn.redraw_until_closed());
        }
        Self { shared }
    }

    /// Returns true if running calls are shown, and text as it arrives.
    pub(crate) fn is_live(&self) -> bool {
        self.shared.is_live
    }

    /// Shows finished lines. They are escaped already.
    pub(crate) fn print(&self, text: &str) {
        let mut state = self.shared.state();
        self.shared.write(&mut state, &format!("{}\n", wrap_for_stderr(text)));
    }

    /// Shows finished lines that are not wrapped, and replaces the unfinished one.
    pub(crate) fn print_text(&self, lines: &[String], partial: &str) {
        let mut state = self.shared.state();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        partial.clone_into(&mut state.partial);
        (state.waiting, state.pause_note) = (None, None);
        if text.is_empty() {
            // Soon: a model may send hundreds of pieces in a second.
            self.shared.changed.notify_one();
        } else {
            self.shared.write(&mut state, &text);
        }
    }

    /// Shows a call until it ends.
    pub(crate) fn begin_call(&self, id: &CallId, title: String) {
        let mut state = self.shared.state();
        let (id, began) = (id.clone(), Instant::now());
        state.running.push(LiveCallLine { id, title, began, last_output: String::new() });
        (state.waiting, state.pause_note) = (None, None);
        self.shared.changed.notify_one();
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
        self.shared.state().running.retain(|call| call.id != *id);
    }

    /// Shows that the model is waited for, unless it is shown already.
    pub(crate) fn begin_waiting(&self, what: &'static str) {
        let mut state = self.shared.state();
        if state.waiting.is_none_or(|(_, shown)| shown != what) {
            state.waiting = Some((Instant::now(), what));
        }
        self.shared.changed.notify_one();
    }

    /// Ends every wait: for the model, and before another request.
    pub(crate) fn end_waiting(&self) {
        let mut state = self.shared.state();
        (state.waiting, state.pause_note) = (None, None);
        self.shared.write(&mut state, "");
    }

    /// Shows the pause before another request.
    pub(crate) fn set_pause_note(&self, note: String) {
        let mut state = self.shared.state();
        state.pause_note = Some(note);
        self.shared.write(&mut state, "");
    }

    /// Hides what runs, and keeps all lines back until the pause is dropped.
    pub(crate) fn pause(&self) -> ProgressPause<'_> {
        let mut state = self.shared.state();
        let erased = state.erase();
        write_to_stderr(&erased);
        state.is_paused = true;
        ProgressPause { shared: &self.shared }
    }
}

impl Drop for ProgressTerminal {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        let rest = mem::take(&mut state.partial);
        let rest = if rest.is_empty() { rest } else { format!("{rest}\n") };
        let text = format!("{}{rest}", state.erase());
        write_to_stderr(&text);
        self.shared.changed.notify_one();
    }
}

impl Drop for ProgressPause<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_paused = false;
        let held_back = mem::take(&mut state.held_back);
        self.shared.write(&mut state, &held_back);
    }
}

impl SharedTerminal {
    fn state(&self) -> MutexGuard<'_, TerminalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes finished lines above a new picture.
    fn write(&self, state: &mut TerminalState, text: &str) {
        if state.is_paused {
            state.held_back.push_str(text);
        } else if self.is_live && !state.is_closed {
            let picture = state.picture();
            if !text.is_empty() || picture != state.drawn {
                let output = format!("{}{text}{}", state.erase(), picture.join("\n"));
                write_to_stderr(&output);
                state.drawn = picture;
            }
        } else {
            write_to_stderr(text);
        }
    }

    fn redraw_until_closed(&self) {
        let mut state = self.state();
        while !state.is_closed {
            self.write(&mut state, "");
            // Nothing moves: no redraws until something changes.
            if state.running.is_empty() && state.waiting.is_none() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            thread::sleep(REDRAW_INTERVAL);
            state = self.state();
        }
    }
}

impl TerminalState {
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
        let columns = terminal_columns().saturating_sub(1);
        let mut lines = Vec::new();
        if !self.partial.is_empty() {
            lines.push(cut_line(&self.partial, columns));
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
        lines.extend(note.or(waiting).map(|line| cut_line(&line, columns)));
        lines
    }
}

impl LiveCallLine {
    /// Returns `• title  clock  last line of output`. The clock is never cut off.
    fn line(&self, columns: usize) -> String {
        let clock = duration_in_words(self.began.elapsed());
        let clock_columns = columns_of(&clock) + 4;
        let room = columns.saturating_sub(clock_columns);
        let title_room = if self.last_output.is_empty() { room } else { room * 3 / 5 };
        let title = cut_line(&self.title, title_room);
        let line = format!("• {title}  {clock}");
        if self.last_output.is_empty() {
            return line;
        }
        let left = columns.saturating_sub(columns_of(&line) + 2);
        format!("{line}  {}", cut_line(&self.last_output, left))
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
                assert!(columns_of(&line) <= columns && line.contains("  0.0 s"), "{columns}: {line}");
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
