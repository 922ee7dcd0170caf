//! Splits a request into tokens: quotations, names of files, identifiers, numbers and words.

use std::fmt;

use crate::text::is_glyph;

/// A token of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestToken {
    /// A text between quotes or backticks.
    Quoted(String),
    /// A path or a glob.
    Name(String),
    /// An identifier of a program: `unwrap_or`, `TODO`.
    Symbol(String),
    /// A number, also the one of a number with a unit: `2` of `2KB`.
    Number(u64),
    /// A range of numbers: `10-20`.
    Range(u64, u64),
    /// A word as written.
    Word(String),
    /// Text in Chinese, or in another script without spaces.
    Glyphs(String),
    /// An option of a command: `-n`.
    Option(String),
}

impl fmt::Display for RequestToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quoted(text)
            | Self::Name(text)
            | Self::Symbol(text)
            | Self::Word(text)
            | Self::Glyphs(text)
            | Self::Option(text) => text.fmt(formatter),
            Self::Number(number) => number.fmt(formatter),
            Self::Range(from, to) => write!(formatter, "{from}-{to}"),
        }
    }
}

const QUOTES: [(char, char); 8] =
    [('"', '"'), ('`', '`'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('「', '」'), ('『', '』'), ('《', '》')];

/// Words that precede a place.
pub(super) const BEFORE_PLACE: [&str; 7] = ["in", "under", "inside", "within", "from", "below", "ls"];

/// Names of files without an extension.
const BARE_NAMES: [&str; 6] = ["makefile", "dockerfile", "license", "readme", "changelog", "justfile"];

/// Measure words that follow a Chinese numeral in a count.
const MEASURES: &str = "行个次条天周月份处遍项";

/// Returns all tokens of a request.
pub(super) fn tokenize(text: &str) -> Vec<RequestToken> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((quoted, after)) = quotation(rest, text.len() - rest.len(), text) {
            found.push(RequestToken::Quoted(quoted.to_owned()));
            rest = after;
            continue;
        }
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        if end == 0 {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        chunk(&rest[..end], &mut found);
        rest = &rest[end..];
    }
    found
}

/// Parses a quotation at the beginning of `rest`. Returns its content and the text after it. The
/// apostrophe of `what's` opens no quotation.
pub(super) fn quotation<'a>(rest: &'a str, at: usize, text: &str) -> Option<(&'a str, &'a str)> {
    let open = rest.chars().next()?;
    let (_, close) = QUOTES.iter().find(|(each, _)| *each == open)?;
    let inside_word = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    if open == '\'' && inside_word {
        return None;
    }
    let inner = &rest[open.len_utf8()..];
    let end = inner.find(*close).filter(|end| *end > 0)?;
    Some((&inner[..end], &inner[end + close.len_utf8()..]))
}

/// Returns true if a character can be part of a word or a path.
fn belongs(c: char) -> bool {
    c.is_alphanumeric() || "_-./*~+=:@#%\\$^'’".contains(c)
}

/// Tokenizes a text without spaces, which may mix Chinese with other tokens.
fn chunk(text: &str, found: &mut Vec<RequestToken>) {
    // Signs alone are a place only after a preposition; elsewhere they are separators.
    if ["/", "..", "../", "~", "~/"].contains(&text) && found.last().is_some_and(leads_to_place) {
        found.push(RequestToken::Name(text.to_owned()));
        return;
    }
    let text = text.trim_end_matches(['.', ':', '\'', '’']).trim_start_matches([':', '\'', '’']);
    if let Some(option) = text.strip_prefix('-') {
        // `tail -5` gives a number of lines.
        found.push(
            option.parse().map_or_else(|_| RequestToken::Option(text.to_owned()), RequestToken::Number),
        );
        return;
    }
    if let Some(name) = chinese_name(text) {
        found.push(RequestToken::Glyphs(name.chars().filter(|c| is_glyph(*c)).collect()));
        found.push(RequestToken::Name(name.to_owned()));
        return;
    }
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let glyphs = is_glyph(first);
        let end = rest.find(|c| is_glyph(c) != glyphs).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if glyphs {
            numerals(part, found)
        } else {
            found.extend(single_token(part))
        }
        rest = after;
    }
}

/// Returns true if the next token is a place.
fn leads_to_place(token: &RequestToken) -> bool {
    match token {
        RequestToken::Word(word) => BEFORE_PLACE.contains(&word.to_lowercase().as_str()),
        RequestToken::Glyphs(text) => text.ends_with('在'),
        _ => false,
    }
}

/// Returns the name of a file with Chinese characters: `使用说明.md`, `数据/价格.csv`. Words before the
/// name without a space are included; the file lookup removes them.
fn chinese_name(text: &str) -> Option<&str> {
    let joint = text.char_indices().zip(text.chars().skip(1));
    let has_joint = joint
        .into_iter()
        .any(|((_, a), b)| (is_glyph(a) && (b == '.' || b == '/')) || (a == '/' && is_glyph(b)));
    let last = text.char_indices().rfind(|(_, c)| !is_glyph(*c)).filter(|_| has_joint);
    let end = last.map(|(at, c)| at + c.len_utf8())?;
    Some(if text[..end].ends_with('/') { text } else { &text[..end] })
}

