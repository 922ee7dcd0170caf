//! The input: several lines, history, pasted texts and completion.

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use ratatui_textarea::{CursorMove, Input, Key, TextArea, WrapMode};

use crate::{commands::COMMANDS, file_index::FileIndex, render::visible::visible_command};

/// A pasted text of more lines or bytes becomes an attachment.
const MAX_PASTED_LINES: usize = 10;
const MAX_PASTED_BYTES: usize = 1000;

/// Maximum height of the input.
const MAX_ROWS: usize = 8;

/// The effect of a key on the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ComposerResult {
    /// It was used.
    Used,
    /// It means nothing here.
    Unused,
    /// The message is complete.
    Submitted(String),
}

/// The input of a message.
#[derive(Debug)]
pub(crate) struct Composer {
    area: TextArea<'static>,
    history: Vec<String>,
    /// The position in the history, and the text that was there before.
    browsing: Option<(usize, String)>,
    pasted: Vec<(String, String)>,
    files: FileIndex,
    completion: Option<Completion>,
}

/// Matches for the word before the cursor.
#[derive(Debug)]
struct Completion {
    /// The characters that a choice replaces.
    typed_chars: usize,
    choices: Vec<Choice>,
    selected: usize,
}

#[derive(Debug)]
struct Choice {
    text: String,
    help: String,
}

impl Composer {
    pub(crate) fn new(history: Vec<String>, files: FileIndex) -> Self {
        Self { area: new_area(""), history, browsing: None, pasted: Vec::new(), files, completion: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn clear(&mut self) {
        self.set_text("");
        self.pasted.clear();
    }

    pub(crate) fn set_text(&mut self, text: &str) {
        self.area = new_area(text);
        self.completion = None;
    }

    /// Closes the list of choices. Returns false if there was none.
    pub(crate) fn close_completion(&mut self) -> bool {
        self.completion.take().is_some()
    }

    /// Inserts a pasted text, or a mark for it if it is long.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines <= MAX_PASTED_LINES && text.len() <= MAX_PASTED_BYTES {
            self.area.insert_str(&text);
            return;
        }
        let mark = format!("[pasted text {}: {lines} lines]", self.pasted.len() + 1);
        self.area.insert_str(&mark);
        self.pasted.push((mark, text));
    }

    pub(crate) fn on_key(&mut self, key: &Input) -> ComposerResult {
        if let Some(result) = self.completion_key(key) {
            return result;
        }
        match key.key {
            Key::Enter if key.alt || key.shift => self.area.insert_newline(),
            Key::Char('j') if key.ctrl => self.area.insert_newline(),
            Key::Enter => return self.submit(),
            Key::Up if self.area.cursor().0 == 0 => return self.browse(Direction::Earlier),
            Key::Down if self.area.cursor().0 + 1 == self.area.lines().len() => {
                return self.browse(Direction::Later);
            }
            Key::Tab | Key::Null | Key::Esc => return ComposerResult::Unused,
            _ => drop(self.area.input(key.clone())),
        }
        self.complete();
        ComposerResult::Used
    }

    fn completion_key(&mut self, key: &Input) -> Option<ComposerResult> {
        let completion = self.completion.as_mut()?;
        let last = completion.choices.len().saturating_sub(1);
        match key.key {
            Key::Up => completion.selected = completion.selected.saturating_sub(1),
            Key::Down => completion.selected = (completion.selected + 1).min(last),
            Key::Tab | Key::Enter => {
                let completion = self.completion.take()?;
                let choice = completion.choices.get(completion.selected)?;
                // A name that is already complete is sent with the same key.
                if key.key == Key::Enter && self.word_before_cursor() == choice.text {
                    return None;
                }
                for _ in 0..completion.typed_chars {
                    self.area.delete_char();
                }
                self.area.insert_str(format!("{} ", choice.text));
            }
            _ => return None,
        }
        Some(ComposerResult::Used)
    }

    /// Completes the message.
    pub(crate) fn submit(&mut self) -> ComposerResult {
        let text = self.text();
        if text.trim().is_empty() {
            return ComposerResult::Used;
        }
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        self.browsing = None;
        let whole = self.pasted.drain(..).fold(text, |text, (mark, pasted)| text.replace(&mark, &pasted));
        self.clear();
        ComposerResult::Submitted(whole)
    }

    fn browse(&mut self, direction: Direction) -> ComposerResult {
        let (position, draft) = self.browsing.take().unwrap_or_else(|| (self.history.len(), self.text()));
        let position = match direction {
            Direction::Earlier => position.saturating_sub(1),
            Direction::Later => (position + 1).min(self.history.len()),
        };
        let shown = self.history.get(position).unwrap_or(&draft).clone();
        self.set_text(&shown);
        self.browsing = (position < self.history.len()).then_some((position, draft));
        ComposerResult::Used
    }

