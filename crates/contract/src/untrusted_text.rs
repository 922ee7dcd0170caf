//! Texts of others, cleaned for people and models.

/// Returns a text without control characters and invisible characters. Line breaks and tabs stay.
///
/// Invisible characters can hide instructions from the person who approves a tool, and reorder the
/// text that the person sees.
pub fn visible_text(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_hidden(*c)).collect()
}

/// Returns a text as one line of at most `max_bytes`, without control and invisible characters. A
/// cut is marked with `…`.
pub fn visible_line(text: &str, max_bytes: usize) -> String {
    let visible = visible_text(text);
    let words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    bounded_text(&words, max_bytes)
}

/// Cuts a text to `max_bytes`. A cut is marked with `…`, which is part of them.
pub fn bounded_text(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// Returns true for characters that are not shown, or that change how their neighbours are shown.
/// The joiners of emoji and scripts (U+200C, U+200D) and variation selectors are not among them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_removed() {
        assert_eq!(visible_text("a\u{1b}[31m\u{0}\n\tb\u{202e}c\u{e0041}\u{feff}"), "a[31m\n\tbc");
        assert_eq!(visible_text("👩\u{200d}🚀 naïve"), "👩\u{200d}🚀 naïve");
        assert_eq!(visible_line(" a\r\n\tb  c ", 10), "a b c");
    }

    #[test]
    fn a_cut_line_stays_within_its_bytes() {
        assert_eq!(visible_line("ääääää", 9), "äää…");
        assert_eq!(visible_line("abcdef", 6), "abcdef");
        assert_eq!(bounded_text("abc", 2), "…");
    }
}
