//! Finds calls in text while it arrives. What may be the beginning of one is held back; everything else goes on at
//! once, and nothing is lost. Each byte is looked at a few times, however the text is cut into pieces.

use super::{
    CAUTIOUS, CallForm, Dialect, FormPosition, KnownTools, TextCall,
    block::{BlockStep, CallBlock},
};

/// What a text turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScannedPiece {
    Text(String),
    Call(TextCall),
}

/// A text on its way.
#[derive(Debug)]
pub(crate) struct CallScanner {
    forms: &'static [&'static CallForm],
    known: KnownTools,
    /// What is neither text nor a call yet.
    held: String,
    block: Option<CallBlock>,
    context: TextContext,
    /// Something was read as a call and not taken for one.
    has_rejected_call: bool,
}

/// What came before a place in the text, as far as it decides what may begin there.
#[derive(Debug)]
struct TextContext {
    /// Nothing but blanks in the message.
    is_message_blank: bool,
    /// Nothing but blanks in the line.
    is_line_blank: bool,
    /// Backticks the line began with.
    ticks: usize,
    /// A fence is open: the next one closes it.
    is_fenced: bool,
}

impl CallScanner {
    /// For text that may hold calls of these tools. None where the server takes the calls out itself.
    pub(crate) fn new(dialect: Dialect, known: impl FnOnce() -> KnownTools) -> Option<Self> {
        let forms = dialect.forms();
        (!forms.is_empty()).then(|| Self::for_forms(forms, known()))
    }

    /// For text that is most likely no call.
    pub(crate) fn cautious(known: KnownTools) -> Self {
        Self::for_forms(CAUTIOUS, known)
    }

    fn for_forms(forms: &'static [&'static CallForm], known: KnownTools) -> Self {
        let context = TextContext { is_message_blank: true, is_line_blank: true, ticks: 0, is_fenced: false };
        Self { forms, known, held: String::new(), block: None, context, has_rejected_call: false }
    }

    /// Whether something was read as a call of a tool there is, and was not taken for one.
    pub(crate) fn has_rejected_call(&self) -> bool {
        self.has_rejected_call
    }

    /// The calls of a block that is over, if they are meant.
    fn accepted_calls(&mut self, block: &CallBlock, text: &str) -> Option<Vec<TextCall>> {
        let calls = block.calls(text, &self.known)?;
        if calls.iter().all(|call| self.known.accepts(call)) {
            return Some(calls);
        }
        self.has_rejected_call |= calls.iter().any(|call| self.known.has(&call.name));
        None
    }

    /// Takes more of the text.
    pub(crate) fn feed(&mut self, text: &str) -> Vec<ScannedPiece> {
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
    pub(crate) fn finish(&mut self) -> Vec<ScannedPiece> {
        let held = std::mem::take(&mut self.held);
        let (mut pieces, mut rest) = (Vec::new(), held.as_str());
        if let Some(mut block) = self.block.take() {
            let end = block.cut(rest);
            if let Some(calls) = self.accepted_calls(&block, rest) {
                pieces.extend(calls.into_iter().map(ScannedPiece::Call));
                rest = &rest[end..];
            }
        }
        self.pass_text(rest, &mut pieces);
        pieces
    }

    /// Decides about the beginning of what is there, and says how much of it that was; none if more must come first.
    fn step(&mut self, text: &str, pieces: &mut Vec<ScannedPiece>) -> Option<usize> {
        let Some(mut block) = self.block.take() else { return self.outside(text, pieces) };
        let (end, calls) = match block.advance(text, &self.known) {
            BlockStep::More => {
                self.block = Some(block);
                return None;
            }
            BlockStep::Over(end) => (end, self.accepted_calls(&block, text)),
            BlockStep::Text(end) => (end, None),
        };
        match calls {
            Some(calls) => {
                pieces.extend(calls.into_iter().map(ScannedPiece::Call));
                self.context.is_message_blank = false;
            }
            None => self.pass_text(&text[..end], pieces),
        }
        Some(end)
    }

    /// Lets text go on up to where a block may begin.
    fn outside(&mut self, text: &str, pieces: &mut Vec<ScannedPiece>) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            let mut forms = self.forms.iter().filter(|form| self.context.allows(form.place));
            let rest = &text.as_bytes()[at..];
            let begins = |form: &&&'static CallForm| {
                let open = form.open.as_bytes();
                rest.starts_with(open) || open.starts_with(rest)
            };
            if let Some(form) = forms.find(begins).filter(|form| !self.context.closes_fence(form)) {
                push(&text[..at], pieces);
                if rest.len() < form.open.len() {
                    // Asked again when there is more; the beginning of a mark is short.
                    return (at > 0).then_some(at);
                }
                self.block = Some(CallBlock::new(form));
                return Some(at);
            }
            self.context.pass(byte);
        }
        push(text, pieces);
        (!text.is_empty()).then_some(text.len())
    }

    fn pass_text(&mut self, text: &str, pieces: &mut Vec<ScannedPiece>) {
        text.bytes().for_each(|byte| self.context.pass(byte));
        push(text, pieces);
    }
}

impl TextContext {
    fn allows(&self, place: FormPosition) -> bool {
        match place {
            FormPosition::Anywhere => true,
            FormPosition::LineStart => self.is_line_blank,
            FormPosition::MessageStart => self.is_message_blank,
        }
    }

    fn closes_fence(&self, form: &CallForm) -> bool {
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

fn push(text: &str, pieces: &mut Vec<ScannedPiece>) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(ScannedPiece::Text(context)) => context.push_str(text),
        _ => pieces.push(ScannedPiece::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
