//! Splits text into words: identifiers at their word borders, Chinese and similar scripts into
//! single characters and pairs.

use std::borrow::Cow;

mod stem;
mod stop;

pub(crate) use stem::stem;
pub(crate) use stop::is_stop;

/// Maximum length of a word. A longer one is data and not language.
const MAX_WORD_BYTES: usize = 40;

/// A token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextToken<'a> {
    /// A word of a script with spaces, in lower case and not stemmed.
    Word(&'a str),
    /// A character of a script without spaces.
    Glyph(&'a str),
    /// Two adjacent characters of a script without spaces.
    Pair(&'a str),
}

impl<'a> TextToken<'a> {
    /// Returns the text as written.
    pub(crate) fn text(self) -> &'a str {
        let (Self::Word(text) | Self::Glyph(text) | Self::Pair(text)) = self;
        text
    }

    /// Returns the term under which the token is indexed.
    pub(crate) fn term(self) -> Cow<'a, str> {
        match self {
            Self::Word(word) => stem(word).into(),
            Self::Glyph(text) | Self::Pair(text) => text.into(),
        }
    }
}

/// Calls a function with every token of a text, in order.
pub(crate) fn tokenize(text: &str, mut each: impl FnMut(TextToken<'_>)) {
    let mut word = String::new();
    let mut before: Option<usize> = None;
    let mut last = '\0';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if is_glyph(c) {
            finish(&mut word, &mut each);
            let end = at + c.len_utf8();
            each(TextToken::Glyph(&text[at..end]));
            if let Some(from) = before {
                each(TextToken::Pair(&text[from..end]));
            }
            before = Some(at);
        } else {
            before = None;
            let next = chars.peek().map_or('\0', |(_, next)| *next);
            if !c.is_alphanumeric() || is_joint(last, c, next) {
                finish(&mut word, &mut each);
            }
            if c.is_ascii_alphanumeric() {
                word.push(c.to_ascii_lowercase());
            } else if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
            }
        }
        last = c;
    }
    finish(&mut word, &mut each);
}

fn finish(word: &mut String, each: &mut impl FnMut(TextToken<'_>)) {
    if !word.is_empty() && word.len() <= MAX_WORD_BYTES {
        each(TextToken::Word(word));
    }
    word.clear();
}

/// Returns true if an identifier has a word border before `c`: `readFile`, `HTTPServer`.
fn is_joint(last: char, c: char, next: char) -> bool {
    c.is_uppercase()
        && ((last.is_lowercase() || last.is_ascii_digit()) || (last.is_uppercase() && next.is_lowercase()))
}

/// Returns the beginning of a text, at most so many bytes.
pub(crate) fn cut(text: &str, limit_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(limit_bytes)]
}

/// Returns a name without separators and capitals: `readFile`, `read-file` and `read_file` are
/// equal.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns true if a character belongs to a script without spaces: Chinese, kana, hangul, Thai.
pub(crate) fn is_glyph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
        | '\u{3041}'..='\u{30ff}' | '\u{ac00}'..='\u{d7af}' | '\u{0e01}'..='\u{0e4e}')
}

/// Returns the Levenshtein distance. A swap of two neighbours counts as two. The cost is the
/// product of both lengths, so callers only compare names.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        tokenize(text, |token| all.push(format!("{token:?}").replace(['"', ')'], "").replace('(', " ")));
        all
    }

    #[test]
    fn identifiers_come_apart_at_their_joints() {
        let words = ["Word get", "Word user", "Word id", "Word from", "Word http", "Word server", "Word v2"];
        assert_eq!(all("getUserID.from_HTTPServer-v2"), words);
    }

    #[test]
    fn chinese_is_read_as_characters_and_pairs() {
        assert_eq!(
            all("查天气,OK吗"),
            ["Glyph 查", "Glyph 天", "Pair 查天", "Glyph 气", "Pair 天气", "Word ok", "Glyph 吗"]
        );
    }

    #[test]
    fn other_scripts_have_words_and_pictures_have_none() {
        assert_eq!(all("Погода 🌦 الطقس"), ["Word погода", "Word الطقس"]);
        assert_eq!(all("天 気"), ["Glyph 天", "Glyph 気"]);
    }

    #[test]
    fn what_is_too_long_for_a_word_is_none() {
        assert_eq!(all(&format!("a {} b", "x".repeat(41))), ["Word a", "Word b"]);
    }
}
