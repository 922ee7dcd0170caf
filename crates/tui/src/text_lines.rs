//! Lines of the program's own texts.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use crate::render::{
    visible::visible_prose,
    wrap::{HangingIndent, wrap_text},
};

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
