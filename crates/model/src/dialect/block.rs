//! A piece of text that began like calls, looked at byte by byte: where it ends, and what it holds.

use std::ops::Range;

use super::{
    End, Form, Found, Holds, Known,
    markup::{ELEMENTS, Markup, Taken},
    nesting::Nesting,
    object, python,
};

/// Longer names are none, with the blanks around them.
const MAX_NAME_BYTES: usize = 256;

/// Text from its opening mark on. All places are counted from there.
#[derive(Debug)]
pub(super) struct Block {
    form: &'static Form,
    /// The next byte to look at.
    at: usize,
    phase: Phase,
    items: Vec<Item>,
    /// Where the last item ended.
    end: usize,
}

#[derive(Debug)]
enum Phase {
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
    Value(usize, Nesting),
    Element(Box<Markup>),
}

#[derive(Debug)]
enum Item {
    Json(Range<usize>),
    Python(Range<usize>),
    Named(Range<usize>),
    Element(Box<Markup>),
}

/// What is known about a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing until there is more text.
    More,
    /// It may be calls, and ends there.
    Over(usize),
    /// It is text up to there.
    Text(usize),
}

impl Block {
    pub(super) fn new(form: &'static Form) -> Self {
        let at = if form.is_part { 0 } else { form.open.len() };
        Self { form, at, phase: Phase::Gap, items: Vec::new(), end: at }
    }

    /// Looks at what has come. `text` begins with the block.
    pub(super) fn advance(&mut self, text: &str, known: &Known) -> Step {
        while let Some(byte) = text.as_bytes().get(self.at) {
            if let Some(step) = self.take(*byte, text, known) {
                return step;
            }
            self.at += 1;
        }
        Step::More
    }

