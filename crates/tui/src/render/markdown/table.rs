//! Tables that fit a width: columns are made narrower and cells wrapped. If there are too many
//! columns for that, each row becomes a list of its cells.

use std::iter;

use pulldown_cmark::Alignment;
use ratatui::text::Span;

use crate::render::{
    Theme,
    wrap::{HangingIndent, columns, wrap_spans},
};

/// The least width of a column.
const MIN_CELL_COLUMNS: usize = 4;

/// The sign between two columns.
const SEPARATOR: &str = " │ ";

type StyledCell = Vec<Span<'static>>;

/// The content of a table. The first row is its header.
#[derive(Debug, Default)]
pub(super) struct MarkdownTable {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<StyledCell>>,
}

impl MarkdownTable {
    /// Returns the lines of the table.
    pub(super) fn render(&self, width: u16, theme: &Theme) -> Vec<StyledCell> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let separators = count.saturating_sub(1) * 3;
        let room = usize::from(width).saturating_sub(separators);
        if count == 0 || room < count * MIN_CELL_COLUMNS {
            return self.render_records(theme);
        }
        let widths = fit(self.natural_widths(count, room), room);
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.render_row(row, &widths, theme));
            if at == 0 {
                let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(vec![Span::styled(rule.join("─┼─"), theme.border)]);
            }
        }
        lines
    }

    fn natural_widths(&self, count: usize, room: usize) -> Vec<usize> {
        let widest =
            |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max();
        (0..count).map(|at| widest(at).unwrap_or(0).clamp(1, room)).collect()
    }

    fn render_row(&self, row: &[StyledCell], widths: &[usize], theme: &Theme) -> Vec<StyledCell> {
        let wrap = |(at, width): (usize, &usize)| {
            let width = u16::try_from(*width).unwrap_or(u16::MAX);
            wrap_spans(row.get(at).map_or(&[], Vec::as_slice), width, &HangingIndent::default())
        };
        let cells: Vec<_> = widths.iter().enumerate().map(wrap).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |level: usize| {
            let mut spans = Vec::new();
            for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if at > 0 {
                    spans.push(Span::styled(SEPARATOR, theme.border));
                }
                let content = cell.get(level).map(|line| line.spans.clone()).unwrap_or_default();
                spans.extend(self.aligned(content, at, *width));
            }
            spans
        };
        (0..height).map(line).collect()
    }

    fn aligned(&self, content: StyledCell, at: usize, width: usize) -> StyledCell {
        let blanks = width.saturating_sub(columns(&content));
        let before = match self.alignments.get(at) {
            Some(Alignment::Right) => blanks,
            Some(Alignment::Center) => blanks / 2,
            _ => 0,
        };
        let blank = |count: usize| Span::raw(" ".repeat(count));
        iter::once(blank(before)).chain(content).chain([blank(blanks - before)]).collect()
    }

    /// Returns a line `header: cell` for each cell.
    fn render_records(&self, theme: &Theme) -> Vec<StyledCell> {
        let Some((header, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                lines.push(Vec::new());
            }
            for (name, cell) in header.iter().zip(row) {
                let colon = Span::styled(": ", theme.border);
                lines.push(name.iter().cloned().chain([colon]).chain(cell.iter().cloned()).collect());
            }
        }
        if rows.is_empty() { vec![header.concat()] } else { lines }
    }
}

/// Makes the widest columns narrower until all fit.
fn fit(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max() else { break };
        *widest -= 1;
    }
    widths
}
