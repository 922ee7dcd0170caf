//! All about a call: arguments, output, diff, confinement, and why it was allowed.

use ratatui::text::{Line, Span};
use serde_json::Value;
use windlass::{Held, Input, Network, Outcome, Receipt, Verdict, counted, shell_script};

use super::{CallProgress, ToolCallView, render_tool_call, shown_path};
use crate::render::{
    Theme,
    ansi::render_output,
    diff::render_unified_diff,
    visible::visible_command,
    wrap::{HangingIndent, wrap_spans, wrap_text},
};

/// Maximum number of lines of one argument.
const MAX_ARGUMENT_LINES: usize = 40;

/// Columns by which details are indented.
const INDENT_COLUMNS: usize = 4;

/// The parts of a call that are shown beside its outcome.
#[derive(Debug, Clone, Copy)]
pub struct CallExpansion<'a> {
    /// The output as the program printed it, with its colours.
    pub output: &'a str,
    /// Maximum number of lines of the output that are shown: the last ones.
    pub max_output_lines: usize,
    /// A unified diff of the files that the call changed; empty if there is none.
    pub diff: &'a str,
}

/// Renders a call with all its details.
pub fn render_call_details(
    view: &ToolCallView<'_>,
    expansion: &CallExpansion<'_>,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut details = CallDetails { lines: vec![render_tool_call(view, width, theme)], width, theme };
    details.add_arguments(view);
    details.add_output(expansion);
    if !expansion.diff.is_empty() {
        details.add_title("changes");
        details.add_diff(expansion.diff);
    }
    if let CallProgress::Ended(outcome) = view.progress {
        details.add_outcome(outcome, view);
    }
    details.lines
}

/// Collects the lines.
struct CallDetails<'a> {
    lines: Vec<Line<'static>>,
    width: u16,
    theme: &'a Theme,
}

impl CallDetails<'_> {
    fn add_title(&mut self, title: &'static str) {
        let spans = [Span::styled(title, self.theme.heading)];
        self.lines.extend(wrap_spans(&spans, self.width, &HangingIndent::from_columns(2)));
    }

    /// Adds `label: text`, wrapped below the text.
    fn add_fact(&mut self, label: &str, text: &str) {
        let label = Span::styled(format!("  {label}: "), self.theme.dim);
        let text = Span::styled(visible_command(text).into_owned(), self.theme.text);
        let indent = HangingIndent::from_columns(INDENT_COLUMNS);
        let indent = HangingIndent { first: Vec::new(), ..indent };
        self.lines.extend(wrap_spans(&[label, text], self.width, &indent));
    }

    fn add_facts(&mut self, label: &str, texts: &[String]) {
        for text in texts {
            self.add_fact(label, text);
        }
    }

    fn add_arguments(&mut self, view: &ToolCallView<'_>) {
        if let Some(command) = &view.effects.command {
            self.add_title("command");
            self.add_block(&shell_script(command));
            return;
        }
        let input = &view.call.input;
        let parsed = match input {
            Input::Json(json) | Input::Search(json) => serde_json::from_str(json).ok(),
            Input::Text(_) => None,
        };
        self.add_title("arguments");
        match parsed {
            Some(Value::Object(fields)) => {
                for (name, value) in &fields {
                    match value {
                        Value::String(text) if text.contains('\n') => {
                            self.add_fact(name, "");
                            self.add_block(text);
                        }
                        Value::String(text) => self.add_fact(name, text),
                        other => self.add_fact(name, &other.to_string()),
                    }
                }
            }
            _ => self.add_block(input.as_str()),
        }
    }

    /// Adds the first lines of a text as they are.
    fn add_block(&mut self, text: &str) {
        let indent = HangingIndent::from_columns(INDENT_COLUMNS);
        let lines = text.lines().count();
        let end = text.match_indices('\n').nth(MAX_ARGUMENT_LINES - 1).map_or(text.len(), |(at, _)| at);
        self.lines.extend(wrap_text(&text[..end], self.theme.code, self.width, &indent));
        if lines > MAX_ARGUMENT_LINES {
            self.add_note(&format!("… {} more", counted((lines - MAX_ARGUMENT_LINES) as u64, "line")));
        }
    }

    fn add_note(&mut self, note: &str) {
        let spans = [Span::styled(note.to_owned(), self.theme.dim)];
        self.lines.extend(wrap_spans(&spans, self.width, &HangingIndent::from_columns(INDENT_COLUMNS)));
    }

    fn add_output(&mut self, expansion: &CallExpansion<'_>) {
        let CallExpansion { output, max_output_lines, .. } = *expansion;
        if output.is_empty() {
            return;
        }
        self.add_title("output");
        let skipped = output.lines().count().saturating_sub(max_output_lines);
        if skipped > 0 {
            self.add_note(&format!("… {} before", counted(skipped as u64, "line")));
        }
        let begin = match skipped {
            0 => 0,
            lines => output.match_indices('\n').nth(lines - 1).map_or(output.len(), |(at, _)| at + 1),
        };
        let indent = HangingIndent::from_columns(INDENT_COLUMNS);
        self.lines.extend(render_output(&output[begin..], self.width, self.theme, &indent));
    }

    fn add_diff(&mut self, diff: &str) {
        let columns = if usize::from(self.width) > 4 * INDENT_COLUMNS { INDENT_COLUMNS } else { 0 };
        let width = self.width - u16::try_from(columns).unwrap_or(0);
        for mut line in render_unified_diff(diff, width, self.theme) {
            line.spans.insert(0, Span::raw(" ".repeat(columns)));
            self.lines.push(line);
        }
    }

    fn add_outcome(&mut self, outcome: &Outcome, view: &ToolCallView<'_>) {
        let Receipt { held, decision, denials, refusal, repairs, undo_limits, hooks, .. } = &outcome.receipt;
        if !decision.is_empty() {
            self.add_fact("allowed because", decision);
        }
        if let Some(refusal) = refusal {
            self.add_fact("refused because", refusal);
        }
        if let Some(held) = held {
            self.add_fact("confined by", &confinement_in_words(held, view));
            self.add_facts("not confined", &held.not_covered);
        }
        for denial in denials {
            self.add_fact("blocked", &denial.advice().unwrap_or_else(|| denial.what.clone()));
        }
        let Verdict { reasons, suggestions, .. } = &outcome.verdict;
        self.add_facts("arguments repaired", repairs);
        self.add_facts("hooks", hooks);
        self.add_facts("verdict", reasons);
        self.add_facts("try", suggestions);
        self.add_facts("cannot be undone", undo_limits);
    }
}

/// Describes what held a call.
fn confinement_in_words(held: &Held, view: &ToolCallView<'_>) -> String {
    let network = match held.network {
        Network::None => "no network",
        Network::Any => "network on",
    };
    let writable: Vec<_> = held.writable.iter().map(|path| shown_path(path, view.cwd)).collect();
    let writable = match writable.as_slice() {
        [] => "nothing writable".to_owned(),
        paths => format!("writable: {}", paths.join(", ")),
    };
    format!("{}; {network}; {writable}", held.rung.name())
}
