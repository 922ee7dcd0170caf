//! A screen of a terminal as SVG.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// Width and height of a cell, in pixels.
const CELL: (u16, u16) = (9, 19);
const MARGIN: u16 = 14;
const TITLE_HEIGHT: u16 = 30;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d7dae0";

/// The 16 colours that a terminal chooses itself.
const PALETTE: [&str; 16] = [
    "#24272e", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf", "#7a828e",
    "#f0808a", "#a9d48a", "#f0d08b", "#7abcff", "#d48aea", "#67c7d3", "#f2f4f8",
];

/// Draws a screen up to its last row that is not empty.
pub(super) fn draw(title: &str, screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let is_used = |row: &u16| (0..columns).any(|column| shown(screen, *row, column).is_some());
    let rows = (0..rows).rev().find(is_used).map_or(1, |last| last + 1);
    let width = columns * CELL.0 + 2 * MARGIN;
    let height = rows * CELL.1 + 2 * MARGIN + TITLE_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g fill=\"#4b515c\"><circle cx=\"20\" cy=\"18\" r=\"6\"/><circle cx=\"40\" cy=\"18\" r=\"6\"/>\
         <circle cx=\"60\" cy=\"18\" r=\"6\"/></g>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK SC', \
         monospace\" font-size=\"15\" fill=\"{FOREGROUND}\">\n\
         <text x=\"{middle}\" y=\"23\" text-anchor=\"middle\" fill=\"#9aa1ad\">{label}</text>\n",
        label = escape(title),
        middle = width / 2,
    );
    for row in 0..rows {
        draw_row(&mut svg, screen, row, columns);
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Returns a cell that is not blank.
fn shown(screen: &Screen, row: u16, column: u16) -> Option<&Cell> {
    let cell = screen.cell(row, column)?;
    let is_blank = cell.contents().trim().is_empty() && !cell.inverse() && cell.bgcolor() == Color::Default;
    (!is_blank).then_some(cell)
}

/// Draws each run of cells of the same style as one text.
fn draw_row(svg: &mut String, screen: &Screen, row: u16, columns: u16) {
    let mut column = 0;
    while column < columns {
        let Some(first) = shown(screen, row, column) else {
            column += 1;
            continue;
        };
        let (style, start) = (style(first), column);
        let mut text = String::new();
        // Wide characters are drawn one by one, because fonts disagree about their width.
        let is_wide = first.is_wide();
        while let Some(cell) = screen.cell(row, column).filter(|cell| self::style(cell) == style) {
            if (cell.is_wide() != is_wide || (is_wide && column > start)) && !cell.is_wide_continuation() {
                break;
            }
            text.push_str(if cell.has_contents() || cell.is_wide_continuation() {
                cell.contents()
            } else {
                " "
            });
            column += 1;
        }
        draw_run(svg, &style, text.trim_end(), (row, start), column - start);
    }
}

/// The looks of a cell.
#[derive(PartialEq)]
struct CellStyle {
    foreground: String,
    background: Option<String>,
    /// Attributes of the text: weight, opacity, slant, underline.
    attributes: String,
}

fn style(cell: &Cell) -> CellStyle {
    let foreground = colour(cell.fgcolor()).unwrap_or_else(|| FOREGROUND.to_owned());
    let background = colour(cell.bgcolor());
    let (foreground, background) = if cell.inverse() {
        (background.unwrap_or_else(|| BACKGROUND.to_owned()), Some(foreground))
    } else {
        (foreground, background)
    };
    let switches = [
        (cell.bold(), r#" font-weight="bold""#),
        (cell.dim(), r#" opacity="0.65""#),
        (cell.italic(), r#" font-style="italic""#),
        (cell.underline(), r#" text-decoration="underline""#),
    ];
    let attributes = switches.iter().filter(|(on, _)| *on).map(|(_, attribute)| *attribute).collect();
    CellStyle { foreground, background, attributes }
}

fn draw_run(svg: &mut String, style: &CellStyle, text: &str, (row, column): (u16, u16), cells: u16) {
    let (x, y) = (MARGIN + column * CELL.0, MARGIN + TITLE_HEIGHT + row * CELL.1);
    if let Some(background) = &style.background {
        let width = cells * CELL.0;
        let _infallible = writeln!(
            svg,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{}" fill="{background}"/>"#,
            CELL.1
        );
    }
    if text.is_empty() {
        return;
    }
    let mut looks = String::new();
    if style.foreground != FOREGROUND {
        let _infallible = write!(looks, r#" fill="{}""#, style.foreground);
    }
    looks.push_str(&style.attributes);
    let count = u16::try_from(text.chars().count()).unwrap_or(cells);
    let length = if cells == 2 && count == 1 { 2 } else { count } * CELL.0;
    let _infallible = writeln!(
        svg,
        r#"<text x="{x}" y="{}" textLength="{length}" xml:space="preserve"{looks}>{}</text>"#,
        y + 15,
        escape(text)
    );
}

/// Returns a colour, or nothing for that of the terminal.
fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index) => Some(indexed(index)),
    }
}

/// Returns a colour of the xterm palette: 16 named ones, a cube of 216, 24 shades of grey.
fn indexed(index: u8) -> String {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..16 => PALETTE[usize::from(index)].to_owned(),
        16..232 => {
            let step = index - 16;
            format!("#{:02x}{:02x}{:02x}", level(step / 36), level(step / 6 % 6), level(step % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bytes: &str) -> String {
        let mut parser = vt100::Parser::new(4, 20, 0);
        parser.process(bytes.as_bytes());
        draw("a & b", parser.screen())
    }

    #[test]
    fn runs_keep_their_place_and_colour() {
        let svg = drawn("ab\x1b[31m<c>\x1b[0m d");
        assert!(
            svg.contains("x=\"14\" y=\"59\" textLength=\"18\" xml:space=\"preserve\">ab</text>"),
            "{svg}"
        );
        assert!(svg.contains("x=\"32\""), "{svg}");
        assert!(svg.contains("fill=\"#e06c75\">&lt;c&gt;</text>"), "{svg}");
        assert!(svg.contains("a &amp; b"), "{svg}");
    }

    #[test]
    fn wide_characters_take_two_cells() {
        let svg = drawn("修x");
        assert!(
            svg.contains("x=\"14\" y=\"59\" textLength=\"18\" xml:space=\"preserve\">修</text>"),
            "{svg}"
        );
        assert!(svg.contains("x=\"32\" y=\"59\" textLength=\"9\" xml:space=\"preserve\">x</text>"), "{svg}");
    }
}
