//! The kinds of words in code, and their styles.

use ratatui::style::{Modifier, Style};

use crate::render::Theme;

/// The kinds of words that have a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeRole {
    /// Everything else.
    Plain,
    Comment,
    String,
    /// Numbers and other constants.
    Number,
    Keyword,
    /// Functions, and keys of data.
    Function,
    Type,
    Added,
    Removed,
}

impl CodeRole {
    /// Returns the style, from those that the theme has for other things.
    pub(super) fn style(self, theme: &Theme) -> Style {
        match self {
            Self::Plain => theme.text,
            Self::Comment => theme.dim,
            Self::String => theme.success,
            Self::Number => theme.link.remove_modifier(Modifier::UNDERLINED),
            Self::Keyword => theme.warning,
            Self::Function => theme.code,
            Self::Type => theme.code.add_modifier(Modifier::BOLD),
            Self::Added => theme.added,
            Self::Removed => theme.removed,
        }
    }
}
