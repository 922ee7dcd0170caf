//! The input: several lines, history, pasted texts and completion.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use ratatui_textarea::{CursorMove, Input, Key, TextArea, WrapMode};

use crate::{
    file_index::FileIndex,
    prompt_images::{PromptImage, dropped_image, file_mark, find_images},
    render::{
        Theme,
        wrap::{HangingIndent, cut_spans, wrap_text},
    },
    settings::OfferedPrompt,
};
use attachments::PastedTexts;
pub(crate) use attachments::shown_message;
use completion::Completion;
use history_search::{HistorySearch, SearchEffect};
use vi_keys::{ViEffect, ViKeys};

mod attachments;
mod completion;
mod history_search;
mod vi_keys;

/// Maximum height of the input.
const MAX_ROWS: usize = 8;

/// Maximum number of images of a message that are named below it.
const MAX_NAMED_IMAGES: usize = 4;

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
    search: Option<HistorySearch>,
    pasted: PastedTexts,
    files: FileIndex,
    completion: Option<Completion>,
    /// The last request for files came before they were known.
    awaits_files: bool,
    vi: Option<ViKeys>,
    prompts: Vec<OfferedPrompt>,
}

impl Composer {
    pub(crate) fn new(history: Vec<String>, files: FileIndex) -> Self {
        Self {
            area: new_area(""),
            history,
            browsing: None,
            search: None,
            pasted: PastedTexts::default(),
            files,
            completion: None,
            awaits_files: false,
            vi: None,
            prompts: Vec::new(),
        }
    }

    /// Offers these prompts beside the commands.
    pub(crate) fn with_prompts(mut self, prompts: Vec<OfferedPrompt>) -> Self {
        self.prompts = prompts;
        self
    }

    /// Takes the keys of vi, if they are wanted.
    pub(crate) fn with_vi_keys(mut self, is_wanted: bool) -> Self {
        self.vi = is_wanted.then(ViKeys::default);
        self
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
        self.search = None;
        if let Some(vi) = &mut self.vi {
            vi.reset();
        }
    }

    pub(crate) fn set_text(&mut self, text: &str) {
        let deleted = self.area.yank_text();
        self.area = new_area(text);
        self.area.set_yank_text(deleted);
        (self.completion, self.awaits_files) = (None, false);
    }

    /// Backs out of the list of choices, the search or the insert mode. Returns false if there was
    /// none.
    pub(crate) fn back_out(&mut self) -> bool {
        if let Some(search) = self.search.take() {
            self.set_text(&search.into_draft());
            return true;
        }
        self.awaits_files = false;
        if self.completion.take().is_some() {
            return true;
        }
        self.vi.as_mut().is_some_and(|vi| vi.escape(&mut self.area))
    }

    /// Inserts a pasted text, or a mark for it if it is long or an image.
    pub(crate) fn paste(&mut self, text: &str) {
        self.search = None;
        if let Some(path) = dropped_image(text) {
            self.area.insert_str(format!("{} ", file_mark(&path)));
            return;
        }
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let inserted = self.pasted.attach(&text).unwrap_or(&text);
        self.area.insert_str(inserted);
    }

    pub(crate) fn on_key(&mut self, key: &Input) -> ComposerResult {
        if self.search_key(key) {
            return ComposerResult::Used;
        }
        if let Some(result) = self.completion_key(key).or_else(|| self.vi_key(key)) {
            return result;
        }
        match key.key {
            Key::Enter if key.alt || key.shift => self.area.insert_newline(),
            Key::Char('j') if key.ctrl => self.area.insert_newline(),
            Key::Enter if self.text_before_cursor().ends_with('\\') => {
                self.area.delete_char();
                self.area.insert_newline();
            }
            Key::Enter => return self.submit(),
            Key::Up if self.area.cursor().0 == 0 => return self.browse(Direction::Earlier),
            Key::Down if self.is_in_last_line() => return self.browse(Direction::Later),
            Key::Char('r') if key.ctrl => {
                self.search = Some(HistorySearch::new(self.text()));
                self.completion = None;
                return ComposerResult::Used;
            }
            Key::Tab | Key::Null | Key::Esc => return ComposerResult::Unused,
            _ => self.edit(key),
        }
        self.complete();
        ComposerResult::Used
    }

    /// Changes the text. Marks of pasted texts are deleted as a whole.
    fn edit(&mut self, key: &Input) {
        let plain = !key.ctrl && !key.alt;
        match key.key {
            Key::Backspace if plain => self.delete_back(),
            Key::Char('h') if key.ctrl => self.delete_back(),
            Key::Delete if plain => self.delete_next(),
            Key::Char('d') if key.ctrl => self.delete_next(),
            Key::Char('u') if key.ctrl => drop(self.area.delete_line_by_head()),
            Key::Backspace if key.ctrl => drop(self.area.delete_word()),
            // Terminals send Ctrl-_ as one of these.
            Key::Char('_' | '7' | '/') if key.ctrl => drop(self.area.undo()),
            _ => drop(self.area.input(key.clone())),
        }
    }

