//! Texts in a command whose meaning is not certain.

use std::fmt;

use serde::Serialize;

/// A text in a command whose meaning is not certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnclearText {
    /// The kind.
    pub what: UnclearKind,
    /// The text, shortened.
    pub text: String,
}

/// The kinds of unclear texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnclearKind {
    /// `$x`: a value that only the shell knows.
    Expansion,
    /// `$(…)`, backquotes, `<(…)`: the output of another command.
    Substitution,
    /// `$((…))`, `((…))`, `[[ … ]]`: may run commands hidden in values.
    Arithmetic,
    /// `$'…'` and `$"…"`.
    Quoting,
    /// `{…}` that is not a plain list.
    Brace,
    /// `~` that is not the user's own home directory.
    Tilde,
    /// `=name` at the start of a word, which zsh replaces.
    Equals,
    /// A function, which may be called like any program.
    Function,
    /// A here-document.
    HereDocument,
    /// `if`, `for`, `while`, `case`, groups and subshells.
    ControlFlow,
    /// `&`: continues after the command has ended.
    Background,
    /// A backslash at the end of a line, inside a word.
    Continuation,
    /// An array or a part of one.
    Array,
    /// Text in quotes that the shell may run later.
    QuotedCode,
    /// Not parsed, or not a valid script.
    Syntax,
    /// A control or invisible character.
    Hidden,
    /// A character that only looks like punctuation.
    Lookalike,
    /// Longer than the limit.
    TooLong,
    /// Nested deeper than the limit.
    TooDeep,
    /// Takes more parser steps than the limit.
    TooHard,
}

impl UnclearKind {
    /// Returns true if it may hide anything at all, because it was not read to its end.
    pub(crate) fn is_over_a_limit(self) -> bool {
        matches!(self, Self::TooLong | Self::TooDeep | Self::TooHard)
    }

    /// Returns true if the script as a whole was not understood.
    pub(crate) fn is_unread(self) -> bool {
        self.is_over_a_limit() || matches!(self, Self::Syntax | Self::Hidden | Self::Continuation)
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Expansion => "a value only the shell knows",
            Self::Substitution => "the output of another command",
            Self::Arithmetic => "arithmetic, which may run commands hidden in values",
            Self::Quoting => "quoting that changes the text",
            Self::Brace => "braces that are not a plain list",
            Self::Tilde => "a `~` that is not the own home directory",
            Self::Equals => "a leading `=`, which some shells replace",
            Self::Function => "a function",
            Self::HereDocument => "a here-document",
            Self::ControlFlow => "control flow",
            Self::Background => "something left in the background",
            Self::Continuation => "a word over two lines",
            Self::Array => "an array",
            Self::QuotedCode => "quoted text that the shell may run",
            Self::Syntax => "not understood",
            Self::Hidden => "a control or invisible character",
            Self::Lookalike => "a character that only looks like punctuation",
            Self::TooLong => "too long to be read",
            Self::TooDeep => "nested too deep to be read",
            Self::TooHard => "too tangled to be read",
        }
    }
}

impl UnclearText {
    /// Creates an unclear text, shortened for a person to read.
    pub(crate) fn new(what: UnclearKind, text: &str) -> Self {
        const MAX_SHOWN_CHARS: usize = 60;
        let long = text.len() > MAX_SHOWN_CHARS;
        let cut = long.then(|| text.char_indices().nth(MAX_SHOWN_CHARS)).flatten();
        let shown = cut.and_then(|(cut, _)| text.get(..cut));
        Self { what, text: shown.map_or_else(|| text.to_owned(), |shown| format!("{shown}…")) }
    }

    /// Moves the text out and keeps the kind.
    pub(crate) fn take(&mut self) -> Self {
        Self { what: self.what, text: std::mem::take(&mut self.text) }
    }

    /// Finds characters that are invisible, or that a shell and a reader interpret differently. NUL
    /// ends an argument; a carriage return is part of a word for a shell and white space for
    /// others.
    pub(crate) fn hidden(source: &str) -> Option<Self> {
        if source.bytes().all(is_plain) {
            return None;
        }
        let at = source.find(|c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c))?;
        Some(Self::new(UnclearKind::Hidden, source.get(at..).unwrap_or_default()))
    }
}

impl fmt::Display for UnclearText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what.in_words())?;
        // Checking each character is slow, and most texts have none that must be escaped.
        let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'"' | b'\'');
        if self.text.bytes().all(plain) {
            write!(f, " (`{}`)", self.text)
        } else {
            write!(f, " (`{}`)", self.text.escape_debug())
        }
    }
}

/// Returns true for visible ASCII characters, spaces, and ends of lines.
pub(super) fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Returns true for white space outside ASCII, and for characters without width or that change the
/// writing direction.
fn is_invisible(c: char) -> bool {
    !c.is_ascii()
        && (c.is_whitespace()
            || matches!(c,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'))
}
