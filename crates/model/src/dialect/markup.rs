//! Calls written as elements: `<function=name><parameter=a>1</parameter></function>`, or `<invoke
//! name="name">` with `<parameter name="a">`. Values are plain text without escapes. A value
//! therefore ends only where its end tag is followed by another tag of the call.

use std::ops::Range;

use super::{KnownTools, TextCall};
use crate::json;

/// The elements that are calls, with their end tags.
pub(super) const ELEMENTS: [(&str, &str); 2] = [("<function=", "</function>"), ("<invoke ", "</invoke>")];
const PARAMETER: [&str; 2] = ["<parameter=", "<parameter "];
const PARAMETER_END: &str = "</parameter>";
/// Maximum length of a tag; a longer one is text.
const MAX_TAG_BYTES: usize = 256;

/// An element that is being parsed. All offsets are relative to its block.
#[derive(Debug)]
pub(super) struct MarkupElement {
    end_tag: &'static str,
    name: String,
    parameters: Vec<MarkupParameter>,
    state: MarkupState,
    /// Offset of the last `<` without a `>` after it.
    tag: Option<usize>,
    /// Offset where the value may have ended; only blanks have followed.
    value_end: Option<usize>,
}

#[derive(Debug)]
struct MarkupParameter {
    name: String,
    value: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkupState {
    /// In the opening tag.
    Begun,
    /// Between parameters.
    Outside,
    /// In the value of the last parameter.
    Value,
    Over,
}

/// Result of parsing one byte.
pub(super) enum MarkupStep {
    More,
    /// The element is complete.
    Over,
    /// The text is no element.
    Foreign,
}

impl MarkupElement {
    /// Starts an element whose tag begins at an offset.
    pub(super) fn new(at: usize, end_tag: &'static str) -> Self {
        Self {
            end_tag,
            name: String::new(),
            parameters: Vec::new(),
            state: MarkupState::Begun,
            tag: Some(at),
            value_end: None,
        }
    }

    /// Parses the byte at an offset.
    pub(super) fn take(&mut self, text: &str, at: usize) -> MarkupStep {
        match (text.as_bytes()[at], self.tag) {
            (b'<', _) if self.state == MarkupState::Begun => return MarkupStep::Foreign,
            (b'<', tag) => {
                // The `<` before this one was text.
                self.value_end = self.value_end.filter(|_| tag.is_none());
                self.tag = Some(at);
            }
            (b'>', Some(begin)) => {
                self.tag = None;
                return self.tag(text, begin..at + 1);
            }
            (_, Some(begin)) if self.state == MarkupState::Begun && at - begin > MAX_TAG_BYTES => {
                return MarkupStep::Foreign;
            }
            (byte, None) if !byte.is_ascii_whitespace() => self.value_end = None,
            _ => {}
        }
        MarkupStep::More
    }

    fn tag(&mut self, text: &str, place: Range<usize>) -> MarkupStep {
        let tag = Some(&text[place.clone()]).filter(|tag| tag.len() <= MAX_TAG_BYTES).unwrap_or_default();
        if self.state == MarkupState::Begun {
            let Some(name) = named(tag) else { return MarkupStep::Foreign };
            name.clone_into(&mut self.name);
            self.state = MarkupState::Outside;
            return MarkupStep::More;
        }
        let parameter = named(tag).filter(|_| PARAMETER.iter().any(|open| tag.starts_with(open)));
        let goes_on = parameter.is_some() || tag == self.end_tag;
        if self.state == MarkupState::Value {
            match self.value_end {
                Some(end) if goes_on => self.end_value(end),
                _ => {
                    self.value_end = (tag == PARAMETER_END).then_some(place.start);
                    return MarkupStep::More;
                }
            }
        }
        if tag == self.end_tag {
            self.state = MarkupState::Over;
            return MarkupStep::Over;
        }
        if let Some(name) = parameter {
            self.parameters.push(MarkupParameter { name: name.to_owned(), value: place.end..place.end });
            self.state = MarkupState::Value;
        }
        MarkupStep::More
    }

    fn end_value(&mut self, end: usize) {
        self.value_end = None;
        self.state = MarkupState::Outside;
        if let Some(parameter) = self.parameters.last_mut() {
            parameter.value.end = end;
        }
    }

    /// Returns the call, with truncated arguments if the element is incomplete. Returns `None` if
    /// the element has no name yet.
    pub(super) fn to_call(&self, text: &str, known: &KnownTools) -> Option<TextCall> {
        if self.state == MarkupState::Begun {
            return None;
        }
        let mut arguments = String::from("{");
        for (at, parameter) in self.parameters.iter().enumerate() {
            if at > 0 {
                arguments.push(',');
            }
            arguments.push_str(&json::to_text(&parameter.name));
            arguments.push(':');
            if self.state == MarkupState::Value && at + 1 == self.parameters.len() {
                let begun = json::to_text(&text[parameter.value.start..]);
                arguments.push_str(begun.strip_suffix('"').unwrap_or(&begun));
            } else {
                let value = trimmed(&text[parameter.value.clone()]);
                arguments.push_str(&json::to_text(&known.value(&self.name, &parameter.name, value)));
            }
        }
        if self.state == MarkupState::Over {
            arguments.push('}');
        }
        Some(TextCall { name: self.name.clone(), arguments })
    }
}

/// Returns the name in a tag: `<x=name>` or `<x name="name">`.
fn named(tag: &str) -> Option<&str> {
    let value = tag.split_once('=')?.1.strip_suffix('>')?.trim();
    let name = match value.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split(['"', '\'']).next().unwrap_or_default(),
        None => value,
    };
    Some(name).filter(|name| !name.is_empty() && !name.contains(char::is_whitespace))
}

/// Strips the line breaks between a value and its tags.
fn trimmed(value: &str) -> &str {
    let value = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n')).unwrap_or(value);
    value.strip_suffix("\r\n").or_else(|| value.strip_suffix('\n')).unwrap_or(value)
}
