//! The output of programs: their colours (ECMA-48 SGR) are kept, all other control is dropped.

use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use crate::render::{
    Theme,
    wrap::{HangingIndent, wrap_spans},
};

/// Maximum number of characters of one line that are shown. The rest is counted.
const MAX_LINE_CHARS: usize = 10_000;

/// Wraps the output of a program, lazily: a line is wrapped when it is taken.
pub fn render_output<'a>(
    text: &'a str,
    width: u16,
    theme: &'a Theme,
    indent: &'a HangingIndent,
) -> impl Iterator<Item = Line<'static>> + 'a {
    let mut style = Style::new();
    text.lines().flat_map(move |line| wrap_spans(&output_spans(line, &mut style, theme), width, indent))
}

/// Returns one line of output in its colours. `style` is carried from line to line.
pub fn output_spans(line: &str, style: &mut Style, theme: &Theme) -> Vec<Span<'static>> {
    // A program that goes back to the beginning of the line writes over it.
    let line = line.trim_end_matches('\r');
    let line = line.rfind('\r').map_or(line, |at| &line[at + 1..]);
    let (line, left_out) = match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => (&line[..end], line[end..].chars().count()),
        None => (line, 0),
    };
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(is_dropped) {
        push(&rest[..at], *style, theme, &mut spans);
        rest = skip_control(&rest[at..], style);
    }
    push(rest, *style, theme, &mut spans);
    if left_out > 0 {
        spans.push(Span::styled(format!(" … ({left_out} characters more)"), theme.dim));
    }
    spans
}

fn push(text: &str, style: Style, theme: &Theme, spans: &mut Vec<Span<'static>>) {
    let style = if theme.has_colour { style } else { Style { fg: None, bg: None, ..style } };
    if !text.is_empty() {
        spans.push(Span::styled(text.to_owned(), style));
    }
}

fn is_dropped(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// Skips a control character and the sequence that it begins; SGR changes the style.
fn skip_control<'a>(text: &'a str, style: &mut Style) -> &'a str {
    let mut chars = text.chars();
    let first = chars.next();
    let rest = chars.as_str();
    match (first, rest.chars().next()) {
        (Some('\u{9b}'), _) => skip_csi(rest, style),
        (Some('\x1b'), Some('[')) => skip_csi(&rest[1..], style),
        (Some('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}'), _) => skip_string(rest),
        (Some('\x1b'), Some('P' | 'X' | ']' | '^' | '_')) => skip_string(&rest[1..]),
        (Some('\x1b'), Some(_)) => {
            let end = rest.trim_start_matches(|c| (' '..='/').contains(&c));
            let mut chars = end.chars();
            if end.starts_with(|c| ('0'..='~').contains(&c)) {
                chars.next();
            }
            chars.as_str()
        }
        _ => rest,
    }
}

/// Skips the parameters and the final character of a control sequence.
fn skip_csi<'a>(text: &'a str, style: &mut Style) -> &'a str {
    let end = text.find(|c| !(' '..='?').contains(&c)).unwrap_or(text.len());
    let (parameters, rest) = text.split_at(end);
    match rest.chars().next() {
        Some('m') => {
            apply_sgr(parameters, style);
            &rest[1..]
        }
        Some('@'..='~') => &rest[1..],
        _ => rest,
    }
}

/// Skips a control string (OSC, DCS, …) up to its terminator, or to the end of the line.
fn skip_string(text: &str) -> &str {
    let ends = [("\x07", 1), ("\x1b\\", 2), ("\u{9c}", 2)];
    let end = ends.iter().filter_map(|(end, length)| Some((text.find(end)?, *length))).min();
    end.map_or("", |(at, length)| &text[at + length..])
}

/// Applies the parameters of `CSI … m`. Concealed and blinking text are shown as ordinary text.
fn apply_sgr(parameters: &str, style: &mut Style) {
    let numbers: Vec<u8> = parameters.split([';', ':']).map(|number| number.parse().unwrap_or(0)).collect();
    let mut numbers = numbers.into_iter();
    while let Some(number) = numbers.next() {
        match number {
            0 => *style = Style::new(),
            1 => *style = style.add_modifier(Modifier::BOLD),
            2 => *style = style.add_modifier(Modifier::DIM),
            3 => *style = style.add_modifier(Modifier::ITALIC),
            4 => *style = style.add_modifier(Modifier::UNDERLINED),
            7 => *style = style.add_modifier(Modifier::REVERSED),
            9 => *style = style.add_modifier(Modifier::CROSSED_OUT),
            22 => *style = without(*style, Modifier::BOLD | Modifier::DIM),
            23 => *style = without(*style, Modifier::ITALIC),
            24 => *style = without(*style, Modifier::UNDERLINED),
            27 => *style = without(*style, Modifier::REVERSED),
            29 => *style = without(*style, Modifier::CROSSED_OUT),
            38 => style.fg = extended_colour(&mut numbers).or(style.fg),
            48 => style.bg = extended_colour(&mut numbers).or(style.bg),
            30..=37 => style.fg = Some(Color::Indexed(number - 30)),
            40..=47 => style.bg = Some(Color::Indexed(number - 40)),
            90..=97 => style.fg = Some(Color::Indexed(number - 90 + 8)),
            100..=107 => style.bg = Some(Color::Indexed(number - 100 + 8)),
            39 => style.fg = None,
            49 => style.bg = None,
            _ => {}
        }
    }
}

fn without(style: Style, modifier: Modifier) -> Style {
    Style { add_modifier: style.add_modifier - modifier, ..style }
}

fn extended_colour(numbers: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match numbers.next()? {
        5 => Some(Color::Indexed(numbers.next()?)),
        2 => Some(Color::Rgb(numbers.next()?, numbers.next()?, numbers.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(line: &str) -> Vec<(String, Style)> {
        let spans = output_spans(line, &mut Style::new(), &Theme::dark());
        spans.into_iter().map(|span| (span.content.into_owned(), span.style)).collect()
    }

    #[test]
    fn colours_are_kept_and_all_other_control_is_dropped() {
        let line = "\x1b[2J\x1b[1;31mred\x1b[0m plain\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b(B\x08";
        let red = Style::new().fg(Color::Indexed(1)).add_modifier(Modifier::BOLD);
        let plain = Style::new();
        let expected = [("red", red), (" plain", plain), ("link", plain)].map(|(a, b)| (a.to_owned(), b));
        assert_eq!(spans(line), expected);
    }

    #[test]
    fn a_line_that_was_written_over_shows_its_last_text() {
        assert_eq!(spans("10 %\r50 %\r100 %\r"), [("100 %".to_owned(), Style::new())]);
    }

    #[test]
    fn concealed_text_is_shown() {
        assert_eq!(spans("\x1b[8mrm -rf\x1b[28m"), [("rm -rf".to_owned(), Style::new())]);
    }
}
