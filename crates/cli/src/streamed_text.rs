//! Text of a model as it arrives: lines that are complete, and the one that is not.

use windlass_tui::render::visible::visible_prose;

use crate::wrap::wrap_hanging;

/// A message that is arriving.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    /// All of it so far, as the model wrote it.
    whole: String,
    /// The end of it that is not shown for good.
    unfinished: String,
    /// It is inside of a code block.
    is_code: bool,
}

impl StreamedText {
    /// Adds a piece, and returns the lines that are complete now, escaped and wrapped.
    pub(crate) fn push(&mut self, piece: &str, columns: usize) -> Vec<String> {
        self.whole.push_str(piece);
        let mut lines = Vec::new();
        for part in piece.split_inclusive('\n') {
            self.unfinished.push_str(&visible_prose(part.strip_suffix('\n').unwrap_or(part)));
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.unfinished);
                lines.extend(self.wrapped(&line, columns));
                self.is_code ^= line.trim_start().starts_with("```");
            }
        }
        let mut begun = self.wrapped(&self.unfinished, columns);
        self.unfinished = begun.pop().unwrap_or_default();
        lines.extend(begun);
        lines
    }

    /// Returns the line that is not complete.
    pub(crate) fn partial(&self) -> &str {
        &self.unfinished
    }

    /// Returns the rest of a message, given all of it. A message that does not begin with what has
    /// arrived is another one.
    pub(crate) fn rest_of<'a>(&self, message: &'a str) -> Option<&'a str> {
        let (whole, message) = (self.whole.trim(), message.trim());
        // Calls that a model writes into its text are no part of the message.
        message.strip_prefix(whole).or_else(|| whole.contains(message).then_some(""))
    }

    /// Returns true if nothing has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// Wraps a line of prose. Code and tables stay as they are, so that they can be copied.
    fn wrapped(&self, line: &str, columns: usize) -> Vec<String> {
        let start = line.trim_start();
        if self.is_code || start.starts_with("```") || start.starts_with('|') {
            return vec![line.to_owned()];
        }
        let mut lines = wrap_hanging(line, columns);
        // A blank that has no word after it yet.
        if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(' ')) {
            last.push_str(&line[line.trim_end_matches(' ').len()..]);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(text: &str, columns: usize, size: usize) -> Vec<String> {
        let mut stream = StreamedText::default();
        let chars: Vec<_> = text.chars().collect();
        let mut lines = Vec::new();
        for piece in chars.chunks(size) {
            lines.extend(stream.push(&piece.iter().collect::<String>(), columns));
        }
        lines.push(stream.partial().to_owned());
        assert_eq!(stream.rest_of(text), Some(""));
        lines
    }

    #[test]
    fn pieces_of_any_size_give_the_same_lines() {
        let text = "The quick brown fox jumps over the lazy dog.\n\n- one item that is too long for it\n\
                    ```\nlet code = that_is_not_wrapped_at_all(1, 2, 3);\n```\n日本語のとても長い文章です。終わり";
        let whole = streamed(text, 30, 1000);
        assert_eq!(whole[..3], ["The quick brown fox jumps over", "the lazy dog.", ""]);
        assert!(whole.contains(&"  for it".to_owned()), "{whole:?}");
        assert!(whole.contains(&"let code = that_is_not_wrapped_at_all(1, 2, 3);".to_owned()), "{whole:?}");
        for size in [1, 2, 7] {
            assert_eq!(streamed(text, 30, size), whole, "{size}");
        }
    }

    #[test]
    fn the_rest_of_a_message_is_found_and_another_message_is_not() {
        let mut stream = StreamedText::default();
        assert!(stream.push("Half \u{1b}[2J", 80).is_empty());
        assert_eq!(stream.partial(), "Half \\u{1b}[2J");
        assert_eq!(stream.rest_of("Half \u{1b}[2J done\n"), Some(" done"));
        assert_eq!(stream.rest_of("Another"), None);
    }
}
