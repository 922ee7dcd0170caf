//! Text from outside, escaped for a person: nothing in it can rewrite the screen, stay invisible,
//! or pose as something else.

use std::path::Path;

use crate::{
    hidden_characters::{is_invisible, is_odd_blank},
    look_alikes,
};

/// The variation selector that turns the character before it into an emoji.
const EMOJI_SIGN: char = '\u{fe0f}';

/// Escapes all characters that are not visible as themselves: control and direction characters,
/// unusual blanks, characters without a shape, and look-alikes of ASCII.
pub(crate) fn visible(text: &str) -> String {
    let shown = |word: &str| {
        if word.is_ascii() && !word.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return word.to_owned();
        }
        let poses = look_alikes::find(word);
        let mut before = ' ';
        let mut out = String::with_capacity(word.len());
        for (c, poses) in word.chars().zip(poses) {
            push(c, poses || is_hidden(c) || is_odd_blank(c) || is_variant(before, c), &mut out);
            before = c;
        }
        out
    };
    text.split_inclusive([' ', '\t', '\'', '"', '`', '/', '=']).map(shown).collect()
}

/// Escapes prose of a model or a program: only characters that could rewrite the screen or change
/// the order of the text.
pub(crate) fn visible_prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(c, is_hidden(c) && !is_joiner(c), &mut out);
    }
    out
}

/// Escapes a path.
pub(crate) fn visible_path(path: &Path) -> String {
    visible(&path_text(path))
}

/// Returns a path as text. Bytes that are not UTF-8 are written as `\xff`.
pub(crate) fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Escapes text like [`visible`], but keeps its line breaks.
pub(crate) fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

fn push(c: char, is_marked: bool, out: &mut String) {
    if is_marked { out.extend(c.escape_default()) } else { out.push(c) }
}

/// Returns true for characters that have no shape of their own, or change that of others. The emoji
/// selector is checked together with the character before it.
fn is_hidden(c: char) -> bool {
    c != EMOJI_SIGN && is_invisible(c)
}

/// Returns true for joiners that scripts and emoji use.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0e}' | '\u{ad}')
}

/// Returns true for an emoji selector after a character that has no emoji form.
fn is_variant(before: char, c: char) -> bool {
    c == EMOJI_SIGN && before.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_stays_hidden() {
        assert_eq!(visible("ls\u{202e}\x1b[2K\r\n"), "ls\\u{202e}\\u{1b}[2K\\r\\n");
        assert_eq!(visible_lines("a\x1b\nb\r"), "a\\u{1b}\nb\\r");
        for hidden in
            "\u{3164}\u{115f}\u{2800}\u{ad}\u{34f}\u{a0}\u{200b}\u{2066}\u{feff}\u{e0041}\u{9b}".chars()
        {
            let expected = format!("a{}b", hidden.escape_default());
            assert_eq!(visible(&format!("a{hidden}b")), expected);
        }
    }

    #[test]
    fn letters_that_pose_as_latin_are_marked_and_other_scripts_are_not() {
        assert_eq!(visible("p\u{430}ypal"), "p\\u{430}ypal");
        assert_eq!(visible("rm -rf /h\u{43e}me"), "rm -rf /h\\u{43e}me");
        assert_eq!(
            visible("git clone https://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com/x"),
            "git clone https://\\u{430}\\u{440}\\u{440}\\u{4cf}\\u{435}.com/x"
        );
        assert_eq!(visible("ev\u{3bf}l"), "ev\\u{3bf}l");
        assert_eq!(visible("\u{ff4c}\u{ff53} x"), "\\u{ff4c}\\u{ff53} x");
        for plain in [
            "größe\t文件",
            "документы/отчёт.txt",
            "файл",
            "αβγ",
            "Δx",
            "日本語のファイル",
            "naïve café",
            "❤️ ok",
            "e\u{301}",
        ] {
            assert_eq!(visible(plain), plain);
        }
    }

    #[test]
    fn prose_keeps_its_blanks() {
        assert_eq!(visible_prose("à 5\u{a0}h\x1b[2K\u{202e}"), "à 5\u{a0}h\\u{1b}[2K\\u{202e}");
    }
}
