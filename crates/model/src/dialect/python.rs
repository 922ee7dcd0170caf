//! Calls written as a Python list: `[name(a=1, b="x"), other()]`.

use std::{iter::Peekable, str::Chars};

use serde_json::Value;

use super::{TextCall, nesting::BracketNesting};
use crate::json;

/// Maximum nesting depth of a value.
const MAX_DEPTH: usize = 64;

/// Returns the calls of a list, which may be truncated. Returns `None` if the list holds anything
/// else.
pub(super) fn calls(text: &str) -> Option<Vec<TextCall>> {
    let mut rest = between(text.trim_start().strip_prefix('[')?);
    let mut found = Vec::new();
    while !rest.is_empty() && !rest.starts_with(']') {
        let open = rest.find('(')?;
        let name = rest[..open].trim();
        if name.is_empty() || !name.chars().all(is_name_char) {
            return None;
        }
        let length = BracketNesting::length_of(&rest[open..]);
        let end = length.map_or(rest.len(), |length| open + length);
        found.push(TextCall { name: name.to_owned(), arguments: arguments(&rest[open + 1..end]) });
        rest = between(&rest[end..]);
    }
    Some(found).filter(|found| !found.is_empty())
}

/// Returns true if the character may be part of a name, here and in `name{…}`.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Writes a list with one call.
pub(super) fn write(name: &str, arguments: &Value) -> String {
    let given: Vec<_> = arguments.as_object().into_iter().flatten().collect();
    let given = given.into_iter().map(|(name, value)| format!("{name}={}", literal(value)));
    format!("[{name}({})]", given.collect::<Vec<_>>().join(", "))
}

fn literal(value: &Value) -> String {
    let list = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) | Value::String(_) => json::to_text(value),
        Value::Array(items) => format!("[{}]", list(&mut items.iter().map(literal))),
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{}: {}", json::to_text(name), literal(value));
            format!("{{{}}}", list(&mut members.iter().map(member)))
        }
    }
}

/// Converts the text between the parentheses to JSON. Truncated text yields truncated JSON.
/// Anything but named values stays unchanged, so that the router reports it.
fn arguments(text: &str) -> String {
    let mut reader =
        PythonReader { rest: text.chars().peekable(), json: String::with_capacity(text.len() + 16) };
    match reader.arguments() {
        Ok(()) | Err(PythonParseError::Cut) => reader.json,
        Err(PythonParseError::Foreign) => text.to_owned(),
    }
}

fn between(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || c == ',')
}

/// Reason for an early end of parsing.
enum PythonParseError {
    Cut,
    Foreign,
}

/// Reads Python and writes JSON.
struct PythonReader<'a> {
    rest: Peekable<Chars<'a>>,
    json: String,
}

