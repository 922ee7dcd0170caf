//! The parser of code. Its grammars are loaded when the first block of code is shown.

use std::sync::LazyLock;

use ratatui::{style::Style, text::Span};
use two_face::re_exports::syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use super::role::CodeRole;
use crate::render::Theme;

/// Maximum length of a line that is parsed.
const MAX_LINE_BYTES: usize = 2_000;

/// Maximum number of lines of a block that are parsed.
const MAX_LINES: usize = 5_000;

/// All grammars. Those that are not used stay packed.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Parses a block of code line by line.
#[derive(Debug, Clone)]
pub(super) struct LineParser {
    state: ParseState,
    scopes: ScopeStack,
    lines: usize,
}

impl LineParser {
    /// Returns a parser for a language, by its name or the ending of its files.
    pub(super) fn find(language: &str) -> Option<Self> {
        if language.is_empty() {
            return None;
        }
        let name = usual_name(language);
        let syntax = SYNTAXES.find_syntax_by_token(name).filter(|syntax| syntax.name != "Plain Text")?;
        Some(Self { state: ParseState::new(syntax), scopes: ScopeStack::new(), lines: 0 })
    }

    /// Returns the parts of the next line, or `None` if it cannot be parsed.
    pub(super) fn spans(&mut self, line: &str, theme: &Theme) -> Option<Vec<Span<'static>>> {
        self.lines += 1;
        if line.len() > MAX_LINE_BYTES || self.lines > MAX_LINES {
            return None;
        }
        let whole = format!("{line}\n");
        let operations = self.state.parse_line(&whole, &SYNTAXES).ok()?;
        let (mut spans, mut begin) = (Vec::new(), 0);
        for (at, operation) in operations {
            let end = at.min(line.len());
            self.push(line.get(begin..end)?, theme, &mut spans);
            begin = end;
            self.scopes.apply(&operation).ok()?;
        }
        self.push(line.get(begin..)?, theme, &mut spans);
        Some(spans)
    }

    fn push(&self, text: &str, theme: &Theme, spans: &mut Vec<Span<'static>>) {
        if !text.is_empty() {
            spans.push(Span::styled(text.to_owned(), self.style(theme)));
        }
    }

    /// Returns the style of the innermost scope that has one.
    fn style(&self, theme: &Theme) -> Style {
        let style = |name: &str| role(name).map(|role| role.style(theme));
        self.scopes.scopes.iter().rev().find_map(|scope| style(&scope.build_string())).unwrap_or(theme.text)
    }
}

/// Returns the name of a language for one that people write above code.
fn usual_name(language: &str) -> &str {
    match language {
        "shell" | "console" | "shellsession" => "bash",
        "jsonc" | "json5" => "json",
        "golang" => "go",
        language => language,
    }
}

/// Returns the role of a scope, by the names that all grammars share.
fn role(scope: &str) -> Option<CodeRole> {
    const ROLES: [(&str, CodeRole); 17] = [
        ("comment", CodeRole::Comment),
        ("string", CodeRole::String),
        ("constant.character", CodeRole::String),
        ("constant", CodeRole::Number),
        ("keyword.operator", CodeRole::Keyword),
        ("keyword", CodeRole::Keyword),
        ("storage.modifier", CodeRole::Keyword),
        ("storage", CodeRole::Keyword),
        ("entity.name.function", CodeRole::Function),
        ("entity.name.tag", CodeRole::Keyword),
        ("entity.name", CodeRole::Type),
        ("entity.other.attribute-name", CodeRole::Function),
        ("support.function", CodeRole::Function),
        ("support", CodeRole::Type),
        ("variable.function", CodeRole::Function),
        ("markup.inserted", CodeRole::Added),
        ("markup.deleted", CodeRole::Removed),
    ];
    let begins =
        |name: &str| scope.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    ROLES.iter().find(|(name, _)| begins(name)).map(|(_, role)| *role)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(language: &str, lines: &[&str]) -> Vec<Vec<(String, Style)>> {
        let mut parser = LineParser::find(language).unwrap();
        let spans = |line: &&str| {
            let spans = parser.spans(line, &Theme::dark()).unwrap();
            let text: String = spans.iter().map(|span| span.content.as_ref()).collect();
            assert_eq!(text, *line, "nothing is lost");
            spans.into_iter().map(|span| (span.content.into_owned(), span.style)).collect()
        };
        lines.iter().map(spans).collect()
    }

    #[test]
    fn words_have_the_style_of_their_role_over_several_lines() {
        let theme = Theme::dark();
        let lines = shown("rust", &["fn main() { /* a", "b */ let x = \"文\"; // end", "}"]);
        assert_eq!(lines[0][0], ("fn".to_owned(), theme.warning));
        assert!(lines[0].contains(&("main".to_owned(), theme.code)), "{lines:?}");
        assert!(
            lines[1].iter().any(|(text, style)| text.starts_with('b') && *style == theme.dim),
            "{lines:?}"
        );
        assert!(lines[1].contains(&("文".to_owned(), theme.success)), "{lines:?}");
    }

    #[test]
    fn languages_are_found_by_the_names_that_people_write() {
        for language in [
            "rust",
            "rs",
            "python",
            "py",
            "js",
            "javascript",
            "ts",
            "typescript",
            "tsx",
            "go",
            "golang",
            "c",
            "cpp",
            "c++",
            "java",
            "kotlin",
            "swift",
            "ruby",
            "php",
            "bash",
            "sh",
            "shell",
            "console",
            "json",
            "jsonc",
            "yaml",
            "toml",
            "html",
            "css",
            "sql",
            "diff",
            "dockerfile",
            "makefile",
            "xml",
            "lua",
        ] {
            assert!(LineParser::find(language).is_some(), "{language}");
        }
        for unknown in ["", "no-such-language", "text", "plain"] {
            assert!(LineParser::find(unknown).is_none(), "{unknown}");
        }
    }
}
