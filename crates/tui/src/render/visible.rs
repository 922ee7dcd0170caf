//! Text from outside, escaped for a person: nothing in it can rewrite the screen, change the order
//! of the text, or stay invisible.

use std::{borrow::Cow, ops::RangeInclusive};

/// The variation selector that turns the character before it into an emoji.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Invisible characters of Unicode 16: `Default_Ignorable_Code_Point`, the category `Cf`, U+2800
/// and U+FFFC. The same table as in `cli/hidden_characters.rs`.
const INVISIBLE: &[RangeInclusive<char>] = &[
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffc}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Escapes prose and output: control characters other than the tab, and invisible characters other
/// than the joiners and selectors that scripts and emoji use.
pub fn visible_prose(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_invisible(c) && !is_joiner(c))
}

/// Escapes a command, a path or another text that is acted upon: also joiners, and blanks other
/// than the space.
pub fn visible_command(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\t' || is_invisible(c) || (c.is_whitespace() && c != ' '))
}

/// Returns true if a text has only printable ASCII characters, so that each is one column wide.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\t') || (!c.is_ascii() && INVISIBLE.iter().any(|range| range.contains(&c)))
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0e}' | '\u{ad}' | EMOJI_SELECTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_rewrite_or_reorder_the_screen_is_escaped() {
        assert_eq!(visible_prose("a\x1b[2K\u{202e}\tb\u{9b}"), "a\\u{1b}[2K\\u{202e}\tb\\u{9b}");
        assert_eq!(visible_command("a\u{200d}b\u{a0}c\nd\t"), "a\\u{200d}b\\u{a0}c\\nd\\t");
    }

    #[test]
    fn text_of_other_languages_and_emoji_are_kept() {
        for kept in ["größe 文件", "👩\u{200d}💻 ❤\u{fe0f}", "e\u{301}", "5\u{a0}h"] {
            assert_eq!(visible_prose(kept), kept);
        }
    }
}
