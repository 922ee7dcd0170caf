//! The calls of a session: those that run, and the last ones that have ended.

use std::{borrow::Cow, collections::VecDeque, path::Path, time::Instant};

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use windlass::{CallId, Changed, Effects, Facts, Outcome, OutputExcerpt, ToolCall, TurnDiff, counted};

use crate::{
    render::{
        Theme,
        ansi::output_spans,
        diff::render_unified_diff,
        tool_call::{CallExpansion, CallProgress, ToolCallView, render_call_details, render_tool_call},
        visible::visible_prose,
        wrap::{HangingIndent, cut_spans, wrap_spans},
    },
    text_lines::{faint, wrapped},
};

/// Maximum size of the output of a running call that is kept, to show its last line.
const MAX_OUTPUT_BYTES: usize = 4096;

/// Maximum number of rows of one line of output below a call that has ended.
const MAX_ROWS: u16 = 2;

/// Maximum number of diff lines shown below a call that has ended.
const DIFF_LINES: usize = 40;

/// Maximum number of output lines of a call that is shown in full.
const MAX_EXPANDED_LINES: usize = 1000;

/// Maximum number of ended calls that are kept.
const MAX_KEPT_CALLS: usize = 200;

/// The part of a rule's decision that says why a command stayed in the sandbox.
const STAYED: &str = "in the sandbox, because ";

/// The calls of a session, with their numbers.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    running: Vec<RunningCall>,
    ended: VecDeque<ShownCall>,
    /// The number of the last call.
    count: usize,
    /// Diffs of calls that have changed files and have not ended.
    diffs: Vec<(CallId, String)>,
}

/// A call that runs.
#[derive(Debug)]
struct RunningCall {
    number: usize,
    call: ToolCall,
    effects: Effects,
    started: Instant,
    output: String,
    /// The whole output, if it has colours.
    coloured: Option<String>,
    awaits_input: bool,
}

/// A call that has ended.
#[derive(Debug)]
struct ShownCall {
    number: usize,
    call: ToolCall,
    effects: Effects,
    outcome: Outcome,
    coloured: Option<String>,
    diff: String,
}

/// The place where calls are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallDisplay<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) width: u16,
    pub(crate) theme: &'a Theme,
}

impl CallLog {
    pub(crate) fn has_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns the number of commands that run.
    pub(crate) fn running_commands(&self) -> usize {
        self.running.iter().filter(|call| call.effects.command.is_some()).count()
    }

    /// Forgets calls whose end was not announced.
    pub(crate) fn end_turn(&mut self) {
        self.running.clear();
        self.diffs.clear();
    }

    pub(crate) fn start(&mut self, call: ToolCall, effects: Effects, now: Instant) {
        self.count += 1;
        self.running.push(RunningCall {
            number: self.count,
            call,
            effects,
            started: now,
            output: String::new(),
            coloured: None,
            awaits_input: false,
        });
    }

    /// Keeps the output of a call with its colours.
    pub(crate) fn colour(&mut self, id: &CallId, text: String) {
        if let Some(call) = self.running(id) {
            call.coloured = Some(text);
        }
    }

    pub(crate) fn add_output(&mut self, id: &CallId, text: &str) {
        let Some(call) = self.running(id) else { return };
        call.output.push_str(text);
        call.awaits_input = false;
        let over = call.output.len().saturating_sub(MAX_OUTPUT_BYTES);
        if over > 0 {
            let start = call.output.ceil_char_boundary(over);
            call.output.drain(..start);
        }
    }

    pub(crate) fn await_input(&mut self, id: &CallId) {
        if let Some(call) = self.running(id) {
            call.awaits_input = true;
        }
    }

    fn running(&mut self, id: &CallId) -> Option<&mut RunningCall> {
        self.running.iter_mut().find(|call| call.call.id == *id)
    }

    /// Notes what a call has changed. `clean` takes out secrets.
    pub(crate) fn edit(
        &mut self,
        id: CallId,
        changed: &[Changed],
        cwd: &Path,
        clean: impl Fn(&str) -> String,
    ) {
        let mut diff = TurnDiff::default();
        diff.take(changed);
        let text = clean(&diff.text(cwd));
        if !text.is_empty() {
            self.diffs.push((id, text));
        }
    }

