//! Colours for code. Common languages are coloured by their words. With the feature `highlight`, a
//! parser with grammars for some 200 languages does it, which takes more memory and time. Code of
//! an unknown language has one colour.

use ratatui::text::Span;

use crate::render::Theme;
use words::WordFinder;

mod languages;
mod role;
#[cfg(feature = "highlight")]
mod syntax;
mod words;

/// Colours a block of code line by line. A line is coloured by what came before it.
#[derive(Debug, Clone)]
pub struct CodeHighlighter {
    #[cfg(feature = "highlight")]
    parser: Option<syntax::LineParser>,
    words: Option<WordFinder>,
}

impl CodeHighlighter {
    /// Begins a block of code in a language, which may be empty or unknown.
    pub fn new(language: &str, theme: &Theme) -> Self {
        Self {
            #[cfg(feature = "highlight")]
            parser: theme.has_colour.then(|| syntax::LineParser::find(language)).flatten(),
            words: theme.has_colour.then(|| WordFinder::find(language)).flatten(),
        }
    }

    /// Returns the next line of the block in its colours.
    pub fn highlight(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        #[cfg(feature = "highlight")]
        if let Some(spans) = self.parser.as_mut().and_then(|parser| parser.spans(line, theme)) {
            return spans;
        }
        match &mut self.words {
            Some(words) => words.spans(line, theme),
            None => vec![Span::styled(line.to_owned(), theme.code)],
        }
    }
}
