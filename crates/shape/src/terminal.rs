//! What a person would see at the end of what a program wrote to a terminal: colours gone, redraws done, and nothing
//! invisible left.
//!
//! Only the last rows can still change, as on a real screen; what has left them is final. Sequences are read by a state
//! machine with fixed room, so a sequence without end costs nothing.

mod screen;
mod sequence;

use std::borrow::Cow;

use self::{
    screen::Screen,
    sequence::{Step, Steps},
};
use crate::wide;

/// Reduces a stream of text to what is left on the screen.
#[derive(Debug, Default)]
pub struct Terminal {
    steps: Steps,
    screen: Screen,
}

impl Terminal {
    /// Takes the next piece and gives back the rows that are final.
    pub fn push(&mut self, text: &str) -> String {
        for character in text.chars() {
            match self.steps.next(character) {
                Step::None => {}
                Step::Print(character) => self.screen.print(character),
                Step::Control(control) => self.screen.control(control),
                Step::Csi { action, numbers, private } => self.screen.csi(action, numbers, private),
                Step::Escape(action) => self.screen.escape(action),
            }
        }
        self.screen.take_final()
    }

    /// Gives back the rest.
    pub fn finish(self) -> String {
        self.screen.finish()
    }

    /// The whole text, reduced; borrowed if there is nothing to reduce.
    pub fn reduce(text: &str) -> Cow<'_, str> {
        let text = wide::narrowed(text);
        if is_plain(&text) {
            return text;
        }
        let mut terminal = Self::default();
        let mut reduced = terminal.push(&text);
        reduced.push_str(&terminal.finish());
        Cow::Owned(reduced)
    }
}

/// A stream of text without its terminal sequences, for whoever watches while it comes: nothing is redrawn, so what
/// would overwrite a line begins a new one.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    steps: Steps,
    /// Whether the line was begun anew, unless only its end follows.
    returned: bool,
}

impl Plain {
    /// The next piece as plain text.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        for character in text.chars() {
            let shown = match self.steps.next(character) {
                Step::Print(character) => character,
                Step::Control(control @ ('\n' | '\t')) => control,
                Step::Control('\r') => {
                    self.returned = true;
                    continue;
                }
                Step::None | Step::Control(_) | Step::Csi { .. } | Step::Escape(_) => continue,
            };
            if std::mem::take(&mut self.returned) && shown != '\n' {
                plain.push('\n');
            }
            plain.push(shown);
        }
        plain
    }
}

/// Whether the text has nothing but characters that everybody can see. Lines may end as on Windows.
fn is_plain(text: &str) -> bool {
    // The first bytes of all characters that are made visible, as a check that costs little where there are none.
    let may_hide = |byte: &u8| matches!(byte, 0..=8 | 0x0b..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3);
    let bytes = text.as_bytes();
    let mut rest = bytes.iter().enumerate().filter(|(_, byte)| may_hide(byte));
    rest.all(|(at, byte)| match byte {
        b'\r' => bytes.get(at + 1) == Some(&b'\n'),
        0xc2.. => text[at..].chars().next().is_none_or(|character| !is_hidden(character)),
        _ => false,
    })
}

/// Characters that change what is read without being seen: controls, directions, marks without width, tags.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests;
