//! Wrapping of styled text at words, by the width that a terminal gives each character.

use std::{iter, mem};

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::render::visible::{is_plain, visible_prose};

/// The least width that lines are made for: a character can be two columns wide.
pub const MIN_COLUMNS: u16 = 2;

/// The distance between tab stops, as terminals have it.
pub const TAB_COLUMNS: usize = 8;

/// Wide signs that do not begin a line: they belong to the character before them.
const NO_LINE_START: &str = "、。，．：；？！）］｝」』】》〉ー々";

/// The beginnings of the first line and of all further lines of a wrapped text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HangingIndent {
    /// Before the first line: a list marker, for example.
    pub first: Vec<Span<'static>>,
    /// Before the others.
    pub rest: Vec<Span<'static>>,
}

impl HangingIndent {
    /// Indents the first line by a text, and the others by blanks of the same width.
    pub fn from_marker(marker: Span<'static>) -> Self {
        let blanks = " ".repeat(marker.width());
        Self { first: vec![marker], rest: vec![Span::raw(blanks)] }
    }

    /// Indents all lines by so many blanks.
    pub fn from_columns(columns: usize) -> Self {
        let blanks = vec![Span::raw(" ".repeat(columns))];
        Self { first: blanks.clone(), rest: blanks }
    }
}

