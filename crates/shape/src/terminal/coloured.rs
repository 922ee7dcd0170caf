//! Output with its colours, for a person.

use super::sequence::{EscapeParser, TerminalAction};

/// Maximum size of an output whose colours are kept.
const MAX_BYTES: usize = 64 * 1024;

/// Collects the output of a call twice: as plain text, and with its colours and no other control.
#[derive(Debug, Default)]
pub(crate) struct ColouredOutput {
    parser: EscapeParser,
    plain: String,
    coloured: String,
    has_colours: bool,
    is_too_long: bool,
}

impl ColouredOutput {
    pub(crate) fn push(&mut self, text: &str) {
        for character in text.chars() {
            if self.coloured.len() > MAX_BYTES {
                *self = Self { is_too_long: true, ..Self::default() };
            }
            if self.is_too_long {
                return;
            }
            match self.parser.next(character) {
                TerminalAction::Print(character)
                | TerminalAction::Control(character @ ('\n' | '\t' | '\r')) => {
                    self.plain.push(character);
                    self.coloured.push(character);
                }
                TerminalAction::Csi { action: 'm', numbers, private: false } => {
                    let last = numbers.iter().rposition(|number| *number != 0).unwrap_or(0);
                    let numbers: Vec<_> = numbers[..=last].iter().map(u16::to_string).collect();
                    self.coloured.push_str(&format!("\u{1b}[{}m", numbers.join(";")));
                    self.has_colours = true;
                }
                TerminalAction::None
                | TerminalAction::Control(_)
                | TerminalAction::Csi { .. }
                | TerminalAction::Escape(_) => {}
            }
        }
    }

    /// Returns the coloured text if it has colours and `is_clean` finds no secret in the plain
    /// text. Colours may split a secret, so the coloured text itself cannot be searched.
    pub(crate) fn finish(self, is_clean: impl FnOnce(&str) -> bool) -> Option<String> {
        (self.has_colours && is_clean(&self.plain)).then_some(self.coloured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(text: &str) -> Option<String> {
        let mut output = ColouredOutput::default();
        output.push(text);
        output.finish(|plain| !plain.contains("secret"))
    }

    #[test]
    fn colours_stay_and_other_control_goes() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\u{1b}]0;title\u{7} \u{1b}[2Jplain\u{1b}[?25l\n";
        assert_eq!(coloured(text).as_deref(), Some("\u{1b}[1;31mred\u{1b}[0m plain\n"));
        assert_eq!(coloured("plain\n"), None);
    }

    #[test]
    fn a_secret_that_colours_split_is_found() {
        assert_eq!(coloured("\u{1b}[31msec\u{1b}[32mret\u{1b}[0m"), None);
    }

    #[test]
    fn a_long_output_has_none() {
        assert_eq!(coloured(&format!("\u{1b}[31m{}", "x".repeat(MAX_BYTES + 2))), None);
    }
}
