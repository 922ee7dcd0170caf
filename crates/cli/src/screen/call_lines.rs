//! The lines about one call: its heading, its end, and some of its output.

use windlass::{
    CallWords, Denial, Effects, Facts, Outcome, OutputExcerpt, ToolCall, counted, duration_in_words,
    insight::{Detail, ExitClass, Insight},
    outcome_words, shortened,
};
use windlass_tui::render::visible::{visible, visible_prose};

use super::{MAX_NAME_CHARS, TerminalStyle, reason};
use crate::paths::PathDisplay;

/// Maximum number of characters of a command when it begins. A question about it shows all of it.
const MAX_COMMAND_CHARS: usize = 16 * 1024;

/// Describes a call as the user of this directory knows its files.
pub(super) fn title(paths: &PathDisplay, call: &ToolCall, effects: &Effects) -> CallWords {
    let mut words = CallWords::new(call, effects, &|path| paths.show(path));
    // The name is whatever a model wrote: the tool need not exist.
    words.action = shortened(&words.action, MAX_NAME_CHARS);
    // The whole command, up to any reasonable length: a part that is not shown could be anything.
    words.object = shortened(&words.object, MAX_COMMAND_CHARS);
    words
}

/// Formats the heading of a call. Each further line of its command is marked.
pub(super) fn heading(style: &TerminalStyle, title: &CallWords) -> String {
    let text = title.to_string();
    let mut lines = text.trim_end().lines();
    let first = visible(lines.next().unwrap_or_default());
    let more: String = lines.map(|line| format!("\n    > {}", visible(line))).collect();
    format!("{} {first}{more}", style.bold("•"))
}

/// The end of a call.
pub(super) struct CallEnd<'a> {
    pub(super) style: &'a TerminalStyle,
    pub(super) effects: &'a Effects,
    pub(super) outcome: &'a Outcome,
}

impl CallEnd<'_> {
    /// Returns the end in a word or two, with the time it took and what its output means.
    pub(super) fn words(&self) -> String {
        let Self { style, outcome, .. } = self;
        let words = match &outcome.facts {
            Facts::Session(session) if session.report.exit.is_none() => {
                format!("session {} {}", session.session, outcome_words(outcome))
            }
            Facts::Session(_) | Facts::Command(_) | Facts::Remote(_) | Facts::None => outcome_words(outcome),
        };
        let words = if outcome.verdict.success { style.green(&words) } else { style.red(&words) };
        if let Some(refusal) = &outcome.receipt.refusal {
            return format!("{words}: {}", visible(reason(refusal)));
        }
        let told = outcome.insight.as_ref().filter(|insight| insight.is_telling());
        let told = told.and_then(|insight| summary(insight, &self.output()));
        let told = told.map(|summary| format!(": {}", visible(&summary))).unwrap_or_default();
        format!("{words}, {}{told}", duration_in_words(outcome.receipt.duration))
    }

    /// Returns the beginning and the end of the output. The result of a tool without a command is
    /// for the model; a person only needs its status.
    pub(super) fn output(&self) -> String {
        let Self { effects, outcome, .. } = self;
        let has_program = effects.has_program() || matches!(outcome.facts, Facts::Session(_));
        if outcome.receipt.refusal.is_some() || outcome.verdict.success && !has_program {
            return String::new();
        }
        let text = outcome.text();
        let advice: Vec<_> = outcome.receipt.denials.iter().filter_map(Denial::advice).collect();
        // What the sandbox blocked is reported on its own.
        let is_advice = |line: &&str| advice.iter().any(|advice| advice == *line);
        let begins = text.lines().take_while(is_advice).map(|line| line.len() + 1).sum::<usize>();
        let text = text.get(begins..).unwrap_or_default();
        let excerpt = OutputExcerpt::new(text, outcome.view.total_lines, outcome.verdict.success);
        let line = |line: &&str| format!("\n  | {}", visible_prose(line));
        let hidden = (excerpt.hidden > 0).then(|| format!("\n  | … {}", counted(excerpt.hidden, "line")));
        excerpt.first.iter().map(line).chain(hidden).chain(excerpt.last.iter().map(line)).collect()
    }
}

/// Returns the meaning of an output without an error that the lines below it show.
fn summary(insight: &Insight, shown: &str) -> Option<String> {
    let Detail::Command(command) = &insight.detail else { return Some(insight.summary.clone()) };
    let repeated = command.first_error.as_ref().and_then(|error| {
        let class = insight.summary.strip_suffix(error.as_str())?.strip_suffix(": ")?;
        let begin = visible_prose(error.trim_end_matches('…'));
        let is_shown = shown.lines().any(|line| {
            line.trim_start().strip_prefix("| ").is_some_and(|line| line.trim_start().starts_with(&*begin))
        });
        is_shown.then(|| class.to_owned())
    });
    match repeated {
        // The exit code says as much.
        Some(_) if command.class == ExitClass::Failed => None,
        Some(class) => Some(class),
        None => Some(insight.summary.clone()),
    }
}

#[cfg(test)]
mod tests {
    use windlass::insight::{CommandInsight, Diagnostics};

    use super::*;

    #[test]
    fn an_error_that_is_shown_is_not_repeated_as_the_summary() {
        let insight = |class: ExitClass, error: &str| {
            let summary = format!("{}: {error}", class.name());
            let (first_error, diagnostics) = (Some(error.to_owned()), Diagnostics::default());
            let detail = Detail::Command(CommandInsight { class, first_error, diagnostics, tests: None });
            Insight { summary, detail }
        };
        let (error, shown) = ("curl: (6) no such host", "\n  | % Total\n  |   curl: (6) no such host");
        assert_eq!(summary(&insight(ExitClass::Denied, error), shown).as_deref(), Some("denied"));
        assert_eq!(summary(&insight(ExitClass::Failed, error), shown), None);
        let hidden = insight(ExitClass::Denied, "an earlier line");
        assert_eq!(summary(&hidden, shown).as_deref(), Some("denied: an earlier line"));
    }
}
