//! Progress on stderr for a person. Stdout is left to the answer.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    mem,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use windlass::{
    Clean, EditKind, Effects, Event, EventSink, Facts, FileEdit, Outcome, Plan, PlanStatus, Refusal, Status,
    ToolCall, counted, shortened,
};
use windlass_tui::render::visible::visible_prose;
pub(crate) use windlass_tui::render::visible::{path_text, visible, visible_lines, visible_path};

use crate::{colour, paths::PathDisplay};

/// Maximum number of output lines that are shown.
const MAX_LINES_OF_SUCCESS: usize = 5;
const MAX_LINES_OF_FAILURE: usize = 12;
/// Goes to the beginning of the line and clears it (ECMA-48: CR, EL).
const CLEAR_LINE: &str = "\r\x1b[K";

/// Shows progress.
pub(crate) struct ProgressScreen {
    style: TerminalStyle,
    paths: PathDisplay,
    /// The model's last message. The very last one is the answer, which goes to stdout; the others
    /// are progress.
    said: Mutex<Option<String>>,
    /// The last message about changes that cannot be undone: it is the same for most commands.
    undo_limits: Mutex<Vec<String>>,
    retries: Mutex<ShownRetries>,
}

/// The retries on the screen. A server that stays unreachable is reported once, not with every try.
#[derive(Default)]
struct ShownRetries {
    /// The provider and its error.
    reported: Option<(String, String)>,
    /// The line of the terminal below holds the next pause, and the next output replaces it.
    has_countdown: bool,
}

impl ProgressScreen {
    /// Creates a screen for a user of this directory.
    pub(crate) fn new(cwd: &Path) -> Self {
        Self {
            style: TerminalStyle::detect(),
            paths: PathDisplay::seen_from(cwd),
            said: Mutex::default(),
            undo_limits: Mutex::default(),
            retries: Mutex::default(),
        }
    }

    fn show(&self, text: &str) {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        let cleared = if mem::take(&mut retries.has_countdown) { CLEAR_LINE } else { "" };
        // If stderr is gone, there is no place to report it.
        let _gone = io::stderr().lock().write_all(format!("{cleared}{text}\n").as_bytes());
    }

    /// Reports a failure once; on a terminal, one more line shows the next pause and is replaced
    /// with every try.
    fn show_retry(&self, provider: &str, reason: &str, pause: &RetryPause) {
        let failure = (provider.to_owned(), reason.to_owned());
        let is_reported = {
            let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
            retries.reported.replace(failure.clone()) == Some(failure)
        };
        if !is_reported {
            let (provider, reason) = (visible(provider), visible(reason));
            self.show(&self.style.yellow(&format!("retrying {provider} {pause}: {reason}")));
        } else if io::stderr().is_terminal() {
            let line = format!("{CLEAR_LINE}{}", self.style.yellow(&format!("retrying {pause}")));
            let _gone = io::stderr().lock().write_all(line.as_bytes());
            self.retries.lock().unwrap_or_else(PoisonError::into_inner).has_countdown = true;
        }
    }
}

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

impl ProgressScreen {
    /// Reports what cannot be undone, unless the last such message was the same.
    fn show_undo_limits(&self, limits: &[String]) {
        let mut told = self.undo_limits.lock().unwrap_or_else(PoisonError::into_inner);
        if !limits.is_empty() && *told != limits {
            for line in limits {
                self.show(&self.style.dim(&format!("  {}", visible(line))));
            }
            *told = limits.to_vec();
        }
    }

    fn show_all(&self, refusals: &[Refusal]) {
        for refusal in refusals {
            self.show(&self.style.yellow(&refused(refusal)));
        }
    }
}