    /// Ends a call and returns its lines.
    pub(crate) fn end(
        &mut self,
        call: ToolCall,
        effects: Effects,
        outcome: Outcome,
        display: CallDisplay<'_>,
    ) -> Vec<Line<'static>> {
        let at = self.running.iter().position(|running| running.call.id == call.id);
        let (number, coloured) = if let Some(at) = at {
            let ended = self.running.remove(at);
            (ended.number, ended.coloured)
        } else {
            // It was refused before it started.
            self.count += 1;
            (self.count, None)
        };
        let at = self.diffs.iter().position(|(id, _)| *id == call.id);
        let diff = at.map(|at| self.diffs.remove(at).1).unwrap_or_default();
        let shown = ShownCall { number, call, effects, outcome, coloured, diff };
        let lines = shown.lines(display);
        if self.ended.len() == MAX_KEPT_CALLS {
            self.ended.pop_front();
        }
        self.ended.push_back(shown);
        lines
    }

    /// Returns a call in full: the one with this number, or the last one.
    pub(crate) fn expand(
        &self,
        number: Option<usize>,
        display: CallDisplay<'_>,
    ) -> Option<Vec<Line<'static>>> {
        let found = match number {
            Some(number) => self.ended.iter().find(|call| call.number == number),
            None => self.ended.back(),
        };
        found.map(|call| call.details(display))
    }

    /// Returns the running calls, with the last line of their output.
    pub(crate) fn live_lines(&self, now: Instant, display: CallDisplay<'_>) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for call in &self.running {
            let last = call.output.lines().rev().find(|line| !line.trim().is_empty());
            let last = if call.awaits_input { Some("waits for input") } else { last };
            let progress = CallProgress::Running(now.saturating_duration_since(call.started));
            lines.push(display.line(call.number, &call.call, &call.effects, progress));
            lines.extend(last.map(|last| faint(format!("  └ {}", visible_prose(last)))));
        }
        lines
    }
}

impl ShownCall {
    /// Returns the line of the call, and its diff or some of its output.
    fn lines(&self, display: CallDisplay<'_>) -> Vec<Line<'static>> {
        let CallDisplay { width, theme, .. } = display;
        let progress = CallProgress::Ended(&self.outcome);
        let mut lines = vec![display.line(self.number, &self.call, &self.effects, progress)];
        if let Some(at) = self.outcome.receipt.decision.find(STAYED) {
            let reason = visible_prose(&self.outcome.receipt.decision[at..]).into_owned();
            lines.extend(wrapped("  ", &reason, width, theme.dim));
        }
        if self.call.name.as_str() == "update_plan" {
            // The plan itself is on the screen.
        } else if self.diff.is_empty() {
            lines.extend(self.output_lines(display));
        } else {
            // A diff says more than the words about it.
            let diff = render_unified_diff(&self.diff, width.saturating_sub(2), theme);
            let hidden = diff.len().saturating_sub(DIFF_LINES);
            lines.extend(diff.into_iter().take(DIFF_LINES).map(indented));
            lines.extend(self.hidden_line(hidden as u64));
        }
        lines
    }

    /// Returns the beginning of the output, and for a program also its end.
    fn output_lines(&self, display: CallDisplay<'_>) -> Vec<Line<'static>> {
        let (text, total) = (self.output(), self.outcome.view.total_lines);
        let is_program = self.effects.has_program() || matches!(self.outcome.facts, Facts::Session(_));
        let excerpt = if is_program {
            OutputExcerpt::new(&text, total, self.outcome.verdict.success)
        } else {
            OutputExcerpt::from_beginning(&text, total)
        };
        let (indent, mut style) = (HangingIndent::from_marker("  │ ".into()), Style::new());
        let mut rendered = |line: &&str| {
            let spans = output_spans(line, &mut style, display.theme);
            let spans = cut_spans(&spans, display.width.saturating_mul(MAX_ROWS)).spans;
            wrap_spans(&spans, display.width, &indent)
        };
        let mut lines: Vec<_> = excerpt.first.iter().flat_map(&mut rendered).collect();
        lines.extend(self.hidden_line(excerpt.hidden));
        lines.extend(excerpt.last.iter().flat_map(rendered));
        lines
    }

    /// Returns the line in place of hidden ones, which says how to see them.
    fn hidden_line(&self, hidden: u64) -> Option<Line<'static>> {
        let text = format!("  … {} (/expand {} shows all)", counted(hidden, "line"), self.number);
        (hidden > 0).then(|| faint(text))
    }

    /// Returns the output, with its colours if they are known.
    fn output(&self) -> Cow<'_, str> {
        self.coloured.as_deref().map_or_else(|| self.outcome.text().into(), Cow::Borrowed)
    }

    fn details(&self, display: CallDisplay<'_>) -> Vec<Line<'static>> {
        let progress = CallProgress::Ended(&self.outcome);
        let view = ToolCallView { call: &self.call, effects: &self.effects, cwd: display.cwd, progress };
        let output = self.output();
        let expansion =
            CallExpansion { output: &output, max_output_lines: MAX_EXPANDED_LINES, diff: &self.diff };
        render_call_details(&view, &expansion, display.width, display.theme)
    }
}

impl CallDisplay<'_> {
    /// Returns the one line of a call, with its number.
    fn line(
        self,
        number: usize,
        call: &ToolCall,
        effects: &Effects,
        progress: CallProgress<'_>,
    ) -> Line<'static> {
        let number = Span::styled(format!("  #{number}"), self.theme.dim);
        let width = self.width.saturating_sub(u16::try_from(number.width()).unwrap_or(0));
        let view = ToolCallView { call, effects, cwd: self.cwd, progress };
        let mut line = render_tool_call(&view, width, self.theme);
        line.spans.push(number);
        line
    }
}

fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw("  "));
    line
}
