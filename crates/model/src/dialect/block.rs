//! A piece of text that began like calls, looked at byte by byte: where it ends, and what it holds.

use std::ops::Range;

use super::{
    CallForm, CallNotation, FormEnd, KnownTools, TextCall,
    markup::{ELEMENTS, MarkupElement, MarkupStep},
    nesting::BracketNesting,
    object, python,
};

/// Longer names are none, with the blanks around them.
const MAX_NAME_BYTES: usize = 256;

/// Text from its opening mark on. All places are counted from there.
#[derive(Debug)]
pub(super) struct CallBlock {
    form: &'static CallForm,
    /// The next byte to look at.
    at: usize,
    phase: BlockPhase,
    items: Vec<BlockItem>,
    /// Where the last item ended.
    end: usize,
}

#[derive(Debug)]
enum BlockPhase {
    /// Between items.
    Gap,
    /// In something that may be the closing mark, or an element.
    Mark(usize),
    /// Behind a bracket: whether objects or a name with arguments follow is open.
    List(usize),
    /// In a name that arguments shall follow.
    Name(usize),
    /// Behind a mark that makes the difference, where only a block at the end of the message counts.
    Closed(usize),
    /// In a value that began there.
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

/// What is known about a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockStep {
    /// Nothing until there is more text.
    More,
    /// It may be calls, and ends there.
    Over(usize),
    /// It is text up to there.
    Text(usize),
}

impl CallBlock {
    pub(super) fn new(form: &'static CallForm) -> Self {
        let at = if form.includes_open { 0 } else { form.open.len() };
        Self { form, at, phase: BlockPhase::Gap, items: Vec::new(), end: at }
    }

    /// Looks at what has come. `text` begins with the block.
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
                // Outside of strings no value has the marks in it that end forms: it was left unfinished.
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

    /// Waits for what follows a block that counts only at the end of the message.
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

    /// Keeps a value, which has come to its end or been left unfinished.
    fn keep(&mut self, value: Range<usize>, text: &str) -> Option<BlockStep> {
        self.end = value.end;
        self.phase = BlockPhase::Gap;
        let item = item(value, text);
        // A list of calls in Python is certain enough wherever it stands.
        let is_over = self.form.end == FormEnd::Value
            || matches!((self.form.end, &item), (FormEnd::Message, BlockItem::Python(_)));
        self.items.push(item);
        is_over.then_some(BlockStep::Over(self.end))
    }

    /// Something else has come than could come here.
    fn broken(&self) -> BlockStep {
        match self.form.end {
            _ if self.items.is_empty() => BlockStep::Text(1),
            FormEnd::Value | FormEnd::OptionalMark(_) => BlockStep::Over(self.end),
            FormEnd::RequiredMark(_) | FormEnd::Message => BlockStep::Text(self.end),
        }
    }

    /// The text is over in the midst of it: what is open is kept as far as it came. Says where the block ends.
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

    /// The calls in it: all of what it holds, or none.
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

/// What kind of value this is shows at its beginning.
fn item(value: Range<usize>, text: &str) -> BlockItem {
    let text = &text[value.clone()];
    let inside = text.strip_prefix('[').map_or("", str::trim_start);
    match text.as_bytes().first() {
        Some(b'[') if inside.starts_with(python::is_name_char) => BlockItem::Python(value),
        Some(b'{' | b'[') => BlockItem::Json(value),
        _ => BlockItem::Named(value),
    }
}

/// `name{…}`, `name[ARGS]{…}`, `name[CALL_ID]id[ARGS]{…}`.
fn named(text: &str) -> Option<TextCall> {
    let name = text.split(['[', '{']).next().map(str::trim).filter(|name| !name.is_empty())?;
    let arguments = &text[text.find('{')?..];
    Some(TextCall { name: name.to_owned(), arguments: arguments.to_owned() })
}
