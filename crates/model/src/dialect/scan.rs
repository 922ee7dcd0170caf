//! Finds calls in text while it arrives. Text that may begin a call is held back; other text passes
//! at once, and nothing is lost. Parsing is linear, regardless of chunk boundaries.

use super::{
    CAUTIOUS, CallForm, Dialect, FormPosition, KnownTools, TextCall,
    block::{BlockStep, CallBlock},
};

/// A piece of scanned text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScannedPiece {
    Text(String),
    Call(TextCall),
}

/// Scanner for text that arrives in chunks.
#[derive(Debug)]
pub(crate) struct CallScanner {
    forms: &'static [&'static CallForm],
    known: KnownTools,
    /// Text that is not classified yet.
    held: String,
    block: Option<CallBlock>,
    context: TextContext,
    /// A call of a known tool was found and rejected.
    has_rejected_call: bool,
}

/// The text before a position, reduced to what decides which forms may begin there.
#[derive(Debug)]
struct TextContext {
    /// The message is blank so far.
    is_message_blank: bool,
    /// The line is blank so far.
    is_line_blank: bool,
    /// Number of backticks at the start of the line.
    ticks: usize,
    /// A code fence is open; the next one closes it.
    is_fenced: bool,
}

impl CallScanner {
    /// Returns a scanner for calls in a dialect. Returns `None` for the native dialect, in which
    /// the server extracts the calls.
    pub(crate) fn new(dialect: Dialect, known: impl FnOnce() -> KnownTools) -> Option<Self> {
        let forms = dialect.forms();
        (!forms.is_empty()).then(|| Self::for_forms(forms, known()))
    }

    /// Returns a scanner for servers without a configured dialect, which accepts only unambiguous
    /// calls.
    pub(crate) fn cautious(known: KnownTools) -> Self {
        Self::for_forms(CAUTIOUS, known)
    }

    fn for_forms(forms: &'static [&'static CallForm], known: KnownTools) -> Self {
        let context = TextContext { is_message_blank: true, is_line_blank: true, ticks: 0, is_fenced: false };
        Self { forms, known, held: String::new(), block: None, context, has_rejected_call: false }
    }

    /// Returns true if a call of a known tool was found and rejected.
    pub(crate) fn has_rejected_call(&self) -> bool {
        self.has_rejected_call
    }

    /// Returns the calls of a complete block, if all are accepted.
    fn accepted_calls(&mut self, block: &CallBlock, text: &str) -> Option<Vec<TextCall>> {
        let calls = block.calls(text, &self.known)?;
        if calls.iter().all(|call| self.known.accepts(call)) {
            return Some(calls);
        }
        self.has_rejected_call |= calls.iter().any(|call| self.known.has(&call.name));
        None
    }

    /// Scans more text.
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

    /// Ends the text. Held text becomes a truncated call, or plain text.
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

    /// Classifies the start of the text and returns its length. Returns `None` if more text is
    /// needed.
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

    /// Passes text up to where a block may begin.
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
                    // Only part of the opening mark is here; wait for more.
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
