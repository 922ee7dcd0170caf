//! Lines of the program's own texts.

use ratatui::{
    buffer::Buffer,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::{Paragraph, Widget},
};
use unicode_width::UnicodeWidthStr;

use crate::render::{
    visible::visible_prose,
    wrap::{HangingIndent, wrap_text},
};

/// Draws finished lines. The cells behind a wide character are made empty: they would be written as
/// blanks and shift what follows.
pub(crate) fn draw_finished(lines: Vec<Line<'static>>, buffer: &mut Buffer) {
    Paragraph::new(lines).render(buffer.area, buffer);
    let columns = usize::from(buffer.area.width).max(1);
    for row in buffer.content.chunks_mut(columns) {
        let mut covered = 0;
        for cell in row {
            if covered > 0 {
                cell.set_symbol("");
                covered -= 1;
            } else {
                covered = cell.symbol().width().saturating_sub(1);
            }
        }
    }
}

/// Returns one faint line.
pub(crate) fn faint(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}

/// Wraps a text behind a marker. What could rewrite or reorder the screen is escaped.
pub(crate) fn wrapped(marker: &'static str, text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let indent = HangingIndent::from_marker(Span::styled(marker, style));
    let visible: Vec<_> = text.lines().map(visible_prose).collect();
    wrap_text(&visible.join("\n"), style, width, &indent).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn nothing_is_written_behind_a_wide_character() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 2));
        draw_finished(vec![Line::from("文a👍"), Line::from("b")], &mut buffer);
        let symbols: Vec<_> = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(symbols.concat(), "文a👍 b     ");
    }
}
