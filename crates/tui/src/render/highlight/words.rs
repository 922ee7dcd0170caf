//! Finds comments, strings, numbers and keywords in code, without a grammar: it needs no memory and
//! no time worth naming. It may be wrong about rare constructs, which costs only a colour.

use ratatui::text::Span;

use super::{languages::CodeLanguage, role::CodeRole};
use crate::render::Theme;

/// Maximum length of a line that is looked at.
const MAX_LINE_BYTES: usize = 10_000;

/// Colours a block of code line by line.
#[derive(Debug, Clone)]
pub(super) struct WordFinder {
    syntax: FoundSyntax,
    /// The comment or string over several lines that is open: its role and its end.
    open: Option<(CodeRole, &'static str)>,
}

#[derive(Debug, Clone, Copy)]
enum FoundSyntax {
    Words(&'static CodeLanguage),
    /// The first sign of a line tells.
    Diff,
}

impl WordFinder {
    /// Returns it for a language that is known.
    pub(super) fn find(language: &str) -> Option<Self> {
        let syntax = match language {
            "diff" | "patch" => FoundSyntax::Diff,
            language => FoundSyntax::Words(CodeLanguage::find(language)?),
        };
        Some(Self { syntax, open: None })
    }

    /// Returns the parts of the next line.
    pub(super) fn spans(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut push = |text: &str, role: CodeRole| {
            let style = role.style(theme);
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(text),
                _ => spans.push(Span::styled(text.to_owned(), style)),
            }
        };
        match self.syntax {
            _ if line.len() > MAX_LINE_BYTES => push(line, CodeRole::Plain),
            FoundSyntax::Diff => push(line, diff_role(line)),
            FoundSyntax::Words(language) => {
                let mut rest = line;
                while !rest.is_empty() {
                    let before = line[..line.len() - rest.len()].chars().next_back();
                    let (length, role) = self.next_part(rest, before, language);
                    push(&rest[..length], role);
                    rest = &rest[length..];
                }
            }
        }
        spans
    }

    /// Returns the length and the role of the part that a text begins with.
    fn next_part(&mut self, text: &str, before: Option<char>, language: &CodeLanguage) -> (usize, CodeRole) {
        if let Some((role, end)) = self.open {
            return match text.find(end) {
                Some(at) => {
                    self.open = None;
                    (at + end.len(), role)
                }
                None => (text.len(), role),
            };
        }
        if let Some((begin, role, end)) = opened(text, language) {
            self.open = Some((role, end));
            return (begin.len(), role);
        }
        let is_begun = |sign: &&&str| {
            // `#` in a word begins no comment, nor does `//` after the `:` of an address.
            let is_free = if sign.starts_with('/') { before != Some(':') } else { is_boundary(before) };
            text.starts_with(**sign) && is_free
        };
        if language.line_comments.iter().any(|sign| is_begun(&sign)) && !is_directive(text, language) {
            return (text.len(), CodeRole::Comment);
        }
        let Some(first) = text.chars().next() else { return (0, CodeRole::Plain) };
        if language.quotes.contains(first) && !before.is_some_and(char::is_alphanumeric) {
            let length = quoted_length(text, first);
            return (length, key_or(CodeRole::String, &text[length..], language));
        }
        if first.is_alphanumeric() || matches!(first, '_' | '#') {
            let length = word_length(text);
            return (length, word_role(&text[..length], &text[length..], before, language));
        }
        (first.len_utf8(), CodeRole::Plain)
    }
}

fn diff_role(line: &str) -> CodeRole {
    match line.chars().next() {
        Some('+') => CodeRole::Added,
        Some('-') => CodeRole::Removed,
        Some('@') => CodeRole::Function,
        _ => CodeRole::Plain,
    }
}

/// Returns the beginning, the role and the end of what a text opens over several lines.
fn opened(text: &str, language: &CodeLanguage) -> Option<(&'static str, CodeRole, &'static str)> {
    if let Some((begin, end)) = language.block_comment.filter(|(begin, _)| text.starts_with(begin)) {
        return Some((begin, CodeRole::Comment, end));
    }
    let quote = language.long_quotes.iter().find(|quote| text.starts_with(**quote))?;
    Some((quote, CodeRole::String, if *quote == "[[" { "]]" } else { quote }))
}

fn is_boundary(before: Option<char>) -> bool {
    before.is_none_or(char::is_whitespace)
}

/// Returns true for a word such as `#include`, which is no comment.
fn is_directive(text: &str, language: &CodeLanguage) -> bool {
    text.starts_with('#') && language.is_keyword(&text[..word_length(text)])
}

/// Returns the length of a string with its quotes, up to the end of the line.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

fn word_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let first = chars.next().map_or(0, |(_, c)| c.len_utf8());
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let belongs = |c: char| c.is_alphanumeric() || c == '_' || (is_number && c == '.');
    chars.find(|(_, c)| !belongs(*c)).map_or(text.len(), |(at, _)| at).max(first)
}

