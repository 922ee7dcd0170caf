//! Splits Markdown into parts that do not depend on what follows them. It sees complete lines only,
//! so that its decisions do not depend on how the text arrives.

use std::mem;

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

/// Takes lines and returns the parts they complete.
#[derive(Debug, Clone, Default)]
pub(super) struct PartSplitter {
    /// The lines of the part that is not complete.
    pending: String,
    /// Set if a list began in it: such a part continues after empty lines.
    has_list: bool,
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
        if let Some((fence, language)) = CodeFence::parse(line, if self.has_list { 1 } else { 3 }) {
            self.fence = Some(fence);
            let blocks = self.take_pending();
            return blocks.into_iter().chain([MarkdownPart::CodeBegin(language)]).collect();
        }
        let blocks = if self.begins_part(line) { self.take_pending() } else { None };
        self.is_after_blank = line.trim().is_empty();
        self.has_list |= is_list_item(line);
        if !(self.pending.is_empty() && self.is_after_blank) {
            self.pending.push_str(line);
            self.pending.push('\n');
        }
        blocks.into_iter().collect()
    }

    pub(super) fn finish(&mut self) -> Option<MarkdownPart> {
        if self.fence.take().is_some() { Some(MarkdownPart::CodeEnd) } else { self.take_pending() }
    }

    /// Returns true if no block before this line can continue in it.
    fn begins_part(&self, line: &str) -> bool {
        let continues = line.starts_with([' ', '\t']) || (self.has_list && is_list_item(line));
        self.is_after_blank && !line.trim().is_empty() && !continues
    }

    fn take_pending(&mut self) -> Option<MarkdownPart> {
        (self.has_list, self.is_after_blank) = (false, false);
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

/// Returns true if a line begins an item of a list outside of other blocks.
fn is_list_item(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    let unnumbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - unnumbered.len();
    let after = match digits {
        0 => text.strip_prefix(['-', '*', '+']),
        1..=9 => unnumbered.strip_prefix(['.', ')']),
        _ => None,
    };
    line.len() - text.len() <= 3
        && after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t']))
}
