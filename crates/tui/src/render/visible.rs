//! Text from outside, escaped for a person: nothing in it can rewrite the screen, change the order
//! of the text, stay invisible, or pose as something else. The panel of a session and the questions
//! of other commands show texts in the same way, because both use this.

use std::{borrow::Cow, path::Path};

pub use blanks::count_blanks;
pub use hidden_characters::visible_json;
use hidden_characters::{is_invisible, is_odd_blank};

mod blanks;
mod hidden_characters;
mod look_alikes;

/// The variation selector that turns the character before it into an emoji.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// The characters that end a word, for the search for look-alikes.
const WORD_ENDS: [char; 7] = [' ', '\t', '\'', '"', '`', '/', '='];

/// Escapes all characters that are not visible as themselves: control and direction characters,
/// unusual blanks, characters without a shape, and look-alikes of ASCII. Tabs are kept.
pub fn visible(text: &str) -> String {
    visible_word(text).into_owned()
}

/// Escapes a command, a path or another text that is acted upon: like [`visible`], and tabs too.
pub fn visible_command(text: &str) -> Cow<'_, str> {
    match visible_word(text) {
        shown if shown.contains('\t') => Cow::Owned(shown.replace('\t', "\\t")),
        shown => shown,
    }
}

/// Escapes prose of a model or a program: only characters that could rewrite the screen or change
/// the order of the text. Tabs, and the joiners and selectors that scripts and emoji use, are kept.
pub fn visible_prose(text: &str) -> Cow<'_, str> {
    let is_escaped = |c| is_hidden(c) && !is_joiner(c);
    if is_plain(text) || !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push(c, is_escaped(c), &mut out));
    Cow::Owned(out)
}

/// Escapes text like [`visible`], but keeps its line breaks.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Escapes a path.
pub fn visible_path(path: &Path) -> String {
    visible(&path_text(path))
}

/// Returns a path as text. Bytes that are not UTF-8 are written as `\xff`.
pub fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// Returns true if a text has only printable ASCII characters, so that each is one column wide.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Maximum number of escapes that are listed.
const MAX_ESCAPES: usize = 32;

/// Returns what [`visible_command`] writes for the first characters of a text that it escapes, each
/// once, without line breaks and tabs, which people use.
pub fn escapes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split_inclusive(WORD_ENDS).filter(|word| !is_plain(word)) {
        for_each_char(word, |c, is_escaped| {
            let escape = || c.escape_default().to_string();
            let is_listed = is_escaped && found.len() < MAX_ESCAPES && !matches!(c, '\n' | '\t');
            if is_listed && !found.contains(&escape()) {
                found.push(escape());
            }
        });
    }
    found
}

fn visible_word(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(WORD_ENDS) {
        if is_plain(word) {
            out.push_str(word);
        } else {
            for_each_char(word, |c, is_escaped| push(c, is_escaped, &mut out));
        }
    }
    Cow::Owned(out)
}

/// Calls a function with each character of a word, and whether it is to be escaped.
fn for_each_char(word: &str, mut take: impl FnMut(char, bool)) {
    let mut before = ' ';
    for (c, poses) in word.chars().zip(look_alikes::find(word)) {
        take(c, poses || is_hidden(c) || is_odd_blank(c) || is_variant(before, c));
        before = c;
    }
}

fn push(c: char, is_escaped: bool, out: &mut String) {
    if is_escaped { out.extend(c.escape_default()) } else { out.push(c) }
}

/// Returns true for characters that have no shape of their own, or change that of others. The emoji
/// selector is checked together with the character before it.
fn is_hidden(c: char) -> bool {
    c != EMOJI_SELECTOR && is_invisible(c)
}

/// Returns true for joiners that scripts and emoji use.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0e}' | '\u{ad}')
}

/// Returns true for an emoji selector after a character that has no emoji form.
fn is_variant(before: char, c: char) -> bool {
    c == EMOJI_SELECTOR && before.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_stays_hidden() {
        assert_eq!(visible("ls\u{202e}\x1b[2K\r\n"), "ls\\u{202e}\\u{1b}[2K\\r\\n");
        assert_eq!(visible_lines("a\x1b\nb\r"), "a\\u{1b}\nb\\r");
        assert_eq!(visible_command("a\u{200d}b\u{a0}c\nd\t"), "a\\u{200d}b\\u{a0}c\\nd\\t");
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
    fn escapes_are_listed_once() {
        assert_eq!(escapes("rm -r /h\u{43e}me /h\u{43e}me\t\n\u{202e}x"), ["\\u{43e}", "\\u{202e}"]);
        assert_eq!(escapes("ls größe"), Vec::<String>::new());
    }

    #[test]
    fn prose_keeps_its_blanks_and_joiners() {
        assert_eq!(visible_prose("à 5\u{a0}h\x1b[2K\u{202e}"), "à 5\u{a0}h\\u{1b}[2K\\u{202e}");
        assert_eq!(visible_prose("a\tb\u{9b}"), "a\tb\\u{9b}");
        for kept in ["größe 文件", "👩\u{200d}💻 ❤\u{fe0f}", "e\u{301}", "5\u{a0}h"] {
            assert_eq!(visible_prose(kept), kept);
        }
    }
}
