//! A tool call: one line while it runs and when it has ended, and all about it on request.

use std::{path::Path, time::Duration};

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use windlass::{Effects, Exit, Facts, Outcome, Status, ToolCall};

use crate::render::{
    Theme,
    visible::visible_command,
    wrap::{columns, cut_spans},
};
pub use details::{CallExpansion, render_call_details};
pub use gist::{call_gist, relative_path, shell_script, shown_path, split_shell};

mod details;
mod gist;

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

/// Renders a call as one line: glyph, tool, arguments in words, clock or verdict.
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
    let name = visible_command(view.call.name.as_str()).into_owned();
    let mut spans = vec![Span::styled(format!("{glyph} "), style)];
    spans.extend(cut_spans(&[Span::styled(name, theme.tool)], MAX_NAME_COLUMNS).spans);
    spans.push(Span::raw(" "));
    spans.push(Span::styled(call_gist(view.call, view.effects, view.cwd), theme.text));
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
            let word = verdict_word(outcome);
            match (outcome.verdict.success, outcome.status) {
                (true, _) => ("✓", word, theme.success),
                (false, Status::Rejected) => ("⊘", word, theme.warning),
                (false, _) => ("✗", word, theme.failure),
            }
        }
    }
}

/// Returns the end of a call in a word or two.
pub fn verdict_word(outcome: &Outcome) -> String {
    let session = match &outcome.facts {
        Facts::Session(session) if session.report.exit.is_none() => Some(session.report.waits_for_input),
        _ => None,
    };
    let word = match (outcome.status, session) {
        (Status::Success | Status::Error, Some(true)) => "waits for input",
        (Status::Success | Status::Error, Some(false)) => "still running",
        (Status::Timeout, _) => "timed out",
        (Status::Rejected, _) if outcome.receipt.refusal.is_some() => "refused",
        (Status::Rejected, _) => "stopped",
        (Status::PermissionDenied, _) => "blocked",
        (Status::NotFound, _) => "not found",
        (Status::Success | Status::Error, None) => match outcome.facts.exit().map(Exit::code) {
            Some(code) if code != 0 => return format!("exit {code}"),
            _ if outcome.verdict.success => "done",
            _ => "failed",
        },
    };
    word.to_owned()
}

/// Writes a duration as a person says it: `0.4 s`, `12 s`, `3 min 05 s`, `1 h 02 min`.
pub fn duration_in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}
