//! Characters to steps: a state machine after the one that DEC's terminals have.

/// Numbers of a sequence; more are ignored.
const MAX_NUMBERS: usize = 8;

/// What a character means to the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is part of a sequence.
    None,
    Print(char),
    Control(char),
    /// `ESC [ numbers action`
    Csi {
        action: char,
        numbers: [u16; MAX_NUMBERS],
        /// Whether a `?` or the like came first.
        private: bool,
    },
    /// `ESC action`
    Escape(char),
}

#[derive(Debug, Default)]
pub(super) struct Steps {
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Ground,
    Escape,
    /// `ESC (` and the like: one more character.
    EscapeMore,
    Csi {
        numbers: [u16; MAX_NUMBERS],
        at: usize,
        private: bool,
    },
    /// Titles, links, device data: up to BEL or `ESC \`.
    Text,
    TextEscape,
}

impl Steps {
    pub(super) fn next(&mut self, character: char) -> Step {
        let (state, step) = match (self.state, character) {
            // The first two cancel whatever was begun; the others end a text.
            (_, '\u{18}' | '\u{1a}')
            | (State::Text, '\u{7}' | '\u{9c}')
            | (State::TextEscape, '\\')
            | (State::EscapeMore, ' '..) => (State::Ground, Step::None),
            (State::Text, '\u{1b}') => (State::TextEscape, Step::None),
            (State::Text, _) | (State::Ground, '\u{90}' | '\u{9d}'..='\u{9f}') => (State::Text, Step::None),
            (_, '\u{1b}') => (State::Escape, Step::None),
            (State::Ground, '\u{9b}') => (csi(), Step::None),
            (State::Ground, character @ (' '..='~' | '\u{80}'..)) => (State::Ground, Step::Print(character)),
            // Controls act even inside a sequence.
            (state, control @ ('\u{0}'..='\u{1f}' | '\u{7f}')) => (state, Step::Control(control)),
            (State::Escape | State::TextEscape, character) => after_escape(character),
            (State::Csi { numbers, at, private }, character) => in_csi(numbers, at, private, character),
        };
        self.state = state;
        step
    }
}

fn csi() -> State {
    State::Csi { numbers: [0; MAX_NUMBERS], at: 0, private: false }
}

fn after_escape(character: char) -> (State, Step) {
    match character {
        '[' => (csi(), Step::None),
        ']' | 'P' | 'X' | '^' | '_' => (State::Text, Step::None),
        ' '..='/' => (State::EscapeMore, Step::None),
        action => (State::Ground, Step::Escape(action)),
    }
}

fn in_csi(mut numbers: [u16; MAX_NUMBERS], at: usize, private: bool, character: char) -> (State, Step) {
    match character {
        '0'..='9' => {
            let digit = u16::try_from(u32::from(character) - u32::from('0')).unwrap_or(0);
            if let Some(number) = numbers.get_mut(at) {
                *number = number.saturating_mul(10).saturating_add(digit);
            }
            (State::Csi { numbers, at, private }, Step::None)
        }
        ';' | ':' => (State::Csi { numbers, at: at.saturating_add(1), private }, Step::None),
        '<'..='?' => (State::Csi { numbers, at, private: true }, Step::None),
        ' '..='/' => (State::Csi { numbers, at, private }, Step::None),
        '@'..='~' => (State::Ground, Step::Csi { action: character, numbers, private }),
        // Not a sequence after all.
        other => (State::Ground, Step::Print(other)),
    }
}
