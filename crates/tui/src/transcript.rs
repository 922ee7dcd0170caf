//! The conversation on the screen: finished lines, and the parts that still change.

use std::{path::PathBuf, time::Instant};

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use windlass::{CallId, Clean, Effects, Event, Outcome, Plan, PlanStatus, ToolCall, Usage, counted};

use crate::{
    render::{
        Theme,
        ansi::render_output,
        diff::{render_diff_excerpt, render_unified_diff},
        markdown::{StreamingMarkdown, render_markdown},
        plan::render_plan,
        tool_call::{CallExpansion, CallProgress, ToolCallView, render_call_details, render_tool_call},
        visible::visible_prose,
        wrap::HangingIndent,
    },
    text_lines::{faint, wrapped},
};

/// Maximum size of the output of a running call that is kept, to show its last line.
const MAX_OUTPUT_BYTES: usize = 4096;

/// Number of output lines shown below a call that has ended.
const OUTPUT_LINES: usize = 4;

/// Maximum number of lines of a diff that are shown by themselves.
const MAX_DIFF_ROWS: usize = 80;

/// Maximum number of output lines of a call that is shown in full.
const MAX_EXPANDED_LINES: usize = 1000;

/// The conversation so far.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// Lines that never change again and are not yet on the screen.
    finished: Vec<Line<'static>>,
    /// The answer that arrives, and its text so far.
    answer: Option<(StreamingMarkdown, String)>,
    reasoning_words: usize,
    calls: Vec<RunningCall>,
    plan: Option<Plan>,
    diff: Option<String>,
    last_call: Option<ShownCall>,
    usage: Usage,
    width: u16,
    cwd: PathBuf,
    theme: Theme,
}

/// A call that runs.
#[derive(Debug)]
struct RunningCall {
    call: ToolCall,
    effects: Effects,
    started: Instant,
    output: String,
    awaits_input: bool,
}

/// A call that has ended.
#[derive(Debug)]
struct ShownCall {
    call: ToolCall,
    effects: Effects,
    outcome: Outcome,
}

impl Transcript {
    pub(crate) fn new(cwd: PathBuf, theme: &Theme) -> Self {
        Self {
            finished: Vec::new(),
            answer: None,
            reasoning_words: 0,
            calls: Vec::new(),
            plan: None,
            diff: None,
            last_call: None,
            usage: Usage::default(),
            width: 80,
            cwd,
            theme: *theme,
        }
    }

    pub(crate) fn set_width(&mut self, width: u16) {
        self.width = width;
        if let Some((markdown, _)) = &mut self.answer {
            markdown.set_width(width);
        }
    }