    fn delete_back(&mut self) {
        let mark = self.pasted.mark_at_end(&self.text_before_cursor()).map_or(1, |mark| mark.chars().count());
        for _ in 0..mark {
            self.area.delete_char();
        }
    }

    fn delete_next(&mut self) {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map_or("", String::as_str);
        let after: String = line.chars().skip(cursor.1).collect();
        let mark = self.pasted.mark_at_start(&after).map_or(1, |mark| mark.chars().count());
        for _ in 0..mark {
            self.area.delete_next_char();
        }
    }

    /// Takes a key of a search. Returns false if it has another effect.
    fn search_key(&mut self, key: &Input) -> bool {
        let Some(search) = &mut self.search else { return false };
        match search.on_key(key, &self.history) {
            SearchEffect::Show(text) => {
                self.set_text(&text);
                true
            }
            SearchEffect::End { uses_key } => {
                self.search = None;
                uses_key
            }
        }
    }

    fn vi_key(&mut self, key: &Input) -> Option<ComposerResult> {
        let vi = self.vi.as_mut().filter(|vi| vi.is_normal())?;
        Some(match vi.on_key(key, &mut self.area) {
            ViEffect::Used => ComposerResult::Used,
            ViEffect::Unused => return None,
            ViEffect::Earlier => self.browse(Direction::Earlier),
            ViEffect::Later => self.browse(Direction::Later),
        })
    }

    fn completion_key(&mut self, key: &Input) -> Option<ComposerResult> {
        let completion = self.completion.as_mut()?;
        match key.key {
            Key::Up => completion.select_previous(),
            Key::Down => completion.select_next(),
            Key::Tab | Key::Enter if !key.alt && !key.shift => {
                let completion = self.completion.take()?;
                let choice = completion.selected()?;
                // A name that is already complete is sent with the same key.
                if key.key == Key::Enter && self.word_before_cursor() == choice {
                    return None;
                }
                for _ in 0..completion.typed_chars {
                    self.area.delete_char();
                }
                self.area.insert_str(format!("{choice} "));
            }
            _ => return None,
        }
        Some(ComposerResult::Used)
    }

    /// Completes the message.
    pub(crate) fn submit(&mut self) -> ComposerResult {
        let whole = self.pasted.expand(&self.text());
        if whole.trim().is_empty() {
            return ComposerResult::Used;
        }
        if self.history.last() != Some(&whole) {
            self.history.push(whole.clone());
        }
        self.browsing = None;
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

    fn is_in_last_line(&self) -> bool {
        self.area.cursor().0 + 1 == self.area.lines().len()
    }

    /// Returns the text of the line before the cursor.
    fn text_before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map_or("", String::as_str);
        line.chars().take(cursor.1).collect()
    }

    fn word_before_cursor(&self) -> String {
        self.text_before_cursor().rsplit(char::is_whitespace).next().unwrap_or_default().to_owned()
    }

    /// Offers commands for `/` at the beginning and files for `@`.
    pub(crate) fn complete(&mut self) {
        let word = self.word_before_cursor();
        let is_whole = self.text().trim_end() == word;
        // Asked first: the search may end at any moment.
        let knows_files = self.files.is_ready();
        self.completion = Completion::for_word(&word, is_whole, &mut self.files, &self.prompts);
        self.awaits_files = !knows_files && self.completion.is_none() && word.starts_with('@');
    }

    /// Returns true if files are being looked for, so that there may be more choices soon.
    pub(crate) fn awaits_files(&self) -> bool {
        self.awaits_files
    }

    /// Returns the height that it needs.
    pub(crate) fn rows(&self, width: u16) -> u16 {
        // The cursor behind the last character of a full line needs a row of its own.
        let (width, indent) = (width.saturating_sub(1).max(1), HangingIndent::default());
        let rows =
            |line: &String| wrap_text(line, Style::new(), width, &indent).take(MAX_ROWS).count().max(1);
        let rows: usize = self.area.lines().iter().take(MAX_ROWS).map(rows).sum();
        u16::try_from(rows.clamp(1, MAX_ROWS)).unwrap_or(1)
    }

    pub(crate) fn area(&self) -> &TextArea<'static> {
        &self.area
    }

    /// Returns the sign before the input, of two columns. It tells the mode of the vi keys.
    pub(crate) fn sign(&self) -> &'static str {
        if self.vi.as_ref().is_some_and(ViKeys::is_normal) { "N " } else { "› " }
    }

    /// Returns the lines below the input: the search, the list of choices, or the images.
    pub(crate) fn choices(&self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        if let Some(search) = &self.search {
            return vec![search.line(width, theme)];
        }
        if let Some(completion) = &self.completion {
            return completion.lines(width);
        }
        let images = find_images(&self.text(), self.files.root());
        let chips: Vec<_> = images.iter().take(MAX_NAMED_IMAGES).map(PromptImage::describe).collect();
        if chips.is_empty() {
            return Vec::new();
        }
        let chips = [Span::styled(format!("  {}", chips.join(" ")), theme.dim)];
        vec![cut_spans(&chips, width)]
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
mod tests;
