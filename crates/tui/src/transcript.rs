//! The conversation on the screen: finished lines, and the parts that still change.

use std::time::Instant;

use ratatui::{
    style::{Color, Modifier, Style},
    text::Line,
};
use windlass::{CallId, Clean, Event, Outcome, Plan, ToolCall, Usage, counted};

use crate::plain_lines::{self, faint, wrapped};

/// Maximum size of the output of a running call that is kept, to show its last line.
const MAX_OUTPUT_BYTES: usize = 4096;

/// The conversation so far.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Lines that never change again and are not yet on the screen.
    finished: Vec<Line<'static>>,
    /// The beginning of the answer that is among the finished lines.
    shown_answer: String,
    /// The rest of the answer, so far.
    answer: String,
    reasoning_words: usize,
    calls: Vec<RunningCall>,
    plan: Option<Plan>,
    diff: Option<String>,
    last_call: Option<(ToolCall, Outcome)>,
    usage: Usage,
    width: u16,
}

/// A call that runs.
#[derive(Debug)]
struct RunningCall {
    id: CallId,
    name: String,
    gist: String,
    started: Instant,
    output: String,
    awaits_input: bool,
}

impl Transcript {
    pub(crate) fn set_width(&mut self, width: u16) {
        self.width = width;
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
        self.finished.extend(wrapped("! ", text, self.width, Color::Yellow.into()));
    }

    /// Adds the last call in full.
    pub(crate) fn expand_last_call(&mut self) {
        match &self.last_call {
            Some((call, outcome)) => {
                self.finished.extend(plain_lines::expanded_call(call, outcome, self.width));
            }
            None => self.note("there was no call yet"),
        }
    }

    pub(crate) fn show_plan(&mut self) {
        match &self.plan {
            Some(plan) => self.finished.extend(plain_lines::plan(plan, self.width)),
            None => self.note("the model has made no plan"),
        }
    }

    pub(crate) fn show_diff(&mut self) {
        match &self.diff {
            Some(diff) => self.finished.extend(plain_lines::diff(diff, self.width)),
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
                id: call.id.clone(),
                name: call.name.to_string(),
                gist: plain_lines::gist(&call, &effects),
                started: now,
                output: String::new(),
                awaits_input: false,
            }),
            Event::CallOutput { id, text } => self.add_output(&id, &text),
            Event::InputAwaited { id } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
                    call.awaits_input = true;
                }
            }
            Event::CallEnded { call, effects, outcome } => {
                self.calls.retain(|running| running.id != call.id);
                let gist = plain_lines::gist(&call, &effects);
                let (name, outcome) = (call.name.to_string(), Clean::into_inner(*outcome));
                self.finished.extend(plain_lines::ended_call(&name, &gist, &outcome, self.width));
                self.last_call = Some((call.into_inner(), outcome));
            }
            Event::TurnDiff { diff } => {
                self.diff = Some(diff).filter(|diff| !diff.trim().is_empty());
                if self.diff.is_some() {
                    self.show_diff();
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
        let done = |plan: &Plan| plan.plan.iter().all(|step| step.status == windlass::PlanStatus::Completed);
        if self.plan.as_ref().is_some_and(done) {
            self.show_plan();
            self.plan = None;
        }
    }

    /// Adds a piece of the answer. Complete paragraphs become finished lines.
    fn add_text(&mut self, text: &str) {
        self.answer.push_str(text);
        let end = complete_paragraphs(&self.answer);
        if end > 0 {
            let rest = self.answer.split_off(end);
            let complete = std::mem::replace(&mut self.answer, rest);
            self.finished.extend(wrapped("", complete.trim_end_matches('\n'), self.width, Style::new()));
            self.finished.push(Line::default());
            self.shown_answer.push_str(&complete);
        }
    }

    /// Completes the answer. Pieces may be missing, so what counts is the whole message.
    fn finish_answer(&mut self, whole: &str) {
        let rest = whole.strip_prefix(&*std::mem::take(&mut self.shown_answer)).unwrap_or(whole).to_owned();
        self.answer = rest;
        self.finish_text();
    }

    fn finish_text(&mut self) {
        let rest = std::mem::take(&mut self.answer);
        self.shown_answer.clear();
        if !rest.trim().is_empty() {
            self.finished.extend(wrapped("", rest.trim_end_matches('\n'), self.width, Style::new()));
        }
    }

    fn add_output(&mut self, id: &CallId, text: &str) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else { return };
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
        if !self.answer.is_empty() {
            lines.extend(wrapped("", &self.answer, self.width, Style::new()));
        }
        if self.reasoning_words > 0 {
            lines.push(faint(format!("∴ thinking ({})", counted(self.reasoning_words, "word"))));
        }
        for call in &self.calls {
            let last = call.output.lines().rev().find(|line| !line.trim().is_empty());
            let last = if call.awaits_input { Some("waits for input") } else { last };
            let elapsed = now.saturating_duration_since(call.started);
            lines.extend(plain_lines::running_call(&call.name, &call.gist, elapsed, last));
        }
        if let Some(plan) = &self.plan {
            lines.extend(plain_lines::plan(plan, self.width));
        }
        lines
    }
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Returns the length of the paragraphs that are complete: up to the last empty line outside of a
/// code block.
fn complete_paragraphs(text: &str) -> usize {
    let (mut end, mut at, mut in_code) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        at += line.len();
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if line == "\n" && !in_code {
            end = at;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn transcript() -> Transcript {
        Transcript { width: 40, ..Transcript::default() }
    }

    #[test]
    fn paragraphs_are_finished_one_by_one_and_only_once() {
        let (mut transcript, now) = (transcript(), Instant::now());
        for piece in ["One.\n", "\nTw", "o."] {
            transcript.on_event(Event::TextDelta { text: piece.to_owned() }, now);
        }
        assert_eq!(text(&transcript.take_finished()), ["One.", ""]);
        assert_eq!(text(&transcript.live_lines(now)), ["Two."]);
        transcript.on_event(Event::Message { text: "One.\n\nTwo.".to_owned() }, now);
        assert_eq!(text(&transcript.take_finished()), ["Two."]);
        assert!(transcript.live_lines(now).is_empty());
    }

    #[test]
    fn a_code_block_is_not_split_at_its_empty_lines() {
        assert_eq!(complete_paragraphs("a\n\n```\nx\n\ny\n"), 3);
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
        assert_eq!(lines, ["• first {} 0 s", "  └ a", "• second {} 0 s", "  └ b"]);
    }
}
