//! The conversation on the screen: finished lines, and the parts that still change.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use windlass::{
    Clean, Content, Event, Outcome, Plan, PlanStatus, Reason, Status, Usage, agent_news, clean::Secrets,
    counted, is_same_apart_from_numbers, progress_line,
};

use crate::{
    call_log::{CallDisplay, CallLog},
    render::{
        Theme,
        diff::render_unified_diff,
        markdown::{StreamingMarkdown, render_markdown},
        plan::render_plan,
        visible::visible_prose,
        wrap::cut_spans,
    },
    text_lines::{faint, wrapped},
};

/// The conversation so far.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// Lines that never change again and are not yet on the screen.
    finished: Vec<Line<'static>>,
    /// The answer that arrives, and its text so far.
    answer: Option<(StreamingMarkdown, String)>,
    reasoning_words: usize,
    /// The last piece of reasoning.
    reasoning: Option<String>,
    calls: CallLog,
    plan: Option<Plan>,
    /// The plan is shown below the text, because it may change in this turn.
    has_live_plan: bool,
    usage: Usage,
    last_answer: Option<String>,
    last_part: LastPart,
    /// The failure for which the last request is sent again.
    retried_failure: Option<String>,
    /// Secrets that no diff shows.
    secrets: Secrets,
    width: u16,
    cwd: PathBuf,
    theme: Theme,
}

/// The last part of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastPart {
    Text,
    Call,
    Other,
}

