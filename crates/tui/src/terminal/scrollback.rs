//! Finished lines in full screen, where the terminal keeps none.

use std::collections::VecDeque;

use ratatui::text::Line;

use crate::{
    render::wrap::{HangingIndent, wrap_spans},
    text_lines::faint,
};

/// Maximum number of finished lines that are kept.
const MAX_KEPT_LINES: usize = 10_000;

/// The finished lines, and the part of them that is visible.
#[derive(Debug, Default)]
pub(super) struct Scrollback {
    lines: VecDeque<Line<'static>>,
    /// Number of lines below the visible part.
    below: usize,
}

impl Scrollback {
    /// Adds lines at the end. A person who looks at earlier ones keeps looking at them.
    pub(super) fn add(&mut self, lines: Vec<Line<'static>>) {
        if self.below > 0 {
            self.below += lines.len();
        }
        self.lines.extend(lines);
        let over = self.lines.len().saturating_sub(MAX_KEPT_LINES);
        self.lines.drain(..over);
        self.scroll(0);
    }

    /// Scrolls by so many lines upwards.
    pub(super) fn scroll(&mut self, lines: isize) {
        let most = self.lines.len().saturating_sub(1);
        self.below = self.below.saturating_add_signed(lines).min(most);
    }

    /// Shows the end again. Returns false if it is shown already.
    pub(super) fn show_end(&mut self) -> bool {
        std::mem::take(&mut self.below) > 0
    }

    /// Returns the visible rows. Lines that are wider than the screen has become are wrapped.
    pub(super) fn rows(&self, width: u16, rows: u16) -> Vec<Line<'static>> {
        let mut room = usize::from(rows);
        let mut visible = VecDeque::new();
        if self.below > 0 && room > 1 {
            visible.push_back(faint(format!("… {} more below (End returns, PageDown scrolls)", self.below)));
            room -= 1;
        }
        let mut filled = 0;
        for line in self.lines.iter().rev().skip(self.below) {
            let wrapped = if line.width() > usize::from(width) {
                wrap_spans(&line.spans, width, &HangingIndent::from_columns(0))
            } else {
                vec![line.clone()]
            };
            for row in wrapped.into_iter().rev().map(|row| row.patch_style(line.style)) {
                if filled == room {
                    return visible.into();
                }
                visible.push_front(row);
                filled += 1;
            }
        }
        visible.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrollback(count: usize) -> Scrollback {
        let mut scrollback = Scrollback::default();
        scrollback.add((0..count).map(|number| Line::from(format!("line {number}"))).collect());
        scrollback
    }

    fn text(scrollback: &Scrollback, width: u16, rows: u16) -> Vec<String> {
        scrollback.rows(width, rows).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_end_is_shown_until_someone_scrolls() {
        let mut scrollback = scrollback(10);
        assert_eq!(text(&scrollback, 60, 2), ["line 8", "line 9"]);
        scrollback.scroll(4);
        let more = "… 4 more below (End returns, PageDown scrolls)";
        assert_eq!(text(&scrollback, 60, 3), ["line 4", "line 5", more]);
        scrollback.add(vec![Line::from("new")]);
        assert_eq!(text(&scrollback, 60, 3)[..2], ["line 4", "line 5"]);
        scrollback.scroll(100);
        assert_eq!(text(&scrollback, 60, 3)[0], "line 0");
        assert!(scrollback.show_end() && !scrollback.show_end());
        assert_eq!(text(&scrollback, 60, 1), ["new"]);
    }

    #[test]
    fn a_narrower_screen_loses_no_words() {
        let mut scrollback = Scrollback::default();
        scrollback.add(vec![Line::from("first"), Line::from("some words of a line")]);
        assert_eq!(text(&scrollback, 10, 3), ["first", "some words", "of a line"]);
        assert!(text(&scrollback, 1, 4).len() == 4 && text(&scrollback, 10, 0).is_empty());
    }

    #[test]
    fn the_oldest_lines_are_dropped() {
        let scrollback = scrollback(MAX_KEPT_LINES + 5);
        assert_eq!(scrollback.lines.len(), MAX_KEPT_LINES);
        assert_eq!(scrollback.lines.front().map(ToString::to_string).as_deref(), Some("line 5"));
    }
}
