//! Progress on stderr for a person. Stdout is left to the answer.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    io::{self, IsTerminal},
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    CallId, CallWords, Clean, Denial, Effects, Event, EventSink, Outcome, Plan, PlanStatus, Refusal,
    ToolCall, agent_news, clean::Secrets, is_same_apart_from_numbers, progress_line, shortened,
};
use windlass_tui::render::visible::visible_prose;
pub(crate) use windlass_tui::render::visible::{path_text, visible, visible_lines, visible_path};

mod call_lines;
mod edit_lines;

use call_lines::{CallEnd, heading, title};
use edit_lines::EditLines;

use crate::{
    allow_hints::AllowHints, colour, paths::PathDisplay, progress_terminal::ProgressTerminal,
    setup::ProgramSetup, streamed_text::StreamedText, wrap::live_columns,
};

/// Shows progress.
pub(crate) struct ProgressScreen {
    style: TerminalStyle,
    paths: PathDisplay,
    terminal: Arc<ProgressTerminal>,
    hints: Arc<AllowHints>,
    secrets: Secrets,
    state: Mutex<ScreenState>,
}

#[derive(Default)]
struct ScreenState {
    /// The model's last message, if text is not shown as it arrives. The very last one is the
    /// answer, which goes to stdout; the others are progress.
    said: Option<String>,
    /// The message that is arriving.
    text: StreamedText,
    /// The last message that was shown to its end as it arrived.
    shown_message: Option<String>,
    /// The last message about changes that cannot be undone: it is the same for most commands.
    undo_limits: Vec<String>,
    /// The provider and its error, which is reported once, not with every try.
    reported_failure: Option<String>,
    calls: HashMap<CallId, OpenCallTitle>,
    /// The call whose heading is the last line.
    last_heading: Option<CallId>,
    /// The rules of the sandbox that blocked something, and how to change each.
    causes: HashSet<(String, String)>,
    /// Refused calls in words, and how each could be allowed.
    refused: HashMap<CallId, (String, Option<String>)>,
}

/// A call that runs.
struct OpenCallTitle {
    /// Its heading. It differs from those of all other calls that run.
    title: CallWords,
    edits: Vec<String>,
}

impl ProgressScreen {
    /// Creates a screen for the user of this setup.
    pub(crate) fn new(setup: &ProgramSetup, terminal: Arc<ProgressTerminal>, hints: Arc<AllowHints>) -> Self {
        let (style, paths) = (TerminalStyle::detect(), PathDisplay::seen_from(&setup.cwd));
        Self { style, paths, terminal, hints, secrets: setup.secrets(), state: Mutex::default() }
    }