impl Transcript {
    pub(crate) fn new(cwd: PathBuf, theme: &Theme) -> Self {
        Self {
            finished: Vec::new(),
            answer: None,
            reasoning_words: 0,
            reasoning: None,
            calls: CallLog::default(),
            plan: None,
            has_live_plan: false,
            last_part: LastPart::Other,
            retried_failure: None,
            secrets: Secrets::default(),
            usage: Usage::default(),
            last_answer: None,
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

    pub(crate) fn width(&self) -> u16 {
        self.width
    }

    /// Takes the finished lines.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the last answer of the model, as it wrote it.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.last_answer.as_deref()
    }

    /// Forgets what belongs to the former session.
    pub(crate) fn begin_session(&mut self) {
        (self.usage, self.calls) = (Usage::default(), CallLog::default());
        (self.plan, self.reasoning, self.last_answer) = (None, None, None);
    }

    pub(crate) fn has_running_calls(&self) -> bool {
        self.calls.has_running()
    }

    pub(crate) fn running_commands(&self) -> usize {
        self.calls.running_commands()
    }

    /// Separates calls from the text of the model.
    fn begin_part(&mut self, part: LastPart) {
        let last = std::mem::replace(&mut self.last_part, part);
        if last != part && last != LastPart::Other && part != LastPart::Other {
            self.finished.push(Line::default());
        }
    }

    /// Adds a message of the person.
    pub(crate) fn user(&mut self, text: &str) {
        self.begin_part(LastPart::Other);
        self.finished.push(Line::default());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        self.finished.extend(wrapped("› ", text, self.width, bold));
        self.finished.push(Line::default());
    }

    /// Adds a command of the session, above what it prints.
    pub(crate) fn command(&mut self, text: &str) {
        self.begin_part(LastPart::Other);
        self.finished.push(Line::default());
        self.finished.extend(wrapped("› ", text, self.width, dim()));
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

    pub(crate) fn set_secrets(&mut self, secrets: Secrets) {
        self.secrets = secrets;
    }

    fn call_display(&self) -> CallDisplay<'_> {
        CallDisplay { cwd: &self.cwd, width: self.width, theme: &self.theme }
    }

    /// Adds a call in full: the one with this number, or the last one.
    pub(crate) fn expand_call(&mut self, number: Option<usize>) {
        match (self.calls.expand(number, self.call_display()), number) {
            (Some(lines), _) => self.finished.extend(lines),
            (None, Some(number)) => self.warning(&format!("there is no call #{number} to show")),
            (None, None) => self.note("there was no call yet"),
        }
    }

    /// Adds the last piece of reasoning in full.
    pub(crate) fn expand_reasoning(&mut self) {
        match &self.reasoning {
            Some(text) => self.finished.extend(wrapped("∴ ", text, self.width, dim())),
            None => self.note("the model has shown no reasoning yet"),
        }
    }

    pub(crate) fn show_plan(&mut self) {
        match &self.plan {
            Some(plan) => self.finished.extend(render_plan(plan, self.width, &self.theme)),
            None => self.note("the model has made no plan"),
        }
    }

    /// Adds a diff of the whole session.
    pub(crate) fn show_diff(&mut self, diff: &str) {
        if diff.trim().is_empty() {
            self.note("this session has changed no file yet");
        } else {
            self.finished.extend(render_unified_diff(diff, self.width, &self.theme));
        }
    }

    /// Reports a failure of the server once, however often the request is sent again.
    fn show_retry(&mut self, of: u32, left: Duration, reason: String) {
        let reported = self.retried_failure.as_deref();
        if !reported.is_some_and(|earlier| is_same_apart_from_numbers(earlier, &reason)) {
            let limit = format!("up to {of} times within {} s", left.as_secs());
            self.warning(&format!("the model's server failed, trying again {limit}: {reason}"));
        }
        self.retried_failure = Some(reason);
    }

    pub(crate) fn on_event(&mut self, event: Event, now: Instant) {
        let is_piece = matches!(event, Event::TextDelta { .. } | Event::ReasoningDelta { .. });
        if !is_piece && !matches!(event, Event::Retrying { .. }) {
            self.retried_failure = None;
        }
        match event {
            Event::TextDelta { text } => self.add_text(&text),
            Event::ReasoningDelta { text } => self.reasoning_words += text.split_whitespace().count(),
            Event::Message { text } => self.finish_answer(&text),
            Event::Reasoning { text } => self.add_reasoning(text),
            Event::WebSearch { query } => self.note(&format!("searched the web: {query}")),
            Event::CallStarted { call, effects } => {
                self.calls.start(call.into_inner(), effects.into_inner(), now);
            }
            Event::CallOutput { id, text } => self.calls.add_output(&id, &text),
            Event::CallProgress { id, progress, total, message } => {
                let line = progress_line(progress, total, message.as_deref());
                self.calls.add_output(&id, &format!("{line}\n"));
            }
            Event::ColouredOutput { id, text } => self.calls.colour(&id, text),
            Event::InputAwaited { id } => self.calls.await_input(&id),
            Event::EditEnded { id, changed, success: true, .. } => {
                let clean = |text: &str| self.secrets.clean(text).into_owned();
                self.calls.edit(id, &changed, &self.cwd, clean);
            }
            Event::CallEnded { call, effects, outcome } => {
                self.begin_part(LastPart::Call);
                let display = CallDisplay { cwd: &self.cwd, width: self.width, theme: &self.theme };
                let (call, effects) = (call.into_inner(), effects.into_inner());
                let outcome = without_stop_notice(Clean::into_inner(*outcome));
                self.finished.extend(self.calls.end(call, effects, outcome, display));
            }
            Event::AgentUpdated { agent, thread, status, activity } => {
                self.note(&agent_news(&agent, thread.as_str(), &status, activity.as_deref()));
            }
            Event::PlanUpdated(plan) => (self.plan, self.has_live_plan) = (Some(plan), true),
            Event::Retrying { of, left, reason, .. } => self.show_retry(of, left, reason),
            Event::Warning { message } => self.warning(&message),
            Event::CompactionEnded { method, tokens_before, tokens_after, .. } => {
                self.note(&method.describe(tokens_before, tokens_after));
            }
            Event::TurnCompleted { usage, .. } => self.end_turn(usage),
            Event::TurnFailed { message, usage, .. } => {
                self.end_turn(usage);
                if message == Reason::Interrupted.message() {
                    self.finished.push(faint("— cancelled".to_owned()));
                } else {
                    self.warning(&message);
                }
            }
            Event::ThreadStarted { .. }
            | Event::UserMessage { .. }
            | Event::ContextUsed { .. }
            | Event::CompactionStarted { .. }
            | Event::TurnStarted
            | Event::ApprovalAsked { .. }
            | Event::ApprovalAnswered { .. }
            | Event::HookEnded { .. }
            | Event::EditStarted { .. }
            | Event::TurnDiff { .. }
            | Event::EditEnded { .. } => {}
        }
    }

    fn end_turn(&mut self, usage: Usage) {
        self.finish_text();
        self.calls.end_turn();
        self.reasoning_words = 0;
        self.usage += usage;
        if std::mem::take(&mut self.has_live_plan) {
            self.show_plan();
        }
        let done = |plan: &Plan| plan.plan.iter().all(|step| step.status == PlanStatus::Completed);
        self.plan = self.plan.take().filter(|plan| !done(plan));
    }

    /// Adds the first line of a piece of reasoning.
    fn add_reasoning(&mut self, text: String) {
        self.reasoning_words = 0;
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let more = if lines.next().is_some() { " … (/expand reasoning)" } else { "" };
        let shown = Span::styled(format!("∴ {}{more}", visible_prose(first)), dim());
        self.finished.push(cut_spans(&[shown], self.width));
        self.reasoning = Some(text);
    }

    /// Adds a piece of the answer. What cannot change any more becomes finished lines.
    fn add_text(&mut self, text: &str) {
        self.begin_part(LastPart::Text);
        let begin = || (StreamingMarkdown::new(self.width, self.theme), String::new());
        let (markdown, so_far) = self.answer.get_or_insert_with(begin);
        self.finished.extend(markdown.push(text));
        so_far.push_str(text);
    }

    /// Completes the answer. Pieces may be missing, so what counts is the whole message.
    fn finish_answer(&mut self, whole: &str) {
        if !whole.trim().is_empty() {
            self.begin_part(LastPart::Text);
            self.last_answer = Some(whole.to_owned());
        }
        let rest =
            self.answer.as_ref().map(|(_, so_far)| whole.strip_prefix(so_far.as_str()).map(str::to_owned));
        match rest {
            Some(Some(rest)) => self.add_text(&rest),
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

    /// Returns the parts that still change.
    pub(crate) fn live_lines(&self, now: Instant) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some((markdown, _)) = &self.answer {
            lines.extend(markdown.tail());
        }
        if self.reasoning_words > 0 {
            lines.push(faint(format!("∴ thinking ({})", counted(self.reasoning_words, "word"))));
        }
        lines.extend(self.calls.live_lines(now, self.call_display()));
        if let Some(plan) = self.plan.as_ref().filter(|_| self.has_live_plan) {
            lines.extend(render_plan(plan, self.width, &self.theme));
        }
        lines
    }
}

/// Leaves only the output of a call that was stopped: its line says the rest.
fn without_stop_notice(mut outcome: Outcome) -> Outcome {
    if outcome.status == Status::Rejected && outcome.receipt.refusal.is_none() {
        let text = outcome.text();
        let output = text.split_once("\nOutput until then:\n").map(|(_, output)| output.to_owned());
        outcome.content = output.map(Content::Text).into_iter().collect();
    }
    outcome
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
            let call = windlass::ToolCall {
                id: id.into(),
                name: name.into(),
                input: windlass::Input::Json("{}".to_owned()),
            };
            let effects = windlass_fakes::clean(windlass::Effects::none());
            transcript.on_event(Event::CallStarted { call: windlass_fakes::clean(call), effects }, now);
        }
        transcript.on_event(Event::CallOutput { id: "2".into(), text: "b\n".to_owned() }, now);
        transcript.on_event(Event::CallOutput { id: "1".into(), text: "a\n".to_owned() }, now);
        let lines = text(&transcript.live_lines(now));
        assert_eq!(lines, ["• first   0.0 s  #1", "  └ a", "• second   0.0 s  #2", "  └ b"]);
    }

