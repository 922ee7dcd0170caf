//! A tool call: one line while it runs and when it has ended, and all about it on request.

use std::{path::Path, time::Duration};

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use windlass::{
    CallWords, Effects, Outcome, Status, ToolCall, duration_in_words, first_line, outcome_words, shortened,
};

use crate::render::{
    Theme,
    visible::{path_text, visible_command},
    wrap::{columns, cut_spans},
};
pub use details::{CallExpansion, render_call_details};

mod details;

/// Maximum number of characters that are looked at: the line is cut to the screen anyway.
const MAX_WORDS_CHARS: usize = 400;

/// Maximum number of columns of a tool's name.
const MAX_NAME_COLUMNS: u16 = 24;

/// A call and how far it is.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallView<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// Its effects.
    pub effects: &'a Effects,
    /// The directory that paths are shown relative to.
    pub cwd: &'a Path,
    /// Its progress.
    pub progress: CallProgress<'a>,
}

/// The progress of a call.
#[derive(Debug, Clone, Copy)]
pub enum CallProgress<'a> {
    /// It waits for the answer of a person.
    Asked,
    /// It has been running for so long.
    Running(Duration),
    /// It has ended.
    Ended(&'a Outcome),
}

/// Renders a call as one line: glyph, action, object, clock or verdict.
pub fn render_tool_call(view: &ToolCallView<'_>, width: u16, theme: &Theme) -> Line<'static> {
    let (glyph, word, style) = state(view.progress, theme);
    let time = match view.progress {
        CallProgress::Asked => String::new(),
        CallProgress::Running(elapsed) => duration_in_words(elapsed),
        // It never ran.
        CallProgress::Ended(outcome) if outcome.receipt.refusal.is_some() => String::new(),
        CallProgress::Ended(outcome) => format!(" {}", duration_in_words(outcome.receipt.duration)),
    };
    let end = [Span::raw("  "), Span::styled(word, style), Span::styled(time, theme.dim)];
    let words = call_words(view.call, view.effects, view.cwd);
    let mut spans = vec![Span::styled(format!("{glyph} "), style)];
    spans.extend(cut_spans(&[Span::styled(words.action, theme.tool)], MAX_NAME_COLUMNS).spans);
    spans.push(Span::raw(" "));
    spans.push(Span::styled(words.object, theme.text));
    // The end says how it went: the arguments are cut, not the end.
    let room = usize::from(width).saturating_sub(columns(&end));
    let mut line = cut_spans(&spans, u16::try_from(room).unwrap_or(u16::MAX));
    line.spans.extend(end);
    cut_spans(&line.spans, width)
}

/// Returns the glyph, the word and the style of a call.
fn state(progress: CallProgress<'_>, theme: &Theme) -> (&'static str, String, Style) {
    match progress {
        CallProgress::Asked => ("?", "waits for your answer".to_owned(), theme.warning),
        CallProgress::Running(_) => ("•", String::new(), theme.dim),
        CallProgress::Ended(outcome) => {
            let word = outcome_words(outcome);
            match (outcome.verdict.success, outcome.status) {
                (true, _) => ("✓", word, theme.success),
                (false, Status::Rejected) => ("⊘", word, theme.warning),
                (false, _) => ("✗", word, theme.failure),
            }
        }
    }
}

/// Describes a call for one line, escaped. The line is cut to the screen.
pub fn call_words(call: &ToolCall, effects: &Effects, cwd: &Path) -> CallWords {
    let CallWords { action, object } = CallWords::new(call, effects, &|path| relative_path(path, cwd));
    let escaped = |text: &str| visible_command(&shortened(text, MAX_WORDS_CHARS)).into_owned();
    CallWords { action: escaped(&action), object: escaped(&first_line(&object)) }
}

/// Returns a path relative to the working directory, if it is below it, escaped.
pub fn shown_path(path: &Path, cwd: &Path) -> String {
    visible_command(&relative_path(path, cwd)).into_owned()
}

/// Returns a path relative to the working directory, if it is below it, as text.
pub fn relative_path(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => path_text(below),
        Err(_) => path_text(path),
    }
}