/// Splits Chinese text at numerals that are counts.
fn numerals(text: &str, found: &mut Vec<RequestToken>) {
    let is_numeral = |c: char| "一二两三四五六七八九十百".contains(c);
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_numeral(c)).unwrap_or(rest.len());
        let counts = rest[end..].starts_with(|c| MEASURES.contains(c));
        // 一个 is an article more often than a count.
        let counts = counts && !rest.starts_with("一个");
        let value = (end > 0 && counts).then(|| numeral(&rest[..end]));
        let Some(value) = value else {
            let step = end.max(first.len_utf8());
            plain.push_str(&rest[..step]);
            rest = &rest[step..];
            continue;
        };
        found.extend((!plain.is_empty()).then(|| RequestToken::Glyphs(std::mem::take(&mut plain))));
        found.push(RequestToken::Number(value));
        rest = &rest[end..];
    }
    found.extend((!plain.is_empty()).then_some(RequestToken::Glyphs(plain)));
}

/// Returns the value of a Chinese numeral below a thousand.
pub(super) fn numeral(text: &str) -> u64 {
    let (mut total, mut digit) = (0, None);
    for c in text.chars() {
        match "一二三四五六七八九".chars().zip(1..).find(|(each, _)| *each == c) {
            Some((_, value)) => digit = Some(value),
            None if c == '两' => digit = Some(2),
            None => total += digit.take().unwrap_or(1) * if c == '十' { 10 } else { 100 },
        }
    }
    total + digit.unwrap_or(0)
}

/// Tokenizes a text without Chinese characters.
fn single_token(text: &str) -> Vec<RequestToken> {
    let text = text.trim_end_matches(['.', ':', '\'', '’', '=']).trim_start_matches([':', '\'', '’', '=']);
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if text.is_empty() || !text.contains(char::is_alphanumeric) && !text.contains('*') {
        return Vec::new();
    }
    if let Some((from, to)) =
        text.split_once(['-', '~', ':']).and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)))
    {
        return vec![RequestToken::Range(from, to)];
    }
    if let Ok(number) = text.parse() {
        return vec![RequestToken::Number(number)];
    }
    let unit = &text[digits..];
    if digits > 0 && unit.len() <= 2 && unit.chars().all(|c| c.is_ascii_alphabetic()) {
        let number = text[..digits].parse().ok().map(RequestToken::Number);
        return number.into_iter().chain([RequestToken::Word(unit.to_owned())]).collect();
    }
    // The plural of a word in capitals: `TODOs`.
    let single = text.strip_suffix('s').filter(|single| single.len() > 1 && is_capitals(single));
    let text = single.unwrap_or(text).to_owned();
    vec![if is_name(&text) {
        RequestToken::Name(text)
    } else if is_symbol(&text) {
        RequestToken::Symbol(text)
    } else {
        RequestToken::Word(text)
    }]
}

/// Returns true if a word looks like a path or a glob.
fn is_name(word: &str) -> bool {
    let extension = word.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.ends_with(['.', ':'])
            && (1..=8).contains(&end.len())
            && end.chars().all(char::is_alphanumeric)
            && end.chars().any(char::is_alphabetic)
    });
    let hidden = word.starts_with('.') && word.len() > 1;
    extension
        || hidden
        || word.contains('*')
        || (word.contains('/') && !word.contains("://"))
        || is_bare_name(word)
}

/// Returns true if it is a common file name without an extension.
pub(super) fn is_bare_name(word: &str) -> bool {
    BARE_NAMES.contains(&word.to_lowercase().as_str())
}

/// Returns true if a word looks like an identifier rather than a word of a language.
fn is_symbol(word: &str) -> bool {
    let humps = word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let mixed = word.contains(|c: char| c.is_ascii_digit()) && word.contains(char::is_alphabetic);
    (word.len() > 1 && is_capitals(word))
        || humps
        || mixed
        || word.contains(['_', ':', '#', '@', '~', '^', '$'])
}

fn is_capitals(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_apart() {
        let shown = |text| format!("{:?}", tokenize(text));
        assert_eq!(
            shown("what's in `a b` of src/x.rs, lines 10-20?"),
            r#"[Word("what's"), Word("in"), Quoted("a b"), Word("of"), Name("src/x.rs"), Word("lines"), Range(10, 20)]"#
        );
        assert_eq!(
            shown("显示src/x.rs的第14到18行和前三行"),
            r#"[Glyphs("显示"), Name("src/x.rs"), Glyphs("的第"), Number(14), Glyphs("到"), Number(18), Glyphs("行和前"), Number(3), Glyphs("行")]"#
        );
        assert_eq!(shown("大于 2KB"), r#"[Glyphs("大于"), Number(2), Word("KB")]"#);
        assert_eq!(shown("打开使用说明.md"), r#"[Glyphs("打开使用说明"), Name("打开使用说明.md")]"#);
        assert_eq!(
            shown("TODO in getName and v1.0"),
            r#"[Symbol("TODO"), Word("in"), Symbol("getName"), Word("and"), Symbol("v1.0")]"#
        );
        assert_eq!([numeral("两"), numeral("十五"), numeral("三百二十")], [2, 15, 320]);
        assert_eq!(shown("a / b in /"), r#"[Word("a"), Word("b"), Word("in"), Name("/")]"#);
        assert_eq!(shown("👍 … ‘"), "[]");
    }
}