impl EventSink for ProgressScreen {
    fn emit(&self, event: &Clean<Event>) {
        let event = &**event;
        let Self { style, paths, .. } = self;
        // A warning and the diff of a turn may come after the last message, which stays the answer.
        if !is_piece(event) && !matches!(event, Event::Warning { .. } | Event::TurnDiff { .. }) {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(text) = said.take().filter(|_| !matches!(event, Event::TurnCompleted { .. })) {
                text.lines().for_each(|line| self.show(&visible_prose(line)));
            }
        }
        if !is_piece(event) && !matches!(event, Event::Retrying { .. }) {
            self.retries.lock().unwrap_or_else(PoisonError::into_inner).reported = None;
        }
        match event {
            Event::CallStarted { call, effects } => {
                self.show(&format!("{} {}", style.bold("•"), title(paths, call, effects)))
            }
            Event::CallEnded { call, effects, outcome } => {
                self.show(&ending(self, call, effects, outcome));
                self.show_undo_limits(&outcome.receipt.undo_limits);
            }
            Event::Reasoning { text } => {
                if let Some(first) = text.lines().find(|line| !line.trim().is_empty()) {
                    self.show(&style.dim(&visible_prose(first)));
                }
            }
            Event::WebSearch { query } => {
                self.show(&format!("{} web search: {}", style.bold("•"), visible(query)))
            }
            Event::PlanUpdated(plan) => self.show(&plan_text(plan)),
            Event::Retrying { provider, attempt, of, delay, left, reason } => {
                let pause = RetryPause { attempt: *attempt, of: *of, delay: *delay, left: *left };
                self.show_retry(provider, reason, &pause);
            }
            Event::Warning { message } => self.show(&style.yellow(&format!("warning: {}", visible(message)))),
            Event::TurnCompleted { usage, refusals, .. } => {
                self.show_all(refusals);
                let (read, written) = (usage.input_tokens, usage.output_tokens);
                if usage.total() > 0 {
                    self.show(&style.dim(&format!("tokens: {read} in, {written} out")));
                }
            }
            Event::TurnFailed { message, refusals, .. } => {
                self.show_all(refusals);
                self.show(&style.red(&format!("error: {}", visible(message))));
            }
            Event::Message { text } => {
                *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
            }
            Event::ThreadStarted { thread } => self.show(&style.dim(&format!("session {thread}"))),
            Event::EditEnded { files, success: true, .. } => {
                for file in files {
                    self.show(&format!("  {}", edited(paths, file)));
                }
            }
            Event::TurnStarted
            | Event::ApprovalAsked { .. }
            | Event::ApprovalAnswered { .. }
            | Event::EditStarted { .. }
            | Event::EditEnded { .. }
            | Event::TurnDiff { .. }
            | Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::InputAwaited { .. }
            | Event::CallOutput { .. } => {}
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

/// Maximum number of characters of a command when it begins. A question about it shows all of it.
const MAX_COMMAND_CHARS: usize = 16 * 1024;

/// Returns true if an event is only a part of something that will be shown whole.
fn is_piece(event: &Event) -> bool {
    matches!(event, Event::TextDelta { .. } | Event::ReasoningDelta { .. } | Event::CallOutput { .. })
}

fn title(paths: &PathDisplay, call: &ToolCall, effects: &Effects) -> String {
    // The name is whatever a model wrote: the tool need not exist.
    let name = call.name.as_str();
    match (&effects.command, &effects.typed) {
        // The whole command, up to any reasonable length: a part that is not shown could be
        // anything.
        (Some(command), _) => {
            visible(&format!("{name} {}", shortened(&command.display(), MAX_COMMAND_CHARS)))
        }
        (None, Some(typed)) => visible(&format!("{name} {}", shortened(&typed.display(), MAX_COMMAND_CHARS))),
        (None, None) if !effects.writes.is_empty() => {
            let written = effects.writes.iter().map(|path| paths.show(path)).collect::<Vec<_>>().join(", ");
            format!("{} {written}", named(name))
        }
        (None, None) => {
            let input = shortened(&paths.show_in_json(call.input.as_str()), 200);
            format!("{} {input}", named(name))
        }
    }
}

/// Describes the change of a file in the usual notation.
fn edited(paths: &PathDisplay, file: &FileEdit) -> String {
    let letter = match file.kind {
        EditKind::Add => "A",
        EditKind::Delete => "D",
        EditKind::Update => "M",
    };
    match &file.move_path {
        Some(to) => format!("{letter} {} -> {}", paths.show(&file.path), paths.show(to)),
        None => format!("{letter} {}", paths.show(&file.path)),
    }
}

fn ending(screen: &ProgressScreen, call: &ToolCall, effects: &Effects, outcome: &Outcome) -> String {
    let ProgressScreen { style, paths, .. } = screen;
    let seconds = outcome.receipt.duration.as_secs_f32();
    let how = match (&outcome.facts, outcome.facts.exit(), outcome.status) {
        (_, Some(exit), Status::Success | Status::Error) => format!("exit {}", exit.code()),
        (Facts::Session(session), None, _) if session.report.waits_for_input => {
            format!("session {} waits for input", session.session)
        }
        (Facts::Session(session), None, _) => format!("session {} is running", session.session),
        (_, _, status) => status.name().replace('_', " "),
    };
    let (mark, most) = if outcome.verdict.success {
        (style.green("ok"), MAX_LINES_OF_SUCCESS)
    } else {
        (style.red("failed"), MAX_LINES_OF_FAILURE)
    };
    let begun = if outcome.receipt.held.is_none() {
        format!("{} {}\n", style.bold("•"), title(paths, call, effects))
    } else {
        String::new()
    };
    // The result of a tool without a command is for the model; a person only needs its status.
    let has_program = effects.has_program() || matches!(outcome.facts, Facts::Session(_));
    let silent = outcome.verdict.success && !has_program;
    let output = if silent { String::new() } else { tail(&outcome.text(), outcome.view.total_lines, most) };
    let told = outcome.insight.as_ref().filter(|insight| insight.is_telling());
    let told = told.map(|insight| format!(": {}", visible(&insight.summary))).unwrap_or_default();
    format!("{begun}  {mark} {how}, {seconds:.1} s{told}{output}")
}

/// Returns the last lines of an output, and the number of lines before them. The text may be cut;
/// then `total` is the original number of lines.
fn tail(text: &str, total: Option<u64>, most: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    let skipped = lines.len().saturating_sub(most);
    let shown =
        lines[skipped..].iter().map(|line| format!("\n  | {}", visible_prose(line))).collect::<String>();
    let in_all = total.unwrap_or(lines.len() as u64).max(lines.len() as u64);
    let hidden = in_all - (lines.len() - skipped) as u64;
    if skipped > 0 { format!("\n  | … {}{shown}", counted(hidden, "more line")) } else { shown }
}

fn refused(refusal: &Refusal) -> String {
    let made_up = if refusal.made_up_for { " (a later call replaced it)" } else { "" };
    let reason = refusal.reason.strip_prefix("refused: ").unwrap_or(&refusal.reason);
    format!("refused: {}: {}{made_up}", named(refusal.tool.as_str()), visible(reason))
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
    visible(&shortened(name, 64))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_that_are_not_shown_are_counted() {
        assert_eq!(tail("1\n2\n3", None, 2), "\n  | … 1 more line\n  | 2\n  | 3");
        assert_eq!(
            tail("1\n… 2990 lines …\n2999\n3000", Some(3000), 2),
            "\n  | … 2998 more lines\n  | 2999\n  | 3000"
        );
        assert_eq!(tail("1\n2", None, 2), "\n  | 1\n  | 2");
    }
}
