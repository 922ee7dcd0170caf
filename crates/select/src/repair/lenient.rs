//! Parses text that is almost JSON: code fences, Python literals and quotes, trailing commas, bare
//! keys, raw line breaks.

use std::{collections::BTreeSet, iter::Peekable, str::Chars};

use serde_json::{Map, Number, Value};

use super::{ArgumentError, RepairMode};

/// Maximum nesting of a value, the same as for JSON.
const MAX_DEPTH: usize = 128;

/// Parses a value. Returns it with notes on the differences from JSON.
pub(super) fn read(text: &str, mode: RepairMode) -> Result<(Value, Vec<&'static str>), ArgumentError> {
    let mut notes = BTreeSet::new();
    let text = text.trim_start_matches('\u{feff}').trim();
    let text = match unfenced(text)? {
        Some(inner) => {
            notes.insert("the code fence around the arguments was taken off");
            inner
        }
        None => text,
    };
    let mut reader = LenientParser { rest: text.chars().peekable(), mode, notes };
    let value = reader.value(0)?;
    reader.skip_whitespace();
    match reader.rest.next() {
        None => Ok((value, reader.notes.into_iter().collect())),
        Some(_) => Err(ArgumentError::Unreadable),
    }
}

/// Returns the content of a code fence, if the text is one. A fence that does not close was
/// truncated.
fn unfenced(text: &str) -> Result<Option<&str>, ArgumentError> {
    let Some(rest) = text.strip_prefix("```") else { return Ok(None) };
    let inner = rest.strip_suffix("```").ok_or(ArgumentError::CutOff)?;
    let begin = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    Ok(Some(inner[begin..].trim()))
}

struct LenientParser<'a> {
    rest: Peekable<Chars<'a>>,
    mode: RepairMode,
    notes: BTreeSet<&'static str>,
}

type ParseResult<T> = Result<T, ArgumentError>;

impl LenientParser<'_> {
    fn value(&mut self, depth: usize) -> ParseResult<Value> {
        if depth > MAX_DEPTH {
            return Err(ArgumentError::Unreadable);
        }
        self.skip_whitespace();
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' | '\'' => self.string().map(Value::String),
            '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> ParseResult<Value> {
        let mut members = Map::new();
        self.rest.next();
        self.skip_commas();
        while !self.consume_end('}')? {
            let name = match self.peek()? {
                '"' | '\'' => self.string()?,
                _ => self.bare_key()?,
            };
            self.skip_whitespace();
            self.expect(':')?;
            let value = self.value(depth + 1)?;
            // It is impossible to know which of two values was meant.
            match members.get(&name) {
                Some(before) if *before != value && self.mode == RepairMode::Exact => {
                    return Err(ArgumentError::Repeated(format!(
                        "arguments.{}",
                        super::names::display_name(&name)
                    )));
                }
                Some(before) if *before != value => {
                    self.notes.insert("a name was there twice with different values; the last one was taken");
                }
                _ => {}
            }
            members.insert(name, value);
            self.separator('}')?;
            self.skip_commas();
        }
        Ok(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> ParseResult<Value> {
        let mut items = Vec::new();
        self.rest.next();
        while !self.consume_end(']')? {
            items.push(self.value(depth + 1)?);
            self.separator(']')?;
        }
        Ok(Value::Array(items))
    }

    /// Consumes the end character if it comes next.
    fn consume_end(&mut self, end: char) -> ParseResult<bool> {
        self.skip_whitespace();
        let closes = self.peek()? == end;
        if closes {
            self.rest.next();
        }
        Ok(closes)
    }

    /// Skips commas with nothing between them. In a list they could stand for a value; in an object
    /// they cannot.
    fn skip_commas(&mut self) {
        self.skip_whitespace();
        while self.rest.next_if(|c| *c == ',').is_some() {
            self.notes.insert("an extra comma was dropped");
            self.skip_whitespace();
        }
    }

    /// Consumes a comma, or nothing before the end.
    fn separator(&mut self, end: char) -> ParseResult<()> {
        self.skip_whitespace();
        if self.peek()? == end {
            return Ok(());
        }
        self.expect(',')?;
        self.skip_whitespace();
        if self.peek()? == end {
            self.notes.insert("a trailing comma was dropped");
        }
        Ok(())
    }

    fn bare_key(&mut self) -> ParseResult<String> {
        let name = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '-');
        // Text that ends within a key may have been truncated.
        self.peek()?;
        if name.is_empty() {
            return Err(ArgumentError::Unreadable);
        }
        self.notes.insert("names without quotes were read as names");
        Ok(name)
    }

    fn string(&mut self) -> ParseResult<String> {
        let quote = self.take()?;
        if quote == '\'' {
            self.notes.insert("single quotes were read as double quotes");
        }
        let mut text = String::new();
        loop {
            match self.take()? {
                c if c == quote => return Ok(text),
                '\\' => self.escape(&mut text)?,
                c => {
                    if c.is_control() && c < ' ' {
                        self.notes.insert("line breaks and tabs inside strings were kept as they are");
                    }
                    text.push(c);
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> ParseResult<()> {
        match self.take()? {
            c @ ('"' | '\\' | '/' | '\'') => text.push(c),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => text.push(self.unicode()?),
            // `\d` of a regular expression: most likely the backslash was meant literally.
            c if self.mode >= RepairMode::Likely => {
                self.notes.insert("a backslash that escapes nothing was kept as it is");
                text.extend(['\\', c]);
            }
            _ => return Err(ArgumentError::Unreadable),
        }
        Ok(())
    }

    fn unicode(&mut self) -> ParseResult<char> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or(ArgumentError::Unreadable);
        }
        self.expect('\\')?;
        self.expect('u')?;
        let low = self.hex()?.checked_sub(0xdc00).filter(|low| *low < 0x400);
        let low = low.ok_or(ArgumentError::Unreadable)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + low).ok_or(ArgumentError::Unreadable)
    }

    fn hex(&mut self) -> ParseResult<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + self.take()?.to_digit(16).ok_or(ArgumentError::Unreadable)?;
        }
        Ok(code)
    }

    fn number(&mut self) -> ParseResult<Value> {
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        let number: Result<Number, _> = serde_json::from_str(&text);
        number.map(Value::Number).map_err(|_| ArgumentError::Unreadable)
    }

    fn word(&mut self) -> ParseResult<Value> {
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
        let python = match word.as_str() {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "null" => return Ok(Value::Null),
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            _ => return Err(ArgumentError::Unreadable),
        };
        self.notes.insert("Python's True, False and None were read as JSON's");
        Ok(python)
    }

    fn skip_whitespace(&mut self) {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.rest.next_if(|c| wanted(*c)) {
            taken.push(c);
        }
        taken
    }

    fn peek(&mut self) -> ParseResult<char> {
        self.rest.peek().copied().ok_or(ArgumentError::CutOff)
    }

    fn take(&mut self) -> ParseResult<char> {
        self.rest.next().ok_or(ArgumentError::CutOff)
    }

    fn expect(&mut self, wanted: char) -> ParseResult<()> {
        if self.take()? == wanted { Ok(()) } else { Err(ArgumentError::Unreadable) }
    }
}