    /// Takes the finished lines.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    pub(crate) fn has_running_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn running_commands(&self) -> usize {
        self.calls.iter().filter(|call| call.effects.has_program()).count()
    }

    /// Adds a message of the person.
    pub(crate) fn user(&mut self, text: &str) {
        self.finished.push(Line::default());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        self.finished.extend(wrapped("› ", text, self.width, bold));
        self.finished.push(Line::default());
    }

    /// Adds finished lines.
    pub(crate) fn add(&mut self, lines: Vec<Line<'static>>) {
        self.finished.extend(lines);
    }

    /// Adds a note of the program.
    pub(crate) fn note(&mut self, text: &str) {
        self.finished.extend(wrapped("  ", text, self.width, Style::new()));
    }

    /// Adds the description of something that went wrong.
    pub(crate) fn warning(&mut self, text: &str) {
        self.finished.extend(wrapped("! ", text, self.width, self.theme.warning));
    }

    /// Adds the last call in full.
    pub(crate) fn expand_last_call(&mut self) {
        match &self.last_call {
            Some(ShownCall { call, effects, outcome }) => {
                let progress = CallProgress::Ended(outcome);
                let view = ToolCallView { call, effects, cwd: &self.cwd, progress };
                let output = outcome.text();
                let expansion =
                    CallExpansion { output: &output, max_output_lines: MAX_EXPANDED_LINES, diff: "" };
                self.finished.extend(render_call_details(&view, &expansion, self.width, &self.theme));
            }
            None => self.note("there was no call yet"),
        }
    }

    pub(crate) fn show_plan(&mut self) {
        match &self.plan {
            Some(plan) => self.finished.extend(render_plan(plan, self.width, &self.theme)),
            None => self.note("the model has made no plan"),
        }
    }

    pub(crate) fn show_diff(&mut self) {
        match &self.diff {
            Some(diff) => self.finished.extend(render_unified_diff(diff, self.width, &self.theme)),
            None => self.note("tools have changed no file yet"),
        }
    }

    pub(crate) fn on_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::TextDelta { text } => self.add_text(&text),
            Event::ReasoningDelta { text } => self.reasoning_words += text.split_whitespace().count(),
            Event::Message { text } => self.finish_answer(&text),
            Event::Reasoning { text } => {
                self.reasoning_words = 0;
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                self.finished.extend(wrapped("∴ ", first, self.width, dim()).into_iter().take(1));
            }
            Event::WebSearch { query } => self.note(&format!("searched the web: {query}")),
            Event::CallStarted { call, effects } => self.calls.push(RunningCall {
                call: call.into_inner(),
                effects: effects.into_inner(),
                started: now,
                output: String::new(),
                awaits_input: false,
            }),
            Event::CallOutput { id, text } => self.add_output(&id, &text),
            Event::InputAwaited { id } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.call.id == id) {
                    call.awaits_input = true;
                }
            }
            Event::CallEnded { call, effects, outcome } => {
                self.calls.retain(|running| running.call.id != call.id);
                self.end_call(call.into_inner(), effects.into_inner(), Clean::into_inner(*outcome));
            }
            Event::TurnDiff { diff } => {
                self.diff = Some(diff).filter(|diff| !diff.trim().is_empty());
                if let Some(diff) = &self.diff {
                    let lines = render_diff_excerpt(diff, MAX_DIFF_ROWS, self.width, &self.theme);
                    let is_cut = lines.last().is_some_and(|line| line.to_string().ends_with("more lines"));
                    self.finished.extend(lines);
                    if is_cut {
                        self.finished.push(faint("  (/diff shows all)".to_owned()));
                    }
                }
            }
            Event::PlanUpdated(plan) => self.plan = Some(plan),
            Event::Retrying { attempt, of, reason, .. } => {
                self.warning(&format!("the model's server failed, try {attempt} of {of}: {reason}"));
            }
            Event::Warning { message } => self.warning(&message),
            Event::TurnCompleted { usage, .. } => self.end_turn(usage),
            Event::TurnFailed { message, usage, .. } => {
                self.end_turn(usage);
                self.warning(&message);
            }
            Event::ThreadStarted { .. }
            | Event::TurnStarted
            | Event::ApprovalAsked { .. }
            | Event::ApprovalAnswered { .. }
            | Event::EditStarted { .. }
            | Event::EditEnded { .. } => {}
        }
    }

    fn end_turn(&mut self, usage: Usage) {
        self.finish_text();
        self.calls.clear();
        self.reasoning_words = 0;
        self.usage.input_tokens += usage.input_tokens;
        self.usage.cached_input_tokens += usage.cached_input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.reasoning_output_tokens += usage.reasoning_output_tokens;
        let done = |plan: &Plan| plan.plan.iter().all(|step| step.status == PlanStatus::Completed);
        if self.plan.as_ref().is_some_and(done) {
            self.show_plan();
            self.plan = None;
        }
    }

    fn end_call(&mut self, call: ToolCall, effects: Effects, outcome: Outcome) {
        let progress = CallProgress::Ended(&outcome);
        let view = ToolCallView { call: &call, effects: &effects, cwd: &self.cwd, progress };
        self.finished.push(render_tool_call(&view, self.width, &self.theme));
        let text = outcome.text();
        let indent = HangingIndent::from_marker("  │ ".into());
        let mut lines = render_output(&text, self.width, &self.theme, &indent);
        self.finished.extend(lines.by_ref().take(OUTPUT_LINES));
        if lines.next().is_some() {
            self.finished.push(faint("  … (Ctrl-T shows the call in full)".to_owned()));
        }
        self.last_call = Some(ShownCall { call, effects, outcome });
    }

    /// Adds a piece of the answer. What cannot change any more becomes finished lines.
    fn add_text(&mut self, text: &str) {
        let begin = || (StreamingMarkdown::new(self.width, self.theme), String::new());
        let (markdown, so_far) = self.answer.get_or_insert_with(begin);
        self.finished.extend(markdown.push(text));
        so_far.push_str(text);
    }

    /// Completes the answer. Pieces may be missing, so what counts is the whole message.
    fn finish_answer(&mut self, whole: &str) {
        let rest = self.answer.as_ref().map(|(_, so_far)| whole.strip_prefix(so_far.as_str()));
        match rest {
            Some(Some(rest)) => self.add_text(rest),
            Some(None) => {
                self.finish_text();
                self.finished.extend(render_markdown(whole, self.width, &self.theme));
            }
            None => self.finished.extend(render_markdown(whole, self.width, &self.theme)),
        }
        self.finish_text();
    }

    fn finish_text(&mut self) {
        if let Some((markdown, _)) = self.answer.take() {
            self.finished.extend(markdown.finish());
        }
    }

    fn add_output(&mut self, id: &CallId, text: &str) {
        let Some(call) = self.calls.iter_mut().find(|call| call.call.id == *id) else { return };
        call.output.push_str(text);
        call.awaits_input = false;
        let over = call.output.len().saturating_sub(MAX_OUTPUT_BYTES);
        if over > 0 {
            let start = call.output.ceil_char_boundary(over);
            call.output.drain(..start);
        }
    }

    /// Returns the parts that still change.
    pub(crate) fn live_lines(&self, now: Instant) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some((markdown, _)) = &self.answer {
            lines.extend(markdown.tail());
        }
        if self.reasoning_words > 0 {
            lines.push(faint(format!("∴ thinking ({})", counted(self.reasoning_words, "word"))));
        }
        for call in &self.calls {
            let last = call.output.lines().rev().find(|line| !line.trim().is_empty());
            let last = if call.awaits_input { Some("waits for input") } else { last };
            let elapsed = now.saturating_duration_since(call.started);
            let progress = CallProgress::Running(elapsed);
            let view = ToolCallView { call: &call.call, effects: &call.effects, cwd: &self.cwd, progress };
            lines.push(render_tool_call(&view, self.width, &self.theme));
            lines.extend(last.map(|last| faint(format!("  └ {}", visible_prose(last)))));
        }
        if let Some(plan) = &self.plan {
            lines.extend(render_plan(plan, self.width, &self.theme));
        }
        lines
    }
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn transcript() -> Transcript {
        let mut transcript = Transcript::new("/w".into(), &Theme::dark());
        transcript.set_width(40);
        transcript
    }

    #[test]
    fn paragraphs_are_finished_one_by_one_and_only_once() {
        let (mut transcript, now) = (transcript(), Instant::now());
        for piece in ["One.\n\nTwo", ".\n\nTh", "ree."] {
            transcript.on_event(Event::TextDelta { text: piece.to_owned() }, now);
        }
        let early = text(&transcript.take_finished());
        assert_eq!(early.first().map(String::as_str), Some("One."), "{early:?}");
        assert_eq!(text(&transcript.live_lines(now)).last().map(String::as_str), Some("Three."));
        transcript.on_event(Event::Message { text: "One.\n\nTwo.\n\nThree.".to_owned() }, now);
        let all = [early, text(&transcript.take_finished())].concat();
        assert_eq!(all, ["One.", "", "Two.", "", "Three."]);
        assert!(transcript.live_lines(now).is_empty());
    }

    #[test]
    fn parallel_calls_have_a_line_each_with_their_own_output() {
        let (mut transcript, now) = (transcript(), Instant::now());
        for (id, name) in [("1", "first"), ("2", "second")] {
            let call =
                ToolCall { id: id.into(), name: name.into(), input: windlass::Input::Json("{}".to_owned()) };
            let effects = windlass_fakes::clean(windlass::Effects::none());
            transcript.on_event(Event::CallStarted { call: windlass_fakes::clean(call), effects }, now);
        }
        transcript.on_event(Event::CallOutput { id: "2".into(), text: "b\n".to_owned() }, now);
        transcript.on_event(Event::CallOutput { id: "1".into(), text: "a\n".to_owned() }, now);
        let lines = text(&transcript.live_lines(now));
        assert_eq!(lines, ["• first   0.0 s", "  └ a", "• second   0.0 s", "  └ b"]);
    }
}
