//! Finds calls in text while it arrives. What may be the beginning of one is held back; everything else goes on at
//! once, and nothing is lost. Each byte is looked at a few times, however the text is cut into pieces.

use super::{
    CAUTIOUS, Dialect, Form, Found, Known, Place,
    block::{Block, Step},
};

/// What a text turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Call(Found),
}

/// A text on its way.
#[derive(Debug)]
pub(crate) struct Scanner {
    forms: &'static [&'static Form],
    known: Known,
    /// What is neither text nor a call yet.
    held: String,
    block: Option<Block>,
    before: Before,
    /// Something was read as a call and not taken for one.
    has_doubtful: bool,
}

/// What came before a place in the text, as far as it decides what may begin there.
#[derive(Debug)]
struct Before {
    /// Nothing but blanks in the message.
    is_message_blank: bool,
    /// Nothing but blanks in the line.
    is_line_blank: bool,
    /// Backticks the line began with.
    ticks: usize,
    /// A fence is open: the next one closes it.
    is_fenced: bool,
}

impl Scanner {
    /// For text that may hold calls of these tools. None where the server takes the calls out itself.
    pub(crate) fn new(dialect: Dialect, known: impl FnOnce() -> Known) -> Option<Self> {
        let forms = dialect.forms();
        (!forms.is_empty()).then(|| Self::for_forms(forms, known()))
    }

    /// For text that is most likely no call.
    pub(crate) fn cautious(known: Known) -> Self {
        Self::for_forms(CAUTIOUS, known)
    }

    fn for_forms(forms: &'static [&'static Form], known: Known) -> Self {
        let before = Before { is_message_blank: true, is_line_blank: true, ticks: 0, is_fenced: false };
        Self { forms, known, held: String::new(), block: None, before, has_doubtful: false }
    }

    /// Whether something was read as a call of a tool there is, and was not taken for one.
    pub(crate) fn has_doubtful(&self) -> bool {
        self.has_doubtful
    }

    /// The calls of a block that is over, if they are meant.
    fn meant(&mut self, block: &Block, text: &str) -> Option<Vec<Found>> {
        let calls = block.calls(text, &self.known)?;
        if calls.iter().all(|call| self.known.accepts(call)) {
            return Some(calls);
        }
        self.has_doubtful |= calls.iter().any(|call| self.known.has(&call.name));
        None
    }

    /// Takes more of the text.
    pub(crate) fn feed(&mut self, text: &str) -> Vec<Piece> {
        let mut held = std::mem::take(&mut self.held);
        held.push_str(text);
        let (mut pieces, mut used) = (Vec::new(), 0);
        while let Some(more) = self.step(&held[used..], &mut pieces) {
            used += more;
        }
        held.drain(..used);
        self.held = held;
        pieces
    }

    /// The text is over: what is held back is a call that was cut off, or text.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        let (mut pieces, mut rest) = (Vec::new(), held.as_str());
        if let Some(mut block) = self.block.take() {
            let end = block.cut(rest);
            if let Some(calls) = self.meant(&block, rest) {
                pieces.extend(calls.into_iter().map(Piece::Call));
                rest = &rest[end..];
            }
        }
        self.say(rest, &mut pieces);
        pieces
    }

    /// Decides about the beginning of what is there, and says how much of it that was; none if more must come first.
    fn step(&mut self, text: &str, pieces: &mut Vec<Piece>) -> Option<usize> {
        let Some(mut block) = self.block.take() else { return self.outside(text, pieces) };
        let (end, calls) = match block.advance(text, &self.known) {
            Step::More => {
                self.block = Some(block);
                return None;
            }
            Step::Over(end) => (end, self.meant(&block, text)),
            Step::Text(end) => (end, None),
        };
        match calls {
            Some(calls) => {
                pieces.extend(calls.into_iter().map(Piece::Call));
                self.before.is_message_blank = false;
            }
            None => self.say(&text[..end], pieces),
        }
        Some(end)
    }

    /// Lets text go on up to where a block may begin.
    fn outside(&mut self, text: &str, pieces: &mut Vec<Piece>) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            let mut forms = self.forms.iter().filter(|form| self.before.allows(form.place));
            let rest = &text.as_bytes()[at..];
            let begins = |form: &&&'static Form| {
                let open = form.open.as_bytes();
                rest.starts_with(open) || open.starts_with(rest)
            };
            if let Some(form) = forms.find(begins).filter(|form| !self.before.closes_fence(form)) {
                push(&text[..at], pieces);
                if rest.len() < form.open.len() {
                    // Asked again when there is more; the beginning of a mark is short.
                    return (at > 0).then_some(at);
                }
                self.block = Some(Block::new(form));
                return Some(at);
            }
            self.before.pass(byte);
        }
        push(text, pieces);
        (!text.is_empty()).then_some(text.len())
    }

    fn say(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        text.bytes().for_each(|byte| self.before.pass(byte));
        push(text, pieces);
    }
}

impl Before {
    fn allows(&self, place: Place) -> bool {
        match place {
            Place::Anywhere => true,
            Place::Line => self.is_line_blank,
            Place::Message => self.is_message_blank,
        }
    }

    fn closes_fence(&self, form: &Form) -> bool {
        self.is_fenced && form.open.starts_with("```")
    }

    fn pass(&mut self, byte: u8) {
        self.ticks = match byte {
            b'`' if self.is_line_blank || self.ticks > 0 => self.ticks + 1,
            _ => 0,
        };
        self.is_fenced ^= self.ticks == 3;
        let is_blank = byte.is_ascii_whitespace();
        self.is_message_blank &= is_blank;
        self.is_line_blank = byte == b'\n' || (self.is_line_blank && is_blank);
    }
}

fn push(text: &str, pieces: &mut Vec<Piece>) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => before.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
