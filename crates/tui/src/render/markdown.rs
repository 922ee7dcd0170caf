//! Markdown as styled lines, whole or while it arrives.
//!
//! A text is split into parts at lines where no later text can change an earlier part
//! (`part_splitter`). Each part is rendered by itself (`block_renderer`), so that a text that
//! arrives in pieces looks the same as the whole. The price: a link whose address is defined in
//! another part shows its name, and the definition is shown where it is.

use std::mem;

use pulldown_cmark::Options;
use ratatui::text::{Line, Span};

use crate::render::{
    Theme,
    highlight::CodeHighlighter,
    wrap::{HangingIndent, TAB_COLUMNS, wrap_spans},
};
use block_renderer::BlockRenderer;
use part_splitter::{MarkdownPart, PartSplitter};

mod block_renderer;
mod part_splitter;
mod table;

/// The extensions of Markdown that are understood.
const MARKDOWN_OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Columns by which code is indented. Blanks, so that copied code has no signs of ours in it.
const CODE_INDENT_COLUMNS: usize = 2;

/// Renders a whole text.
pub fn render_markdown(text: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let mut stream = StreamingMarkdown::new(width, *theme);
    let mut lines = stream.push(text);
    lines.extend(stream.finish());
    lines
}

/// A text that arrives in pieces. Lines returned by [`push`](Self::push) are final; those of
/// [`tail`](Self::tail) may still change.
#[derive(Debug, Clone)]
pub struct StreamingMarkdown {
    splitter: PartSplitter,
    /// The last line, as long as its end has not arrived.
    partial: String,
    renderer: PartRenderer,
}

impl StreamingMarkdown {
    /// Begins a text.
    pub fn new(width: u16, theme: Theme) -> Self {
        let renderer = PartRenderer { width, theme, code: None, has_lines: false };
        Self { splitter: PartSplitter::default(), partial: String::new(), renderer }
    }

    /// Changes the width of all lines that are not final yet.
    pub fn set_width(&mut self, width: u16) {
        self.renderer.width = width;
    }

    /// Adds a piece and returns the lines that have become final.
    pub fn push(&mut self, piece: &str) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for part in piece.split_inclusive('\n') {
            self.partial.push_str(part);
            if part.ends_with('\n') {
                let line = mem::take(&mut self.partial);
                self.take_line(&line, &mut lines);
            }
        }
        lines
    }

    /// Returns the lines after the final ones, as they are if nothing more arrives.
    pub fn tail(&self) -> Vec<Line<'static>> {
        self.clone().finish()
    }

    /// Ends the text and returns its last lines.
    pub fn finish(mut self) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if !self.partial.is_empty() {
            let line = mem::take(&mut self.partial);
            self.take_line(&line, &mut lines);
        }
        if let Some(part) = self.splitter.finish() {
            self.renderer.render(part, &mut lines);
        }
        lines
    }

    fn take_line(&mut self, line: &str, lines: &mut Vec<Line<'static>>) {
        for part in self.splitter.take_line(line) {
            self.renderer.render(part, lines);
        }
    }
}

/// Renders part after part, with an empty line between them.
#[derive(Debug, Clone)]
struct PartRenderer {
    width: u16,
    theme: Theme,
    /// The colours of the code block that is open.
    code: Option<CodeHighlighter>,
    has_lines: bool,
}

impl PartRenderer {
    fn render(&mut self, part: MarkdownPart, lines: &mut Vec<Line<'static>>) {
        match part {
            MarkdownPart::Blocks(text) => {
                let blocks = BlockRenderer::new(self.width, &self.theme).render(&text);
                if !blocks.is_empty() {
                    self.separate(lines);
                    lines.extend(blocks);
                }
            }
            MarkdownPart::CodeBegin(language) => {
                self.separate(lines);
                lines.extend(code_label(&language, self.width, &self.theme, &HangingIndent::default()));
                self.code = Some(CodeHighlighter::new(&language, &self.theme));
            }
            MarkdownPart::CodeLine(line) => {
                let code = self.code.get_or_insert_with(|| CodeHighlighter::new("", &self.theme));
                let spans = code.highlight(&line, &self.theme);
                lines.extend(wrap_code(&line, &spans, self.width, HangingIndent::default()));
            }
            MarkdownPart::CodeEnd => self.code = None,
        }
    }

    fn separate(&mut self, lines: &mut Vec<Line<'static>>) {
        if mem::replace(&mut self.has_lines, true) {
            lines.push(Line::default());
        }
    }
}

/// Wraps a line of code inside of other blocks. Further lines are indented more than the first, so
/// that they do not look like lines of the code.
fn wrap_code(line: &str, spans: &[Span<'_>], width: u16, mut indent: HangingIndent) -> Vec<Line<'static>> {
    let blanks = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    let blanks: usize = blanks.map(|c| if c == '\t' { TAB_COLUMNS } else { 1 }).sum();
    let hang = (blanks + CODE_INDENT_COLUMNS).min(usize::from(width / 4));
    indent.first.push(Span::raw(" ".repeat(CODE_INDENT_COLUMNS)));
    indent.rest.push(Span::raw(" ".repeat(CODE_INDENT_COLUMNS + hang)));
    wrap_spans(spans, width, &indent)
}

/// Returns the line above a code block that names its language, if it has one.
fn code_label(language: &str, width: u16, theme: &Theme, indent: &HangingIndent) -> Vec<Line<'static>> {
    if language.is_empty() {
        return Vec::new();
    }
    wrap_spans(&[Span::styled(format!("[{language}]"), theme.dim)], width, indent)
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::vec,
        prelude::{prop_assert_eq, proptest},
        sample::select,
    };

    use super::*;

    /// Lines of blocks that do not refer to each other.
    const LINES: [&str; 24] = [
        "# Title",
        "words and *more* words",
        "",
        "- item",
        "* other item",
        "  continued",
        "1. first",
        "   continued",
        "    deep",
        "```rust",
        "```",
        "fn main() {}",
        "> quoted",
        "| a | b |",
        "|---|---|",
        "---",
        "- [ ] task",
        "- ```sh",
        "  ```",
        "   ```rust",
        "    ```",
        "  fn inner() {}",
        "  ~~~",
        "1. ```",
    ];

    proptest! {
        #[test]
        fn parts_look_like_the_document_they_are_part_of(lines in vec(select(LINES.to_vec()), 0..12)) {
            let (text, theme) = (lines.join("\n"), Theme::no_colour());
            let whole = BlockRenderer::new(60, &theme).render(&text);
            let show = |lines: &[Line<'_>]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            prop_assert_eq!(show(&render_markdown(&text, 60, &theme)), show(&whole), "{}", text);
        }
    }
}