    fn take(&mut self, byte: u8, text: &str, known: &Known) -> Option<Step> {
        let at = self.at;
        match &mut self.phase {
            Phase::Gap => return self.gap(byte),
            Phase::Mark(begin) => {
                let begin = *begin;
                let step = self.mark(begin, &text.as_bytes()[begin..=at]);
                return self.unless_last(step, known);
            }
            Phase::Closed(end) => match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                // Another block, which may hold the next call.
                b'`' => return Some(Step::Over(*end)),
                _ => return Some(Step::Text(*end)),
            },
            Phase::List(begin) => {
                let begin = *begin;
                return self.list(begin, byte, text, known);
            }
            Phase::Name(begin) => match byte {
                b'{' => self.phase = Phase::Value(*begin, Nesting::inside(1)),
                b'[' | b']' | b' ' => {}
                _ if python::is_of_a_name(char::from(byte)) && at - *begin < MAX_NAME_BYTES => {}
                _ => return Some(self.broken()),
            },
            Phase::Value(begin, nesting) => {
                // Outside of strings no value has the marks in it that end forms: it was left unfinished.
                let is_mark = matches!(byte, b'<' | b'`') && !nesting.is_quoted();
                if nesting.closes(byte) {
                    let value = *begin..at + 1;
                    return self.keep(value, text);
                } else if is_mark && self.form.end.mark().is_some() {
                    let value = *begin..at;
                    self.keep(value, text);
                    self.phase = Phase::Mark(at);
                    let step = self.mark(at, &[byte]);
                    return self.unless_last(step, known);
                }
            }
            Phase::Element(markup) => match markup.take(text, at) {
                Taken::More => {}
                Taken::Foreign => return Some(self.broken()),
                Taken::Over => {
                    if let Phase::Element(markup) = std::mem::replace(&mut self.phase, Phase::Gap) {
                        self.items.push(Item::Element(markup));
                    }
                    self.end = at + 1;
                }
            },
        }
        None
    }

    /// Waits for what follows a block that counts only at the end of the message.
    fn unless_last(&mut self, step: Option<Step>, known: &Known) -> Option<Step> {
        match (step, self.form.end) {
            (Some(Step::Over(end)), End::Needed(_)) if known.is_cautious() => {
                self.phase = Phase::Closed(end);
                None
            }
            (step, _) => step,
        }
    }

    fn gap(&mut self, byte: u8) -> Option<Step> {
        let holds = |what| self.form.holds.contains(&what);
        let marks = self.form.end.mark().and_then(|mark| mark.bytes().next());
        self.phase = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return None,
            b',' | b';' if holds(Holds::Json) && !self.items.is_empty() => return None,
            b'[' if holds(Holds::Python) => Phase::List(self.at),
            b'{' | b'[' if holds(Holds::Json) => Phase::Value(self.at, Nesting::inside(1)),
            _ if holds(Holds::Named) && python::is_of_a_name(char::from(byte)) => Phase::Name(self.at),
            b'<' if holds(Holds::Markup) => Phase::Mark(self.at),
            _ if Some(byte) == marks => Phase::Mark(self.at),
            _ => return Some(self.broken()),
        };
        None
    }

    fn mark(&mut self, begin: usize, so_far: &[u8]) -> Option<Step> {
        let end = self.form.end.mark().unwrap_or_default();
        if so_far == end.as_bytes() && !self.items.is_empty() {
            return Some(Step::Over(self.at + 1));
        }
        let elements = ELEMENTS.iter().filter(|_| self.form.holds.contains(&Holds::Markup));
        if let Some((_, end_tag)) = elements.clone().find(|(open, _)| so_far == open.as_bytes()) {
            self.phase = Phase::Element(Box::new(Markup::new(begin, end_tag)));
            return None;
        }
        let mut marks = elements.map(|(open, _)| *open).chain([end]);
        if marks.any(|mark| mark.as_bytes().starts_with(so_far)) { None } else { Some(self.broken()) }
    }

    fn list(&mut self, begin: usize, byte: u8, text: &str, known: &Known) -> Option<Step> {
        let before = text[begin + 1..self.at].trim();
        match byte {
            _ if self.at - begin > MAX_NAME_BYTES => return Some(self.broken()),
            b' ' | b'\t' | b'\r' | b'\n' if before.is_empty() => {}
            b'{' if before.is_empty() && self.form.holds.contains(&Holds::Json) => {
                self.phase = Phase::Value(begin, Nesting::inside(2));
            }
            b'(' if known.has(before) => self.phase = Phase::Value(begin, Nesting::inside(2)),
            _ if python::is_of_a_name(char::from(byte)) => {}
            _ => return Some(self.broken()),
        }
        None
    }

    /// Keeps a value, which has come to its end or been left unfinished.
    fn keep(&mut self, value: Range<usize>, text: &str) -> Option<Step> {
        self.end = value.end;
        self.phase = Phase::Gap;
        let item = item(value, text);
        // A list of calls in Python is certain enough wherever it stands.
        let is_over =
            self.form.end == End::Value || matches!((self.form.end, &item), (End::Message, Item::Python(_)));
        self.items.push(item);
        is_over.then_some(Step::Over(self.end))
    }

    /// Something else has come than could come here.
    fn broken(&self) -> Step {
        match self.form.end {
            _ if self.items.is_empty() => Step::Text(1),
            End::Value | End::Forgotten(_) => Step::Over(self.end),
            End::Needed(_) | End::Message => Step::Text(self.end),
        }
    }

    /// The text is over in the midst of it: what is open is kept as far as it came. Says where the block ends.
    pub(super) fn cut(&mut self, text: &str) -> usize {
        match std::mem::replace(&mut self.phase, Phase::Gap) {
            Phase::Mark(begin)
                if self.form.end.mark().is_some_and(|mark| mark.starts_with(&text[begin..])) =>
            {
                self.end = text.len();
            }
            Phase::Closed(end) => self.end = end,
            Phase::Gap | Phase::Mark(_) | Phase::List(_) | Phase::Name(_) => {}
            Phase::Value(begin, _) => {
                self.keep(begin..text.len(), text);
            }
            Phase::Element(markup) => {
                self.items.push(Item::Element(markup));
                self.end = text.len();
            }
        }
        self.end
    }

    /// The calls in it: all of what it holds, or none.
    pub(super) fn calls(&self, text: &str, known: &Known) -> Option<Vec<Found>> {
        let mut all = Vec::new();
        for item in &self.items {
            match item {
                Item::Json(range) => {
                    let found = object::calls(&text[range.clone()], !self.form.is_certain)?;
                    let is_meant = self.form.is_certain || found.iter().all(|found| known.has(&found.name));
                    all.extend(is_meant.then_some(found)?);
                }
                Item::Python(range) => all.extend(python::calls(&text[range.clone()])?),
                Item::Named(range) => all.push(named(&text[range.clone()])?),
                Item::Element(markup) => all.push(markup.found(text, known)?),
            }
        }
        (!all.is_empty()).then_some(all)
    }
}

/// What kind of value this is shows at its beginning.
fn item(value: Range<usize>, text: &str) -> Item {
    let text = &text[value.clone()];
    let inside = text.strip_prefix('[').map_or("", str::trim_start);
    match text.as_bytes().first() {
        Some(b'[') if inside.starts_with(python::is_of_a_name) => Item::Python(value),
        Some(b'{' | b'[') => Item::Json(value),
        _ => Item::Named(value),
    }
}

/// `name{…}`, `name[ARGS]{…}`, `name[CALL_ID]id[ARGS]{…}`.
fn named(text: &str) -> Option<Found> {
    let name = text.split(['[', '{']).next().map(str::trim).filter(|name| !name.is_empty())?;
    let arguments = &text[text.find('{')?..];
    Some(Found { name: name.to_owned(), arguments: arguments.to_owned() })
}