    fn end(transcript: &mut Transcript, id: &str, decision: &str) {
        let mut outcome = Outcome::plain(windlass::Verdict::success(), "out");
        outcome.receipt.decision = decision.to_owned();
        end_with(transcript, id, outcome);
    }

    fn end_with(transcript: &mut Transcript, id: &str, outcome: Outcome) {
        let input = windlass::Input::Json("{}".to_owned());
        let call = windlass::ToolCall { id: id.into(), name: "t".into(), input };
        let outcome = Box::new(windlass_fakes::clean(outcome));
        let (call, effects) = (windlass_fakes::clean(call), windlass_fakes::clean(windlass::Effects::none()));
        transcript.on_event(Event::CallEnded { call, effects, outcome }, Instant::now());
    }

    #[test]
    fn a_rule_that_was_not_used_says_why_below_its_call() {
        let mut transcript = transcript();
        end(&mut transcript, "1", "a rule allows `make`; in the sandbox, because `x` still runs");
        let lines = text(&transcript.take_finished());
        assert_eq!(lines, ["✓ t   done 0.0 s  #1", "  in the sandbox, because `x` still runs", "  │ out"]);
        transcript.expand_call(Some(1));
        let lines = text(&transcript.take_finished()).concat();
        assert!(lines.contains("allowed because: a rule allows"), "{lines}");
        transcript.expand_call(Some(2));
        assert_eq!(text(&transcript.take_finished()), ["! there is no call #2 to show"]);
    }

