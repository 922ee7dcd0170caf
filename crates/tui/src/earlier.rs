//! The earlier conversation of a session that is resumed.

use std::path::Path;

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use windlass::{Effects, ToolCall};

use crate::{
    render::{
        Theme, markdown::render_markdown, tool_call::call_words, visible::visible_prose, wrap::cut_spans,
    },
    text_lines::{faint, wrapped},
};

/// A function that returns an earlier conversation.
pub type EarlierConversation = Box<dyn FnOnce() -> Vec<EarlierEntry>>;

/// A part of an earlier conversation.
#[derive(Debug, Clone)]
pub enum EarlierEntry {
    /// So many parts are not shown.
    Omitted(usize),
    /// A message of the person.
    Prompt(String),
    /// An answer of the model.
    Answer(String),
    /// A call.
    Call(ToolCall),
    /// The early end of a turn, in words.
    Ended(String),
}

/// Renders an earlier conversation.
pub(crate) fn render_earlier(
    entries: &[EarlierEntry],
    cwd: &Path,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = Vec::new();
    for entry in entries {
        match entry {
            EarlierEntry::Omitted(count) => {
                lines.push(faint(format!("… {} before this", windlass::counted(*count, "more step"))));
            }
            EarlierEntry::Prompt(text) => {
                lines.push(Line::default());
                lines.extend(wrapped("› ", text, width, bold));
                lines.push(Line::default());
            }
            EarlierEntry::Answer(text) => lines.extend(render_markdown(text, width, theme)),
            EarlierEntry::Ended(word) => lines.push(faint(format!("— {}", visible_prose(word)))),
            EarlierEntry::Call(call) => {
                let line = faint(format!("• {}", call_words(call, &Effects::none(), cwd)));
                lines.push(cut_spans(&line.spans, width).patch_style(line.style));
            }
        }
    }
    if !lines.is_empty() {
        lines.push(faint("─ resumed ─".to_owned()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use windlass::Input;

    use super::*;

    #[test]
    fn prompts_answers_and_calls_are_told_apart_and_fit() {
        let call = ToolCall {
            id: "1".into(),
            name: "shell_command".into(),
            input: Input::Json(r#"{"command": "cargo test --workspace --all-features"}"#.to_owned()),
        };
        let entries = [
            EarlierEntry::Omitted(3),
            EarlierEntry::Prompt("run the tests".to_owned()),
            EarlierEntry::Call(call),
            EarlierEntry::Answer("They **pass**.".to_owned()),
            EarlierEntry::Ended("cancelled".to_owned()),
        ];
        let lines = render_earlier(&entries, "/w".as_ref(), 30, &Theme::no_colour());
        assert!(lines.iter().all(|line| line.width() <= 30), "{lines:#?}");
        let text: Vec<_> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(text[0], "… 3 more steps before this");
        assert!(text[2].starts_with("› run") && text[4].starts_with("• run cargo test"), "{text:#?}");
        assert_eq!(text[5..7], ["They pass.", "— cancelled"]);
        assert!(render_earlier(&[], "/w".as_ref(), 30, &Theme::no_colour()).is_empty());
    }
}
