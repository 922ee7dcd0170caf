//! Parses text after an opening mark byte by byte: finds its end and the calls it holds.

use std::ops::Range;

use super::{
    CallForm, CallNotation, FormEnd, KnownTools, TextCall,
    markup::{ELEMENTS, MarkupElement, MarkupStep},
    nesting::BracketNesting,
    object, python,
};

/// Maximum length of a name, with the blanks around it.
const MAX_NAME_BYTES: usize = 256;

/// Text from its opening mark on. All offsets are relative to its start.
#[derive(Debug)]
pub(super) struct CallBlock {
    form: &'static CallForm,
    /// Offset of the next byte to parse.
    at: usize,
    phase: BlockPhase,
    items: Vec<BlockItem>,
    /// Offset of the end of the last item.
    end: usize,
}

#[derive(Debug)]
enum BlockPhase {
    /// Between items.
    Gap,
    /// In a closing mark or the opening tag of an element.
    Mark(usize),
    /// After a bracket: objects or a name with arguments may follow.
    List(usize),
    /// In a name before its arguments.
    Name(usize),
    /// After a required closing mark, if the block counts only at the end of the message.
    Closed(usize),
    /// In a value that began at this offset.
    Value(usize, BracketNesting),
    Element(Box<MarkupElement>),
}

#[derive(Debug)]
enum BlockItem {
    Json(Range<usize>),
    Python(Range<usize>),
    Named(Range<usize>),
    Element(Box<MarkupElement>),
}

/// Result of parsing more of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockStep {
    /// Undecided until more text arrives.
    More,
    /// The block may hold calls and ends at this offset.
    Over(usize),
    /// The text up to this offset holds no call.
    Text(usize),
}

impl CallBlock {
    pub(super) fn new(form: &'static CallForm) -> Self {
        let at = if form.includes_open { 0 } else { form.open.len() };
        Self { form, at, phase: BlockPhase::Gap, items: Vec::new(), end: at }
    }

    /// Parses the text so far. `text` begins with the block.
    pub(super) fn advance(&mut self, text: &str, known: &KnownTools) -> BlockStep {
        while let Some(byte) = text.as_bytes().get(self.at) {
            if let Some(step) = self.take(*byte, text, known) {
                return step;
            }
            self.at += 1;
        }
        BlockStep::More
    }

