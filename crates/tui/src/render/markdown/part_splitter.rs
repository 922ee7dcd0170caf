//! Splits Markdown into parts that do not depend on what follows them. It sees complete lines only,
//! so that its decisions do not depend on how the text arrives.

use std::mem;

use pulldown_cmark::{Event, Parser};

use super::MARKDOWN_OPTIONS;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MarkdownPart {
    /// Blocks of any kind, complete.
    Blocks(String),
    /// The beginning of a code block, with its language.
    CodeBegin(String),
    /// A line of the code block.
    CodeLine(String),
    /// The end of the code block.
    CodeEnd,
}

/// Columns before which a marker begins a list; from there on, a line is code.
const MAX_MARKER_COLUMNS: usize = 4;

/// Maximum size of a list that is parsed again at a line that may end it. A longer one ends at an
/// empty line: parsing it at each line takes time that grows with the square.
const MAX_PARSED_BYTES: usize = 16 * 1024;

/// Takes lines and returns the parts they complete.
#[derive(Debug, Clone, Default)]
pub(super) struct PartSplitter {
    /// The lines of the part that is not complete.
    pending: String,
    /// The column of the text in the last item, if a list began in it. Such a part continues after
    /// empty lines, and lines from this column on belong to the item.
    item_column: Option<usize>,
    is_after_blank: bool,
    fence: Option<CodeFence>,
}

/// The fence that began a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CodeFence {
    sign: char,
    length: usize,
    indent: usize,
}

impl PartSplitter {
    pub(super) fn take_line(&mut self, line: &str) -> Vec<MarkdownPart> {
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(fence) = &self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
                return vec![MarkdownPart::CodeEnd];
            }
            return vec![MarkdownPart::CodeLine(fence.without_indent(line).to_owned())];
        }
        let ended = if self.ends_list(line) { self.take_pending() } else { None };
        ended.into_iter().chain(self.take_line_of_blocks(line)).collect()
    }

    /// Takes a line that is not inside of a code block outside of lists.
    fn take_line_of_blocks(&mut self, line: &str) -> Vec<MarkdownPart> {
        if let Some((fence, language)) =
            CodeFence::parse(line, self.item_column.map_or(3, |column| column.saturating_sub(1).min(3)))
        {
            self.fence = Some(fence);
            let blocks = self.take_pending();
            return blocks.into_iter().chain([MarkdownPart::CodeBegin(language)]).collect();
        }
        let blocks = if self.begins_part(line) { self.take_pending() } else { None };
        self.is_after_blank = line.trim().is_empty();
        if let Some(item) = ListItemColumns::parse(line)
            && item.marker < self.item_column.unwrap_or(MAX_MARKER_COLUMNS)
        {
            self.item_column = Some(item.text);
        }
        if !(self.pending.is_empty() && self.is_after_blank) {
            self.pending.push_str(line);
            self.pending.push('\n');
        }
        blocks.into_iter().collect()
    }

    pub(super) fn finish(&mut self) -> Option<MarkdownPart> {
        if self.fence.take().is_some() { Some(MarkdownPart::CodeEnd) } else { self.take_pending() }
    }

    /// Returns true if a list was open and this line is not part of it. A line that is indented too
    /// little may still continue a paragraph of the list, which only the parser can tell.
    fn ends_list(&self, line: &str) -> bool {
        let Some(column) = self.item_column else { return false };
        let indent = line.len() - line.trim_start_matches(' ').len();
        let may_end = !line.trim().is_empty() && indent < column && ListItemColumns::parse(line).is_none();
        if !may_end || self.pending.len() > MAX_PARSED_BYTES {
            return false;
        }
        let text = format!("{}{line}\n", self.pending);
        let mut depth = 0_usize;
        let mut last = 0;
        for (event, range) in Parser::new_ext(&text, MARKDOWN_OPTIONS).into_offset_iter() {
            match event {
                Event::Start(_) => {
                    last = if depth == 0 { range.start } else { last };
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                _ if depth == 0 => last = range.start,
                _ => {}
            }
        }
        last >= self.pending.len()
    }

    /// Returns true if no block before this line can continue in it.
    fn begins_part(&self, line: &str) -> bool {
        let continues = line.starts_with([' ', '\t'])
            || (self.item_column.is_some() && ListItemColumns::parse(line).is_some());
        self.is_after_blank && !line.trim().is_empty() && !continues
    }

    fn take_pending(&mut self) -> Option<MarkdownPart> {
        (self.item_column, self.is_after_blank) = (None, false);
        let pending = mem::take(&mut self.pending);
        (!pending.is_empty()).then_some(MarkdownPart::Blocks(pending))
    }
}

impl CodeFence {
    /// Returns the fence and the language, if the line begins a code block outside of lists and
    /// quotes.
    fn parse(line: &str, max_indent: usize) -> Option<(Self, String)> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let sign = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(sign);
        let length = text.len() - info.len();
        if indent > max_indent || length < 3 || (sign == '`' && info.contains('`')) {
            return None;
        }
        let language = info.trim().split([' ', '\t', ',', '{']).next().unwrap_or_default();
        Some((Self { sign, length, indent }, language.to_owned()))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let after = text.trim_start_matches(self.sign);
        line.len() - text.len() <= 3 && text.len() - after.len() >= self.length && after.trim().is_empty()
    }

    /// Returns a line without the indent of the fence.
    fn without_indent<'a>(&self, line: &'a str) -> &'a str {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        &line[blanks.min(self.indent)..]
    }
}

/// The columns of the first line of an item.
struct ListItemColumns {
    marker: usize,
    text: usize,
}

impl ListItemColumns {
    /// Returns them if the line begins an item of a list.
    fn parse(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let unnumbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = match text.len() - unnumbered.len() {
            0 => text.strip_prefix(['-', '*', '+'])?,
            1..=9 => unnumbered.strip_prefix(['.', ')'])?,
            _ => return None,
        };
        let blanks = after.len() - after.trim_start_matches(' ').len();
        let is_item = after.is_empty() || after.starts_with([' ', '\t']);
        // More blanks than these are code in the item.
        let blanks = if (1..=4).contains(&blanks) { blanks } else { 1 };
        let marker = line.len() - text.len();
        is_item.then_some(Self { marker, text: line.len() - after.len() + blanks })
    }
}
