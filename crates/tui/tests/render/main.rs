//! Every component at 60, 80 and 120 columns, and with hostile texts.

mod hostile;
mod screens;
mod streaming;
mod wrapping;

use ratatui::text::Line;

/// The widths of the snapshots.
const WIDTHS: [u16; 3] = [60, 80, 120];

/// Returns lines as text.
fn text(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
}

/// Renders something at each width.
fn at_each_width(render: impl Fn(u16) -> Vec<Line<'static>>) -> String {
    WIDTHS.iter().map(|width| format!("── {width} ──\n{}", text(&checked(render(*width), *width)))).collect()
}

/// Checks that lines fit and hold no control characters.
fn checked(lines: Vec<Line<'static>>, width: u16) -> Vec<Line<'static>> {
    for line in &lines {
        let text = line.to_string();
        assert!(line.width() <= usize::from(width.max(2)), "wider than {width}: {text:?}");
        assert!(!text.contains(|c: char| c.is_control()), "control character: {text:?}");
        let reorders = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}');
        assert!(!text.contains(reorders), "invisible character: {text:?}");
    }
    lines
}