impl PythonReader<'_> {
    fn arguments(&mut self) -> Result<(), PythonParseError> {
        self.members(')', '{', '}', |reader| {
            let mut name = String::new();
            while let Some(c) = reader.rest.next_if(|c| is_name_char(*c)) {
                name.push(c);
            }
            reader.blanks();
            if name.is_empty() {
                return Err(PythonParseError::Foreign);
            }
            if reader.take()? != '=' {
                return Err(PythonParseError::Foreign);
            }
            reader.json.push_str(&json::to_text(&name));
            reader.json.push(':');
            reader.value(0)
        })
    }

    /// Reads members up to `end` and writes them between JSON brackets.
    fn members(
        &mut self,
        end: char,
        open: char,
        close: char,
        mut each: impl FnMut(&mut Self) -> Result<(), PythonParseError>,
    ) -> Result<(), PythonParseError> {
        self.json.push(open);
        let mut is_first = true;
        loop {
            self.blanks();
            if self.rest.next_if_eq(&end).is_some() {
                self.json.push(close);
                return Ok(());
            }
            if !is_first {
                self.separator(end)?;
                if self.rest.next_if_eq(&end).is_some() {
                    self.json.push(close);
                    return Ok(());
                }
                self.json.push(',');
            }
            is_first = false;
            self.peek()?;
            each(self)?;
        }
    }

    fn separator(&mut self, end: char) -> Result<(), PythonParseError> {
        match self.take()? {
            ',' => {
                self.blanks();
                Ok(())
            }
            c if c == end => Ok(()),
            _ => Err(PythonParseError::Foreign),
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), PythonParseError> {
        if depth > MAX_DEPTH {
            return Err(PythonParseError::Foreign);
        }
        self.blanks();
        match self.peek()? {
            '[' => self.list(']', depth),
            '(' => self.list(')', depth),
            '{' => {
                self.rest.next();
                self.members('}', '{', '}', |reader| {
                    if !matches!(reader.peek()?, '"' | '\'') {
                        return Err(PythonParseError::Foreign);
                    }
                    reader.string()?;
                    reader.blanks();
                    if reader.take()? != ':' {
                        return Err(PythonParseError::Foreign);
                    }
                    reader.json.push(':');
                    reader.value(depth + 1)
                })
            }
            '"' | '\'' => self.string(),
            _ => self.word(),
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Result<(), PythonParseError> {
        self.rest.next();
        self.members(end, '[', ']', |reader| reader.value(depth + 1))
    }

    /// Reads a number or a constant.
    fn word(&mut self) -> Result<(), PythonParseError> {
        let mut word = String::new();
        while let Some(c) = self.rest.next_if(|c| is_name_char(*c) || *c == '+') {
            word.push(c);
        }
        // A word at the end of the text may be incomplete.
        self.peek()?;
        let json = match word.as_str() {
            "True" | "true" => "true",
            "False" | "false" => "false",
            "None" | "null" => "null",
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
            _ => return Err(PythonParseError::Foreign),
        };
        self.json.push_str(json);
        Ok(())
    }

    fn string(&mut self) -> Result<(), PythonParseError> {
        let quote = self.take()?;
        self.json.push('"');
        let is_triple = match self.rest.next_if_eq(&quote) {
            None => false,
            Some(_) if self.rest.next_if_eq(&quote).is_some() => true,
            Some(_) => {
                self.json.push('"');
                return Ok(());
            }
        };
        let mut closing = 0;
        loop {
            let c = self.take()?;
            if c == quote {
                closing += 1;
                if !is_triple || closing == 3 {
                    self.json.push('"');
                    return Ok(());
                }
                continue;
            }
            for _ in 0..std::mem::take(&mut closing) {
                self.push(quote);
            }
            if c == '\\' { self.escape()? } else { self.push(c) }
        }
    }

    fn escape(&mut self) -> Result<(), PythonParseError> {
        let c = self.take()?;
        let plain = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '0' => '\0',
            '\\' | '\'' | '"' => c,
            '\n' => return Ok(()),
            'x' => self.code(2)?,
            'u' => self.code(4)?,
            'U' => self.code(8)?,
            // Python keeps the backslash of an unknown escape.
            other => {
                self.push('\\');
                other
            }
        };
        self.push(plain);
        Ok(())
    }

    fn code(&mut self, digits: usize) -> Result<char, PythonParseError> {
        let code = self.hex(digits)?;
        if !(0xd800..0xdc00).contains(&code) || digits != 4 {
            return char::from_u32(code).ok_or(PythonParseError::Foreign);
        }
        // A UTF-16 surrogate pair, the JSON notation, which models also use in Python.
        if (self.take()?, self.take()?) != ('\\', 'u') {
            return Err(PythonParseError::Foreign);
        }
        let low =
            self.hex(4)?.checked_sub(0xdc00).filter(|low| *low < 0x400).ok_or(PythonParseError::Foreign)?;
        char::from_u32(0x10000 + ((code - 0xd800) << 10) + low).ok_or(PythonParseError::Foreign)
    }

    fn hex(&mut self, digits: usize) -> Result<u32, PythonParseError> {
        let mut code: u32 = 0;
        for _ in 0..digits {
            let digit = self.take()?.to_digit(16).ok_or(PythonParseError::Foreign)?;
            code = code
                .checked_mul(16)
                .and_then(|code| code.checked_add(digit))
                .ok_or(PythonParseError::Foreign)?;
        }
        Ok(code)
    }

    /// Writes one character of a JSON string.
    fn push(&mut self, c: char) {
        match c {
            '"' | '\\' => self.json.extend(['\\', c]),
            '\n' => self.json.push_str("\\n"),
            c if c < ' ' => self.json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => self.json.push(c),
        }
    }

    fn blanks(&mut self) {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
    }

    fn peek(&mut self) -> Result<char, PythonParseError> {
        self.rest.peek().copied().ok_or(PythonParseError::Cut)
    }

    fn take(&mut self) -> Result<char, PythonParseError> {
        self.rest.next().ok_or(PythonParseError::Cut)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let found = calls(text).unwrap_or_default();
        found.into_iter().map(|found| (found.name, found.arguments)).collect()
    }

    fn one(arguments: &str) -> Vec<(String, String)> {
        vec![("f".to_owned(), arguments.to_owned())]
    }

    #[test]
    fn python_becomes_json() {
        let text = r#"[f(a=1, b="x\ty", c=[True, None, -2.5e3], d={'k': ('v', ")]")}, e='''it's''',)]"#;
        assert_eq!(
            read(text),
            one(r#"{"a":1,"b":"x\u0009y","c":[true,null,-2.5e3],"d":{"k":["v",")]"]},"e":"it's"}"#)
        );
        assert_eq!(read("[f()]"), one("{}"));
        assert_eq!(read(r#"[ f ( a = "\d\x41\u4e2d\ud83d\ude00" ) ]"#), one(r#"{"a":"\\dA中😀"}"#));
        assert_eq!(read("[f(), g.h(x='')]")[1], ("g.h".to_owned(), r#"{"x":""}"#.to_owned()));
    }

    #[test]
    fn what_is_cut_off_keeps_its_cut() {
        for (text, json) in [
            (r#"[f(a=1, b="x"#, r#"{"a":1,"b":"x"#),
            ("[f(a=1", r#"{"a":"#),
            ("[f(a", "{"),
            ("[f(", "{"),
            ("[f(a=[1, 2", r#"{"a":[1,"#),
            ("[f(a=1)", r#"{"a":1}"#),
        ] {
            assert_eq!(read(text), one(json), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_stays_as_it_is_and_nothing_is_guessed() {
        for inside in [r#""x")"#, "a=b)", "a=1 b=2)", "**x)", "a={1: 2})", r#"a="\ud800")"#] {
            assert_eq!(read(&format!("[f({inside}]")), one(inside));
        }
        assert_eq!(calls("[1, 2]"), None);
        assert_eq!(calls("[a b()]"), None);
        assert_eq!(calls("[]"), None);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("[f(a={}{})]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&deep).len(), 1);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(a in value(), b in value()) {
            let given = json!({"a": a, "b": b});
            let found = read(&write("f", &given));
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(serde_json::from_str::<Value>(&found[0].1).unwrap(), given);
        }

        #[test]
        fn anything_is_read_without_panic(text in "\\[?(f|[(){}\\[\\]\"'=,\\\\a1 xu])*") {
            calls(&text);
        }
    }
}
