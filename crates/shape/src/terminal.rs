//! Reduces terminal output to its final text: colours removed, redraws applied, invisible
//! characters spelled out.
//!
//! Only the last rows can still change, as on a real screen; earlier rows are final. A state
//! machine of fixed size parses the escape sequences, so an endless sequence costs no memory.

pub(crate) mod coloured;
mod screen;
mod sequence;

use std::borrow::Cow;

use self::{
    screen::TerminalScreen,
    sequence::{EscapeParser, TerminalAction},
};
use crate::utf16;

/// Reduces a stream of terminal output to the text that remains on the screen.
#[derive(Debug, Default)]
pub struct Terminal {
    parser: EscapeParser,
    screen: TerminalScreen,
}

impl Terminal {
    /// Processes the next piece and returns the rows that became final.
    pub fn push(&mut self, text: &str) -> String {
        for character in text.chars() {
            match self.parser.next(character) {
                TerminalAction::None => {}
                TerminalAction::Print(character) => self.screen.print(character),
                TerminalAction::Control(control) => self.screen.control(control),
                TerminalAction::Csi { action, numbers, private } => self.screen.csi(action, numbers, private),
                TerminalAction::Escape(action) => self.screen.escape(action),
            }
        }
        self.screen.take_final()
    }

    /// Returns the remaining rows.
    pub fn finish(self) -> String {
        self.screen.finish()
    }

    /// Reduces a whole text. Borrows it if nothing changes.
    pub fn reduce(text: &str) -> Cow<'_, str> {
        let text = utf16::narrowed(text);
        if is_plain(&text) {
            return text;
        }
        let mut terminal = Self::default();
        let mut reduced = terminal.push(&text);
        reduced.push_str(&terminal.finish());
        Cow::Owned(reduced)
    }
}

/// Strips the escape sequences of a stream for a live display. Nothing is redrawn: output that
/// would overwrite a line starts a new one.
#[derive(Debug, Default)]
pub(crate) struct PlainTextStream {
    parser: EscapeParser,
    /// True after a carriage return that no line feed has followed yet.
    returned: bool,
}

impl PlainTextStream {
    /// Returns the next piece as plain text.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        for character in text.chars() {
            let shown = match self.parser.next(character) {
                TerminalAction::Print(character) => character,
                TerminalAction::Control(control @ ('\n' | '\t')) => control,
                TerminalAction::Control('\r') => {
                    self.returned = true;
                    continue;
                }
                TerminalAction::None
                | TerminalAction::Control(_)
                | TerminalAction::Csi { .. }
                | TerminalAction::Escape(_) => continue,
            };
            if std::mem::take(&mut self.returned) && shown != '\n' {
                plain.push('\n');
            }
            plain.push(shown);
        }
        plain
    }
}

/// Returns true if the text has only visible characters. Windows line endings are allowed.
fn is_plain(text: &str) -> bool {
    // First bytes of all characters that get spelled out: a cheap check for the usual case that
    // there are none.
    let may_hide = |byte: &u8| matches!(byte, 0..=8 | 0x0b..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3);
    let bytes = text.as_bytes();
    let mut rest = bytes.iter().enumerate().filter(|(_, byte)| may_hide(byte));
    rest.all(|(at, byte)| match byte {
        b'\r' => bytes.get(at + 1) == Some(&b'\n'),
        0xc2.. => text[at..].chars().next().is_none_or(|character| !is_hidden(character)),
        _ => false,
    })
}

/// Returns true for characters that change the text without being visible: controls, directional
/// marks, zero-width characters, tags.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests;
