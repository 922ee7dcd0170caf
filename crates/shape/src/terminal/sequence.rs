//! Parses characters to terminal actions, with a state machine like that of DEC terminals.

/// Maximum number of parameters of a sequence; more are ignored.
const MAX_NUMBERS: usize = 8;

/// The effect of a character on the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalAction {
    /// The character is part of a sequence.
    None,
    Print(char),
    Control(char),
    /// `ESC [ numbers action`
    Csi {
        action: char,
        numbers: [u16; MAX_NUMBERS],
        /// True if a private marker such as `?` came first.
        private: bool,
    },
    /// `ESC action`
    Escape(char),
}

#[derive(Debug, Default)]
pub(super) struct EscapeParser {
    state: EscapeState,
}

#[derive(Debug, Default, Clone, Copy)]
enum EscapeState {
    #[default]
    Ground,
    Escape,
    /// `ESC (` and similar: one more character follows.
    EscapeMore,
    Csi {
        numbers: [u16; MAX_NUMBERS],
        at: usize,
        private: bool,
    },
    /// Titles, links, device data: ends with BEL or `ESC \`.
    Text,
    TextEscape,
}

impl EscapeParser {
    pub(super) fn next(&mut self, character: char) -> TerminalAction {
        let (state, step) = match (self.state, character) {
            // CAN and SUB cancel any sequence; the others end a string.
            (_, '\u{18}' | '\u{1a}')
            | (EscapeState::Text, '\u{7}' | '\u{9c}')
            | (EscapeState::TextEscape, '\\')
            | (EscapeState::EscapeMore, ' '..) => (EscapeState::Ground, TerminalAction::None),
            (EscapeState::Text, '\u{1b}') => (EscapeState::TextEscape, TerminalAction::None),
            (EscapeState::Text, _) | (EscapeState::Ground, '\u{90}' | '\u{9d}'..='\u{9f}') => {
                (EscapeState::Text, TerminalAction::None)
            }
            (_, '\u{1b}') => (EscapeState::Escape, TerminalAction::None),
            (EscapeState::Ground, '\u{9b}') => (csi(), TerminalAction::None),
            (EscapeState::Ground, character @ (' '..='~' | '\u{80}'..)) => {
                (EscapeState::Ground, TerminalAction::Print(character))
            }
            // Control characters act even inside a sequence.
            (state, control @ ('\u{0}'..='\u{1f}' | '\u{7f}')) => (state, TerminalAction::Control(control)),
            (EscapeState::Escape | EscapeState::TextEscape, character) => after_escape(character),
            (EscapeState::Csi { numbers, at, private }, character) => in_csi(numbers, at, private, character),
        };
        self.state = state;
        step
    }
}

fn csi() -> EscapeState {
    EscapeState::Csi { numbers: [0; MAX_NUMBERS], at: 0, private: false }
}

fn after_escape(character: char) -> (EscapeState, TerminalAction) {
    match character {
        '[' => (csi(), TerminalAction::None),
        ']' | 'P' | 'X' | '^' | '_' => (EscapeState::Text, TerminalAction::None),
        ' '..='/' => (EscapeState::EscapeMore, TerminalAction::None),
        action => (EscapeState::Ground, TerminalAction::Escape(action)),
    }
}

fn in_csi(
    mut numbers: [u16; MAX_NUMBERS],
    at: usize,
    private: bool,
    character: char,
) -> (EscapeState, TerminalAction) {
    match character {
        '0'..='9' => {
            let digit = u16::try_from(u32::from(character) - u32::from('0')).unwrap_or(0);
            if let Some(number) = numbers.get_mut(at) {
                *number = number.saturating_mul(10).saturating_add(digit);
            }
            (EscapeState::Csi { numbers, at, private }, TerminalAction::None)
        }
        ';' | ':' => (EscapeState::Csi { numbers, at: at.saturating_add(1), private }, TerminalAction::None),
        '<'..='?' => (EscapeState::Csi { numbers, at, private: true }, TerminalAction::None),
        ' '..='/' => (EscapeState::Csi { numbers, at, private }, TerminalAction::None),
        '@'..='~' => (EscapeState::Ground, TerminalAction::Csi { action: character, numbers, private }),
        // It was not a sequence.
        other => (EscapeState::Ground, TerminalAction::Print(other)),
    }
}