    /// Returns true if the answer is on the terminal that stdout is, so that printing it would
    /// repeat it.
    pub(crate) fn has_shown(&self, answer: &str) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shown = state.shown_message.as_ref().is_some_and(|shown| shown.trim() == answer.trim());
        is_shown && is_same_terminal()
    }

    fn show(&self, state: &mut ScreenState, text: &str) {
        state.last_heading = None;
        self.terminal.print(text);
    }

    /// Reports a failure once; on a terminal, one more line shows the next pause and is replaced
    /// with every try.
    fn show_retry(&self, state: &mut ScreenState, (provider, reason): (&str, &str), pause: &RetryPause) {
        self.end_text(state);
        let reported = state.reported_failure.replace(reason.to_owned());
        if !reported.is_some_and(|earlier| is_same_apart_from_numbers(&earlier, reason)) {
            let (provider, reason) = (visible(provider), visible(reason));
            self.show(state, &self.style.yellow(&format!("retrying {provider} {pause}: {reason}")));
        } else if self.terminal.is_live() {
            self.terminal.set_pause_note(format!("retrying {pause}"));
        }
    }

    /// Reports what cannot be undone, unless the last such message was the same.
    fn show_undo_limits(&self, state: &mut ScreenState, limits: &[String]) {
        if !limits.is_empty() && state.undo_limits != limits {
            for line in limits {
                self.show(state, &self.style.dim(&format!("  {}", visible(line))));
            }
            state.undo_limits = limits.to_vec();
        }
    }

    /// Reports what the sandbox blocked and how to allow it, once for each cause.
    fn show_denials(&self, state: &mut ScreenState, denials: &[Denial]) {
        for denial in denials {
            let Some(advice) = denial.advice() else { continue };
            if state.causes.insert((denial.rule.clone(), denial.remedy.clone())) {
                self.show(state, &self.style.yellow(&format!("  {}", visible(&advice))));
            }
        }
    }

    /// Lists the refused calls. The reason of each is shown where it was refused; a hint is shown
    /// once for all calls that it is about.
    fn show_refusals(&self, state: &mut ScreenState, refusals: &[Refusal]) {
        let mut hints = HashSet::new();
        for refusal in refusals {
            let known = state.refused.remove(&refusal.call);
            let (line, hint) = known.unwrap_or_else(|| {
                let tool = named(refusal.tool.as_str());
                (format!("{tool}: {}", visible(reason(&refusal.reason))), None)
            });
            let made_up = if refusal.made_up_for { " (a later call replaced it)" } else { "" };
            self.show(state, &self.style.yellow(&format!("refused: {line}{made_up}")));
            if let Some(hint) = hint.filter(|hint| !refusal.made_up_for && hints.insert(hint.clone())) {
                self.show(state, &format!("  {}", visible(&hint)));
            }
        }
    }

    /// Shows a piece of the model's text.
    fn show_text(&self, state: &mut ScreenState, piece: &str) {
        let piece = if state.text.is_empty() { piece.trim_start() } else { piece };
        if !piece.is_empty() {
            state.last_heading = None;
            let lines = state.text.push(piece, live_columns());
            self.terminal.print_text(&lines, state.text.partial());
        }
    }

    /// Ends the message that is arriving.
    fn end_text(&self, state: &mut ScreenState) {
        let text = mem::take(&mut state.text);
        if !text.is_empty() {
            let last = text.partial().to_owned();
            let last = if last.is_empty() { Vec::new() } else { vec![last] };
            self.terminal.print_text(&last, "");
        }
    }

    /// Shows a message that is complete, as far as it is not shown yet.
    fn show_message(&self, state: &mut ScreenState, message: &str) {
        if !self.terminal.is_live() {
            state.said = Some(message.to_owned());
            return;
        }
        let rest = state.text.rest_of(message).map(str::to_owned);
        if rest.is_none() {
            self.end_text(state);
        }
        self.show_text(state, rest.as_deref().unwrap_or(message));
        self.end_text(state);
        state.shown_message = Some(message.to_owned());
    }

    /// Shows the last message, which was not the answer.
    fn show_said(&self, state: &mut ScreenState) {
        if let Some(text) = state.said.take() {
            text.lines().for_each(|line| self.show(state, &visible_prose(line)));
        }
    }

    fn begin_call(&self, state: &mut ScreenState, call: &ToolCall, effects: &Effects) {
        if is_plan(call) {
            return;
        }
        let mut title = title(&self.paths, call, effects);
        let twins = state.calls.values().filter(|other| other.title.object == title.object).count();
        if twins > 0 {
            title.object = format!("{} ({})", title.object, twins + 1);
        }
        if self.terminal.is_live() {
            self.terminal.begin_call(&call.id, visible(&title.one_line()));
        } else {
            self.show(state, &heading(&self.style, &title));
            state.last_heading = Some(call.id.clone());
        }
        state.calls.insert(call.id.clone(), OpenCallTitle { title, edits: Vec::new() });
    }

    fn end_call(&self, state: &mut ScreenState, call: &ToolCall, effects: &Effects, outcome: &Outcome) {
        if is_plan(call) && outcome.verdict.success {
            return;
        }
        self.terminal.end_call(&call.id);
        let known = state.calls.remove(&call.id);
        let is_begun = known.is_some() && !self.terminal.is_live();
        let OpenCallTitle { title, edits } = known
            .unwrap_or_else(|| OpenCallTitle { title: title(&self.paths, call, effects), edits: Vec::new() });
        let end = CallEnd { style: &self.style, effects, outcome };
        let is_alone = state.last_heading == Some(call.id.clone()) && state.calls.is_empty();
        let first = match is_alone {
            true if is_begun => format!("  {}", end.words()),
            // Other lines came between, or will come: the heading is repeated on the same line.
            false if is_begun => {
                format!("{} {}: {}", self.style.bold("•"), visible(&title.one_line()), end.words())
            }
            _ => format!("{}\n  {}", heading(&self.style, &title), end.words()),
        };
        let edits: String = edits.iter().map(|line| format!("\n  {line}")).collect();
        self.show(state, &format!("{first}{edits}{}", end.output()));
        self.show_denials(state, &outcome.receipt.denials);
        self.show_undo_limits(state, &outcome.receipt.undo_limits);
        if let Some(reason) = &outcome.receipt.refusal {
            let hint = self.hints.hint(effects, reason);
            state.refused.insert(call.id.clone(), (visible(&title.one_line()), hint));
        }
        self.terminal.begin_waiting(WAITING_FOR_MODEL);
    }

    fn end_turn(&self, state: &mut ScreenState, refusals: &[Refusal]) {
        self.end_text(state);
        self.terminal.end_waiting();
        self.show_refusals(state, refusals);
    }
}

