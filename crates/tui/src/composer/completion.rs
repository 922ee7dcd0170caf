//! The list of choices for the word before the cursor: commands for `/`, files for `@`.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use crate::{
    commands,
    file_index::FileIndex,
    prompt_images::file_mark,
    render::{visible::visible_command, wrap::cut_spans},
    settings::OfferedPrompt,
    text_lines::faint,
};

/// Maximum number of choices that are shown at once.
const MAX_SHOWN: usize = 8;

/// The width of names in the list; longer ones push the text beside them.
const NAME_COLUMNS: usize = 16;

/// Matches for the word before the cursor.
#[derive(Debug)]
pub(super) struct Completion {
    /// The characters that a choice replaces.
    pub(super) typed_chars: usize,
    choices: Vec<Choice>,
    selected: usize,
}

#[derive(Debug)]
struct Choice {
    text: String,
    help: String,
}

impl Completion {
    /// Returns the choices for a word, if there are any. Commands are offered only if the word is
    /// the whole message.
    pub(super) fn for_word(
        word: &str,
        is_whole: bool,
        files: &mut FileIndex,
        prompts: &[OfferedPrompt],
    ) -> Option<Self> {
        let choices: Vec<_> = if let Some(name) = word.strip_prefix('/').filter(|_| is_whole) {
            let fits = commands::all().filter(|entry| entry.name.starts_with(name));
            let commands = fits.map(|entry| (entry.name, entry.help));
            let is_command = |name: &str| commands::all().any(|entry| entry.name == name);
            let prompts = prompts.iter().map(|prompt| (prompt.name.as_str(), prompt.help.as_str()));
            let prompts = prompts.filter(|(prompt, _)| prompt.starts_with(name) && !is_command(prompt));
            let choice = |(name, help): (&str, &str)| Choice {
                text: format!("/{name}"),
                help: visible_command(help).into_owned(),
            };
            commands.chain(prompts).map(choice).collect()
        } else if let Some(name) = word.strip_prefix('@') {
            let found = files.matches(name.trim_start_matches('"')).into_iter();
            found.map(|name| Choice { text: file_mark(&name), help: String::new() }).collect()
        } else {
            Vec::new()
        };
        let typed_chars = word.chars().count();
        (!choices.is_empty()).then_some(Self { typed_chars, choices, selected: 0 })
    }

    pub(super) fn select_previous(&mut self) {
        self.selected = self.selected.saturating_sub(1);
    }

    pub(super) fn select_next(&mut self) {
        self.selected = (self.selected + 1).min(self.choices.len().saturating_sub(1));
    }

    pub(super) fn selected(&self) -> Option<&str> {
        self.choices.get(self.selected).map(|choice| choice.text.as_str())
    }

    /// Returns the part of the list around the selected choice.
    pub(super) fn lines(&self, width: u16) -> Vec<Line<'static>> {
        let line = |(number, choice): (usize, &Choice)| {
            let style = if number == self.selected {
                Style::new().add_modifier(Modifier::REVERSED)
            } else {
                Style::new()
            };
            let text = format!("  {:<NAME_COLUMNS$} {}", visible_command(&choice.text), choice.help);
            cut_spans(&[Span::styled(text.trim_end().to_owned(), style)], width)
        };
        let first = (self.selected + 1).saturating_sub(MAX_SHOWN);
        let mut lines: Vec<_> =
            self.choices.iter().enumerate().skip(first).take(MAX_SHOWN).map(line).collect();
        let hidden = self.choices.len().saturating_sub(MAX_SHOWN);
        if hidden > 0 {
            lines.push(faint(format!("  … {hidden} more (Up, Down)")));
        }
        lines
    }
}