    fn take(&mut self, byte: u8, text: &str, known: &KnownTools) -> Option<BlockStep> {
        let at = self.at;
        match &mut self.phase {
            BlockPhase::Gap => return self.gap(byte),
            BlockPhase::Mark(begin) => {
                let begin = *begin;
                let step = self.mark(begin, &text.as_bytes()[begin..=at]);
                return self.unless_last(step, known);
            }
            BlockPhase::Closed(end) => match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                // Another block, which may hold the next call.
                b'`' => return Some(BlockStep::Over(*end)),
                _ => return Some(BlockStep::Text(*end)),
            },
            BlockPhase::List(begin) => {
                let begin = *begin;
                return self.list(begin, byte, text, known);
            }
            BlockPhase::Name(begin) => match byte {
                b'{' => self.phase = BlockPhase::Value(*begin, BracketNesting::inside(1)),
                b'[' | b']' | b' ' => {}
                _ if python::is_name_char(char::from(byte)) && at - *begin < MAX_NAME_BYTES => {}
                _ => return Some(self.broken()),
            },
            BlockPhase::Value(begin, nesting) => {
                // Outside of strings, no value contains the marks that end forms: the value was
                // left unfinished.
                let is_mark = matches!(byte, b'<' | b'`') && !nesting.is_quoted();
                if nesting.closes(byte) {
                    let value = *begin..at + 1;
                    return self.keep(value, text);
                } else if is_mark && self.form.end.mark().is_some() {
                    let value = *begin..at;
                    self.keep(value, text);
                    self.phase = BlockPhase::Mark(at);
                    let step = self.mark(at, &[byte]);
                    return self.unless_last(step, known);
                }
            }
            BlockPhase::Element(markup) => match markup.take(text, at) {
                MarkupStep::More => {}
                MarkupStep::Foreign => return Some(self.broken()),
                MarkupStep::Over => {
                    if let BlockPhase::Element(markup) = std::mem::replace(&mut self.phase, BlockPhase::Gap) {
                        self.items.push(BlockItem::Element(markup));
                    }
                    self.end = at + 1;
                }
            },
        }
        None
    }

    /// Defers the end of a block that counts only at the end of the message.
    fn unless_last(&mut self, step: Option<BlockStep>, known: &KnownTools) -> Option<BlockStep> {
        match (step, self.form.end) {
            (Some(BlockStep::Over(end)), FormEnd::RequiredMark(_)) if known.is_cautious() => {
                self.phase = BlockPhase::Closed(end);
                None
            }
            (step, _) => step,
        }
    }

    fn gap(&mut self, byte: u8) -> Option<BlockStep> {
        let holds = |what| self.form.holds.contains(&what);
        let marks = self.form.end.mark().and_then(|mark| mark.bytes().next());
        self.phase = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return None,
            b',' | b';' if holds(CallNotation::Json) && !self.items.is_empty() => return None,
            b'[' if holds(CallNotation::Python) => BlockPhase::List(self.at),
            b'{' | b'[' if holds(CallNotation::Json) => BlockPhase::Value(self.at, BracketNesting::inside(1)),
            _ if holds(CallNotation::Named) && python::is_name_char(char::from(byte)) => {
                BlockPhase::Name(self.at)
            }
            b'<' if holds(CallNotation::Markup) => BlockPhase::Mark(self.at),
            _ if Some(byte) == marks => BlockPhase::Mark(self.at),
            _ => return Some(self.broken()),
        };
        None
    }

    fn mark(&mut self, begin: usize, so_far: &[u8]) -> Option<BlockStep> {
        let end = self.form.end.mark().unwrap_or_default();
        if so_far == end.as_bytes() && !self.items.is_empty() {
            return Some(BlockStep::Over(self.at + 1));
        }
        let elements = ELEMENTS.iter().filter(|_| self.form.holds.contains(&CallNotation::Markup));
        if let Some((_, end_tag)) = elements.clone().find(|(open, _)| so_far == open.as_bytes()) {
            self.phase = BlockPhase::Element(Box::new(MarkupElement::new(begin, end_tag)));
            return None;
        }
        let mut marks = elements.map(|(open, _)| *open).chain([end]);
        if marks.any(|mark| mark.as_bytes().starts_with(so_far)) { None } else { Some(self.broken()) }
    }

    fn list(&mut self, begin: usize, byte: u8, text: &str, known: &KnownTools) -> Option<BlockStep> {
        let before = text[begin + 1..self.at].trim();
        match byte {
            _ if self.at - begin > MAX_NAME_BYTES => return Some(self.broken()),
            b' ' | b'\t' | b'\r' | b'\n' if before.is_empty() => {}
            b'{' if before.is_empty() && self.form.holds.contains(&CallNotation::Json) => {
                self.phase = BlockPhase::Value(begin, BracketNesting::inside(2));
            }
            b'(' if known.has(before) => self.phase = BlockPhase::Value(begin, BracketNesting::inside(2)),
            _ if python::is_name_char(char::from(byte)) => {}
            _ => return Some(self.broken()),
        }
        None
    }

    /// Stores a value that is complete or was left unfinished.
    fn keep(&mut self, value: Range<usize>, text: &str) -> Option<BlockStep> {
        self.end = value.end;
        self.phase = BlockPhase::Gap;
        let item = item(value, text);
        // A list of calls in Python is unambiguous anywhere.
        let is_over = self.form.end == FormEnd::Value
            || matches!((self.form.end, &item), (FormEnd::Message, BlockItem::Python(_)));
        self.items.push(item);
        is_over.then_some(BlockStep::Over(self.end))
    }

    /// Returns the step for a byte that cannot occur here.
    fn broken(&self) -> BlockStep {
        match self.form.end {
            _ if self.items.is_empty() => BlockStep::Text(1),
            FormEnd::Value | FormEnd::OptionalMark(_) => BlockStep::Over(self.end),
            FormEnd::RequiredMark(_) | FormEnd::Message => BlockStep::Text(self.end),
        }
    }

    /// Ends the block where the text ends and keeps the unfinished item. Returns the end of the
    /// block.
    pub(super) fn cut(&mut self, text: &str) -> usize {
        match std::mem::replace(&mut self.phase, BlockPhase::Gap) {
            BlockPhase::Mark(begin)
                if self.form.end.mark().is_some_and(|mark| mark.starts_with(&text[begin..])) =>
            {
                self.end = text.len();
            }
            BlockPhase::Closed(end) => self.end = end,
            BlockPhase::Gap | BlockPhase::Mark(_) | BlockPhase::List(_) | BlockPhase::Name(_) => {}
            BlockPhase::Value(begin, _) => {
                self.keep(begin..text.len(), text);
            }
            BlockPhase::Element(markup) => {
                self.items.push(BlockItem::Element(markup));
                self.end = text.len();
            }
        }
        self.end
    }

    /// Returns the calls if everything in the block is a call.
    pub(super) fn calls(&self, text: &str, known: &KnownTools) -> Option<Vec<TextCall>> {
        let mut all = Vec::new();
        for item in &self.items {
            match item {
                BlockItem::Json(range) => {
                    let found = object::calls(&text[range.clone()], !self.form.is_certain)?;
                    let is_meant = self.form.is_certain || found.iter().all(|found| known.has(&found.name));
                    all.extend(is_meant.then_some(found)?);
                }
                BlockItem::Python(range) => all.extend(python::calls(&text[range.clone()])?),
                BlockItem::Named(range) => all.push(named(&text[range.clone()])?),
                BlockItem::Element(markup) => all.push(markup.to_call(text, known)?),
            }
        }
        (!all.is_empty()).then_some(all)
    }
}

/// Classifies a value by its first characters.
fn item(value: Range<usize>, text: &str) -> BlockItem {
    let text = &text[value.clone()];
    let inside = text.strip_prefix('[').map_or("", str::trim_start);
    match text.as_bytes().first() {
        Some(b'[') if inside.starts_with(python::is_name_char) => BlockItem::Python(value),
        Some(b'{' | b'[') => BlockItem::Json(value),
        _ => BlockItem::Named(value),
    }
}

/// Parses `name{…}`, `name[ARGS]{…}` and `name[CALL_ID]id[ARGS]{…}`.
fn named(text: &str) -> Option<TextCall> {
    let name = text.split(['[', '{']).next().map(str::trim).filter(|name| !name.is_empty())?;
    let arguments = &text[text.find('{')?..];
    Some(TextCall { name: name.to_owned(), arguments: arguments.to_owned() })
}