    fn word_before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map_or("", String::as_str);
        let before: String = line.chars().take(cursor.1).collect();
        before.rsplit(char::is_whitespace).next().unwrap_or_default().to_owned()
    }

    /// Offers commands for `/` at the beginning and files for `@`.
    pub(crate) fn complete(&mut self) {
        let word = self.word_before_cursor();
        let choices: Vec<_> = if let Some(name) = word.strip_prefix('/')
            && self.text().trim_end() == word
        {
            let fits = COMMANDS.iter().filter(|entry| entry.name.starts_with(name));
            fits.map(|entry| Choice { text: format!("/{}", entry.name), help: entry.help.to_owned() })
                .collect()
        } else if let Some(name) = word.strip_prefix('@') {
            let found = self.files.matches(name).into_iter();
            found.map(|name| Choice { text: format!("@{name}"), help: String::new() }).collect()
        } else {
            Vec::new()
        };
        let typed_chars = word.chars().count();
        self.completion = (!choices.is_empty()).then_some(Completion { typed_chars, choices, selected: 0 });
    }

    /// Returns true if files are being looked for, so that there may be more choices soon.
    pub(crate) fn awaits_files(&self) -> bool {
        self.completion.is_none() && self.word_before_cursor().starts_with('@')
    }

    /// Returns the height that it needs.
    pub(crate) fn rows(&self, width: u16) -> u16 {
        let width = usize::from(width).max(1);
        let rows: usize = self.area.lines().iter().map(|line| line.chars().count() / width + 1).sum();
        u16::try_from(rows.clamp(1, MAX_ROWS)).unwrap_or(1)
    }

    pub(crate) fn area(&self) -> &TextArea<'static> {
        &self.area
    }

    /// Returns the list of choices.
    pub(crate) fn choices(&self) -> Vec<Line<'static>> {
        let Some(completion) = &self.completion else { return Vec::new() };
        let line = |(number, choice): (usize, &Choice)| {
            let style = if number == completion.selected {
                Style::new().add_modifier(Modifier::REVERSED)
            } else {
                Style::new()
            };
            Line::styled(format!("  {:<16} {}", visible_command(&choice.text), choice.help), style)
        };
        let first = completion.selected.saturating_sub(MAX_ROWS - 1);
        completion.choices.iter().enumerate().skip(first).take(MAX_ROWS).map(line).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Earlier,
    Later,
}

fn new_area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_cursor_line_style(Style::new());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_placeholder_text("Ask, or / for commands");
    area.set_placeholder_style(Style::new().add_modifier(Modifier::DIM));
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composer(history: &[&str]) -> Composer {
        let history = history.iter().map(|&text| text.to_owned()).collect();
        Composer::new(history, FileIndex::new("/nowhere".into()))
    }

    fn press(composer: &mut Composer, key: Key) -> ComposerResult {
        composer.on_key(&Input { key, ..Input::default() })
    }

    fn write(composer: &mut Composer, text: &str) {
        for c in text.chars() {
            press(composer, Key::Char(c));
        }
    }

    #[test]
    fn a_message_may_have_several_lines() {
        let mut composer = composer(&[]);
        write(&mut composer, "one");
        composer.on_key(&Input { key: Key::Enter, alt: true, ..Input::default() });
        write(&mut composer, "two");
        assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("one\ntwo".into()));
        assert!(composer.is_empty());
    }

    #[test]
    fn the_history_gives_back_the_draft_at_its_end() {
        let mut composer = composer(&["first", "second"]);
        write(&mut composer, "draft");
        press(&mut composer, Key::Up);
        assert_eq!(composer.text(), "second");
        press(&mut composer, Key::Up);
        press(&mut composer, Key::Up);
        assert_eq!(composer.text(), "first");
        press(&mut composer, Key::Down);
        press(&mut composer, Key::Down);
        assert_eq!(composer.text(), "draft");
    }

    #[test]
    fn a_long_paste_is_a_mark_until_it_is_sent() {
        let mut composer = composer(&[]);
        let long = "line\n".repeat(50);
        composer.paste(&long);
        assert_eq!(composer.text(), "[pasted text 1: 50 lines]");
        assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted(long));
    }

    #[test]
    fn a_command_is_completed_and_then_sent() {
        let mut composer = composer(&[]);
        write(&mut composer, "/he");
        assert_eq!(composer.choices().len(), 1);
        press(&mut composer, Key::Tab);
        assert_eq!(composer.text(), "/help ");
        assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("/help ".into()));
        write(&mut composer, "/quit");
        assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("/quit".into()));
    }
}