/// The line while the model is silent.
const WAITING_FOR_MODEL: &str = "waiting for the model";

/// The pause before another try, in words.
struct RetryPause {
    attempt: u32,
    of: u32,
    delay: Duration,
    left: Duration,
}

impl fmt::Display for RetryPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempt, of, delay, left } = self;
        let (delay, left) = (delay.as_secs_f32(), left.as_secs_f32());
        write!(f, "in {delay:.1} s (try {attempt} of {of}, for {left:.0} s at most)")
    }
}

impl EventSink for ProgressScreen {
    fn emit(&self, event: &Clean<Event>) {
        let event = &**event;
        let style = &self.style;
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A warning and the diff of a turn may come after the last message, which stays the answer.
        if !is_piece(event)
            && !matches!(event, Event::Warning { .. } | Event::TurnDiff { .. } | Event::TurnCompleted { .. })
        {
            self.show_said(state);
        }
        if !is_piece(event) && !matches!(event, Event::Retrying { .. }) {
            state.reported_failure = None;
        }
        match event {
            Event::CallStarted { call, effects } => self.begin_call(state, call, effects),
            Event::CallOutput { id, text } => self.terminal.set_output(id, text),
            Event::CallProgress { id, progress, total, message } => {
                self.terminal.set_output(id, &progress_line(*progress, *total, message.as_deref()));
            }
            Event::CallEnded { call, effects, outcome } => self.end_call(state, call, effects, outcome),
            Event::TextDelta { text } if self.terminal.is_live() => self.show_text(state, text),
            Event::ReasoningDelta { .. } => self.terminal.begin_waiting("the model is thinking"),
            Event::Reasoning { text } => {
                if let Some(first) = text.lines().find(|line| !line.trim().is_empty()) {
                    self.show(state, &style.dim(&visible_prose(first)));
                }
            }
            Event::WebSearch { query } => {
                self.show(state, &format!("{} search the web for {}", style.bold("•"), visible(query)));
            }
            Event::PlanUpdated(plan) => self.show(state, &plan_text(plan)),
            Event::AgentUpdated { agent, thread, status, activity } => {
                let news = agent_news(agent, thread.as_str(), status, activity.as_deref());
                self.show(state, &style.dim(&visible(&news)));
            }
            Event::Retrying { provider, attempt, of, delay, left, reason } => {
                let pause = RetryPause { attempt: *attempt, of: *of, delay: *delay, left: *left };
                self.show_retry(state, (provider, reason), &pause);
            }
            Event::Warning { message } => {
                self.show(state, &style.yellow(&format!("warning: {}", visible(message))));
            }
            Event::TurnCompleted { usage, refusals, .. } => {
                self.end_turn(state, refusals);
                let (read, written) = (usage.input_tokens, usage.output_tokens);
                if usage.total() > 0 {
                    self.show(state, &style.dim(&format!("tokens: {read} in, {written} out")));
                }
            }
            Event::TurnFailed { message, refusals, .. } => {
                self.end_turn(state, refusals);
                self.show(state, &style.red(&format!("error: {}", visible(message))));
            }
            Event::Message { text } => self.show_message(state, text),
            Event::CompactionStarted { .. } => self.terminal.begin_waiting("making the context shorter"),
            Event::CompactionEnded { method, tokens_before, tokens_after, .. } => {
                self.show(state, &style.dim(&method.describe(*tokens_before, *tokens_after)));
            }
            Event::EditEnded { id, files, success: true, changed } => {
                let lines = EditLines { style, paths: &self.paths, secrets: &self.secrets };
                if let Some(call) = state.calls.get_mut(id) {
                    call.edits.extend(lines.all(files, changed));
                }
            }
            Event::TurnStarted => self.terminal.begin_waiting(WAITING_FOR_MODEL),
            Event::ThreadStarted { .. }
            | Event::UserMessage { .. }
            | Event::ColouredOutput { .. }
            | Event::ContextUsed { .. }
            | Event::ApprovalAsked { .. }
            | Event::ApprovalAnswered { .. }
            | Event::HookEnded { .. }
            | Event::EditStarted { .. }
            | Event::EditEnded { .. }
            | Event::TurnDiff { .. }
            | Event::TextDelta { .. }
            | Event::InputAwaited { .. } => {}
        }
    }
}

