//! Checks that the grammar and a shell agree on where a here-document ends.

use std::ops::Range;

/// A here-document as the grammar read it.
pub(super) struct HereDocument {
    /// The word after the operator.
    pub(super) delimiter: Range<usize>,
    /// The line that ends the text.
    pub(super) end: Range<usize>,
    /// The operator is `<<-`: tabs before a line do not count.
    pub(super) strips_tabs: bool,
}

impl HereDocument {
    /// Returns true if the delimiter is quoted, so that nothing in the text is expanded. `None` if
    /// a shell may read another text: the delimiter is not one plain or quoted word, a quote or a
    /// parenthesis on the first line is still open, or another line ends the text.
    pub(super) fn is_literal(&self, source: &str) -> Option<bool> {
        let delimiter = source.get(self.delimiter.clone())?;
        let within = |quote: char| delimiter.strip_prefix(quote)?.strip_suffix(quote);
        let quoted = within('\'').or_else(|| within('"')).or_else(|| delimiter.strip_prefix('\\'));
        let name = quoted.unwrap_or(delimiter);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.!:+@%".contains(&byte);
        let spaced = quoted.is_some() && !delimiter.starts_with('\\');
        if name.is_empty() || !name.bytes().all(|byte| is_plain(byte) || spaced && byte == b' ') {
            return None;
        }
        let rest = source.get(self.delimiter.end..)?;
        let (line, text) = rest.split_once('\n')?;
        let count = |c: char| line.matches(c).count();
        let is_closed = count('\'') % 2 == 0 && count('"') % 2 == 0 && count('(') == count(')');
        if !is_closed || line.contains(['\\', '`', '#']) || line.contains("<<") {
            return None;
        }
        let mut start = self.delimiter.end + line.len() + 1;
        for line in text.split('\n') {
            let bare = if self.strips_tabs { line.trim_start_matches('\t') } else { line };
            if bare == name {
                let is_same =
                    start + line.len() == self.end.end && (start..=self.end.end).contains(&self.end.start);
                return is_same.then_some(quoted.is_some());
            }
            start += line.len() + 1;
        }
        None
    }
}