fn word_role(word: &str, after: &str, before: Option<char>, language: &CodeLanguage) -> CodeRole {
    let is_called = after.starts_with('(') || after.starts_with("!(");
    if word.starts_with(|c: char| c.is_ascii_digit()) || CodeLanguage::is_constant(word) {
        CodeRole::Number
    } else if language.is_keyword(word) && before != Some('.') {
        CodeRole::Keyword
    } else if is_called {
        CodeRole::Function
    } else if word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase) {
        CodeRole::Type
    } else {
        key_or(CodeRole::Plain, after, language)
    }
}

/// Returns the role of a key if the sign of keys follows.
fn key_or(role: CodeRole, after: &str, language: &CodeLanguage) -> CodeRole {
    let is_key = language.key_sign.is_some_and(|sign| after.trim_start().starts_with(sign));
    if is_key { CodeRole::Function } else { role }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of some role, of all lines.
    fn parts(language: &str, text: &str, role: CodeRole) -> Vec<String> {
        let theme = Theme::dark();
        let mut finder = WordFinder::find(language).unwrap();
        let mut found = Vec::new();
        for line in text.lines() {
            let spans = finder.spans(line, &theme);
            let whole: String = spans.iter().map(|span| span.content.as_ref()).collect();
            assert_eq!(whole, line, "nothing is lost");
            found.extend(spans.into_iter().filter(|span| span.style == role.style(&theme)));
        }
        found.into_iter().map(|span| span.content.into_owned()).collect()
    }

    #[test]
    fn comments_strings_and_keywords_are_found() {
        let rust =
            "fn main() { /* a\nb */ let x: &'a str = \"f\\\"n // 文\"; // end\nprintln!(\"{}\", 12.5);";
        assert_eq!(parts("rust", rust, CodeRole::Keyword), ["fn", "let"]);
        assert_eq!(parts("rust", rust, CodeRole::Comment), ["/* a", "b */", "// end"]);
        assert_eq!(parts("rs", rust, CodeRole::String), ["\"f\\\"n // 文\"", "\"{}\""]);
        assert_eq!(parts("rs", rust, CodeRole::Function), ["main", "println"]);
        assert_eq!(parts("rs", rust, CodeRole::Number), ["12.5"]);
        let python = "def f(x):\n    \"\"\"Doc\n    # not a comment\"\"\"\n    return 'it' # yes";
        assert_eq!(parts("python", python, CodeRole::Comment), ["# yes"]);
        let strings = ["\"\"\"Doc", "    # not a comment\"\"\"", "'it'"];
        assert_eq!(parts("py", python, CodeRole::String), strings);
    }

    #[test]
    fn signs_inside_of_words_begin_no_comment() {
        let shell = "echo ${x#y} http://a.b/c # end\nif true; then curl 'a b'; fi";
        assert_eq!(parts("bash", shell, CodeRole::Comment), ["# end"]);
        assert_eq!(parts("sh", shell, CodeRole::Keyword), ["if", "then", "fi"]);
        assert_eq!(parts("js", "let a = `x\ny`; f(http://x)", CodeRole::Comment), Vec::<String>::new());
        assert_eq!(parts("php", "# a\n#include", CodeRole::Comment), ["# a", "#include"]);
        assert_eq!(parts("c", "#include <x.h> // y", CodeRole::Keyword), ["#include"]);
    }

    #[test]
    fn keys_of_data_and_lines_of_diffs_are_told_apart() {
        assert_eq!(parts("json", "{\"a\": \"b\", \"c\": null}", CodeRole::Function), ["\"a\"", "\"c\""]);
        assert_eq!(parts("yaml", "name: x # y", CodeRole::Function), ["name"]);
        assert_eq!(parts("sql", "SELECT a FROM b -- c", CodeRole::Keyword), ["SELECT", "FROM"]);
        assert_eq!(parts("diff", "@@ x\n-a\n+b\n c", CodeRole::Added), ["+b"]);
        assert!(WordFinder::find("").is_none() && WordFinder::find("no-such-language").is_none());
    }
}
