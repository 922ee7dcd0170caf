//! The search in earlier messages (Ctrl-R): each key narrows it, and the newest match is shown.

use ratatui::text::{Line, Span};
use ratatui_textarea::{Input, Key};

use crate::render::{Theme, visible::visible_prose, wrap::cut_spans};

/// A search in the history.
#[derive(Debug)]
pub(super) struct HistorySearch {
    wanted: String,
    /// The place of the match in the history.
    found: Option<usize>,
    /// The text of the input before the search.
    draft: String,
}

/// The effect of a key on a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchEffect {
    /// The input shows this text now.
    Show(String),
    /// The search ends, and the input keeps what it shows. The key is not used if it is set.
    End { uses_key: bool },
}

impl HistorySearch {
    pub(super) fn new(draft: String) -> Self {
        Self { wanted: String::new(), found: None, draft }
    }

    /// Returns the text of the input before the search.
    pub(super) fn into_draft(self) -> String {
        self.draft
    }

    pub(super) fn on_key(&mut self, key: &Input, history: &[String]) -> SearchEffect {
        match key.key {
            Key::Char('r') if key.ctrl => self.find(history, self.found.unwrap_or(history.len())),
            Key::Char('s') if key.ctrl => self.find_later(history),
            Key::Char(c) if !key.ctrl && !key.alt => {
                self.wanted.push(c);
                // The match stays if it still fits.
                self.find(history, self.found.map_or(history.len(), |found| found + 1));
            }
            Key::Backspace => {
                self.wanted.pop();
                self.find(history, history.len());
            }
            Key::Enter | Key::Tab => return SearchEffect::End { uses_key: true },
            _ => return SearchEffect::End { uses_key: false },
        }
        let shown = self.found.and_then(|found| history.get(found)).unwrap_or(&self.draft);
        SearchEffect::Show(shown.clone())
    }

    /// Finds the newest match before a place. If there is none, the earlier one stays as long as it
    /// fits.
    fn find(&mut self, history: &[String], end: usize) {
        let earlier = history.iter().take(end).enumerate().rev();
        let found = earlier.into_iter().find(|(_, text)| self.fits(text)).map(|(at, _)| at);
        let stays = self.found.filter(|at| history.get(*at).is_some_and(|text| self.fits(text)));
        self.found = found.or(stays);
    }

    fn find_later(&mut self, history: &[String]) {
        let begin = self.found.map_or(history.len(), |found| found + 1);
        let found = history.iter().enumerate().skip(begin).find(|(_, text)| self.fits(text));
        self.found = found.map(|(at, _)| at).or(self.found);
    }

    /// Returns true if a text has the wanted one in it. Case counts if the wanted one has capitals.
    fn fits(&self, text: &str) -> bool {
        if self.wanted.is_empty() {
            return false;
        }
        if self.wanted.contains(char::is_uppercase) {
            text.contains(&self.wanted)
        } else {
            text.to_lowercase().contains(&self.wanted)
        }
    }

    /// Returns the line below the input.
    pub(super) fn line(&self, width: u16, theme: &Theme) -> Line<'static> {
        let state = match self.found {
            None if self.wanted.is_empty() => "type a part of an earlier message",
            None => "nothing found",
            Some(_) => "Ctrl-R: earlier, Enter: take it, Esc: back",
        };
        let wanted = visible_prose(&self.wanted).into_owned();
        let spans = [
            Span::styled("  search: ", theme.dim),
            Span::styled(wanted, theme.key),
            Span::styled(format!("  ({state})"), theme.dim),
        ];
        cut_spans(&spans, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_narrows_the_search_and_control_r_goes_back() {
        let history = ["run the tests", "fix Main", "run main", "say hello"].map(str::to_owned);
        let mut search = HistorySearch::new("draft".to_owned());
        let mut press =
            |key: Key, ctrl: bool| search.on_key(&Input { key, ctrl, ..Input::default() }, &history);
        let shows = |text: &str| SearchEffect::Show(text.to_owned());
        assert_eq!(press(Key::Char('m'), false), shows("run main"));
        assert_eq!(press(Key::Char('r'), true), shows("fix Main"));
        assert_eq!(press(Key::Char('r'), true), shows("fix Main"), "there is no earlier one");
        assert_eq!(press(Key::Char('s'), true), shows("run main"));
        assert_eq!(press(Key::Char('x'), false), shows("draft"));
        assert_eq!(press(Key::Backspace, false), shows("run main"));
        assert_eq!(press(Key::Backspace, false), shows("draft"));
        assert_eq!(press(Key::Char('M'), false), shows("fix Main"));
        assert_eq!(press(Key::Left, false), SearchEffect::End { uses_key: false });
    }
}
