//! What keeps a command from being read for certain.

use std::fmt;

use serde::Serialize;

/// Something in a command whose meaning its text does not settle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unclear {
    /// What it is.
    pub what: What,
    /// Where: the text, shortened.
    pub text: String,
}

/// The kinds of unclear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// `$x`: a value only the shell knows.
    Expansion,
    /// `$(…)`, backquotes, `<(…)`: the output of another command.
    Substitution,
    /// `$((…))`, `((…))`, `[[ … ]]`: may run commands hidden in values.
    Arithmetic,
    /// `$'…'` and `$"…"`.
    Quoting,
    /// `{…}` that is not a plain list.
    Brace,
    /// `~` that is not the own home directory.
    Tilde,
    /// `=name` at the start of a word, which zsh replaces.
    Equals,
    /// A function, which may be called like any program.
    Function,
    /// A here-document.
    HereDocument,
    /// `if`, `for`, `while`, `case`, groups and subshells.
    ControlFlow,
    /// `&`: goes on after the command has ended.
    Background,
    /// A backslash at the end of a line, inside a word.
    Continuation,
    /// An array or a part of one.
    Array,
    /// Not understood, or not a valid script.
    Syntax,
    /// A control or invisible character.
    Hidden,
    /// A character that only looks like punctuation.
    Lookalike,
    /// More than is read.
    TooLong,
    /// Nested deeper than is read.
    TooDeep,
    /// More work to read than anyone's command is.
    TooHard,
}

impl What {
    /// Whether it may hide anything at all, because it was not read to its end.
    pub(crate) fn is_over_a_limit(self) -> bool {
        matches!(self, Self::TooLong | Self::TooDeep | Self::TooHard)
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
            Self::Syntax => "not understood",
            Self::Hidden => "a control or invisible character",
            Self::Lookalike => "a character that only looks like punctuation",
            Self::TooLong => "too long to be read",
            Self::TooDeep => "nested too deep to be read",
            Self::TooHard => "too tangled to be read",
        }
    }
}

impl Unclear {
    /// Something unclear, with as much of its text as a person wants to read.
    pub(crate) fn new(what: What, text: &str) -> Self {
        const SHOWN_CHARS: usize = 60;
        let long = text.len() > SHOWN_CHARS;
        let cut = long.then(|| text.char_indices().nth(SHOWN_CHARS)).flatten();
        let shown = cut.and_then(|(cut, _)| text.get(..cut));
        Self { what, text: shown.map_or_else(|| text.to_owned(), |shown| format!("{shown}…")) }
    }

    /// Itself with its text, of which none is left here.
    pub(crate) fn take(&mut self) -> Self {
        Self { what: self.what, text: std::mem::take(&mut self.text) }
    }

    /// Characters nobody sees, or that a shell and a reader take for different things. NUL ends an argument, a carriage
    /// return is part of a word for a shell and white space for others.
    pub(crate) fn hidden(source: &str) -> Option<Self> {
        if source.bytes().all(is_plain) {
            return None;
        }
        let at = source.find(|c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c))?;
        Some(Self::new(What::Hidden, source.get(at..).unwrap_or_default()))
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what.in_words())?;
        // Character by character takes its time, and most texts have none that must be made visible.
        let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'"' | b'\'');
        if self.text.bytes().all(plain) {
            write!(f, " (`{}`)", self.text)
        } else {
            write!(f, " (`{}`)", self.text.escape_debug())
        }
    }
}

/// What everyone sees as it is: the characters of ASCII, spaces, and ends of lines.
pub(super) fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// White space other than that of ASCII, and what has no width or turns the direction of writing.
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
