//! A list of lines of which the person chooses one. Typing narrows it.

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use ratatui_textarea::{Input, Key};

use crate::text_lines::faint;

/// The list and what was typed.
#[derive(Debug)]
pub(crate) struct PickList<'a> {
    title: &'a str,
    choices: &'a [String],
    wanted: String,
    /// The place of the selected line among those that fit.
    selected: usize,
}

/// The end of the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickEnd {
    Chosen(usize),
    Left,
}

impl<'a> PickList<'a> {
    pub(crate) fn new(title: &'a str, choices: &'a [String]) -> Self {
        Self { title, choices, wanted: String::new(), selected: 0 }
    }

    /// Returns the choices that contain what was typed, in any case, with their numbers.
    fn fitting(&self) -> Vec<(usize, &'a str)> {
        let wanted = self.wanted.to_lowercase();
        let all = self.choices.iter().map(String::as_str).enumerate();
        all.filter(|(_, choice)| choice.to_lowercase().contains(&wanted)).collect()
    }

    pub(crate) fn on_key(&mut self, key: &Input) -> Option<PickEnd> {
        match key.key {
            Key::Char('c' | 'd') if key.ctrl => return Some(PickEnd::Left),
            Key::Char(c) if !key.ctrl && !key.alt => {
                self.wanted.push(c);
                self.selected = 0;
            }
            Key::Backspace => {
                self.wanted.pop();
                self.selected = 0;
            }
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => self.selected = (self.selected + 1).min(self.fitting().len().saturating_sub(1)),
            Key::Enter => return self.fitting().get(self.selected).map(|(at, _)| PickEnd::Chosen(*at)),
            Key::Esc => return Some(PickEnd::Left),
            _ => {}
        }
        None
    }

    /// Returns the number of rows for the title and all choices.
    pub(crate) fn rows(&self) -> u16 {
        u16::try_from(self.choices.len()).unwrap_or(u16::MAX).saturating_add(1)
    }

    /// Returns the title, and the part of the list around the selected line.
    pub(crate) fn lines(&self, rows: usize) -> Vec<Line<'static>> {
        let filter = if self.wanted.is_empty() { String::new() } else { format!("  › {}", self.wanted) };
        let mut lines = vec![Line::from(format!("{}{filter}", self.title))];
        let (fitting, room) = (self.fitting(), rows.saturating_sub(1));
        let first = (self.selected + 1).saturating_sub(room);
        let line = |(place, (_, text)): (usize, &(usize, &str))| {
            let style = if place == self.selected {
                Style::new().add_modifier(Modifier::REVERSED)
            } else {
                Style::new()
            };
            Line::styled(format!("  {text}"), style)
        };
        lines.extend(fitting.iter().enumerate().skip(first).take(room).map(line));
        if fitting.is_empty() {
            lines.push(faint("  nothing fits; Backspace widens the search".to_owned()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(list: &mut PickList<'_>, key: Key) -> Option<PickEnd> {
        list.on_key(&Input { key, ..Input::default() })
    }

    #[test]
    fn typing_narrows_the_list_and_is_shown() {
        let choices = ["fix the Quick test", "add a page", "quick look"].map(str::to_owned);
        let mut list = PickList::new("Which?", &choices);
        let text = |list: &PickList<'_>| list.lines(3).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(&list), ["Which?", "  fix the Quick test", "  add a page"]);
        for c in "quick".chars() {
            assert_eq!(press(&mut list, Key::Char(c)), None);
        }
        assert_eq!(text(&list), ["Which?  › quick", "  fix the Quick test", "  quick look"]);
        press(&mut list, Key::Down);
        press(&mut list, Key::Down);
        assert_eq!(press(&mut list, Key::Enter), Some(PickEnd::Chosen(2)));
        press(&mut list, Key::Char('!'));
        assert_eq!(press(&mut list, Key::Enter), None, "{:?}", text(&list));
        press(&mut list, Key::Backspace);
        assert_eq!(press(&mut list, Key::Enter), Some(PickEnd::Chosen(0)));
        assert_eq!(press(&mut list, Key::Esc), Some(PickEnd::Left));
    }
}
