//! Differences of files as coloured lines, with line numbers, signs and marked words.

use ratatui::text::{Line, Span};
use windlass::counted;

use crate::render::{
    Theme,
    visible::visible_command,
    wrap::{HangingIndent, wrap_spans},
};
use rows::{RenderedRow, RowKind};

mod rows;
mod words;

/// Maximum number of lines of one diff that are shown. The rest is counted.
const MAX_ROWS: usize = 2_000;

/// Renders the difference of two texts. Long runs of equal lines are folded.
pub fn render_diff(before: &str, after: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    render_rows(rows::compare(before, after), MAX_ROWS, width, theme)
}

/// Renders a unified diff of one or more files.
pub fn render_unified_diff(diff: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    render_rows(rows::parse_unified(diff), MAX_ROWS, width, theme)
}

/// Renders the beginning of a unified diff: at most so many of its lines. The rest is counted.
pub fn render_diff_excerpt(diff: &str, max_rows: usize, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    render_rows(rows::parse_unified(diff), max_rows.min(MAX_ROWS), width, theme)
}

fn render_rows(mut rows: Vec<RenderedRow>, max_rows: usize, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let left_out = rows.len().saturating_sub(max_rows);
    rows.truncate(max_rows);
    words::mark_changes(&mut rows);
    let largest = rows.iter().filter_map(|row| row.old.max(row.new)).max().unwrap_or(0);
    let digits = largest.max(1).to_string().len();
    let mut lines: Vec<_> = rows.iter().flat_map(|row| render_row(row, digits, width, theme)).collect();
    if left_out > 0 {
        lines.push(Line::styled(format!("… {}", counted(left_out as u64, "more line")), theme.dim));
    }
    lines
}

fn render_row(row: &RenderedRow, digits: usize, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, style, word_style) = match row.kind {
        RowKind::Context => (" ", theme.text, theme.text),
        RowKind::Removed => ("-", theme.removed, theme.removed_word),
        RowKind::Added => ("+", theme.added, theme.added_word),
        RowKind::File => {
            let name = Span::styled(visible_command(&row.text).into_owned(), theme.heading);
            return wrap_spans(&[name], width, &HangingIndent::default());
        }
        RowKind::Folded => {
            let fold = Span::styled(row.text.clone(), theme.dim);
            return wrap_spans(&[fold], width, &HangingIndent::from_columns(digits + 1));
        }
    };
    // One number, as the reader needs it: of removed lines the old one, of others the new one.
    let number = row.new.or(row.old).map_or_else(String::new, |number| number.to_string());
    let indent = HangingIndent {
        first: vec![
            Span::styled(format!("{number:>digits$} "), theme.dim),
            Span::styled(format!("{sign} "), style),
        ],
        rest: vec![Span::styled(format!("{:digits$} ", ""), theme.dim), Span::styled("┊ ", theme.dim)],
    };
    let spans: Vec<_> = row
        .pieces()
        .map(|(text, is_changed)| Span::styled(text, if is_changed { word_style } else { style }))
        .collect();
    wrap_spans(&spans, width, &indent)
}
