//! Renders one part of a Markdown text: the events of the parser become styled lines.

use std::mem;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{MARKDOWN_OPTIONS, code_label, table::MarkdownTable, wrap_code};
use crate::render::{
    Theme,
    highlight::CodeHighlighter,
    wrap::{HangingIndent, columns, wrap_spans},
};

/// Maximum number of containers whose marks are shown: text is not nested deeper, attacks are.
const MAX_CONTAINERS: usize = 16;

/// Collects lines while the parser walks through the blocks.
pub(super) struct BlockRenderer<'a> {
    width: u16,
    theme: &'a Theme,
    lines: Vec<Line<'static>>,
    /// The text of the block that is open.
    inline: Vec<Span<'static>>,
    styles: Vec<Style>,
    containers: Vec<BlockContainer>,
    /// The next number of each list that is open.
    lists: Vec<Option<u64>>,
    /// An empty line comes before the next block.
    needs_gap: bool,
    code: Option<CodeText>,
    table: Option<MarkdownTable>,
    links: Vec<OpenLink>,
}

/// A block that holds others.
enum BlockContainer {
    Quote,
    /// The marker is shown before the first line.
    Item {
        marker: String,
        is_shown: bool,
    },
}

/// A code block that is read.
struct CodeText {
    language: String,
    text: String,
}

/// A link whose text is read.
struct OpenLink {
    address: String,
    /// The number of spans before its text.
    begin: usize,
}

impl<'a> BlockRenderer<'a> {
    pub(super) fn new(width: u16, theme: &'a Theme) -> Self {
        Self {
            width,
            theme,
            lines: Vec::new(),
            inline: Vec::new(),
            styles: vec![theme.text],
            containers: Vec::new(),
            lists: Vec::new(),
            needs_gap: false,
            code: None,
            table: None,
            links: Vec::new(),
        }
    }