    #[test]
    fn a_cancelled_turn_is_told_once_and_keeps_the_output_so_far() {
        for (output, shown) in [("", &[][..]), ("\nOutput until then:\nso far\n", &["  │ so far"][..])] {
            let (mut transcript, now) = (transcript(), Instant::now());
            let said = format!("Wall time: 2.0 seconds\naborted by user{output}");
            let mut outcome = Outcome::plain(windlass::Verdict::failure("stopped"), said);
            outcome.status = Status::Rejected;
            end_with(&mut transcript, "1", outcome);
            let (message, usage) = ("aborted by user".to_owned(), Usage::default());
            transcript.on_event(
                Event::TurnFailed { message, reason: String::new(), usage, refusals: Vec::new() },
                now,
            );
            let lines = text(&transcript.take_finished());
            assert_eq!(lines[1..], [shown, &["— cancelled"]].concat());
        }
    }

    #[test]
    fn calls_and_text_are_separated_and_calls_are_not() {
        let (mut transcript, now) = (transcript(), Instant::now());
        end(&mut transcript, "1", "");
        end(&mut transcript, "2", "");
        transcript.on_event(Event::TextDelta { text: "Do".to_owned() }, now);
        transcript.on_event(Event::Message { text: "Done.".to_owned() }, now);
        end(&mut transcript, "3", "");
        let lines = text(&transcript.take_finished());
        let first = |number: usize| format!("✓ t   done 0.0 s  #{number}");
        let out = "  │ out".to_owned();
        let expected = [
            first(1),
            out.clone(),
            first(2),
            out.clone(),
            String::new(),
            "Done.".into(),
            String::new(),
            first(3),
            out,
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_plan_changes_in_place_during_the_turn_and_is_printed_at_its_end() {
        let (mut transcript, now) = (transcript(), Instant::now());
        for status in [PlanStatus::InProgress, PlanStatus::Completed] {
            let step = windlass::PlanStep { step: "Look".to_owned(), status };
            transcript.on_event(Event::PlanUpdated(Plan { explanation: None, plan: vec![step] }), now);
            assert!(transcript.take_finished().is_empty());
        }
        assert_eq!(text(&transcript.live_lines(now)), ["Plan  1 of 1 done", "  [x] Look"]);
        let usage = Usage::default();
        let end = Event::TurnCompleted { usage, declined: false, refusals: Vec::new() };
        transcript.on_event(end.clone(), now);
        assert_eq!(text(&transcript.take_finished()), ["Plan  1 of 1 done", "  [x] Look"]);
        transcript.on_event(end, now);
        assert!(transcript.live_lines(now).is_empty() && transcript.take_finished().is_empty());
    }

    #[test]
    fn reasoning_is_one_line_until_it_is_asked_for() {
        let (mut transcript, now) = (transcript(), Instant::now());
        transcript.on_event(Event::Reasoning { text: "First.\n\nSecond.".to_owned() }, now);
        assert_eq!(text(&transcript.take_finished()), ["∴ First. … (/expand reasoning)"]);
        transcript.expand_reasoning();
        assert!(text(&transcript.take_finished()).contains(&"  Second.".to_owned()));
    }
}
