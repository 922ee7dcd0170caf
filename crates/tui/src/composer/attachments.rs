//! Long pasted texts. The input shows a short mark for each, and the whole text is sent.

use std::borrow::Cow;

use windlass::{counted, shortened};

/// A pasted text of more lines or characters becomes an attachment.
const MAX_SHOWN_LINES: usize = 10;
const MAX_SHOWN_CHARS: usize = 1000;

/// Lines of a long message that the conversation shows.
const SHOWN_LINES: usize = 8;

/// Returns a message as the conversation shows it: of a long one, the beginning.
pub(crate) fn shown_message(message: &str) -> Cow<'_, str> {
    let lines = message.lines().count();
    if lines <= MAX_SHOWN_LINES && message.chars().count() <= 2 * MAX_SHOWN_CHARS {
        return Cow::Borrowed(message);
    }
    let first: Vec<_> = message.lines().take(SHOWN_LINES).collect();
    let first = shortened(&first.join("\n"), MAX_SHOWN_CHARS);
    match lines.saturating_sub(SHOWN_LINES) {
        0 => Cow::Owned(first),
        more => Cow::Owned(format!("{first}\n… {}", counted(more as u64, "more line"))),
    }
}

/// The long pasted texts of a message.
#[derive(Debug, Default)]
pub(super) struct PastedTexts {
    texts: Vec<PastedText>,
}

#[derive(Debug)]
struct PastedText {
    mark: String,
    text: String,
}

impl PastedTexts {
    /// Keeps a long text and returns its mark. Returns `None` for a short one.
    pub(super) fn attach(&mut self, text: &str) -> Option<&str> {
        let (lines, chars) = (text.lines().count(), text.chars().count());
        if lines <= MAX_SHOWN_LINES && chars <= MAX_SHOWN_CHARS {
            return None;
        }
        let size = if lines > MAX_SHOWN_LINES {
            counted(lines as u64, "line")
        } else {
            counted(chars as u64, "character")
        };
        let mut mark = format!("[pasted {size}]");
        let is_taken = |mark: &String| self.texts.iter().any(|pasted| pasted.mark == *mark);
        for number in 2.. {
            if !is_taken(&mark) {
                break;
            }
            mark = format!("[pasted {size}, {number}]");
        }
        self.texts.push(PastedText { mark, text: text.to_owned() });
        self.texts.last().map(|pasted| pasted.mark.as_str())
    }

    pub(super) fn clear(&mut self) {
        self.texts.clear();
    }

    /// Returns the mark that a text ends with.
    pub(super) fn mark_at_end<'a>(&'a self, text: &str) -> Option<&'a str> {
        self.marks().find(|mark| text.ends_with(mark))
    }

    /// Returns the mark that a text begins with.
    pub(super) fn mark_at_start<'a>(&'a self, text: &str) -> Option<&'a str> {
        self.marks().find(|mark| text.starts_with(mark))
    }

    fn marks(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|pasted| pasted.mark.as_str())
    }

    /// Returns a message with the texts in the place of their marks. Marks in a pasted text stay.
    pub(super) fn expand(&self, message: &str) -> String {
        let (mut whole, mut rest) = (String::new(), message);
        let first = |rest: &str| {
            let places = self.texts.iter().filter_map(|pasted| Some((rest.find(&pasted.mark)?, pasted)));
            places.min_by_key(|(at, _)| *at)
        };
        while let Some((at, pasted)) = first(rest) {
            whole.push_str(&rest[..at]);
            whole.push_str(&pasted.text);
            rest = &rest[at + pasted.mark.len()..];
        }
        whole + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_message_the_beginning_is_shown() {
        assert_eq!(shown_message("one\ntwo"), "one\ntwo");
        let lines: String = (0..30).map(|number| format!("{number}\n")).collect();
        assert_eq!(shown_message(&lines), "0\n1\n2\n3\n4\n5\n6\n7\n… 22 more lines");
    }

    #[test]
    fn marks_differ_and_are_replaced_once() {
        let mut texts = PastedTexts::default();
        let (first, second) = ("a\n".repeat(20), format!("[pasted 20 lines]\n{}", "b\n".repeat(19)));
        assert_eq!(texts.attach(&first), Some("[pasted 20 lines]"));
        assert_eq!(texts.attach(&second), Some("[pasted 20 lines, 2]"));
        assert_eq!(texts.attach(&"x".repeat(2000)), Some("[pasted 2000 characters]"));
        assert_eq!(texts.attach("short"), None);
        let message = "x [pasted 20 lines, 2] y [pasted 20 lines] z";
        assert_eq!(texts.expand(message), format!("x {second} y {first} z"));
    }
}