    pub(super) fn render(mut self, text: &str) -> Vec<Line<'static>> {
        let mut parser = Parser::new_ext(text, MARKDOWN_OPTIONS);
        for event in parser.by_ref() {
            self.take(event);
        }
        self.end_block();
        self.show_definitions(&parser);
        self.lines
    }

    /// Shows where links point to that are defined here: they may be used in another part.
    fn show_definitions(&mut self, parser: &Parser<'_>) {
        let mut definitions: Vec<_> = parser.reference_definitions().iter().collect();
        definitions.sort_by_key(|(_, definition)| definition.span.start);
        for (name, definition) in definitions {
            let name = Span::styled(format!("[{name}]: "), self.theme.dim);
            self.inline = vec![name, Span::styled(definition.dest.to_string(), self.theme.link)];
            self.flush();
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.push_text(&text),
            },
            Event::Code(text) => self.push_code(&text),
            Event::Html(html) => {
                for line in html.lines() {
                    self.push_text(line);
                    self.flush();
                }
            }
            Event::SoftBreak => self.push_text(" "),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin_block();
                let room = self.room();
                self.inline.push(Span::styled("─".repeat(room), self.theme.border));
                self.end_block();
            }
            Event::TaskListMarker(is_done) => {
                let (mark, style) =
                    if is_done { ("[x] ", self.theme.success) } else { ("[ ] ", self.theme.dim) };
                self.inline.push(Span::styled(mark, style));
            }
            Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.push_text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush_text();
                self.begin_block();
                self.styles.push(self.theme.heading);
                self.push_text(&format!("{} ", "#".repeat(level as usize)));
            }
            Tag::BlockQuote(_) => {
                self.flush_text();
                self.begin_block();
                self.containers.push(BlockContainer::Quote);
            }
            Tag::CodeBlock(kind) => {
                // The text of an item before it: items of a list without empty lines have no
                // paragraphs.
                self.flush_text();
                self.begin_block();
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                self.code = Some(CodeText { language: language.to_owned(), text: String::new() });
            }
            Tag::List(first) => {
                self.flush_text();
                self.begin_block();
                self.lists.push(first);
            }
            Tag::Item => self.begin_item(),
            Tag::Table(alignments) => {
                self.flush_text();
                self.begin_block();
                self.table = Some(MarkdownTable { alignments, rows: Vec::new() });
            }
            Tag::TableHead => {
                self.begin_row();
                self.push_style(Modifier::BOLD);
            }
            Tag::TableRow => self.begin_row(),
            Tag::Emphasis => self.push_style(Modifier::ITALIC),
            Tag::Strong => self.push_style(Modifier::BOLD),
            Tag::Strikethrough => self.push_style(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } => self.begin_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.inline.push(Span::styled("image: ", self.theme.dim));
                self.begin_link(&dest_url);
            }
            Tag::TableCell => {}
            _ => self.begin_block(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.needs_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush_text();
                if let Some(BlockContainer::Item { is_shown: false, .. }) = self.containers.last() {
                    self.flush();
                }
                self.containers.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => self.end_cell(),
            TagEnd::TableRow => {}
            TagEnd::TableHead | TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => self.end_block(),
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, modifier: Modifier) {
        self.styles.push(self.style().add_modifier(modifier));
    }

    fn push_text(&mut self, text: &str) {
        let style = self.style();
        match self.inline.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.inline.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn push_code(&mut self, text: &str) {
        // Without colours, only the signs show what is code.
        let text = if self.theme.has_colour { text.to_owned() } else { format!("`{text}`") };
        self.inline.push(Span::styled(text, self.style().patch(self.theme.code)));
    }

    fn begin_link(&mut self, address: &str) {
        self.links.push(OpenLink { address: address.to_owned(), begin: self.inline.len() });
        // A span of its own, so that the text of the link can be compared with its address.
        self.inline.push(Span::default());
    }

    /// Shows the address after the text, unless it is the text.
    fn end_link(&mut self) {
        let Some(OpenLink { address, begin }) = self.links.pop() else { return };
        let text: String = self.inline.iter().skip(begin).map(|span| span.content.as_ref()).collect();
        if text == address || address.is_empty() {
            return;
        }
        let open = if text.is_empty() { "(" } else { " (" };
        self.inline.push(Span::styled(open, self.theme.dim));
        self.inline.push(Span::styled(address, self.theme.link));
        self.inline.push(Span::styled(")", self.theme.dim));
    }

    fn begin_item(&mut self) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        self.containers.push(BlockContainer::Item { marker, is_shown: false });
    }

    fn begin_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn end_cell(&mut self) {
        let cell = mem::take(&mut self.inline);
        if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
            row.push(cell);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let room = u16::try_from(self.room()).unwrap_or(u16::MAX);
        for line in table.render(room, self.theme) {
            self.inline = line;
            self.flush();
        }
        self.needs_gap = true;
    }

    fn end_code(&mut self) {
        let Some(CodeText { language, text }) = self.code.take() else { return };
        if !language.is_empty() {
            let indent = self.indent();
            self.lines.extend(code_label(&language, self.width, self.theme, &indent));
        }
        let mut code = CodeHighlighter::new(&language, self.theme);
        for line in text.lines() {
            let (indent, spans) = (self.indent(), code.highlight(line, self.theme));
            self.lines.extend(wrap_code(line, &spans, self.width, indent));
        }
        self.needs_gap = true;
    }

    /// Adds the empty line between two blocks.
    fn begin_block(&mut self) {
        if mem::take(&mut self.needs_gap) {
            let marks = mem::take(&mut self.inline);
            let quotes =
                self.containers.iter().filter(|container| matches!(container, BlockContainer::Quote));
            let bars = "│ ".repeat(quotes.count().min(MAX_CONTAINERS));
            let bar = Span::styled(bars.trim_end().to_owned(), self.theme.border);
            self.lines.extend(wrap_spans(&[bar], self.width, &HangingIndent::default()));
            self.inline = marks;
        }
    }

    fn end_block(&mut self) {
        self.flush_text();
        self.needs_gap = true;
    }

    fn flush_text(&mut self) {
        if !self.inline.is_empty() {
            self.flush();
        }
    }

    /// Wraps the text so far.
    fn flush(&mut self) {
        let indent = self.indent();
        let spans = mem::take(&mut self.inline);
        self.lines.extend(wrap_spans(&spans, self.width, &indent));
    }

    /// Returns the columns that the containers leave.
    fn room(&self) -> usize {
        let used: usize = self.shown_containers().iter().map(BlockContainer::columns).sum();
        usize::from(self.width).saturating_sub(used).max(1)
    }

    fn shown_containers(&self) -> &[BlockContainer] {
        &self.containers[self.containers.len().saturating_sub(MAX_CONTAINERS)..]
    }

    /// Returns the marks of the containers, and marks those of items as shown.
    fn indent(&mut self) -> HangingIndent {
        let mut indent = HangingIndent::default();
        let begin = self.containers.len().saturating_sub(MAX_CONTAINERS);
        for container in &mut self.containers[begin..] {
            let blanks = Span::raw(" ".repeat(container.columns()));
            let (first, rest) = match container {
                BlockContainer::Quote => {
                    let bar = Span::styled("│ ", self.theme.border);
                    (bar.clone(), bar)
                }
                BlockContainer::Item { is_shown: true, .. } => (blanks.clone(), blanks),
                BlockContainer::Item { marker, is_shown } => {
                    *is_shown = true;
                    (Span::styled(marker.clone(), self.theme.dim), blanks)
                }
            };
            indent.first.push(first);
            indent.rest.push(rest);
        }
        indent
    }
}

impl BlockContainer {
    fn columns(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::Item { marker, .. } => columns(&[Span::raw(marker.as_str())]),
        }
    }
}
