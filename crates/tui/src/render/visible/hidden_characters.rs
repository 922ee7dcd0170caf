//! Characters that are not shown as themselves: they control the screen or its direction, or are
//! invisible.

use std::ops::RangeInclusive;

/// Returns JSON with such characters escaped: it means the same to a program.
pub fn visible_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside of strings there is only ASCII; in them serde has escaped control characters.
        if !c.is_ascii() && is_hidden(c) {
            let units =
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            text.push_str(&units);
        } else {
            text.push(c);
        }
    }
    text
}

/// Characters of Unicode 16 that are `Default_Ignorable_Code_Point` or of the category `Cf`, and
/// two blanks outside of both: U+2800 and U+FFFC.
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

/// Returns true if a character is not shown as itself: it is invisible, or a blank other than the
/// space and the tab.
fn is_hidden(c: char) -> bool {
    is_invisible(c) || is_odd_blank(c)
}

/// Returns true if a character is a control or has no shape of its own.
pub(super) fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\t') || INVISIBLE.iter().any(|range| range.contains(&c))
}

/// Returns true if a character is a blank other than the space and the tab.
pub(super) fn is_odd_blank(c: char) -> bool {
    c.is_whitespace() && c != ' ' && c != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_hidden_characters_is_ascii_and_says_the_same() {
        for hidden in
            "\u{200b}\u{e0041}\u{ad}\u{115f}\u{3164}\u{2800}\u{2028}\u{a0}\u{3000}\u{600}\u{fe0f}\u{13430}\u{85}".chars()
        {
            assert!(is_hidden(hidden), "{hidden:?}");
            let json = visible_json(&serde_json::json!(hidden.to_string()).to_string());
            assert!(json.is_ascii(), "{json}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hidden.to_string());
        }
        for shown in "a \t\u{e4}\u{6587}\u{2713}\u{1f600}".chars() {
            assert!(!is_hidden(shown), "{shown:?}");
        }
    }
}