/// Shows one call while it runs, and warnings.
pub(crate) struct SingleCallScreen {
    pub(crate) paths: PathDisplay,
    pub(crate) terminal: Arc<ProgressTerminal>,
}

impl EventSink for SingleCallScreen {
    fn emit(&self, event: &Clean<Event>) {
        match &**event {
            Event::CallStarted { call, effects } => {
                let title = title(&self.paths, call, effects);
                self.terminal.begin_call(&call.id, visible(&title.one_line()));
            }
            Event::CallOutput { id, text } => self.terminal.set_output(id, text),
            Event::CallEnded { call, .. } => {
                self.terminal.end_call(&call.id);
                // Without the call, the picture is empty.
                self.terminal.end_waiting();
            }
            Event::Warning { message } => self.terminal.print(&format!("warning: {}", visible(message))),
            _ => {}
        }
    }
}

/// Shows only warnings, for single calls: for example, that an interrupted patch is rolled back.
pub(crate) struct WarningScreen;

impl EventSink for WarningScreen {
    fn emit(&self, event: &Clean<Event>) {
        if let Event::Warning { message } = &**event {
            crate::note(&format!("warning: {}", visible(message)));
        }
    }
}

/// Maximum number of characters of the name of a tool.
const MAX_NAME_CHARS: usize = 64;

/// Returns true if a call changes the plan, which is shown on its own.
fn is_plan(call: &ToolCall) -> bool {
    call.name.as_str() == "update_plan"
}

/// Returns true if an event is only a part of something that will be shown whole.
fn is_piece(event: &Event) -> bool {
    matches!(event, Event::TextDelta { .. } | Event::ReasoningDelta { .. } | Event::CallOutput { .. })
}

/// Returns the reason of a refusal without the word that lines about refusals begin with.
fn reason(refusal: &str) -> &str {
    refusal.strip_prefix("refused: ").unwrap_or(refusal)
}

fn plan_text(plan: &Plan) -> String {
    let steps = plan.plan.iter().map(|step| {
        let mark = match step.status {
            PlanStatus::Pending => " ",
            PlanStatus::InProgress => ">",
            PlanStatus::Completed => "x",
        };
        format!("\n  [{mark}] {}", visible(&step.step))
    });
    format!("plan:{}", steps.collect::<String>())
}

/// Returns the name of a tool, escaped, because it may come from a model, a server or a list.
pub(crate) fn named(name: &str) -> String {
    visible(&shortened(name, MAX_NAME_CHARS))
}

/// Returns true if stdout and stderr are the same terminal.
fn is_same_terminal() -> bool {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    if !stdout.is_terminal() || !stderr.is_terminal() {
        return false;
    }
    match (rustix::fs::fstat(&stdout), rustix::fs::fstat(&stderr)) {
        (Ok(stdout), Ok(stderr)) => stdout.st_rdev == stderr.st_rdev,
        _ => false,
    }
}

/// Colours, only on a terminal that wants them.
struct TerminalStyle {
    colour: bool,
}

impl TerminalStyle {
    fn detect() -> Self {
        Self { colour: colour::is_wanted(&io::stderr()) }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn red(&self, text: &str) -> String {
        self.paint("31", text)
    }

    fn green(&self, text: &str) -> String {
        self.paint("32", text)
    }

    fn yellow(&self, text: &str) -> String {
        self.paint("33", text)
    }
}