/// Wraps one logical line. Words are broken only if they are wider than a line; invisible
/// characters are escaped and tabs expanded.
pub fn wrap_spans(spans: &[Span<'_>], width: u16, indent: &HangingIndent) -> Vec<Line<'static>> {
    let mut wrapper = LineWrapper::new(width, indent);
    if let Some(line) = wrapper.whole_line(spans) {
        return vec![line];
    }
    for span in spans {
        wrapper.push_text(&span.content, span.style);
    }
    wrapper.finish()
}

/// Wraps a text of several lines, lazily: a line is wrapped when it is taken.
pub fn wrap_text<'a>(
    text: &'a str,
    style: Style,
    width: u16,
    indent: &'a HangingIndent,
) -> impl Iterator<Item = Line<'static>> + 'a {
    text.lines().enumerate().flat_map(move |(at, line)| {
        let first = if at == 0 { indent.first.clone() } else { indent.rest.clone() };
        wrap_spans(&[Span::styled(line, style)], width, &HangingIndent { first, rest: indent.rest.clone() })
    })
}

/// Cuts a logical line to one line of the width; `…` marks the cut.
pub fn cut_spans(spans: &[Span<'_>], width: u16) -> Line<'static> {
    let mut lines = CutLine::new(usize::from(width.max(MIN_COLUMNS)));
    for span in spans {
        if !lines.push_text(&span.content, span.style) {
            break;
        }
    }
    Line::from(into_spans(lines.pieces.pieces))
}

/// Returns the number of columns of spans.
pub fn columns(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// Styled pieces of text in a row, with their width.
#[derive(Debug, Default)]
struct StyledPieces {
    pieces: Vec<(String, Style)>,
    columns: usize,
}

impl StyledPieces {
    fn push(&mut self, text: &str, columns: usize, style: Style) {
        self.columns += columns;
        match self.pieces.last_mut() {
            Some((last, same)) if *same == style => last.push_str(text),
            _ => self.pieces.push((text.to_owned(), style)),
        }
    }

    fn append(&mut self, other: &mut Self) {
        for (text, style) in other.pieces.drain(..) {
            self.push(&text, 0, style);
        }
        self.columns += mem::take(&mut other.columns);
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.columns = 0;
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

fn into_spans(pieces: Vec<(String, Style)>) -> Vec<Span<'static>> {
    pieces.into_iter().map(|(text, style)| Span::styled(text, style)).collect()
}

/// Wraps one logical line, character by character: memory is needed for one word and one line.
struct LineWrapper<'a> {
    indent: &'a HangingIndent,
    /// The columns of the first line, and of the others, without their indents.
    first_columns: usize,
    rest_columns: usize,
    /// Set if the indents fit; on a very narrow screen they are left out.
    has_indent: bool,
    lines: Vec<Line<'static>>,
    line: StyledPieces,
    /// Blanks between the line and the word. They are dropped where the line ends.
    gap: StyledPieces,
    word: StyledPieces,
    is_after_wide: bool,
    /// The column of the logical line, for tab stops.
    column: usize,
}

impl<'a> LineWrapper<'a> {
    fn new(width: u16, indent: &'a HangingIndent) -> Self {
        let all = usize::from(width.max(MIN_COLUMNS));
        let (first, rest) = (columns(&indent.first), columns(&indent.rest));
        let has_indent = first.max(rest) + usize::from(MIN_COLUMNS) <= all;
        Self {
            indent,
            first_columns: if has_indent { all - first } else { all },
            rest_columns: if has_indent { all - rest } else { all },
            has_indent,
            lines: Vec::new(),
            line: StyledPieces::default(),
            gap: StyledPieces::default(),
            word: StyledPieces::default(),
            is_after_wide: false,
            column: 0,
        }
    }

    /// Returns the line as it is if it is plain and fits, which most lines of an output do.
    fn whole_line(&self, spans: &[Span<'_>]) -> Option<Line<'static>> {
        let length: usize = spans.iter().map(|span| span.content.len()).sum();
        let fits = length <= self.first_columns && spans.iter().all(|span| is_plain(&span.content));
        let own = |span: &Span<'_>| Span::styled(span.content.clone().into_owned(), span.style);
        fits.then(|| self.indented(spans.iter().map(own)))
    }

    fn push_text(&mut self, text: &str, style: Style) {
        for (at, part) in text.split('\t').enumerate() {
            if at > 0 {
                let blanks = TAB_COLUMNS - self.column % TAB_COLUMNS;
                iter::repeat_n(" ", blanks).for_each(|blank| self.push(blank, 1, style));
            }
            for_each_cluster(part, |cluster, columns| self.push(cluster, columns, style));
        }
    }

    fn push(&mut self, cluster: &str, columns: usize, style: Style) {
        self.column += columns;
        if cluster == " " {
            self.end_word();
            // More blanks than a line has are dropped anyway.
            if self.gap.columns < self.room() {
                self.gap.push(cluster, columns, style);
            }
            return;
        }
        let is_wide = columns > 1;
        let is_bound = if is_wide { NO_LINE_START.contains(cluster) } else { !is_word(cluster) };
        if (is_wide || self.is_after_wide) && !is_bound {
            self.end_word();
        }
        self.is_after_wide = is_wide;
        if self.line.columns + self.gap.columns + self.word.columns + columns > self.room() {
            self.make_room(columns);
        }
        self.word.push(cluster, columns, style);
    }

    /// Returns the columns of the line that is being filled.
    fn room(&self) -> usize {
        if self.lines.is_empty() { self.first_columns } else { self.rest_columns }
    }

    /// Ends the line before the word, or inside it if the word is wider than a line.
    fn make_room(&mut self, columns: usize) {
        if !self.line.is_empty() && self.word.columns + columns <= self.rest_columns {
            self.end_line();
            self.gap.clear();
            return;
        }
        if self.line.is_empty() {
            self.gap.clear();
        }
        if self.line.columns + self.gap.columns + self.word.columns + columns > self.room() {
            self.end_word();
            self.end_line();
        }
    }

    fn end_word(&mut self) {
        self.is_after_wide = false;
        if !self.word.is_empty() {
            self.line.append(&mut self.gap);
            self.line.append(&mut self.word);
        }
    }

    fn end_line(&mut self) {
        let pieces = mem::take(&mut self.line);
        let line = self.indented(into_spans(pieces.pieces).into_iter());
        self.lines.push(line);
    }

    fn indented(&self, spans: impl Iterator<Item = Span<'static>>) -> Line<'static> {
        let indent = if self.lines.is_empty() { &self.indent.first } else { &self.indent.rest };
        let indent = if self.has_indent { indent.as_slice() } else { &[] };
        Line::from(indent.iter().cloned().chain(spans).collect::<Vec<_>>())
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_word();
        if self.lines.is_empty() || !self.line.is_empty() {
            self.end_line();
        }
        self.lines
    }
}

/// One line that is cut where it does not fit.
struct CutLine {
    pieces: StyledPieces,
    columns: usize,
}

impl CutLine {
    fn new(columns: usize) -> Self {
        Self { pieces: StyledPieces::default(), columns }
    }

    /// Returns false once the line is full.
    fn push_text(&mut self, text: &str, style: Style) -> bool {
        let mut fits = true;
        // What is behind the end is not looked at: a cluster of a sane text has fewer characters.
        let most = (self.columns + 1).saturating_mul(8);
        let text: String = text.chars().take(most).collect();
        for_each_cluster(&text.replace('\t', " "), |cluster, columns| {
            if fits && self.pieces.columns + columns > self.columns {
                self.mark_cut(style);
                fits = false;
            } else if fits {
                self.pieces.push(cluster, columns, style);
            }
        });
        fits
    }

    /// Replaces the end by `…`.
    fn mark_cut(&mut self, style: Style) {
        while self.pieces.columns + 1 > self.columns {
            let Some((text, _)) = self.pieces.pieces.last_mut() else { break };
            let before = text.width();
            text.pop();
            self.pieces.columns -= before - text.width().min(before);
            if text.is_empty() {
                self.pieces.pieces.pop();
            }
        }
        self.pieces.push("…", 1, style);
    }
}

/// Returns true if a cluster may begin a line after a wide character.
fn is_word(cluster: &str) -> bool {
    cluster.chars().next().is_some_and(|c| c.is_alphanumeric() || "([{<\"'`$\\/-".contains(c))
}

/// Calls a function with each grapheme cluster of a text without tabs, and its width.
fn for_each_cluster(text: &str, mut take: impl FnMut(&str, usize)) {
    let text = visible_prose(text);
    if is_plain(&text) {
        for at in 0..text.len() {
            take(&text[at..=at], 1);
        }
        return;
    }
    let span = Span::raw(&*text);
    for grapheme in span.styled_graphemes(Style::new()) {
        let (symbol, columns) = (grapheme.symbol, grapheme.symbol.width());
        if columns <= usize::from(MIN_COLUMNS) {
            take(symbol, columns);
            continue;
        }
        // Signs of some scripts add columns to the character before them, any number of them.
        for (at, c) in symbol.char_indices() {
            take(&symbol[at..at + c.len_utf8()], c.width().unwrap_or(0));
        }
    }
}
